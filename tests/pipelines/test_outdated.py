"""Tasks that a changed rule made wrong are withheld, each with its reason; the change is named once, with their number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder.audit import Depth, report
from env_builder.audit.reinstructed import Reinstructed
from env_builder.audit.targets import service_targets
from env_builder.verify import PLAYS, AuditedRoom, Verified, _TaskRows
from env_builder.world.history import instant
from pipelines.building.decisions import RULE_CHANGED
from pipelines.building.outdated import EndedAnswers, ended_answers, instructed_otherwise, without_outdated
from tests.env_builder.audit.test_outdated import AFTER, BEFORE, CHANGED_AT, environment, task, writes
from tests.env_builder.audit.test_reinstructed import NEW, OLD, at
from warehouse.records import Decision, Session, Task, Turn, frame, frame_schema
from warehouse.store import Store

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
SENTENCES = "sentences of instructions"


def verified(starts: dict[str, str], changed: bool, gone: dict[str, str] | None = None,
             instructed: dict[str, list[Reinstructed]] | None = None) -> Verified:
    """Return what is left of verified tasks that each close a box at its instant."""
    room = environment([writes("closed")], [writes("shut" if changed else "closed")])
    room.tasks = tuple(task(at)._replace(task_id=name) for name, at in starts.items())
    solutions = {name: [{"tool": "close", "arguments": {"box": "b1"}}] for name in starts}
    decisions = [Decision(stage="verify", subject=name, kept=True, reason="verified", detail="It holds.") for name in starts]
    decisions.append(Decision(stage="verify", subject="x", kept=False, reason="attacker_passes", detail="It does not hold."))
    side = _TaskRows({}, solutions, {}, service_targets(room, {}))
    verification = Verified(list(starts), frame(Decision, decisions), pl.DataFrame(schema=PLAYS), report({}, {}, Depth()), {})
    audited = AuditedRoom(room, side)  # type: ignore[arg-type]
    return without_outdated(verification, audited, "hall", EndedAnswers(gone or {}, {}), instructed or {})


def rows(one: Verified, stage: str) -> list[tuple[str, bool, str]]:
    return one.decisions.filter(pl.col("stage") == stage).select("subject", "kept", "reason").rows()


def test_tasks_of_before_are_withheld_and_the_change_is_named() -> None:
    one = verified({"a": BEFORE, "b": AFTER, "c": BEFORE}, True)
    assert one.task_ids == ["b"]
    assert rows(one, "verify") == [("a", False, RULE_CHANGED), ("b", True, "verified"), ("c", False, RULE_CHANGED),
                                   ("x", False, "attacker_passes")]
    assert rows(one, "drift") == [(f"hall/rules of close/{CHANGED_AT}", True, RULE_CHANGED)]
    details = dict(one.decisions.select("subject", "detail").iter_rows())
    assert "calls close, which answers by other rules since 2026-03-10" in details["a"]
    assert details[f"hall/rules of close/{CHANGED_AT}"].endswith("tasks withheld for it: 2.")


@pytest.mark.parametrize("starts", [{}, {"a": BEFORE, "b": AFTER}])
def test_a_change_that_touches_no_task_withholds_none(starts: dict[str, str]) -> None:
    one = verified(starts, False)
    assert one.task_ids == list(starts) and [kept for _, kept, _ in rows(one, "verify")] == [True] * len(starts) + [False]
    assert rows(one, "drift") == []


def test_a_tool_that_works_no_more_withholds_tasks_that_begin_before_its_last_call() -> None:
    one = verified({"a": BEFORE, "b": AFTER}, False, {"close": CHANGED_AT, "other": AFTER})
    assert one.task_ids == ["b"]
    [detail] = one.decisions.filter(pl.col("stage") == "drift")["detail"]
    assert detail == f"service hall: close worked last at {CHANGED_AT}; tasks withheld for it: 1."


def test_tasks_whose_family_is_served_otherwise_since_a_sentence_changed_are_withheld() -> None:
    change = Reinstructed("close", BEFORE, AFTER, NEW, True, False)
    one = verified({"a": BEFORE, "b": AFTER}, False, instructed={"f": [change]})
    assert one.task_ids == ["b"] and verified({"a": BEFORE}, False, instructed={"g": [change]}).task_ids == ["a"]
    assert verified({"a": BEFORE}, False, instructed={"f": [change._replace(tool="look", is_called=True)]}).task_ids == ["a"]
    [detail] = one.decisions.filter(pl.col("stage") == "drift")["detail"]
    assert detail == (f"service hall: no good session of a family calls close since {AFTER}, and their instructions say "
                      f'"{NEW}" since; tasks withheld for it: 1.')


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "warehouse.duckdb") as opened:
        yield opened


def called(tool: str, outcomes: str, began: datetime = BEGAN) -> list[dict[str, Any]]:
    """Return calls of a tool, one an hour: `w` worked, `r` was refused."""
    return [{
        "turn_id": f"{tool}{hour:03}", "session_id": "s", "service": "hall", "position": hour, "kind": "call", "role": None,
        "happened_at": began + timedelta(hours=hour), "content": "done" if outcome == "w" else f"Error: no tool {tool}",
        "call_id": None, "tool": tool, "arguments": "{}", "arguments_raw": None, "is_error": None, "requestor": None,
        "answered_at": None, "result_id": None, "latency_ms": None, "model": None} for hour, outcome in enumerate(outcomes)]


def test_tools_work_no_more_where_chance_does_not_explain_their_refusals(store: Store) -> None:
    store.append("core.turns", frame(Turn, [
        *called("gone", "w" * 30 + "r" * 12), *called("fickle", "wr" * 20 + "r" * 12), *called("late", "w" * 30 + "r" * 9),
        *called("never", "r" * 40), *called("back", "w" * 30 + "r" * 12 + "w"), *called("old", "w" * 3)]))
    assert ended_answers(store, "hall").tools == {"gone": instant(BEGAN + timedelta(hours=29))}
    assert ended_answers(store, "other") == ({}, {})
    store.append("core.sessions", frame(Session, [{
        "session_id": "s", "source": "main", "service": "hall", "started_at": BEGAN, "ended_at": BEGAN, "day": None,
        "n_messages": 0, "n_calls": 9, "identity": None, "format": "x", "other_session_ids": []}]))
    store.append("mart.decisions", frame(Decision, [
        Decision(stage="drift", subject=f"{source}/x/{of}/{tool}", kept=True, reason=reason, detail="It is called new.")
        for source, of, tool, reason in (
            ("main", "tools of call", "old", "renamed"), ("main", "tools of call", "late", "vanished"),
            ("main", "columns of call", "back", "renamed"), ("elsewhere", "tools of call", "fickle", "renamed"))]))
    assert set(ended_answers(store, "hall").tools) == {"gone", "old"}


def test_a_service_that_is_down_has_lost_no_tool(store: Store) -> None:
    store.append("core.turns", frame(Turn, [*called("one", "w" * 30 + "r" * 12), *called("two", "w" * 30 + "r" * 12)]))
    assert ended_answers(store, "hall").tools == {}
    store.append("core.turns", frame(Turn, called("three", "w" * 45)))
    assert set(ended_answers(store, "hall").tools) == {"one", "two"}


def test_a_refusal_ends_where_the_tool_refuses_in_new_words_since(store: Store) -> None:
    def refused(tool: str, texts: str) -> list[dict[str, Any]]:
        return [row | {"content": f"Error: {text}"} for text, row in zip(texts, called(tool, texts), strict=True)]

    store.append("core.turns", frame(Turn, [
        *refused("ended", "a" * 20 + "b" * 8), *refused("few", "a" * 20 + "b" * 2), *refused("known", "b" + "a" * 20 + "b" * 8),
        *refused("both", "ab" * 10 + "b" * 8), *refused("back", "a" * 20 + "b" * 8 + "a")]))
    assert ended_answers(store, "hall") == ({}, {("ended", "Error: a"): instant(BEGAN + timedelta(hours=19))})


def test_good_sessions_tell_of_changed_instructions_by_what_they_call(store: Store) -> None:
    tasks, turns = [], []
    for number in range(32):
        began = datetime.fromisoformat(at(number))
        tasks.append(dict.fromkeys(frame_schema(Task)) | {
            "task_id": f"t{number:02}", "service": "hall", "family": "f", "slots": "{}", "goal": "Close it.",
            "session_ids": [f"s{number}"], "starts_at": began, "succeeded_session_ids": [f"s{number}"], "split": "train",
            "call_sequences": "[]", "late_arguments": "[]", "reported_facts": "[]", "signature": "[]"})
        text = f"{OLD if number < 20 else NEW}\nGuest {number}."
        spoken = {"kind": "message", "role": "system", "content": text, "tool": None}
        made = [spoken, {"kind": "call", "role": None, "content": "done", "tool": "close" if number < 20 else "look"}]
        turns += [called("close", "w", began)[0] | row | {"turn_id": f"{number}.{place}", "session_id": f"s{number}",
                                                          "position": place} for place, row in enumerate(made)]
    store.append("mart.tasks", frame(Task, tasks))
    store.append("core.turns", frame(Turn, turns))
    assert instructed_otherwise(store, "hall") == {}
    store.append("core.sessions", frame(Session, [{
        "session_id": "s0", "source": "main", "service": "hall", "started_at": BEGAN, "ended_at": BEGAN, "day": None,
        "n_messages": 0, "n_calls": 9, "identity": None, "format": "x", "other_session_ids": []}]))
    store.append("mart.decisions", frame(Decision, [
        Decision(stage="drift", subject=f"{source}/x/{SENTENCES}/{NEW}", kept=True, reason="appeared", detail="N.")
        for source in ("main", "elsewhere")]))
    expected = [Reinstructed(tool, at(19), at(20), NEW, True, tool == "look") for tool in ("close", "look")]
    assert instructed_otherwise(store, "hall") == {"f": expected} and instructed_otherwise(store, "other") == {}
