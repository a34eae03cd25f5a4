"""Records that are their own parents, in every way that logs link records: reading and sessions end, and lose nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.report import Report

LENGTHS = (1, 2, 3, 50, 5_000)


def transcript(n: int) -> list[dict[str, Any]]:
    """Return lines of a coding agent of which each is the parent of the next, and the last of the first."""
    return [{"type": "user" if k % 2 == 0 else "assistant", "uuid": f"u{k}", "parentUuid": f"u{(k - 1) % n}", "sessionId": "s1",
             "timestamp": f"2026-01-01T{k // 3600 % 24:02}:{k // 60 % 60:02}:{k % 60:02}Z", "message": {
                 "role": "user" if k % 2 == 0 else "assistant", "content": f"word {k}"}} for k in range(n)]


def spans(n: int) -> list[dict[str, Any]]:
    """Return spans in a circle."""
    return [{"traceId": "a" * 32, "spanId": f"{k:016x}", "parentSpanId": f"{(k - 1) % n:016x}", "name": "chat m",
             "startTimeUnixNano": str(10 ** 18 + k), "endTimeUnixNano": str(10 ** 18 + k + 1), "attributes": [
                 {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                 {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(
                     [{"role": "user", "parts": [{"type": "text", "content": f"word {k}"}]}])}},
                 {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(
                     [{"role": "assistant", "parts": [{"type": "text", "content": f"word {k}"}]}])}}]} for k in range(n)]


def runs(n: int) -> list[dict[str, Any]]:
    """Return LangSmith's runs in a circle."""
    return [{"id": f"r{k}", "trace_id": "t", "parent_run_id": f"r{(k - 1) % n}", "run_type": "llm", "name": "m",
             "dotted_order": "x", "start_time": "2026-01-01T00:00:00", "inputs": {"messages": [
                 {"role": "user", "content": f"word {k}"}]}, "outputs": {
                 "messages": [{"role": "assistant", "content": f"answer {k}"}]}} for k in range(n)]


PARENTS = {transcript: "parentUuid", spans: "parentSpanId", runs: "parent_run_id"}


def n_words(rows: list[dict[str, Any]], path: Path) -> int:
    """Return how many words of records are in sessions."""
    is_span = "spanId" in rows[0]
    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}] if is_span else rows
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    turns = assemble(read(SourceFile(path, path.name)).events).turns
    return sum("word" in text for text in turns["content"].drop_nulls()) if turns.height else 0


def attack(folder: Path, share: float) -> Report:
    """Read circles of several lengths, and hold what is in sessions against what is of the same records in a row."""
    problems, n_tried = [], 0
    for kind, parent in PARENTS.items():
        for length in LENGTHS if share >= 0.1 else LENGTHS[:4]:
            n_tried += length
            circle = kind(length)
            row = [{**circle[0], parent: None}, *circle[1:]]
            inside, expected = (n_words(each, folder / f"{kind.__name__}.jsonl") for each in (circle, row))
            is_lost = inside < expected or not expected
            problems += [f"{kind.__name__}, {length}: {inside} of {expected} words"] if is_lost else []
    return Report(n_tried, tuple(problems))


def test_circles_end(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
