"""Log lines that were delivered twice: each conversation is still one, with each part once, and the run does not fail.

Sees: logs whose records name their session. Does not see: requests to a model that name none (they may be a retry)."""

from __future__ import annotations

from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from tests.attacks.report import Report
from tests.conftest import ROOT

LOGS = (*sorted((ROOT / "tests/logs/lamp_shop/logs").glob("*.jsonl")),
        *(ROOT / "extractors/formats/samples" / f"{name}.jsonl"
          for name in ("openai_completions", "helicone", "langfuse", "openai_agents")))

PARTS = ("session_id", "position", "kind", "role", "tool", "arguments", "content", "happened_at")


def assembled(content: bytes, path: Path) -> AssembledSessions:
    """Return the sessions of a file with this content."""
    path.write_bytes(content)
    reading = read(SourceFile(path, path.name))
    return assemble(reading.events, reading.declarations)


def attack(folder: Path, share: float) -> Report:
    """Double every line, every third line, and the whole file."""
    problems, n_tried = [], 0
    for log in LOGS:
        lines = [line.rstrip(b"\n") + b"\n" for line in log.read_bytes().splitlines()]
        path = folder / log.name
        once = assembled(b"".join(lines), path)
        doubled = {"every line": [line for line in lines for _ in range(2)], "the whole file": lines + lines,
                   "every third line": [line for place, line in enumerate(lines) for _ in range(1 + (place % 3 == 0))]}
        for name, content in doubled.items():
            n_tried += 1
            twice = assembled(b"".join(content), path)
            if twice.turns["turn_id"].n_unique() != twice.turns.height:
                problems.append(f"{log.name}, {name}: two turns have one id")
            if not once.turns.select(PARTS).equals(twice.turns.select(PARTS)):
                problems.append(f"{log.name}, {name}: {twice.turns.height} turns of {twice.sessions.height} sessions, "
                                f"not {once.turns.height} of {once.sessions.height}")
    return Report(n_tried, tuple(problems))


def test_doubled_lines_tell_nothing_new(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
