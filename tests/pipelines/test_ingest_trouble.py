"""What goes wrong while logs are read costs itself alone, and is told with file, line, reason and raw text."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from extractors import chunks
from extractors.inventory import SourceFile, discover
from pipelines.ingestion import readers
from pipelines.inspection import summary
from pipelines.settings import Settings
from tests.conftest import lacking
from tests.pipelines.conftest import Traceroom
from tests.pipelines.ingestion import access, digest, events, held, ingest, session, small
from warehouse.errors import Unavailable
from warehouse.store import Store

NOBODY = 65534


def told(out: Path) -> list[tuple[str, str]]:
    """Reasons and sentences of all that was left."""
    rows = held(out)["mart.decisions"].filter(kept=False).sort("reason", "detail")
    return list(rows.select("reason", "detail").iter_rows())


@pytest.fixture
def folder_of_nobody() -> Iterator[Path]:
    """Yield a folder that somebody may write to whom the permissions of files bind."""
    with tempfile.TemporaryDirectory() as name:
        if os.geteuid() == 0:
            shutil.chown(name, NOBODY)
        yield Path(name)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """As that somebody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_and_a_folder_that_may_not_be_opened_are_told_and_the_rest_is_read(
    tmp_path: Path, folder_of_nobody: Path
) -> None:
    folder, out = folder_of_nobody / "in", folder_of_nobody / "out"
    for name in ("a.jsonl", "b.jsonl", "closed/c.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(session(len(name)) if name != "b.jsonl" else session(1))
    ingest(tmp_path / "imports", folder)   # of a Python that only root may read
    (folder / "b.jsonl").chmod(0)
    (folder / "closed").chmod(0)
    with nobody():
        if os.access(folder / "b.jsonl", os.R_OK, effective_ids=True):
            lacking("this user may open every file")
        ingest(out, folder)
        (refused, first), (closed, second) = told(out)
        assert (refused, closed) == ("unreadable_file", "unreadable_folder")
        assert first.startswith("b.jsonl: the file cannot be read (Permission denied)") and "check its permissions" in first
        assert second.startswith("closed is a folder that cannot be opened")
        assert held(out)["core.events"]["session_id"].unique().to_list() == ["s7"]
    (folder / "b.jsonl").chmod(0o644)
    (folder / "closed").chmod(0o755)
    ingest(out, folder)
    ingest(tmp_path / "fresh", folder)
    assert digest(out) == digest(tmp_path / "fresh") and not [reason for reason, _ in told(out) if "unreadable" in reason]


@pytest.mark.parametrize("in_processes", [False, True])
def test_what_vanishes_or_shrinks_meanwhile_raises_nothing(
    in_processes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("a.jsonl", "b.jsonl", "deep/c.jsonl", "deep/d.jsonl", "e.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(session(number) for number in range(40)) + session(ord(name[-7])))
    real = SourceFile.open

    def meanwhile(source_file: SourceFile) -> object:
        file = real(source_file)
        if source_file.relative == "a.jsonl":   # while it is open, the others change
            shutil.rmtree(folder / "deep")
            os.truncate(folder / "e.jsonl", 250)
            os.truncate(folder / "a.jsonl", 300)
        return file

    monkeypatch.setattr(SourceFile, "open", meanwhile)
    with small(2000, in_processes=in_processes):
        ingest(out, folder)
    reasons = [reason for reason, _ in told(out)]
    assert reasons.count("unreadable_file") == 2 and "Traceback" not in str(told(out))
    assert {f"s{ord('b')}", "s0", "s1", "s39"} <= set(held(out)["core.events"]["session_id"])
    monkeypatch.undo()
    with small(2000):
        ingest(out, folder)
        ingest(tmp_path / "fresh", folder)
    assert set(events(tmp_path / "fresh")) <= set(events(out))


def test_what_is_written_while_a_file_is_read_is_read_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(map(access, range(5))))
    real = chunks._looked_at

    def grows(*given: object) -> object:
        found = real(*given)  # type: ignore[arg-type]
        with log.open("a") as file:
            file.write(access(77))
        return found

    monkeypatch.setattr(chunks, "_looked_at", grows)
    ingest(tmp_path / "out", log)
    monkeypatch.undo()
    ingest(tmp_path / "out", log)
    ingest(tmp_path / "fresh", log)
    assert events(tmp_path / "out") == events(tmp_path / "fresh") and len(events(tmp_path / "out")) == 6


def test_a_reader_that_ends_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the machine has no memory left, and ends a process."""
    log = tmp_path / "a.jsonl"
    log.write_text("".join(map(session, range(200))))
    with small(2000, in_processes=True):
        monkeypatch.setattr(readers, "_read", end_at_once)
        with pytest.raises(Unavailable, match="a process that read logs was ended from outside") as caught:
            ingest(tmp_path / "out", log)
        monkeypatch.undo()
    assert "run again" in str(caught.value)
    ingest(tmp_path / "out", log)
    assert held(tmp_path / "out")["raw.records"].height == 200


def end_at_once(*given: object) -> None:
    """In the place of reading."""
    os._exit(9)


def test_a_name_that_is_no_text_is_a_name(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/in/caf\xe9.jsonl"
    (tmp_path / "in").mkdir()
    with open(path, "w") as file:  # noqa: PTH123  a path of bytes
        file.write(session(1))
    ingest(tmp_path / "out", tmp_path / "in")
    assert [each.relative for each in discover([tmp_path / "in"])[0]] == ["caf\\xe9.jsonl"]
    assert ingest(tmp_path / "out", tmp_path / "in")["n_new_files"] == 0
    assert held(tmp_path / "out")["core.events"].height == 2


def test_a_day_that_is_not_over_is_read_when_it_is(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(access(number).replace("02/Mar", f"0{1 + number // 9}/Mar") for number in range(27)))
    with small(600):
        assert ingest(tmp_path / "out", log, until="2026-03-01")["n_later_files"] == 1
        assert 0 < len(events(tmp_path / "out")) < 27
        ingest(tmp_path / "out", log)
        ingest(tmp_path / "fresh", log)
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def test_a_damaged_line_is_shown_with_its_raw_text(tmp_path: Path, traceroom: Traceroom) -> None:
    log, out = tmp_path / "a.jsonl", tmp_path / "out"
    damaged = b'{"session_id": "\xc3\x89va", "messages": [\x1b[31m"\xff' + b"x" * 300
    log.write_bytes(session(1).encode() + damaged + b"\n" + session(2).encode())
    ingest(out, log)
    settings = Settings(logs=(), out=str(out))
    with Store.open(settings.warehouse) as store:
        store.publish()
    [row] = [row for row in summary.rejected_rows(settings) if row["reason"] == "unreadable_record"]
    assert (row["file"], row["line"]) == (str(log), 2) and "it is no JSON at column" in row["detail"]
    assert row["raw"] == damaged.decode("utf-8", "replace")[:summary.RAW] and len(row["raw"]) == 200
    shown = traceroom("show", "--rejected", "--out", out, COLUMNS="400")
    assert shown.returncode == 0 and '{"session_id": "Éva", "messages": [\\x1b[31m"\ufffdxxx' in shown.stderr
    assert "\x1b[31m" not in shown.stderr, "what a log says to a terminal is not told to yours"
    assert json.loads(traceroom("show", "--rejected", "--out", out, "--json").stdout)[0].keys() == row.keys()
