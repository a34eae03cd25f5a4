"""A tool that changed has one program a version, found by time; a room uses the one of its instant."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.behaviour import find_versions
from env_builder.rooms import Rows, rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.records import Result
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


def rows_of_log(calls: list[tuple[str, dict[str, Any], str]]) -> Rows:
    """Rows of a service that all sessions share, each of which makes one call (tool, arguments, answer) an hour."""
    at = [BEGAN + timedelta(hours=hour) for hour in range(len(calls))]
    sessions = frame(Session, [
        {"session_id": f"s{n}", "source": "main", "service": "main", "started_at": hour, "ended_at": hour, "day": None,
         "n_messages": 0, "n_calls": 1, "identity": None, "format": "x"} for n, hour in enumerate(at)])
    turns = frame(Turn, [
        {"turn_id": f"t{n}", "session_id": f"s{n}", "service": "main", "position": 0, "happened_at": at[n], "kind": "call",
         "role": None, "content": answer, "call_id": None, "tool": tool, "arguments": json.dumps(arguments),
         "arguments_raw": None, "is_error": None, "requestor": None, "answered_at": at[n], "result_id": None,
         "latency_ms": None, "model": None} for n, (tool, arguments, answer) in enumerate(calls)])
    built = world.build(sessions, turns, empty(Tool), {"main": "shared"})
    return rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))


def answered(rows: Rows, hour: int | None, tool: str, arguments: dict[str, Any]) -> Result:
    """Return what a room says at the hour, None: after all of them."""
    view = View(None if hour is None else instant(BEGAN + timedelta(hours=hour)), frozenset())
    room = EpisodeState(World(rows.facts, rows.recorded), {each["tool"]: each for each in rows.programs}, view)
    return room.call(tool, arguments)


def test_a_room_answers_by_the_version_of_its_instant() -> None:
    rows = rows_of_log([
        ("greet", {"who": f"guest {n}"}, f"{'Hello' if n < 20 else 'Good day,'} guest {n}.") for n in range(40)])
    assert [version["until"] for version in rows.programs[0]["versions"]] == [instant(BEGAN + timedelta(hours=20))]
    assert [answered(rows, hour, "greet", {"who": "guest 77"}).content for hour in (3, 19, 20, 39, None)] == [
        "Hello guest 77."] * 2 + ["Good day, guest 77."] * 3


def weighing(n_before: int, n_after: int) -> Rows:
    """Rows of a tool that answers so many grams a box, and more after the first calls."""
    boxes = [11 + n * 7 % 30 for n in range(n_before + n_after)]
    return rows_of_log([("weigh", {"boxes": number}, json.dumps({"grams": number * (40 if n < n_before else 45)}))
                        for n, number in enumerate(boxes)])


def test_a_computed_answer_shows_no_record_and_its_factor_may_change() -> None:
    rows = weighing(30, 12)
    assert [version["until"] for version in rows.programs[0]["versions"]] == [instant(BEGAN + timedelta(hours=30))]
    assert [answered(rows, hour, "weigh", {"boxes": 200}).content for hour in (3, 29, 30, 41)] == [
        '{"grams": 8000}'] * 2 + ['{"grams": 9000}'] * 2
    assert answered(rows, 41, "weigh", {"boxes": 18}).content == '{"grams": 810}', "though it was answered 720 before"


def test_few_answers_by_another_factor_prove_it_and_two_do_not() -> None:
    rows = weighing(30, 4)
    assert answered(rows, 33, "weigh", {"boxes": 200}).content == '{"grams": 9000}'
    rows = weighing(30, 2)
    assert "versions" not in rows.programs[0]
    assert [answered(rows, hour, "weigh", {"boxes": 200}).tier for hour in (3, 31)] == ["unknown"] * 2


def test_a_record_that_repeats_its_key_is_not_computed() -> None:
    rows = rows_of_log([("seat", {"number": 1000 + n}, json.dumps({"number": 1000 + n, "free": True})) for n in range(20)])
    assert [rule["rule"] for rule in rows.programs[0]["rules"]] == ["recorded", "document"]
    assert answered(rows, 19, "seat", {"number": 4000}).tier == "unknown"


def test_a_number_in_a_sentence_that_changed_is_another_version() -> None:
    rows = rows_of_log([("fee", {"piece": f"piece {n % 26}"}, f"For piece {n % 26} it is {5 if n < 26 else 8} crowns.")
                        for n in range(46)])
    assert [answered(rows, hour, "fee", {"piece": "piece 90"}).content for hour in (25, 26, 45)] == [
        "For piece 90 it is 5 crowns.", *["For piece 90 it is 8 crowns."] * 2]
