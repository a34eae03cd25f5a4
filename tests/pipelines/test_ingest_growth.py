"""Logs that grow, are rotated, overlap and repeat: the warehouse holds what one run over the final files gives."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.pipelines.ingestion import HEADER, TABLES, access, digest, events, held, ingest, rating, session, small

KINDS: dict[str, tuple[str, Callable[[int], str]]] = {"lines": ("", session), "text": ("", access), "table": (HEADER, rating)}
_clock = itertools.count(1_700_000_000_000_000_000, 1_000_000_000)


def write(path: Path, text: str, packed: bool = False) -> None:
    """Write a file at an instant of its own: two writes in one tick of the clock are no part of the test."""
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if packed else text.encode())
    os.utime(path, ns=(0, next(_clock)))


def differing(one: Path, other: Path, *without: str) -> list[str]:
    a, b = held(one, *without), held(other, *without)
    return [table for table in TABLES if not a[table].equals(b[table])]


class Growth(RuleBasedStateMachine):
    """A file that grows by whole lines and halves of lines, packed or not, and is ingested now and then."""

    @initialize(kind=st.sampled_from(sorted(KINDS)), packed=st.booleans(), chunk_bytes=st.sampled_from([60, 300, 900, 1 << 20]))
    def begin(self, kind: str, packed: bool, chunk_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / f"the.log{'.gz' if packed else ''}"
        self.text, self.line = KINDS[kind]
        self.rest, self.n, self.packed, self.chunk_bytes = "", 0, packed, chunk_bytes
        self.whole(3)

    @rule(n=st.integers(1, 9))
    def whole(self, n: int) -> None:
        self.text += self.rest + "".join(self.line(self.n + i) for i in range(n))
        self.rest, self.n = "", self.n + n
        write(self.path, self.text, self.packed)

    @rule(share=st.floats(0.05, 0.95))
    def half(self, share: float) -> None:
        line = self.rest or self.line(self.n)
        self.n += not self.rest
        cut = max(1, int(len(line) * share))
        self.text, self.rest = self.text + line[:cut], line[cut:]
        write(self.path, self.text, self.packed)

    @rule()
    def read(self) -> None:
        with small(self.chunk_bytes):
            ingest(self.folder / "out", self.path)

    @precondition(lambda self: hasattr(self, "folder"))
    @invariant()
    def nothing_is_lost_and_nothing_twice(self) -> None:
        with small(self.chunk_bytes):
            if self.n % 3 == 0:   # a run each time would never see two steps at once
                ingest(self.folder / "out", self.path)
                ingest(self.folder / "fresh", self.path)
                assert differing(self.folder / "out", self.folder / "fresh") == []
                shutil.rmtree(self.folder / "fresh")

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            with small(self.chunk_bytes):
                ingest(self.folder / "out", self.path)
                ingest(self.folder / "last", self.path)
                assert differing(self.folder / "out", self.folder / "last") == []
                assert ingest(self.folder / "out", self.path)["n_new_records"] == 0
            shutil.rmtree(self.folder)


TestGrowth = Growth.TestCase
TestGrowth.settings = settings(max_examples=3, stateful_step_count=7, deadline=None,
                               suppress_health_check=list(HealthCheck), print_blob=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
class TestMoreGrowth(Growth.TestCase):
    settings = settings(max_examples=12, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("half", ["", "10.0.0.9 - - [02/Mar/2026:11:"])
@pytest.mark.parametrize("chunk_bytes", [500, 1 << 20])
def test_a_log_that_is_rotated_is_read_once(copied: bool, half: str, chunk_bytes: int, tmp_path: Path) -> None:
    log, rotated, out = tmp_path / "in/access.log", tmp_path / "in/access.log.1", tmp_path / "out"
    log.parent.mkdir()
    first = "".join(map(access, range(23)))
    with small(chunk_bytes):
        write(log, first + half)
        ingest(out, log.parent)
        grown = first + (half + access(7)[len(half):] if half else "") + "".join(map(access, range(40, 50)))
        write(log, grown)
        shutil.copy2(log, rotated) if copied else log.rename(rotated)
        write(log, "".join(map(access, range(100, 117))))
        ingest(out, log.parent)
        ingest(tmp_path / "fresh", log.parent)
        assert events(out) == events(tmp_path / "fresh")
        assert held(out)["raw.files"].height == held(tmp_path / "fresh")["raw.files"].height
        assert ingest(out, log.parent)["n_new_files"] == 0


def test_the_same_file_under_two_names_is_said_and_read_once(tmp_path: Path) -> None:
    text = "".join(map(session, range(9)))
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / name, text)
    with small(400):
        counts = ingest(tmp_path / "out", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
        ingest(tmp_path / "alone", tmp_path / "a.jsonl")
        assert counts["n_new_records"] == 9 and events(tmp_path / "out") == events(tmp_path / "alone")
        said = held(tmp_path / "out")["mart.decisions"].filter(reason="duplicate_file")
        assert said["subject"].to_list() == ["b.jsonl"] and "is identical to" in said["detail"][0]
        write(tmp_path / "b.jsonl", text + session(20))
        ingest(tmp_path / "out", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
        assert held(tmp_path / "out")["mart.decisions"].filter(reason="duplicate_file").is_empty(), "it is no copy any more"
        assert held(tmp_path / "out")["core.events"]["session_id"].n_unique() == 10


def test_what_a_half_line_hid_elsewhere_is_kept(tmp_path: Path) -> None:
    """A record that is left because another file has it is that other file's heir when it goes."""
    half, out = access(3)[:30], tmp_path / "out"
    for name in ("a.log", "b.log"):
        write(tmp_path / name, access(int(name == "a.log")) + access(2) + half)
    with small(1 << 20):
        ingest(out, tmp_path / "a.log", tmp_path / "b.log")
        assert held(out)["mart.decisions"].filter(reason="duplicate_record").height == 2
        write(tmp_path / "a.log", access(1) + access(2) + access(3))
        ingest(out, tmp_path / "a.log", tmp_path / "b.log")
        ingest(tmp_path / "fresh", tmp_path / "a.log", tmp_path / "b.log")
        assert events(out) == events(tmp_path / "fresh")
        assert held(out)["raw.quarantine"].height == held(tmp_path / "fresh")["raw.quarantine"].height


NUMBERS = st.lists(st.integers(0, 5), max_size=12)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(files=st.lists(NUMBERS, min_size=1, max_size=4), chunk_bytes=st.integers(1, 700),
       order=st.randoms(use_true_random=False), apart=st.booleans())
def test_an_event_is_held_as_often_as_the_file_that_tells_it_most(
    files: list[list[int]], chunk_bytes: int, order: random.Random, apart: bool
) -> None:
    """Whatever the size of chunks, the order of files, and the runs that they come in."""
    wanted: Counter[str] = Counter()
    for numbers in files:
        wanted |= Counter(f"s{number}" for number in numbers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{index}.jsonl" for index in range(len(files))]
        for path, numbers in zip(paths, files, strict=True):
            write(path, "".join(map(session, numbers)))
        order.shuffle(paths)
        with small(chunk_bytes, 10):
            for given_paths in [[path] for path in paths] if apart else [paths]:
                ingest(folder / "out", *given_paths)
        tables = held(folder / "out")
        told = tables["core.events"].filter(role="user")
        assert Counter(told["session_id"]) == wanted
        assert tables["core.events"]["event_id"].is_unique().all()
        kept = tables["raw.records"].filter(
            tables["raw.records"]["reject_reason"].is_null())
        assert kept["record_id"].is_unique().all() and kept.height == wanted.total()


@pytest.mark.slow
@given(numbers=st.lists(st.integers(0, 3), max_size=14), chunk_bytes=st.integers(1, 600))
@settings(max_examples=12, deadline=None)
def test_records_are_the_same_wherever_a_file_is_cut(numbers: list[int], chunk_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.log"
        write(path, access(9) + "".join(map(access, numbers)))
        for size, out in ((chunk_bytes, "cut"), (1 << 20, "whole")):
            with small(size):
                ingest(Path(name) / out, path)
        cut, whole = held(Path(name) / "cut", "file_id"), held(Path(name) / "whole", "file_id")
        assert cut["raw.records"].equals(whole["raw.records"])
        assert cut["core.events"].equals(whole["core.events"])


def test_a_packed_file_that_ends_too_early_gives_its_whole_lines(tmp_path: Path) -> None:
    text, path = "".join(map(session, range(400))), tmp_path / "x.jsonl.gz"
    packed = gzip.compress(text.encode(), mtime=0)
    path.write_bytes(packed[:len(packed) * 2 // 3])
    with small(2000):
        ingest(tmp_path / "out", path)
        tables = held(tmp_path / "out")
        found = tables["core.events"]["session_id"].n_unique()
        [left] = tables["mart.decisions"].filter(kept=False).to_dicts()
        assert found > 50 and left["reason"] == "unreadable_file" and "copy it again" in left["detail"]
        write(path, text, packed=True)
        ingest(tmp_path / "out", path)
        ingest(tmp_path / "fresh", path)
    assert digest(tmp_path / "out") == digest(tmp_path / "fresh")


def test_two_damaged_files_are_two(tmp_path: Path) -> None:
    for name, rest in (("a.gz", b"one"), ("b.gz", b"two, longer")):
        (tmp_path / name).write_bytes(b"\x1f\x8b\x08\0" + rest)
    ingest(tmp_path / "out", tmp_path / "a.gz", tmp_path / "b.gz")
    assert held(tmp_path / "out")["mart.decisions"]["reason"].to_list() == ["unreadable_file", "unreadable_file"]
