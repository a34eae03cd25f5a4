"""What functions gave on another day: kept while it is asked for, and never in the way of what is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.rewards import mine
from env_builder.rooms import differences
from env_builder.users import scripts
from extractors.tasks import find
from pipelines.running.cache import memoized
from warehouse.records import Memoize, always
from warehouse.store import Store

JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2))
NIGHTS = st.lists(st.lists(JSON, max_size=6), min_size=1, max_size=4)


def night(store: Store, asked: list[Any], stage: str = "tasks", code: str = "code") -> list[Any]:
    """Asks for all of it; gives what had to be made."""
    made: list[Any] = []

    def make(value: Any) -> Any:
        made.append(value)
        return [value, "seen"]

    with memoized(store, stage, code) as memoize:
        assert [memoize(["of", value], lambda value=value: make(value)) for value in asked] == [
            [value, "seen"] for value in asked]
    return made


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "warehouse.duckdb"


@settings(max_examples=30, deadline=None)
@given(nights=NIGHTS)
def test_only_what_the_last_night_did_not_ask_is_made(warehouse: Path, nights: list[list[Any]]) -> None:
    with Store.open(warehouse) as store:
        night(store, [])
        before: list[str] = []
        for asked in nights:
            made = [repr(value) for value in night(store, asked)]
            assert made == [text for text in dict.fromkeys(map(repr, asked)) if text not in before]
            before = [*dict.fromkeys(map(repr, asked))]
            assert store.count("raw.cache") == len(before)


def test_other_stages_and_other_code_count_for_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        assert night(store, [1, 2]) == [1, 2]
        assert night(store, [1], "rewards") == [1]
        assert night(store, [2]) == []
        assert store.count("raw.cache") == 2, "what is not asked for any more goes"
        assert night(store, [2], code="other code") == [2]
        assert night(store, [2], code="other code") == []
        assert night(store, [1], "rewards", "other code") == [1]


def test_a_stage_that_fails_leaves_what_was_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        night(store, [1])
        with pytest.raises(RuntimeError, match="no"), memoized(store, "tasks", "code") as memoize:
            memoize(["of", 5], lambda: [5])
            raise RuntimeError("no")
        assert night(store, [1]) == []


class Memory:
    """Remembers as `memoized` does, and says what it had to make."""

    def __init__(self) -> None:
        self.told: dict[bytes, bytes] = {}
        self.n_made = 0

    def __call__(self, arguments: object, make: Callable[[], Any], holds: Callable[[Any], bool] = always) -> Any:
        key = orjson.dumps(arguments)
        if key not in self.told or not holds(orjson.loads(self.told[key])):
            self.n_made += 1
            self.told[key] = orjson.dumps(make())
        return orjson.loads(self.told[key])


@pytest.fixture(scope="module")
def seen(run_once: tuple[Path, str]) -> dict[str, pl.DataFrame]:
    """Tables of a run over twenty sessions."""
    names = ("core.sessions", "core.turns", "mart.outcomes", "mart.behaviours", "mart.facts", "mart.recorded", "mart.tasks")
    with Store.published(run_once[0] / "warehouse.duckdb") as store:
        return {name: store.table(name) for name in names}


def made_of(seen: dict[str, pl.DataFrame], names: list[str], memoize: Memoize | None) -> list[pl.DataFrame]:
    """Return what comes of these sessions: tasks and families, scripts, rubrics."""
    own = pl.col("session_id").is_in(names)
    sessions, turns, outcomes = (seen[name].filter(own) for name in ("core.sessions", "core.turns", "mart.outcomes"))
    effects = seen["mart.behaviours"].select(
        "service", "tool", "effect", presumed="effect", counted="effect")
    told: dict[str, Any] = {} if memoize is None else {"memoize": memoize}
    found = find(sessions, turns, outcomes, effects, {"airline": "reset"}, **told)
    played = differences(sessions, turns, *(seen[f"mart.{name}"] for name in ("facts", "recorded", "behaviours")))
    mined = mine(found.tasks, sessions, turns, outcomes, played, effects, **told)
    return [found.tasks, found.families, scripts(found.tasks, turns, **told), mined.rubrics, mined.decisions]


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_sessions_give_the_same_in_whatever_order_they_come(seen: dict[str, pl.DataFrame], data: st.DataObject) -> None:
    names = data.draw(st.permutations(seen["core.sessions"]["session_id"].to_list()))
    cuts = [*sorted(data.draw(st.sets(st.integers(1, len(names) - 1), max_size=2))), len(names)]
    memory = Memory()
    for cut in cuts:
        for kept_one, new in zip(made_of(seen, names[:cut], memory), made_of(seen, names[:cut], None), strict=True):
            assert kept_one.equals(new)
    n_made = memory.n_made
    assert n_made > len(names), "it is asked for each session's values, words and facts"
    made_of(seen, names[::-1], memory)
    assert memory.n_made == n_made, "what came before is not made again"
