"""Names of files that are no text, options, commands, markup or longer than any screen: each file is read, under a name that
can be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from extractors.inventory import discover
from extractors.reading import read
from tests.attacks.logs import conversation
from tests.attacks.report import Report
from tests.command_line import called

NAMES = (b"\xff\xfe.jsonl", b"a\nb.jsonl", b"--out=x.jsonl", b"-rf.jsonl", b"$(touch planted).jsonl", b"`id`.jsonl",
    b"a;b.jsonl", b"a|b.jsonl", b"*.jsonl", b"[a-z].jsonl",
         b"{a,b}.jsonl", b"~.jsonl", b"\x1b[2J.jsonl", "\u202elnosj.jsonl".encode(), b" .jsonl", b"a .jsonl", b"%s%n.jsonl",
         b"'\".jsonl", b"\\.jsonl", b"a\r.jsonl",
         b"http:x.jsonl", b"s3:.jsonl", b"x" * 249 + b".jsonl", b"con.jsonl", b"a=1.jsonl", "é.jsonl".encode(),
         "e\u0301.jsonl".encode(), b"\xc3\x28.jsonl")


def attack(folder: Path, share: float) -> Report:
    """Write a log under each name, and read the folder; then sniff it."""
    logs = folder / "logs"
    logs.mkdir()
    for number, name in enumerate(NAMES):
        with open(os.path.join(os.fsencode(logs), name), "wb") as file:  # noqa: PTH118, PTH123  names of bytes
            file.write(conversation(number, f"text {number}"))
    files, decisions = discover([logs])
    problems, texts = [], set()
    for file in files:
        reading = read(file)
        texts |= set(reading.events["content"].drop_nulls())
        for text in (*reading.decisions["detail"], reading.file.path, file.relative):
            try:
                text.encode()
            except UnicodeEncodeError:
                problems.append(f"{text!r} is no text")
    missing = [name for number, name in enumerate(NAMES) if f"text {number}" not in texts]
    problems += [f"{name!r} is not read" for name in missing]
    done = called("sniff", logs)
    problems += [f"sniff: {done.stderr[-300:]}"] if done.returncode > 1 or "Traceback" in done.stderr else []
    problems += ["a command in a name ran"] if Path("planted").exists() or (logs / "planted").exists() else []
    assert decisions.height == 0, decisions
    return Report(len(NAMES), tuple(problems))


@pytest.mark.slow
def test_every_name_of_a_file_is_a_name(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
