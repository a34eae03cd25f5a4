"""Rows of a small shop that exporters take."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from env_builder.exports import DatasetSource
from warehouse.records import Outcome, Task, Tool, Turn, frame, frame_schema


def _turn(session_id: str, position: int, **fields: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(frame_schema(Turn))
    return {**row, "turn_id": f"{session_id}-{position}", "session_id": session_id, "service": "shop", "position": position,
            **fields}


def _session(session_id: str, calls: list[tuple[str, str, str]], model: str = "m-1") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"kind": "message", "role": "user", "content": "open it"}]
    rows += [{"kind": "call", "tool": tool, "arguments": given, "arguments_raw": given, "content": said, "model": model,
              "is_error": False} for tool, given, said in calls]
    rows.append({"kind": "message", "role": "assistant", "content": f"done after {len(calls)}", "model": model})
    return [_turn(session_id, place, **row) for place, row in enumerate(rows)]


@pytest.fixture
def shop() -> DatasetSource:
    """Three tasks: one gone about well and badly, one failed, one tried twice in the same way."""
    turns = [
        *_session("good", [("look", "{}", "door 7"), ("open", '{"door":7,"key":"a"}', "open")]),
        *_session("near", [("look", "{}", "door 7"), ("open", '{"door":7,"key":"b"}', "no")]),
        *_session("far", [("shut", '{"window":{"at":1.50}}', "shut")], "m-2"),
        *_session("failed", [("look", "{}", "door 7"), ("shut", "{}", "shut")]),
        *_session("same1", [("look", "{}", "x")]), *_session("same2", [("look", "{}", "x")]),
    ]
    tasks = []
    for task_id, split, band, sessions, good in (
            ("t1", "train", "often", ["far", "good", "near"], ["good"]), ("t2", "train", "rarely", ["failed"], []),
            ("t3", "held_out", None, ["same1", "same2"], ["same1", "same2"])):
        tasks.append({**dict.fromkeys(frame_schema(Task)), "task_id": task_id, "service": "shop", "family": f"f-{task_id}",
                      "slots": "{}", "goal": "open it", "session_ids": sessions, "succeeded_session_ids": good, "split": split,
                      "difficulty_band": band})
    chances = {"good": 0.9, "near": 0.2, "far": 0.1, "failed": 0.0, "same1": 0.8, "same2": 0.7}
    outcomes = [{"session_id": name, "probability": chance, "signals": "[]"} for name, chance in chances.items()]
    tools = [{"service": "shop", "tool": name, "description": None, "input_schema": "{}", "declared": True,
              "annotations": None, "n_calls": 1} for name in ("look", "open", "shut")]
    published = pl.DataFrame({
        "task_id": ["t2"], "family_id": ["f-t2"], "split": ["train"], "goal": ["open it"],
        "opening": ['[{"role":"user","content":"open it"}]'], "rubric_id": ["r2"],
        "solution": ['[{"tool":"look","arguments":{}},{"tool":"open","arguments":{"door":7}}]']})
    return DatasetSource("shop", "digest", frame(Task, tasks), frame(Turn, turns), frame(Outcome, outcomes), frame(Tool, tools),
                  published=published)
