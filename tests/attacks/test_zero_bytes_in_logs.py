"""Logs that were copied and truncated under their writer: zero bytes at the beginning, in holes, at the end, also packed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.attacks.report import Report

HOLES = (5, 8, 700, 1 << 20, (1 << 22) + 3, 9 << 20)
LINES = [json.dumps({"session_id": f"s{number}", "messages": [{"role": "user", "content": f"hello {number}"},
                                                              {"role": "assistant", "content": "hi"}]}).encode() + b"\n"
         for number in range(6)]


def texts(content: bytes, path: Path) -> tuple[list[str], int, str]:
    """Return the messages that are read of a file, how many zero bytes were skipped, and what was decided."""
    path.write_bytes(content)
    reading = read(SourceFile(path, path.name))
    skipped = reading.decisions.filter(reading.decisions["reason"] == "zero_bytes")["detail"].to_list()
    n_zero = int(skipped[0].split(": ")[1].split()[0]) if skipped else 0
    return reading.events["content"].drop_nulls().to_list(), n_zero, str(reading.decisions["detail"].to_list())


def attack(folder: Path, share: float) -> Report:
    """Put holes of several sizes into a log of lines, and pack it in several ways."""
    problems, n_tried, lines = [], 0, b"".join(LINES)
    expected, _, _ = texts(lines, folder / "whole.jsonl")
    for n in HOLES if share >= 0.1 else HOLES[:4]:
        hole = b"\0" * n
        forms = {"beginning": hole + lines, "end": lines + hole, "between": LINES[0] + hole + b"".join(LINES[1:]),
                 "within": LINES[0] + LINES[1][:30] + hole + b"".join(LINES[2:]),
                 "twice": hole + LINES[0] + hole + b"".join(LINES[1:])}
        for name, content in forms.items():
            packed = {"jsonl": content, "jsonl.gz": gzip.compress(content, 1), "jsonl.zst": zstandard.compress(content, 1)}
            for ending, data in packed.items() if n >= 8 or name == "beginning" else ():
                n_tried += 1
                read_texts, n_zero, why = texts(data, folder / f"log.{ending}")
                missing = [text for text in expected if text not in read_texts]
                if missing not in ([], ["hello 1"]) or (missing and name != "within"):
                    problems.append(f"{name}, {n} zero bytes, {ending}: {len(missing)} messages are lost: {why[:300]}")
                if n_zero != content.count(b"\0"):
                    problems.append(f"{name}, {n} zero bytes, {ending}: {n_zero} were counted")
    return Report(n_tried, tuple(problems))


def test_zero_bytes_cost_no_line_of_a_log(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


@pytest.mark.slow
def test_a_hole_of_gigabytes_costs_no_line(tmp_path: Path) -> None:
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.seek(1 << 30)
        file.write(b"".join(LINES))
    reading = read(SourceFile(path, path.name))
    assert reading.events.height == 2 * len(LINES)
    assert path.stat().st_blocks * 512 < 1 << 20, "the file takes no place"


def test_an_archive_keeps_its_zero_bytes(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "history.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table messages (content text)")
    connection.execute("insert into messages values ('hello')")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert b"\0" * 64 in before
    assert "zero bytes" not in texts(before, path)[2]


def test_a_file_of_zero_bytes_alone_is_counted(tmp_path: Path) -> None:
    assert "holds 5000 zero bytes and nothing else" in texts(b"\0" * 5000, tmp_path / "log.jsonl")[2]
