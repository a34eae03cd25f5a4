"""A million lines of which one is bad: all others are read, memory stays bounded, and the bad one has its line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractors.inventory import SourceFile
from extractors.reading import readings
from tests.attacks.logs import conversation
from tests.attacks.report import Report, counted

LINES = 1_000_000


def attack(folder: Path, share: float) -> Report:
    """Write the log, and read it chunk by chunk."""
    n = counted(LINES, share, 2_000)
    bad = n * 2 // 3
    path = folder / "log.jsonl"
    with path.open("wb") as file:
        for number in range(1, n + 1):
            file.write(b'{"session_id": "s\xff", "messages": [{"role"\n' if number == bad else conversation(number))
    n_texts, reasons, peak = 0, [], 0.0
    for reading in readings(SourceFile(path, path.name)):
        n_texts += reading.events.height
        rejected = reading.decisions.filter(~reading.decisions["kept"])
        reasons += list(zip(rejected["line"], rejected["reason"], strict=True))
        peak = max(peak, reading.events.estimated_size() / (1 << 20))
    problems = [] if n_texts == 2 * (n - 1) else [f"{n_texts} of {2 * (n - 1)} messages are read"]
    problems += [] if reasons == [(bad, "unreadable_record")] else [f"decisions: {reasons[:5]}"]
    problems += [f"a chunk has {peak:.0f} MB"] if peak > 200 else []
    return Report(n, tuple(problems))


@pytest.mark.parametrize("share", [0.002, pytest.param(0.05, marks=pytest.mark.slow)])
def test_one_bad_line_costs_itself_alone(tmp_path: Path, share: float) -> None:
    assert attack(tmp_path, share).problems == ()
