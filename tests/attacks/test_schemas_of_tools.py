"""Tools whose schemas refer elsewhere, to themselves, or hold patterns without end: calls are answered at once, and nobody
else is asked."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from env_builder.process import start_process
from tests.attacks.report import Report
from tests.rooms import TASK, write_room


def deep(depth: int) -> dict[str, object]:
    """Return a schema of great depth."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"door": schema}}
    return schema


SCHEMAS = ({"type": "object", "properties": {"door": {"type": "string", "pattern": "^(a+)+$"}}},
    {"$ref": "http://127.0.0.1:1/schema"}, {"$ref": "file:///etc/passwd"}, {"$ref": "#"},
           {"type": "object", "properties": {"door": {"$ref": "#/properties/door"}}}, {"allOf": [{"$ref": "#"}] * 20},
           deep(150), {"type": "god"}, {"type": 5}, {"enum": []}, [], None, "x",
           {"type": "object", "patternProperties": {"(a+)+$": {}}}, {"required": "door"}, {"type": "object",
           "properties": {"door": {"maxLength": -1}}}, {"format": "regex"})


def attack(folder: Path, share: float) -> Report:
    """Give the recorded tool each schema, and call it with a text on which patterns go back and forth."""
    problems = []
    for number, schema in enumerate(SCHEMAS if share >= 0.1 else SCHEMAS[:8]):
        room = write_room(folder / str(number) / "hall")
        tools = [json.loads(line) for line in (room / "tools.jsonl").read_text("utf-8").split("\n") if line]
        tools[0]["inputSchema"] = schema
        (room / "tools.jsonl").write_text("".join(json.dumps(each) + "\n" for each in tools))
        begun = time.monotonic()
        try:
            with start_process(room, TASK) as process:
                process.tools()
                begun = time.monotonic()
                for door in ("a" * 40 + "!", "7"):
                    process.call("open_door", {"door": door, "a" * 40 + "!": 1})
        except Exception as error:
            problems += [f"{str(schema)[:60]}: {type(error).__name__}: {error}"] if "hint" not in dir(error) else []
        problems += [f"{str(schema)[:60]}: {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 20 else []
        shutil.rmtree(folder / str(number))
    return Report(len(SCHEMAS), tuple(problems))


@pytest.mark.slow
def test_a_schema_holds_nobody_up(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
