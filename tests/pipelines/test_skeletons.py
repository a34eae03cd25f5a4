"""A declared service without logs comes up as a skeleton that says so, and gives way to its first sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from env_builder.runtime import Environment
from pipelines.running.run import run
from pipelines.settings import Settings
from tests.openapi_document import DOCUMENT
from warehouse.store import Store


def _run(logs: Path, out: Path) -> None:
    run(Settings(logs=(str(logs),), out=str(out), image=False, privacy=False))


def _session(number: int) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "get_shelf", "arguments": '{"shelf": "B1"}'}}
    return {"session_id": f"s{number}", "service": "reading-desk", "messages": [
        {"role": "user", "content": f"What is on shelf B1, please? I am reader {number}."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"shelf": "B1", "places": 7}'},
        {"role": "assistant", "content": "It has 7 places."}]}


def test_a_document_alone_gives_a_skeleton_of_which_nothing_is_verified(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "api.json").write_text(json.dumps(DOCUMENT))
    out = tmp_path / "out"
    _run(tmp_path / "logs", out)
    environment = Environment.load(out / "unverified" / "reading-room")
    assert environment.tasks == () and not (out / "environments").exists()
    assert environment.manifest["coverage"]["assumed"] == {"n_tools": 1, "share": 0.5}
    assert environment.manifest["coverage"]["never_called"] == ["POST /slips", "get_shelf"]
    assert all(tool["description"].startswith("Assumed from its declaration") for tool in environment.tools)
    assert "A3" not in json.dumps(environment.tools), "the example is an answer, not a part of the schema"
    environment.reset(None)
    shown, made = environment.call("get_shelf", {"shelf": "B1"}), environment.call("POST /slips", {"volume": "V"})
    assert (shown.tier, json.loads(shown.content)) == ("assumed", {"shelf": "A3", "places": 12})
    assert made.tier == "unknown" and "no evidence" in made.content
    assert [row["tier"] for row in environment.unknown_writes] == ["assumed", "unknown"]
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read("select subject, kept from mart.decisions where reason = 'only_declared'").rows()
    assert rows == [("reading-room", False)]


def test_the_first_sessions_take_the_place_of_what_was_assumed(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    (logs / "api.json").write_text(json.dumps(DOCUMENT))
    _run(logs, out)
    (logs / "day.jsonl").write_text("".join(json.dumps(_session(number)) + "\n" for number in range(3)))
    _run(logs, out)
    assert not (out / "unverified" / "reading-room").exists()
    environment = next(Environment.load(path.parent) for path in sorted(out.glob("*/*/manifest.json")))
    environment.reset(environment.tasks[0].task_id)
    result = environment.call("get_shelf", {"shelf": "B1"})
    assert result.tier != "assumed" and json.loads(result.content) == {"shelf": "B1", "places": 7}
    assert environment.call("get_shelf", {"shelf": "Z9"}).tier == "unknown", "an example answers nothing once there are logs"
    assert {tool["name"] for tool in environment.tools} == {"POST /slips", "get_shelf"}, "the document still lists its tools"


def test_a_skeleton_that_was_removed_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    out = tmp_path / "out"
    _run(tmp_path / "api.json", out)
    manifest = out / "unverified" / "reading-room" / "manifest.json"
    written = manifest.read_text()
    manifest.unlink()
    _run(tmp_path / "api.json", out)
    assert manifest.read_text() == written
