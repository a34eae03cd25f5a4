"""A room whose tools are as awkward as a log may hold them: names that no language takes, schemas that say too much.

Its tasks and answers are those of `tests/rooms.py`; `STEPS` are a good episode with a call of each tool, arguments of every
kind of JSON beside each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from env_builder.exports import Kit
from env_builder.exports.kit import kit_of
from tests.rooms import TASK, write_rewards, write_room

Row = dict[str, Any]
SENTENCE = 'Args: none. NoReturns: "nothing" (choices: ["a"]). Raises: <tool_call>{"name": 1}</tool_call>\n\n  雨\u2028'
_ODD = {
    "at": {"type": "string"}, "from": {"type": "integer"}, "x-y": {"enum": ["a", "b", None, 3]},
    "x_y": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "self": {"type": ["number", "null"]}, "return": {"type": "string"}, "m²": {"type": "number"},
    "Straße·雨": {"type": "string"}, "": {"type": "boolean"}, "_p": {}, "7": True, "kind": {"const": "k"},
    "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "deep": {"$ref": "#/$defs/deep"}, "None": {"type": "null"}, "why": {"type": "string", "description": SENTENCE}}
TOOLS: list[Row] = [
    {"name": "open_door", "description": SENTENCE * 30, "inputSchema": {"type": "object"}},
    {"name": "read_sign", "description": "Read it.", "inputSchema": {
        "type": "object", "properties": _ODD, "required": ["at"], "$defs": {"deep": {"type": "object"}}}},
    {"name": "reset", "description": "", "inputSchema": {}},
    {"name": "get_reward", "description": None, "inputSchema": {"type": "object", "properties": None, "required": None}},
    {"name": "_hidden", "description": "hidden", "inputSchema": {"type": "object", "properties": {"of": {"type": "array"}}}},
    {"name": "class", "description": "class", "inputSchema": {"type": "object", "properties": {"is": {"enum": []}}}},
    {"name": "say", "description": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "object"}}}},
    {"name": "POST /räume/{id} – 開く", "description": "a route", "inputSchema": {
        "type": "object", "required": ["id"],
        "properties": {"id": {"type": ["string", "integer"]}, "body": {"type": "object"}}}},
    {"name": "n" * 200, "description": "n", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
]
STEPS: list[Row] = [
    {"tool": "open_door", "arguments": {"door": "7"}},
    {"tool": "read_sign", "arguments": {"at": "gate"}},
    {"tool": "read_sign", "arguments": {
        "at": "gate", "from": 2**53, "x-y": None, "x_y": [{"n": 1, "m": None}, {}], "self": -0.5, "return": "r", "m²": 1e-7,
        "Straße·雨": "😀\u2028\\", "": False, "_p": [[], {"": None}], "7": 7, "kind": "k", "either": None,
        "deep": {"a": {"b": []}}, "None": None, "why": "", "in no schema": {"door": 1}}},
    {"tool": "read_sign", "arguments": {}},
    {"tool": "reset", "arguments": {}},
    {"tool": "get_reward", "arguments": {"1.0": True}},
    {"tool": "_hidden", "arguments": {"of": [1, "1", None, [], {}]}},
    {"tool": "class", "arguments": {"is": "any"}},
    {"tool": "say", "arguments": {"text": {"text": "say"}}},
    {"tool": "POST /räume/{id} – 開く", "arguments": {"id": "7", "body": {"a": [1.5, "x"]}}},
    {"tool": "POST /räume/{id} – 開く", "arguments": {"id": 7, "body": {"b": None}}},
    {"tool": "n" * 200, "arguments": {"a": "a" * 3000}},
]


def hostile(folder: Path) -> Kit:
    """Return the kit of such a room, written below `folder`; its limit leaves room for all steps."""
    room = write_room(folder / "environments" / "an-odd-desk")
    tasks = [json.loads(line) for line in (room / "tasks.jsonl").read_text("utf-8").splitlines()]
    _lines(room / "tasks.jsonl", [{**task, "limits": {**task["limits"], "steps": 50}} for task in tasks])
    _lines(room / "tools.jsonl", TOOLS)
    _lines(room / "behaviour.jsonl", [
        {"tool": tool["name"], "effect": "write" if tool["name"] == "open_door" else "read", "rules": [{"rule": "recorded"}],
         "support": {}} for tool in TOOLS])
    return kit_of(room, write_rewards(room))


def episode() -> Row:
    """{"name", "task_id", "steps"}: each tool called, and words that end it."""
    return {"name": "hostile", "task_id": TASK, "steps": [*STEPS, {"say": "It is open."}]}


def _lines(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8", newline="\n")
