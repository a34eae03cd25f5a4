"""A world that goes on during an episode: other work happens as the clock moves, the episode's own never."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.apps import Start
from env_builder.runtime.apps.identities import SessionUsers
from env_builder.runtime.company import CompanyWorld, Undecided
from env_builder.runtime.office.company import CompanyEpisode, CompanySetup, CompanySuite
from tests.small_company import ADA, BEN, CLEO, fields_of, mail_of, world_of

NOON = "2026-03-02T12:00:00Z"
TASK = "t1"


def slot(number: int, at: float, **more: Any) -> list[Any]:
    """Return a sack of a shelf as a record, with where the export reports it."""
    return [version._replace(record=f"sacks.json#{number}") for version in fields_of("sack", f"s{number}", at, **more)]


def letters() -> list[Any]:
    own = mail_of("<own@x>", 90, BEN, [ADA], "Yours", "the answer")
    return [*mail_of("<old@x>", -90, BEN, [ADA], "Rye", "rye"), *(version._replace(record="own.eml") for version in own),
            *mail_of("<new@x>", 100, CLEO, [ADA], "Oats", "oats")]


WORLD = world_of(letters(), slot(1, -10, weight=1, owner="Ada", marks=["a"]), slot(1, 100, weight=5), slot(1, 130, marks=["b"]),
                 slot(2, 110, weight=7), slot(3, 115, weight=8))


def suite(world: CompanyWorld = WORLD, own: tuple[str, ...] = ("mail:<own@x>", "sacks.json#2")) -> CompanySuite:
    conventions = {"gmail": {"ids": {"algorithm": "sha1", "before": "", "length": 8}}}
    return CompanySuite("mill", CompanySetup(world, {each: {"person": each} for each in (ADA, BEN, CLEO)}, SessionUsers(
        {"session": ADA}), ("gmail",), conventions, world_goes_on={TASK: own}))


def episode(task: str | None = TASK) -> CompanyEpisode:
    return suite().reset(Start(NOON, frozenset({"session"}), task_id=task))


def mails(own: CompanyEpisode) -> int:
    """Return how many letters a search finds; the call takes a minute."""
    text = own.call("search_gmail_messages", {"query": "in:anywhere"}).content
    return text.count("\n- ID:")


def test_other_work_happens_as_the_clock_moves_and_the_own_work_never() -> None:
    own = episode()
    assert [mails(own) for _ in range(4)] == [1, 1, 2, 2]   # at 0, 60, 120 and 180 seconds
    assert own.desk.exists("sack", "s3") and own.desk.value("sack", "s1", "weight") == 5
    assert not own.desk.exists("sack", "s2") and not own.desk.exists("mailbox", f"{ADA}|<own@x>")
    assert own.desk.now == pytest.approx(episode().desk.now + 240)
    assert own.difference() == {"documents": {}, "write_calls": []}   # what others do is not the episode's doing


def test_the_world_stands_still_where_no_task_asks_for_more() -> None:
    for own in (episode(None), episode("another")):
        assert [mails(own) for _ in range(4)] == [1, 1, 1, 1] and own.desk.now == episode().desk.now


def test_forks_and_snapshots_go_on_alike() -> None:
    own = episode()
    mails(own)
    before = own.snapshot()
    fork = own.fork()
    first = [mails(own) for _ in range(3)]
    assert [mails(fork) for _ in range(3)] == first == [1, 2, 2]
    own.restore(before)
    assert not own.desk.exists("sack", "s3") and [mails(own) for _ in range(3)] == first


def test_of_one_field_the_last_change_counts_and_of_a_list_it_is_open() -> None:
    own = episode()
    own.desk.write("sack", "s1", weight=2, marks=["a", "mine"], owner="Ben")
    mails(own), mails(own)
    assert own.desk.value("sack", "s1", "weight") == 2
    mails(own), mails(own)
    assert own.desk.value("sack", "s1", "weight") == 5 and own.desk.value("sack", "s1", "owner") == "Ben"
    assert own.desk.changed_at("sack", "s1", "weight") == pytest.approx(episode().desk.now + 100)
    with pytest.raises(Undecided):
        own.desk.value("sack", "s1", "marks")
    own.desk.write("sack", "s1", weight=9)
    assert own.desk.value("sack", "s1", "weight") == 9


def test_what_the_episode_made_is_not_mixed_with_a_later_record_of_its_id() -> None:
    own = episode()
    assert own.desk.next_id("sack") == "s2"   # the own work's, which nobody else makes now
    own.desk.write("sack", "s3", owner="Ada")
    assert own.desk.next_id("sack") == "s2"
    for _ in range(4):
        mails(own)
    assert own.desk.value("sack", "s3", "weight") is None and own.desk.fields("sack", "s3") == ["owner"]
    assert own.desk.record("sack", "s3") == {"owner": "Ada"} and own.desk.next_id("sack") == "s2"


_CHANGES = st.lists(st.tuples(st.integers(1, 200), st.sampled_from("abcd"), st.integers(0, 9)), max_size=12)


@given(_CHANGES, st.sets(st.sampled_from("abcd")), st.integers(0, 4))
def test_the_state_is_that_of_a_world_in_which_the_own_work_was_never_done(
        changes: list[tuple[int, str, int]], own: set[str], n_calls: int) -> None:
    versions = [version for at, key, weight in changes for version in fields_of("sack", key, at, weight=weight)]
    others = [version for version in versions if version.entity_id not in own]
    apps = suite(world_of(versions), tuple(f"sack:{key}" for key in own))
    going = apps.reset(Start(NOON, frozenset({"session"}), task_id=TASK))
    for _ in range(n_calls):
        mails(going)
    last = max(0, (n_calls - 1) * 60)
    state = world_of(others).at(round((going.desk.now - n_calls * 60 + last) * 1e6))
    rows = {key: going.desk.value("sack", key, "weight") for key in going.desk.ids("sack")}
    assert json.dumps(rows, sort_keys=True) == json.dumps(
        {key: state.guess("sack", key, "weight") for key in state.ids("sack")}, sort_keys=True)
