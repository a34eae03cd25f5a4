"""The real sets, counted: what a set is said to hold comes out exactly."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from tests.extractors.conftest import ReadSet

COUNTS = {
    "airline": {"sessions": 120, "calls": 779, "answered": 779, "tools": 14, "feedback": 47},
    "desks": {"sessions": 401, "calls": 3692, "answered": 3692, "tools": 29, "feedback": 0},
    "office": {"sessions": 1428, "calls": 4671, "answered": 4649, "tools": 22, "feedback": 0},
    "human_desk": {"sessions": 3732, "calls": 13525, "answered": 13525, "tools": 24, "feedback": 4930},
    "retail_desk": {"sessions": 1600, "calls": 7414, "answered": 7414, "tools": 15, "feedback": 509},
    "shop_app": {"calls": 9302, "answered": 9302, "tools": 16, "feedback": 0},
}


MARK = "###STOP###"
"""What the harness of one set has its users say at the end."""


def made(read_set: ReadSet, name: str) -> tuple[AssembledSessions, float]:
    events, declared = read_set(name)
    started = time.process_time()
    return assemble(events, declared), time.process_time() - started


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_a_set(name: str, read_set: ReadSet) -> None:
    sessions, cpu_s = made(read_set, name)
    calls = sessions.turns.filter(pl.col("kind") == "call")
    found = {"sessions": sessions.sessions.height, "calls": calls.height, "answered": calls["result_id"].count(),
             "tools": sessions.tools.height, "feedback": sessions.feedback.height}
    assert {key: found[key] for key in COUNTS[name]} == COUNTS[name]
    assert cpu_s < 60, "sessions of the largest set take seconds"


def test_row_changes_of_a_living_database(data: Path) -> None:
    files, _ = discover([data / "retail_desk"], only=["cdc"])
    changes = assemble(pl.concat([read(each).events for each in files])).row_changes
    assert changes.filter(pl.col("operation") != "snapshot").height == 4644
    assert changes["happened_at"].is_sorted() and changes["change_id"].is_unique().all()
    created = changes.filter(pl.col("operation") == "create")
    assert created["before"].null_count() == created.height and created["after"].null_count() == 0


@pytest.mark.parametrize("name", ["airline", "office"])
def test_turns_are_the_messages_as_logged(name: str, data: Path, read_set: ReadSet) -> None:
    """Every text and every answer of the log, in the log's order, byte for byte, but for the mark of the harness."""
    turns = made(read_set, name)[0].turns.sort("session_id", "position")
    mine = {session_id: list(zip(rows["kind"], rows["content"], strict=True))
            for (session_id,), rows in turns.group_by("session_id", maintain_order=True)}
    for session_id, messages in _logged(data / name):
        assert mine[session_id] == [(kind, _without_mark(text)) for kind, text in _steps(messages)], session_id


def _without_mark(text: str | None) -> str | None:
    return text.replace(MARK, "").strip() or None if text and MARK in text else text


def _logged(folder: Path) -> Iterator[tuple[str, list[dict[str, object]]]]:
    for path in sorted((folder / "logs").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            yield row["session_id"], row["messages"]


def _steps(messages: list[dict[str, object]]) -> list[tuple[str, str | None]]:
    """(kind, content): a plain reader to compare with. A result answers its id's latest open call, else the oldest one."""
    steps: list[list[object]] = []
    waiting: list[tuple[object, list[object]]] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text") or part.get("content") or "" for part in content)
        if message["role"] == "tool":
            wanted = message.get("tool_call_id")
            chosen = next((each for each in reversed(waiting) if wanted and each[0] == wanted), waiting[0])
            chosen[1][1] = content
            waiting.remove(chosen)
            continue
        calls = message.get("tool_calls") or []
        assert isinstance(calls, list)
        if content or not calls:
            steps.append(["message", content])
        for call in calls:
            step: list[object] = ["call", None]
            steps.append(step)
            waiting.append((call.get("id"), step))
    return [(str(kind), content) for kind, content in steps]
