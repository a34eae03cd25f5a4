"""A line of two gigabytes in a log: memory stays bounded, what stands before and after is read, and the reason is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.logs import MB, conversation, read_log
from tests.attacks.report import Report, counted

LINE_MB = 2048


def attack(folder: Path, share: float) -> Report:
    """Write the line between honest ones: as one text, without an end, and as a record whose text is that long."""
    n, problems = counted(LINE_MB, share, 130), []
    begin, end = b'{"session_id":"s9","messages":[{"role":"user","content":"', b'"}]}'
    for name, (before, unit, after) in {
            "letters": (b"", b"a", b"\n"), "record": (begin, b"x", end + b"\n"), "no end": (b"", b"{", b"")}.items():
        path = folder / "log.jsonl"
        with path.open("wb") as file:
            file.write(conversation(1, "first") + before)
            for _ in range(n):
                file.write(unit * MB)
            file.write(after + (conversation(2, "last") if after else b""))
        log = read_log(path, path)
        expected = {"first", "last"} if after else {"first"}
        problems += [f"{name}: {sorted(expected - set(log.texts))} are lost"] if expected - set(log.texts) else []
        problems += [f"{name}: {log.peak_mb:.0f} MB"] if log.peak_mb > 450 else []
        problems += [] if "bytes, longer than any that is read" in str(log.reasons) else [f"{name}: {log.reasons}"]
    return Report(3 * n, tuple(problems))


@pytest.mark.slow
def test_a_line_without_end_costs_itself_alone(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
