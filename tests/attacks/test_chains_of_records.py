"""Records that hang on each other by the ten thousand: parents, spans, replies; reading them ends, in time that grows with
their number."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.report import Report, counted
from tests.attacks.test_circles_in_logs import PARENTS

LENGTH = 20_000


def attack(folder: Path, share: float) -> Report:
    """Read a chain of each kind, and one twice as long, and put sessions together."""
    problems, n = [], counted(LENGTH, share, 500)
    for kind, parent in PARENTS.items():
        seconds = []
        for length in (n, 2 * n):
            rows = kind(length)
            rows[0][parent] = None
            path = folder / f"{kind.__name__}.jsonl"
            lines = [{"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}] if "spanId" in rows[0] else rows
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            begun = time.process_time()
            try:
                events = read(SourceFile(path, path.name)).events
                assemble(events)
                problems += [f"{kind.__name__}: nothing is read"] if not events.height else []
            except RecursionError as error:
                problems.append(f"{kind.__name__}, {length}: {error}")
            seconds.append(time.process_time() - begun)
        problems += (
            [f"{kind.__name__}: {seconds[0]:.1f} s become {seconds[1]:.1f} s"] if seconds[1] > 5 * seconds[0] + 2 else []
        )
    return Report(6 * n, tuple(problems))


@pytest.mark.slow
def test_a_chain_of_records_ends(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
