"""What comes before a tool acts, and which looks belong to the work of a family."""

from __future__ import annotations

from env_builder.rewards.preparation import FEWEST, preparation_checks, preparations, usual_tools
from env_builder.rewards.witness import SAY, Witness
from tests.env_builder.rewards.test_conduct import DONE, LOOK, OPEN, PAY, witness

ASK = "Who are you, please?"
ACTING, READING = frozenset({OPEN, PAY}), frozenset({LOOK})


def careful(n: int) -> list[Witness]:
    return [witness(f"g{k:02}", ASK, LOOK, OPEN, DONE) for k in range(n)]


def test_what_nearly_all_do_first_is_a_step() -> None:
    steps = preparations(careful(FEWEST), ACTING, READING)
    assert [(each.tool, each.first) for each in steps] == [(OPEN, (SAY,)), (OPEN, (LOOK,))]
    assert [each.names for each in steps] == ["speaking", LOOK]
    assert preparations(careful(FEWEST - 1), ACTING, READING) == [], "too few to say"


def test_a_few_that_skip_a_look_do_not_hide_it() -> None:
    skipping = witness("z", ASK, OPEN, DONE)
    (look,) = [each for each in preparations([*careful(19), skipping], ACTING, READING) if each.first == (LOOK,)]
    assert look.kept_by(skipping) is False and look.kept_by(witness("p", ASK, PAY)) is None
    assert len(look.supporting) == 19
    assert preparations([*careful(6), *(witness(f"z{n}", OPEN) for n in range(4))], ACTING, READING) == []


def test_all_sessions_of_a_service_tell_where_few_good_ones_can() -> None:
    few, bad = careful(FEWEST - 1), [witness(f"b{n}", LOOK, OPEN) for n in range(3)]
    assert [each.first for each in preparations(few, ACTING, READING, [*few, *bad])] == [(LOOK,)]
    lazy = [witness(f"l{n}", OPEN) for n in range(2)]
    assert preparations([*few, *lazy], ACTING, READING, [*few, *lazy, *bad, *careful(20)]) == [], "good sessions skip it"


def test_a_task_gets_the_gates_that_its_good_sessions_keep() -> None:
    good = careful(FEWEST)
    gates = preparation_checks(good[:1], preparations(good, ACTING, READING))
    assert [(each.kind, each.role, each.parameters["second"]) for each in gates] == [("order", "gate", [{"tool": OPEN}])] * 2
    assert gates[0].provenance["support"] == FEWEST
    assert preparation_checks([witness("q", LOOK, DONE)], preparations(good, ACTING, READING)) == [], "it never opens"


def test_tools_of_nearly_all_sessions_are_usual() -> None:
    assert usual_tools([*careful(4), witness("p", ASK, PAY)]) == {LOOK, OPEN}
    assert usual_tools(careful(3)) == frozenset()
