"""Instants before and after all time, in every spelling: no session is lost, and no clock runs over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.attacks.logs import conversation, read_log
from tests.attacks.report import Report

INSTANTS: tuple[Any, ...] = (
    0, -1, 1, 1e18, -1e18, 253402300800, 253402300799999, 9223372036854775807, -9223372036854775808, 10 ** 18, 1.5e300,
    "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "0000-00-00", "10000-01-01T00:00:00Z", "-2026-01-01", "2026-02-30",
    "2026-01-01T24:00:00Z", "2026-01-01T23:59:60Z", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00-23:59",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T23:59:59Z", "2038-01-19T03:14:08Z", "now", "",
    None, True, [], {}, "1e400", "٢٠٢٦-٠١-٠١T٠٠:٠٠:٠٠Z", "2026-W53-7", "2026-366")


def attack(folder: Path, share: float) -> Report:
    """Write each as the instant of one session of three, of its messages, and of a span."""
    problems = []
    for field in ("timestamp", "created_at", "time"):
        for instant in INSTANTS:
            content = (conversation(1, "first", **{field: "2026-01-01T00:00:00Z"})
                       + conversation(2, "second", **{field: instant}) + conversation(3, "third", **{field: 1767225600}))
            log = read_log(content, folder / "log.jsonl")
            missing = {"first", "second", "third"} - set(log.texts)
            problems += [f"{field} = {instant!r}: {sorted(missing)} are lost: {log.reasons}"] if missing else []
    span: dict[str, Any] = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "chat", "attributes": {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}}
    for instant in INSTANTS:
        path = folder / "span.jsonl"
        path.write_text(json.dumps({**span, "startTimeUnixNano": instant, "endTimeUnixNano": instant}) + "\n")
        read(SourceFile(path, path.name))
    return Report(4 * len(INSTANTS), tuple(problems))


def test_an_instant_outside_of_time_costs_no_session(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
