"""Logs of every format with other newlines, marks and encodings: the same sessions are read, or the file is named."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.logs import read_log, samples
from tests.attacks.report import Report

MARK = "\ufeff".encode()


def forms(data: bytes) -> dict[str, bytes]:
    """Return spellings of a text that mean the same."""
    return {"mark": MARK + data, "CRLF": data.replace(b"\n", b"\r\n"), "no last newline": data.rstrip(b"\n"),
            "empty lines": data.replace(b"\n", b"\n\n") if data.count(b"\n") > 1 else data + b"\n\n",
            "UTF-16": data.decode().encode("utf-16"), "spaces": data.replace(b"\n", b" \n"), "two marks": MARK + MARK + data}


def attack(folder: Path, share: float) -> Report:
    """Read each sample in each spelling, and hold the number of events against that of the sample."""
    problems, n_tried = [], 0
    for path in samples(share):
        if not path.name.endswith((".jsonl", ".json")):
            continue
        data = path.read_bytes()
        expected = read_log(data, folder / path.name)
        for name, content in forms(data).items():
            n_tried += 1
            log = read_log(content, folder / path.name)
            if len(log.texts) != len(expected.texts) and not log.reasons:
                problems.append(f"{path.name}, {name}: {len(log.texts)} of {len(expected.texts)} texts, and not a word")
            elif len(log.texts) < len(expected.texts) and name in ("CRLF", "mark", "no last newline"):
                problems.append(f"{path.name}, {name}: {len(log.texts)} of {len(expected.texts)} texts: {log.reasons}")
    return Report(n_tried, tuple(problems))


def test_spellings_of_lines_lose_nothing(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
