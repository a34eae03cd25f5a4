"""Programs that stand from one arrival of logs to the next: what keeps them, what refutes them, and that both are stable."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest

from env_builder import world
from env_builder.behaviour import LearntBehaviours, learn
from env_builder.behaviour.standing import ENOUGH_SESSIONS, ProgramLedger
from env_builder.runtime.canonical import canonical
from warehouse.records import LearntProgram, Session, Tool, Turn, empty, frame

BASE, NIGHT = ENOUGH_SESSIONS, 40
Hired = Callable[[str, str, int], str]


def document(crane: str, **more: Any) -> str:
    """Return what is known of a crane."""
    return json.dumps({"crane": crane, "tons": int(crane[2:]) % 7 + 2, "status": "free", "by": None} | more)


def hired(crane: str, by: str, session: int) -> str:
    """Return what hiring a crane gives, always."""
    return document(crane, status="hired", by=by)


def booked(crane: str, by: str, session: int) -> str:
    """Return what it gives where the night's release calls it otherwise."""
    return document(crane, status="hired" if session < BASE else "booked", by=by)


def refused(crane: str, by: str, session: int) -> str:
    """Return what it gives where guests are refused from the night on."""
    return "Error: guests cannot hire" if session >= BASE and session % 3 == 0 else hired(crane, by, session)


@cache
def rows(n_sessions: int, says: Hired) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(sessions, turns) in which a crane is looked at, and hired."""
    choose, turns = random.Random(5), []
    for session in range(n_sessions):
        crane, by = f"C-{1000 + session}", f"P{choose.randrange(1, 40)}"
        calls: list[tuple[str, dict[str, Any], str]] = [
            ("crane", {"crane": crane}, document(crane)), ("hire", {"crane": crane, "by": by}, says(crane, by, session))]
        turns += [{
            "turn_id": f"{session}-{position}", "session_id": f"s{session:03}", "service": "yard", "position": position,
            "happened_at": None, "kind": "call", "role": None, "content": content, "call_id": None, "tool": tool,
            "arguments": canonical(arguments), "arguments_raw": None, "is_error": content.startswith("Error"),
            "requestor": None, "answered_at": None, "result_id": None, "latency_ms": None, "model": None}
            for position, (tool, arguments, content) in enumerate(calls)]
    sessions = [{
        "session_id": f"s{session:03}", "source": "yard", "service": "yard", "started_at": None, "ended_at": None, "day": None,
        "n_messages": 0, "n_calls": 2, "identity": None, "format": "test"} for session in range(n_sessions)]
    return frame(Session, sessions), frame(Turn, turns)


def learnt(n_sessions: int, before: LearntBehaviours | None = None, says: Hired = hired, code: str = "code",
           order: int | None = None) -> LearntBehaviours:
    """Return what is learnt of the first sessions with the ledger of `before`; `order`: by which rows are shuffled."""
    sessions, turns = rows(n_sessions, says)
    if order is not None:
        sessions, turns = (each.sample(fraction=1, shuffle=True, seed=order) for each in (sessions, turns))
    own = {} if before is None else {
        (one["service"], one["tool"]): LearntProgram(**one) for one in before.programs.to_dicts()}
    epochs = {f"s{session:03}": 1 if session < BASE else 2 for session in range(n_sessions)}
    return learn(world.build(sessions, turns, empty(Tool), {}), empty(Tool), ProgramLedger(code, epochs, own))


def program(of: LearntBehaviours, tool: str) -> str:
    """Return the program of a tool."""
    return str(of.behaviours.filter(pl.col("tool") == tool)["program"].item())


@pytest.fixture(scope="module")
def base() -> LearntBehaviours:
    """Return what is learnt before the night."""
    return learnt(BASE)


def test_where_nothing_changes_nothing_is_learnt_and_what_stands_is_what_learning_gives(base: LearntBehaviours) -> None:
    night = learnt(BASE + NIGHT, base)
    assert (base.n_learnt, night.n_learnt) == (2, 0)
    assert night.programs.equals(base.programs) and set(base.programs["tool"]) == {"crane", "hire"}
    whole = learnt(BASE + NIGHT)
    assert all(program(night, tool) == program(whole, tool) for tool in ("crane", "hire"))
    assert night.behaviours["n_support"].equals(whole.behaviours["n_support"]), "calls are those of today"


@pytest.mark.parametrize("says", [booked, refused])
def test_a_rule_that_changes_is_learnt_again_in_the_same_night_and_then_stands(base: LearntBehaviours, says: Hired) -> None:
    night = learnt(BASE + NIGHT, base, says)
    assert night.n_learnt == 1
    assert program(night, "hire") == program(learnt(BASE + NIGHT, says=says), "hire") != program(base, "hire")
    again = learnt(BASE + NIGHT, night, says)
    assert again.behaviours.equals(night.behaviours) and again.programs.equals(night.programs)
    assert again.n_learnt == 0 and dict(night.programs.select("tool", "epoch").iter_rows()) == {"crane": 1, "hire": 2}


def test_a_build_with_the_ledger_of_the_nights_gives_what_they_gave(base: LearntBehaviours) -> None:
    for says in (hired, booked):
        night = learnt(BASE + NIGHT, base, says)
        full = learnt(BASE + NIGHT, night, says)
        assert full.behaviours.equals(night.behaviours) and full.programs.equals(night.programs)


@pytest.mark.parametrize("order", [3, 11])
def test_the_order_within_an_epoch_does_not_matter(base: LearntBehaviours, order: int) -> None:
    before = learnt(BASE, order=order)
    assert before.programs.equals(base.programs)
    night, plain = (learnt(BASE + NIGHT, base, booked, order=shuffled) for shuffled in (order, None))
    assert night.behaviours.equals(plain.behaviours) and night.programs.equals(plain.programs)
    assert night.n_learnt == plain.n_learnt == 1


@cache
def asked(n_sessions: int, moved: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the same sessions, in which the crane is sought by its plate first; `moved`: since the night by its tag."""
    sessions, turns = rows(n_sessions, hired)
    looks = turns.filter(pl.col("tool") == "crane").sort("session_id")
    number = pl.col("session_id").str.slice(1).cast(pl.Int64)
    plate = pl.when((number >= BASE) & moved).then(number + 5000).otherwise(number + 1000)
    sought = looks.with_columns(
        turn_id=pl.format("{}-sought", "session_id"), position=pl.lit(-1, pl.Int64()), tool=pl.lit("seek"),
        arguments=pl.concat_str(pl.lit('{"plate":"T '), plate, pl.lit('"}')), content=pl.format("C-{}", number + 1000))
    marks = pl.concat_str(pl.lit(', "plate": "T '), number + 1000, pl.lit('", "tag": "T '), number + 5000, pl.lit('"}'))
    plated = pl.when(pl.col("tool") == "crane").then(pl.col("content").str.replace(r"\}$", "") + marks).otherwise("content")
    return sessions, pl.concat([turns.with_columns(plated), sought])


@pytest.mark.parametrize("moved", [False, True])
def test_a_tool_that_finds_a_record_stands_until_it_finds_by_another_field(moved: bool) -> None:
    def seek(n_sessions: int, before: LearntBehaviours | None = None) -> LearntBehaviours:
        epochs = {f"s{session:03}": 1 if session < BASE else 2 for session in range(n_sessions)}
        own = {} if before is None else {
            (one["service"], one["tool"]): LearntProgram(**one) for one in before.programs.to_dicts()}
        built = world.build(*asked(n_sessions, moved), empty(Tool), {})
        return learn(built, empty(Tool), ProgramLedger("code", epochs, own))

    before = seek(BASE)
    assert '"rule":"find"' in program(before, "seek") and "seek" in set(before.programs["tool"])
    night = seek(BASE + NIGHT, before)
    stands = dict(night.programs.select("tool", "epoch").iter_rows()).get("seek") == 1
    assert stands is not moved and (program(night, "seek") == program(before, "seek")) is not moved
    assert program(night, "seek") == program(seek(BASE + NIGHT), "seek")


def test_a_small_log_keeps_no_programs() -> None:
    few = learnt(ENOUGH_SESSIONS - 1)
    assert few.programs.is_empty() and learnt(ENOUGH_SESSIONS - 1, learnt(BASE)).n_learnt == 2


def test_other_code_and_calls_that_grew_by_half_are_learnt_from(base: LearntBehaviours) -> None:
    assert learnt(BASE, base, code="better").n_learnt == 2
    young = base._replace(programs=base.programs.with_columns(n_examples=pl.when(pl.col("tool") == "hire").then(150).otherwise(
        pl.col("n_examples"))))
    night = learnt(BASE + NIGHT, young)
    assert night.n_learnt == 1 and night.programs.filter(pl.col("epoch") == 2)["tool"].to_list() == ["hire"]
