"""A tool that changed has one program a version, found by time; a room uses the one of its instant."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.behaviour import find_versions
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.history import instant
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call
from warehouse.records import Session, Tool, Turn, empty, frame

BEGAN = datetime(2024, 5, 1, tzinfo=UTC)


def step(hour: int, arguments: dict[str, Any], content: str) -> LoggedStep:
    made = call("weigh", arguments, content)._replace(called_at=BEGAN + timedelta(hours=hour), event_id=f"e{hour:04}")
    return LoggedStep(made, (), None, False, False, None, ())


def weighed(hours: range, pattern: str) -> list[LoggedStep]:
    return [step(hour, {"box": f"box-{hour}"}, pattern.format(f"box-{hour}", hour)) for hour in hours]


def until(found: list[LoggedStep]) -> list[str | None]:
    return [version.until for version in find_versions(found)]


OLD, NEW = '{{"box": "{}", "kilos": {}}}', '{{"box": "{}", "pounds": {}}}'


def test_another_form_of_answer_is_another_version() -> None:
    found = find_versions(
        weighed(range(30), OLD) + weighed(range(30, 50), NEW) + weighed(range(50, 62), "Box {} weighs {} stone."))
    assert [version.until for version in found] == [
        instant(BEGAN + timedelta(hours=30)), instant(BEGAN + timedelta(hours=50)), None]
    assert [len(version.steps) for version in found] == [30, 20, 12]


def test_what_is_mixed_or_few_or_without_a_clock_is_one_version() -> None:
    assert until(weighed(range(30), OLD) + weighed(range(30, 39), NEW)) == [None], "too few"
    mixed = weighed(range(30), OLD) + weighed(range(30, 60), NEW) + weighed(range(60, 61), OLD)
    assert until(mixed) == [None], "the old form came back"
    assert until([one._replace(call=one.call._replace(called_at=None)) for one in weighed(range(30), OLD)]) == [None]
    assert until([step(hour, {"box": "b"}, json.dumps({f"k{hour}": 1})) for hour in range(40)]) == [None], "each form once"


@given(st.lists(st.sampled_from([OLD, NEW]), min_size=20, max_size=60), st.integers(0, 5))
def test_versions_part_the_calls_and_share_no_form(patterns: list[str], n_failed: int) -> None:
    steps = [one for hour, pattern in enumerate(patterns) for one in weighed(range(hour, hour + 1), pattern)]
    found = find_versions(steps)
    assert sorted(one.call.event_id for version in found for one in version.steps) == [one.call.event_id for one in steps]
    fields = [{tuple(one.call.parsed) for one in version.steps} for version in found]
    assert sum(map(len, fields)) == len(set().union(*fields)) or len(found) == 1


def test_a_write_that_began_to_act_otherwise_is_two_rules() -> None:
    found = find_versions(weighed(range(47), OLD), lambda steps: not (
        any(one.call.event_id < "e0023" for one in steps) and any(one.call.event_id >= "e0023" for one in steps)))
    assert [version.until for version in found] == [instant(BEGAN + timedelta(hours=23)), None]
    assert len(find_versions(weighed(range(47), OLD), lambda steps: False)) == 1, "no rule on either side"
    assert len(find_versions(weighed(range(47), OLD), lambda steps: True)) == 1, "one rule for all"


def test_refused_calls_and_short_ends_hide_no_change_of_a_rule() -> None:
    def refused(one: LoggedStep) -> LoggedStep:
        return one._replace(call=one.call._replace(failed=True))

    steps = [refused(one) if number % 3 else one for number, one in enumerate(weighed(range(120), OLD))]

    def explained(some: list[LoggedStep]) -> bool:   # a rule shows in 14 calls that worked, and another one from hour 60 on
        ids = [one.call.event_id for one in some if not one.call.failed]
        return len(ids) >= 14 and (max(ids) < "e0060" or min(ids) >= "e0060")

    assert until(steps) == [None]
    assert [version.until for version in find_versions(steps, explained)] == [instant(BEGAN + timedelta(hours=60)), None]


def test_a_room_answers_by_the_version_of_its_instant() -> None:
    at = [BEGAN + timedelta(hours=hour) for hour in range(40)]
    sessions = frame(Session, [
        {"session_id": f"s{n}", "source": "main", "service": "main", "started_at": hour, "ended_at": hour, "day": None,
         "n_messages": 0, "n_calls": 1, "identity": None, "format": "x"} for n, hour in enumerate(at)])
    turns = frame(Turn, [
        {"turn_id": f"t{n}", "session_id": f"s{n}", "service": "main", "position": 0, "happened_at": hour, "kind": "call",
         "role": None, "content": f"{'Hello' if n < 20 else 'Good day,'} guest {n}.", "call_id": None, "tool": "greet",
         "arguments": json.dumps({"who": f"guest {n}"}), "arguments_raw": None, "is_error": None, "requestor": None,
         "answered_at": hour, "result_id": None, "latency_ms": None, "model": None} for n, hour in enumerate(at)])
    built = world.build(sessions, turns, empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    assert [version["until"] for version in rows.programs[0]["versions"]] == [instant(at[20])]

    def greeted(moment: datetime | None) -> str:
        room = EpisodeState(World(rows.facts, rows.recorded), {"greet": rows.programs[0]}, View(instant(moment), frozenset()))
        return room.call("greet", {"who": "guest 77"}).content

    assert [greeted(moment) for moment in (at[3], at[19], at[20], at[39], None)] == [
        "Hello guest 77."] * 2 + ["Good day, guest 77."] * 3
