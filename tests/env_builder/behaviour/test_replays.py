"""Held-out replay answers each half of the sessions by rules from the other half, and says what is not measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour.trials import half_of, held_out, on_cassette
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

SHOW: dict[str, Any] = {"rule": "document", "class": "box", "argument": "box", "before": "", "after": ""}


def looked(session: int, text: str) -> LoggedStep:
    made = call("show", {"box": "b"}, text, f"s{session}")
    return LoggedStep(made, (), ("box", "b", text), False, False, None, ())


def shares(
    steps: list[LoggedStep], whole: dict[str, Any], induced: Callable[[list[LoggedStep]], list[dict[str, Any]]]
) -> tuple[float | None, float | None]:
    """Return (exact of what the other half's rules answer, share that they do not answer)."""
    measured = held_out(steps, whole, induced)
    assert measured is not None
    return measured.rules.exact, measured.rules.abstains


def program(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"tool": "show", "effect": "read", "class": "box", "relation": {}, "rules": [{"rule": "recorded"}, *rules]}


def test_what_all_others_saw_alike_is_answered_and_held_against_what_was_seen() -> None:
    same = [looked(session, '{"kilos": 3}') for session in range(12)]
    assert shares(same, program(SHOW), lambda half: [{"rule": "recorded"}, SHOW]) == (1.0, 0.0)
    other = [*same[:-1], looked(11, '{"kilos": 4}')]
    exact, abstains = shares(other, program(SHOW), lambda half: [SHOW])
    assert exact is not None and abstains is not None and (exact, abstains) != (1.0, 0.0)


def test_the_rules_of_the_one_half_answer_the_other() -> None:
    steps = [looked(session, f'{{"kilos": {session}}}') for session in range(12)]
    asked: list[set[str]] = []

    def induced(half: list[LoggedStep]) -> list[dict[str, Any]]:
        asked.append({step.call.session_id for step in half})
        return [{"rule": "constant", "content": half[0].call.content}]

    assert shares(steps, program({"rule": "constant", "content": ""}), induced) == (0.0, 0.0)
    assert asked[0].isdisjoint(asked[1]) and len(asked[0] | asked[1]) == 12 and all(asked)


def test_what_cannot_be_measured_so_has_no_figure() -> None:
    steps = [looked(session, "{}") for session in range(4)]
    assert held_out(steps, program(), lambda half: []) is None
    assert held_out(steps, program({"rule": "rows"}), lambda half: []) is None
    assert shares(steps, program(SHOW), lambda half: []) == (None, 1.0), "the other half finds nothing"


def test_rules_that_a_cassette_beats_are_known_as_such() -> None:
    steps = [looked(session, '{"kilos": 3}') for session in range(12)]
    wrong = held_out(steps, program({"rule": "constant", "content": ""}), lambda half: [{"rule": "constant", "content": "x"}])
    assert wrong is not None and wrong.is_beaten and (wrong.n_won, wrong.n_lost) == (0, 12)
    right = held_out(steps, program(SHOW), lambda half: [SHOW])
    assert right is not None and not right.is_beaten and right.cassette.exact == 1.0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=30))
def test_a_cassette_answers_what_the_other_half_was_asked(seen: list[tuple[int, int]]) -> None:
    steps = [looked(session, str(kilos)) for session, kilos in seen]
    trial = on_cassette(steps)
    halves = {half_of(step) for step in steps}
    assert trial.n == len(steps) and trial.n_exact + trial.n_wrong == (len(steps) if len(halves) == 2 else 0)
    assert trial.exact in (None, 1.0) or len({kilos for _, kilos in seen}) > 1
