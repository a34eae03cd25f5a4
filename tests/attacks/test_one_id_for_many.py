"""Calls, messages and sessions that all have one id: none is taken for another, none vanishes, and answers stay with their
calls."""

from __future__ import annotations

import json
from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.report import Report, counted

CALLS = 3_000


def attack(folder: Path, share: float) -> Report:
    """Give all calls of a session one id, none, or that of the message; then one id to sessions of many people."""
    n, problems = counted(CALLS, share, 60), []
    for name, identity in {"one": lambda k: "c", "none": lambda k: None, "empty": lambda k: "", "turns": lambda k: f"c{k % 2}",
        "numbers": lambda k: 1}.items():
        messages = [{"role": "user", "content": "begin"}]
        for k in range(n):
            messages += [{"role": "assistant", "content": None,
                "tool_calls": [{"id": identity(k), "type": "function", "function": {
                "name": "look", "arguments": json.dumps({"k": k})}}]}, {"role": "tool", "tool_call_id": identity(k),
                "content": f"answer {k}"}]
        path = folder / "log.jsonl"
        path.write_text(json.dumps({"session_id": "s1", "messages": [*messages, {"role": "assistant",
            "content": "done"}]}) + "\n")
        turns = assemble(read(SourceFile(path, path.name)).events).turns
        calls = turns.filter(turns["kind"] == "call")
        wrong = [row for row in calls.iter_rows(named=True) if row["content"] is not None
            and f"answer {json.loads(row['arguments'])['k']}" != row["content"]]
        problems += [f"{name}: {calls.height} of {n} calls"] if calls.height != n else []
        problems += [f"{name}: {len(wrong)} calls have another's answer"] if wrong else []
    path = folder / "many.jsonl"
    path.write_text("".join(json.dumps({"session_id": "same", "user": f"u{k}", "messages": [
        {"role": "user", "content": f"words of {k}"}, {"role": "assistant", "content": f"reply to {k}"}]}) + "\n"
        for k in range(n)))
    texts = set(assemble(read(SourceFile(path, path.name)).events).turns["content"].drop_nulls())
    lost = [k for k in range(n) if f"words of {k}" not in texts]
    problems += [f"{len(lost)} of {n} people are lost"] if lost else []
    return Report(6 * n, tuple(problems))


def test_an_id_for_many_mixes_nobody(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
