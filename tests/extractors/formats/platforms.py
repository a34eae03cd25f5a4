"""What the tests of tracing platforms share: a platform's records read in memory, and what they tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from extractors import content
from extractors.formats import Emit, Format, LogRecord, named
from extractors.formats.envelope import Envelope
from extractors.formats.format import Head
from extractors.inventory import SourceFile
from extractors.reading import Reading, read

NAMES = ("braintrust", "langfuse", "langfuse_scores", "langsmith", "langsmith_feedback", "logfire", "mlflow", "openai_agents",
         "weave")


def read_platform_log(log_format: str, *values: Any) -> Emit:
    """Return the records `values` as the format reads them."""
    emit = Emit("file", "main", log_format, Envelope())
    named(log_format).read((LogRecord(f"{i:064d}", i + 1, value) for i, value in enumerate(values)), emit)
    return emit


def sample_values(log_format: Format) -> list[Any]:
    """Return records of the format's own sample."""
    return [orjson.loads(line) for line in log_format.sample().splitlines()]


def story(emit: Emit, session_id: str | None = None) -> list[tuple[Any, ...]]:
    """Return the conversation in order: messages as (role, text), calls as (tool, arguments), results as (-, text, error)."""
    rows: list[tuple[Any, ...]] = []
    for row in emit.events:
        if "position" not in row or (session_id is not None and row["session_id"] != session_id):
            continue
        if row["kind"] == "call":
            rows.append((row["tool"], row["arguments"]))
        elif row["kind"] == "result":
            rows.append(("-", row["content"], row.get("is_error")))
        else:
            rows.append((row.get("role"), row["content"]))
    return rows


def events(emit: Emit, kind: str) -> list[dict[str, Any]]:
    return [row for row in emit.events if row["kind"] == kind]


def reasons(emit: Emit) -> list[str]:
    return [reason for _, reason, _ in emit.rejects]


def head(value: Any) -> Head:
    """Return what a file with `value` (bytes, or a JSON value) in it begins with."""
    rows = content.head_of(value if isinstance(value, bytes) else orjson.dumps(value))
    assert rows is not None
    return rows


def reading_of(path: Path) -> Reading:
    return read(SourceFile(path, path.name))
