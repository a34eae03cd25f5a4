"""A small room written by hand in the documented format (docs/environment.md), for tests of what carries rooms.

Two tools: `read_sign` answers from the record, `open_door` changes a door and is answered once. One task, with a user who
has one thing to say after the opening.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from env_builder import bundle
from env_builder.layers import room_digest
from env_builder.runtime.canonical import canonical, digest

TASK = "t" * 64
CLOSED, OPEN = '{"door": "7", "state": "closed"}', '{"door": "7", "state": "open"}'
RUNTIME = Path(__file__).resolve().parent.parent / "env_builder" / "runtime"


def write_room(directory: Path, dockerfile: str = "FROM scratch\n") -> Path:
    """Write the room into `directory`; returns it."""
    door = {"from": None, "to": None, "session": None, "event": "e1"}
    _lines(directory / "tools.jsonl", [
        {"name": name, "description": f"{name}, in words: äöü \u2028 😀", "inputSchema": {"type": "object"}}
        for name in ("open_door", "read_sign")])
    _lines(directory / "behaviour.jsonl", [
        {"tool": "open_door", "effect": "write", "rules": [{"rule": "recorded"}], "support": {}},
        {"tool": "read_sign", "effect": "read", "rules": [{"rule": "recorded"}], "support": {}}])
    _lines(directory / "world.jsonl", [{**door, "class": "door", "key": "7", "value": CLOSED, "derivation": "seen"}])
    _lines(directory / "recorded.jsonl", [
        {**door, "tool": "open_door", "arguments": '{"door":"7"}', "content": OPEN, "is_error": False, "after": [],
         "effects": [{"class": "door", "key": "7", "value": OPEN}]},
        {**door, "tool": "read_sign", "arguments": '{"at":"gate"}', "content": "Mind the gap\n — 雨", "is_error": False,
         "after": [], "effects": []}])
    _lines(directory / "tasks.jsonl", [{
        "task_id": TASK, "session_ids": ["s1"], "split": "train", "family": "f", "slots": {}, "goal": "open it",
        "starts_at": None, "segment_of": None, "derived_from": None, "limits": {"steps": 5, "seconds": 600},
        "opening": [{"role": "user", "content": "Open the door."}], "user": {"turns": ["The seventh, please."]}}])
    shutil.copytree(RUNTIME, directory / "runtime", ignore=shutil.ignore_patterns("__pycache__", *bundle.SHIPPED))
    (directory / "Dockerfile").write_text(dockerfile)
    files = {
        path.relative_to(directory).as_posix(): digest(path.read_bytes())
        for path in sorted(directory.rglob("*")) if path.is_file()
    }  # fmt: skip
    covered = "".join(f"{path}\0{content_hash}\n" for path, content_hash in sorted(files.items()) if path != "Dockerfile")
    (directory / "manifest.json").write_text(canonical({
        "format": "traceroom-environment/2", "name": directory.name, "service": directory.name, "files": files,
        "apps": [{"name": "records", "kind": "records", "path": "."}],
        "content_digest": digest(covered), "room_digest": room_digest(files),
        "image": {"skip_reason": f"not asked for in {directory}"}}))
    return directory


def write_rewards(room: Path) -> Path:
    """Write the grader's side beside the room (OUT/environments/NAME): the door has to be open, nothing else, and nobody may
    knock at the roof; returns it."""
    rewards = room.parent.parent / "rewards" / room.name
    end = {"documents": {"door/7": OPEN}, "write_calls": []}

    def gate(kind: str, **parameters: Any) -> dict[str, Any]:
        return {
            "check_id": kind, "kind": kind, "role": "gate", "weight": 1.0, "description": f"{kind} holds",
            "parameters": parameters}

    _lines(rewards / "rubrics.jsonl", [{
        "format": "traceroom-rubric/1", "rubric_id": "r", "task_id": TASK, "checks": [
            gate("state", accepted=[end]), gate("untouched", accepted=[end]),
            gate("call", calls=[{"tool": "read_sign", "arguments": {"at": "roof"}, "outcome": "any"}], at_most=0)]}])
    _lines(rewards / "solutions.jsonl", [{"task_id": TASK, "steps": [
        {"say": "Which door?"}, {"tool": "open_door", "arguments": {"door": "7"}}, {"say": "It is open."}]}])
    _lines(rewards / "sessions.jsonl", [{"task_id": TASK, "session_id": "s2", "probability": 0.0, "steps": [
        {"tool": "read_sign", "arguments": {"at": "gate"}}, {"say": "Done."}]}])
    (rewards / "rewards.json").write_text(canonical({"rewards_digest": digest((rewards / "rubrics.jsonl").read_bytes())}))
    return rewards


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8")
