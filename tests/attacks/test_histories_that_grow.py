"""Requests that each repeat all that was said before: what is read grows with what is new, and each word is there once."""

from __future__ import annotations

import json
import time
from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.report import Report, counted

TURNS = 600


def attack(folder: Path, share: float) -> Report:
    """Write a conversation as a gateway does: a line a request, with the whole history; also changed, cut and doubled."""
    n, problems, history, lines = counted(TURNS, share, 40), [], [], []
    for k in range(n):
        history.append({"role": "user", "content": f"question {k}"})
        reply = {"role": "assistant", "content": f"reply {k}"}
        lines.append({"id": f"r{k}", "created": 1_767_225_600 + k, "metadata": {"session_id": "s1"}, "request": {"model": "m",
            "messages": list(history)},
                      "response": {"id": f"r{k}", "object": "chat.completion", "model": "m",
                      "choices": [{"index": 0, "finish_reason": "stop", "message": reply}]}})
        history.append(reply)
    forms = {"honest": lines, "doubled": [each for line in lines for each in (line, line)], "backwards": lines[::-1],
        "the last alone": lines[-1:]}
    for name, rows in forms.items():
        path, begun = folder / "log.jsonl", time.process_time()
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        turns = assemble(read(SourceFile(path, path.name)).events).turns
        texts = turns["content"].drop_nulls().to_list()
        missing = [k for k in range(n) if texts.count(f"question {k}") < 1]
        double = [k for k in range(n) if texts.count(f"question {k}") > 1]
        problems += [f"{name}: {len(missing)} questions are lost"] if missing else []
        problems += [f"{name}: {len(double)} questions are there twice"] if double and name in ("honest", "doubled") else []
        problems += [f"{name} takes {time.process_time() - begun:.0f} s"] if time.process_time() - begun > 60 else []
    return Report(4 * n, tuple(problems))


def test_a_repeated_history_is_told_once(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
