"""Pipes, sockets, devices, circles of links and folders with names of logs: reading a folder ends, and reads what is a file."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from extractors.inventory import SourceFile, discover
from extractors.reading import read
from tests.attacks.logs import conversation
from tests.attacks.report import Report
from tests.command_line import called
from warehouse.errors import TraceroomError


def attack(folder: Path, share: float) -> Report:
    """Put each beside one honest log, list and read the folder, and name each alone."""
    logs, problems, begun = folder / "logs", [], time.monotonic()
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(conversation(1, "honest"))
    os.mkfifo(logs / "pipe.jsonl")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(logs / "s.jsonl"))
    for name, target in {"zero.jsonl": "/dev/zero", "tty.jsonl": "/dev/tty", "memory.jsonl": "/proc/self/mem",
        "circle.jsonl": "circle.jsonl", "one.jsonl": "two.jsonl",
                         "two.jsonl": "one.jsonl", "self": ".", "up": "..", "gone.jsonl": "nowhere",
                         "kernel.jsonl": "/proc/kmsg"}.items():
        (logs / name).symlink_to(target)
    (logs / "folder.jsonl").mkdir()
    (logs / "folder.jsonl" / "b.jsonl").write_bytes(conversation(2, "inside"))
    files, _ = discover([logs])
    texts = [text for file in files for text in read(SourceFile(file.path, file.relative)).events["content"].drop_nulls()]
    problems += [] if sorted(set(texts)) == ["hi", "honest",
        "inside"] else [f"{sorted(set(texts))} are read of {[file.relative for file in files]}"]
    special = [path for path in logs.iterdir() if not path.is_file() and not path.is_dir()] + [Path("/dev/zero"),
        Path("/proc/self/mem"), Path("/proc/self/environ")]
    for path in special:
        try:
            for file in discover([path])[0]:
                reading = read(SourceFile(file.path, file.relative))
                problems += [f"{path} gives {reading.events.height} events"] if reading.events.height else []
        except (TraceroomError, OSError):
            pass
    done = called("sniff", logs)
    problems += [f"sniff: {done.stderr[-200:]}"] if done.returncode > 1 or "Traceback" in done.stderr else []
    listening.close()
    problems += [f"it takes {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 60 else []
    return Report(len(special) + 3, tuple(problems))


@pytest.mark.slow
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
