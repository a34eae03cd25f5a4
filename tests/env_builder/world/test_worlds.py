"""Logs that mix worlds are split, and logs of one world, or of a state for each session, are not."""

from __future__ import annotations

import random
from datetime import timedelta

import polars as pl
import pytest

from env_builder.world import SeveralWorlds, read_logs, worlds
from env_builder.world import split_worlds as split_by_log
from env_builder.world.attributes import Separation, spread, tell
from env_builder.world.calls import LoggedCall
from tests.env_builder.world.calls import call
from tests.lockers import EPOCH, Logged


def split_worlds(sessions: pl.DataFrame, turns: pl.DataFrame) -> SeveralWorlds | None:
    """Split the sessions by what their turns tell."""
    return split_by_log(sessions, turns, *read_logs(sessions, turns).values())


def tenants(n: int, shared: bool, *seeds: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions and turns of several backends in one log, hour by hour in turn; whose they are is in their ids."""
    sessions, turns = [], []
    for seed in seeds:
        logged = Logged(seed, n, shared)
        for frames, own in ((sessions, logged.sessions), (turns, logged.turns)):
            frames.append(own.with_columns(session_id=pl.format(f"{{}}-of-{seed}", "session_id")))
    return pl.concat(sessions), pl.concat(turns)


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (8, 9), (5, 6, 7)])
def test_sessions_of_several_backends_are_split(seeds: tuple[int, ...]) -> None:
    found = split_worlds(*tenants(120, False, *seeds))
    assert found is not None
    of_world: dict[int, list[str]] = {}
    for session, world in found.of_session.items():
        of_world.setdefault(world, []).append(session.partition("-of-")[2])
    assert len(of_world) == len(seeds)
    for own in of_world.values():
        assert max(map(own.count, own)) >= 0.97 * len(own)
    assert len(found.of_session) > 0.6 * 120 * len(seeds) and found.separation is None


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("seed", range(1, 13))
def test_sessions_of_one_backend_are_not_split(seed: int, shared: bool) -> None:
    assert split_worlds(*tenants(240, shared, seed)) is None


def test_an_attribute_that_goes_with_the_world_is_named_and_tells_the_others() -> None:
    sessions, turns = tenants(120, False, 1, 2)
    owner = pl.when(pl.col("session_id").str.ends_with("-1")).then(pl.lit("north")).otherwise(pl.lit("south"))
    found = split_worlds(sessions.with_columns(identity=owner), turns)
    assert found is not None and found.separation is not None and found.separation.attribute == "identity"
    assert set(found.of_session) == set(sessions["session_id"]), "those that nothing contradicts are told by their identity"


def looks(word: dict[tuple[int, str], str], n: int) -> list[LoggedCall]:
    """Sessions an hour apart, each shown what `word` says of (its number, entity)."""
    choose = random.Random(5)
    return [
        call("show", {"of": name}, f'{{"colour": "{word[number, name]}"}}', f"s{number:03}", place)._replace(
            called_at=EPOCH + timedelta(hours=number))
        for number in range(n) for place, name in enumerate(sorted(choose.sample("abcdefgh", 3)))]


def test_a_state_of_its_own_for_each_session_is_no_world() -> None:
    choose = random.Random(1)
    states = {(number, name): choose.choice("xyz") for number in range(200) for name in "abcdefgh"}
    assert worlds.find(looks(states, 200)) is None


def test_worlds_in_blocks_of_time_are_changes() -> None:
    def blocks(hours: int) -> list[LoggedCall]:
        return looks({(number, name): f"{name}{number // hours % 2}" for number in range(200) for name in "abcdefgh"}, 200)
    assert worlds.find(blocks(1)) is not None
    assert worlds.find(blocks(50)) is None


def test_what_tells_worlds_apart_must_hold_for_nearly_all_sessions() -> None:
    labels = {f"s{n}": n % 2 for n in range(100)}
    values = {session: "ab"[world] for session, world in labels.items()}
    assert tell({"team": values, "session": {name: name for name in labels}}, labels) == Separation("team", 100, 100)
    assert tell({"team": values | {f"s{n}": "a" for n in range(12)}}, labels) is None
    assert spread(values | {"x": "b", "y": "c"}, labels) == labels | {"x": 1}
