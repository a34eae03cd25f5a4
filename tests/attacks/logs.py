"""Small logs that attacks write, what is read of them, and how much memory that takes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.conftest import ROOT

MB = 1 << 20
SAMPLES = ROOT / "extractors" / "formats" / "samples"
"""A log of each format."""


def conversation(number: int, question: str = "hello", answer: str = "hi", **fields: Any) -> bytes:
    """Return a line with a session of two messages."""
    return json.dumps({"session_id": f"s{number}", **fields, "messages": [
        {"role": "user", "content": question}, {"role": "assistant", "content": answer}]}).encode() + b"\n"


MUCH_MB = 300.0
"""From here on the memory that a file takes is measured twice."""


class ReadLog(NamedTuple):
    """What was read of a file."""

    texts: list[str]
    """Contents of its events."""
    reasons: dict[str, str]
    """Reason of each decision against a part of it -> the last detail."""
    seconds: float
    """Of the processor: how busy the machine is does not count."""
    peak_mb: float
    """How far memory rose above what it was."""


@cache
def _warmed() -> None:
    """Read a log, so that what the libraries hold for each of their threads, once, is nothing that a file takes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(conversation(1, "warm") * 20)
        read(SourceFile(path, path.name))


def read_log(content: bytes | Path, path: Path) -> ReadLog:
    """Read a file with these bytes at a path."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    _warmed()
    log = _read_once(path)
    if log.peak_mb < MUCH_MB:
        return log
    return log._replace(peak_mb=min(log.peak_mb, _read_once(path).peak_mb))  # what a busy machine took away comes back once


def _read_once(path: Path) -> ReadLog:
    begun, before = time.process_time(), _memory_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    reading = read(SourceFile(path, path.name))
    rejected = reading.decisions.filter(~reading.decisions["kept"])
    return ReadLog(reading.events["content"].drop_nulls().to_list(),
                   dict(zip(rejected["reason"], rejected["detail"], strict=True)), time.process_time() - begun,
                   max(0.0, _memory_mb("VmHWM") - before))


def _memory_mb(name: str) -> float:
    """Return a figure of this process's memory."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(name)).split()[1]) / 1024


def bomb_problems(name: str, log: ReadLog, most_mb: float, most_seconds: float = 60.0) -> list[str]:
    """Return what is wrong with how a file that unpacks to far more than it holds was read: it is refused, within bounds."""
    problems = [] if log.reasons else [f"{name} is read without a word"]
    problems += [f"{name} takes {log.peak_mb:.0f} MB"] if log.peak_mb > most_mb else []
    return problems + ([f"{name} takes {log.seconds:.0f} s"] if log.seconds > most_seconds else [])


def files_below(*folders: Path) -> set[str]:
    """Return all paths below folders."""
    return {f"{where}/{name}" for folder in folders for where, _, names in os.walk(folder) for name in names}


def changed_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with each leaf changed."""
    if isinstance(value, dict):
        return {name: changed_leaves(each, change) for name, each in value.items()}
    return [changed_leaves(each, change) for each in value] if isinstance(value, list) else change(value)


def changed_sample(path: Path, change: Callable[[Any], Any]) -> bytes:
    """Return a sample with each leaf of its JSON changed; lines that are no JSON are changed as texts."""
    text = path.read_text("utf-8")
    try:
        return json.dumps(changed_leaves(json.loads(text), change)).encode()
    except ValueError:
        return b"".join(_changed_line(line, change) + b"\n" for line in text.splitlines())


def _changed_line(line: str, change: Callable[[Any], Any]) -> bytes:
    try:
        return json.dumps(changed_leaves(json.loads(line), change)).encode()
    except ValueError:
        return str(change(line)).encode("utf-8", "surrogatepass")


def samples(share: float, n_of_quick: int = 12) -> list[Path]:
    """Return samples of formats that are texts; a few of them where the share is small."""
    paths = sorted(path for path in SAMPLES.iterdir() if path.suffix in (".json", ".jsonl", ".log", ".csv", ".txt", ".xml"))
    return paths if share >= 0.1 else paths[::max(1, len(paths) // n_of_quick)]


def unread(paths: Iterable[Path], contents: Callable[[Path], Iterable[tuple[str, bytes]]], folder: Path) -> tuple[int,
    list[str]]:
    """Read changed samples; return how many, and those on which reading fails, or which leave no decision."""
    problems, n_tried = [], 0
    for path in paths:
        for name, content in contents(path):
            n_tried += 1
            target = folder / path.name
            target.write_bytes(content)
            try:
                reading = read(SourceFile(target, target.name))
            except Exception as error:
                problems.append(f"{path.name}, {name}: {type(error).__name__}: {str(error)[:200]}")
                continue
            if not reading.decisions.height:
                problems.append(f"{path.name}, {name}: nothing is decided")
            try:
                "".join(reading.events["content"].drop_nulls()).encode()
            except UnicodeEncodeError:
                problems.append(f"{path.name}, {name}: half a character is stored")
    return n_tried, problems
