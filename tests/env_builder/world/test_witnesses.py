"""Sessions that work on one case from the same state are one witness."""

from __future__ import annotations

from collections.abc import Iterable

from env_builder.behaviour.trials import half_of
from env_builder.world import begin, documents, effects, replay, witnesses, worlds
from env_builder.world.calls import LoggedCall
from env_builder.world.history import beginnings, facts
from tests.env_builder.world.calls import call

CASES = range(8)
RUNS = range(3)


def run_of(case: int, run: int, level: int | None = None) -> list[LoggedCall]:
    """Return a session: what one person asks of a tank, whose level the case decides."""
    name, level = f"s{case}-{run}", 10 * case if level is None else level
    steps = [("tank", {}, f'{{"level": {level}}}'), ("greet", {}, "hello"), ("plan", {"trip": case}, f'{{"trip": {case}}}'),
             ("owner", {"of": f"o{case}"}, f'{{"owner": "o{case}", "level": {level}}}'),
             ("note", {"text": f"n{case}"}, "noted")]
    return [call(tool, arguments, content, name, place) for place, (tool, arguments, content) in enumerate(steps)
            if place != run + 1 or run == 0]


def sessions(cases: Iterable[int] = CASES) -> list[LoggedCall]:
    return [each for case in cases for run in RUNS for each in run_of(case, run)]


def names(calls: list[LoggedCall]) -> dict[str, str]:
    return {each.session_id: each.witness for each in witnesses.marked(calls)}


def test_runs_of_one_case_are_one_witness_and_cases_are_several() -> None:
    of_session = names(sessions())
    assert len(set(of_session.values())) == len(CASES)
    assert all(of_session[f"s{case}-{run}"] == f"s{case}-0" for case in CASES for run in RUNS)


def test_a_session_that_was_told_something_else_at_first_is_a_witness_of_its_own() -> None:
    other = [each._replace(session_id="t") for each in run_of(3, 0, level=777)]
    assert names([*sessions(), *other])["t"] == "t"


def test_sessions_that_share_one_question_are_no_witness() -> None:
    calls = [call("order", {"id": session % 5}, f'{{"total": {session}}}', f"s{session}") for session in range(40)]
    assert all(session == witness for session, witness in names(calls).items())


def test_sessions_count_where_all_cases_are_told_the_same() -> None:
    calls = [each for case in CASES for run in RUNS for each in run_of(case, run, level=5)]
    assert all(session == witness for session, witness in names(calls).items())


def test_what_runs_of_one_case_agree_on_does_not_speak_for_other_cases() -> None:
    calls = sessions()
    shown = documents.find(calls)
    done = effects.find(calls, shown, False, {})
    steps = list(replay.steps(witnesses.marked(calls), shown, replay.skeletons(calls, shown, done, False)))
    assert beginnings(steps).chance("tank") < 0.2
    levels = [row for row in facts("main", steps, {}, False).recorded if row["tool"] == "tank"]
    assert levels and all(row["session_id"] is not None for row in levels)
    by_case = {step.call.session_id[:2]: half_of(step) for step in steps}
    assert all(half_of(step) == by_case[step.call.session_id[:2]] for step in steps), "halves part no case"


def test_cases_that_are_each_worked_on_often_are_no_worlds() -> None:
    calls = [each._replace(session_id=f"{each.session_id}-{n}") for n in range(4) for each in sessions(range(3))]
    assert begin.find(calls, documents.find(calls)).starts_from == "reset"
    assert worlds.find(sorted(calls, key=lambda each: (each.session_id, each.position))) is None
