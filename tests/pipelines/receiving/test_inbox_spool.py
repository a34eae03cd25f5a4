"""The hidden file of a receiver: what is handed over when, and what is there after a crash at any point."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from pipelines.receiving.inbox_spool import DeliveryRule, InboxSpool
from pipelines.receiving.otlp_request import NO_TRACE, TraceLine
from tests.command_line import ROOT, environ

RULE = DeliveryRule(file_bytes=1000, file_s=60, quiet_s=300, free_bytes=0)


class Clock:
    """A clock that the test sets."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def line(trace_id: str, number: int) -> TraceLine:
    return TraceLine(trace_id, orjson.dumps({"trace": trace_id, "n": number}) + b"\n")


def store(spool: InboxSpool, *lines: TraceLine) -> None:
    spool.append(lines)
    spool.sync()


def numbers(path: Path) -> list[int]:
    return [orjson.loads(each)["n"] for each in path.read_bytes().splitlines()]


def test_a_file_has_whole_traces_and_open_ones_wait(tmp_path: Path) -> None:
    clock = Clock()
    spool = InboxSpool(tmp_path, RULE, clock)
    store(spool, line("a", 1), line("b", 2))
    clock.at = 200
    store(spool, line("b", 3), line(NO_TRACE, 4))
    assert numbers(spool.deliver_due() or Path()) == [4], "what is of no trace waits for nothing"
    clock.at = 301
    assert numbers(spool.deliver_due() or Path()) == [1]
    assert spool.deliver_due() is None, "files have a minute between them"
    clock.at = 3400
    store(spool, line("b", 5))
    assert spool.deliver_due() is None
    clock.at = 3601
    assert numbers(spool.deliver_due() or Path()) == [2, 3, 5], "a trace does not wait longer than an hour"
    store(spool, line("c", 6))
    assert numbers(spool.close() or Path()) == [6] and len(list(tmp_path.glob("*.jsonl"))) == 4
    assert [path.name for path in tmp_path.glob(".*")] in ([], [".otlp-receiver.lock"])


def test_a_hidden_file_that_grows_too_large_is_handed_over_as_it_is(tmp_path: Path) -> None:
    clock = Clock()
    spool = InboxSpool(tmp_path, RULE, clock)
    store(spool, *(line("a", number) for number in range(60)))
    clock.at = 2
    assert spool.deliver_due() is None, "its only trace is still open"
    store(spool, *(line("a", number) for number in range(60, 200)))
    clock.at = 4
    assert numbers(spool.deliver_due() or Path()) == list(range(200))


def test_after_a_crash_whole_lines_are_there_and_a_torn_one_is_not(tmp_path: Path) -> None:
    spool = InboxSpool(tmp_path, RULE)
    store(spool, line("a", 1), line("b", 2))
    [hidden] = tmp_path.glob(".*.spool")
    for torn in (b"a {\"trace\"", b"a {\"trace\": \"a\", \"n\": 3}", b"\0\0\0\0\n", b"a {]\n" + b"a {}\n"):
        hidden.write_bytes(b'a {"n":1}\nb {"n":2}\n' + torn)
        (tmp_path / ".otlp-x.draft").write_bytes(b"half")
        spool._lock.release()   # as the system does for a process that died
        spool = InboxSpool(tmp_path, RULE)
        assert spool.n_recovered == 2
        [hidden] = tmp_path.glob(".*.spool")
        assert hidden.read_bytes() == b'a {"n":1}\nb {"n":2}\n' and not list(tmp_path.glob(".*.draft"))
    assert numbers(spool.close() or Path()) == [1, 2]


def test_a_write_that_fails_halfway_is_rolled_back(tmp_path: Path) -> None:
    """A real limit on the size of files, in a process of its own: the system writes a part of the second line."""
    code = f"""
import resource
from pathlib import Path
from pipelines.receiving.inbox_spool import DeliveryRule, InboxSpool
from pipelines.receiving.otlp_request import TraceLine
spool = InboxSpool(Path({str(tmp_path)!r}), DeliveryRule(free_bytes=0))
spool.append([TraceLine("a", b'{{"n":1}}\\n')])
spool.sync()
resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))
try:
    spool.append([TraceLine("a", b'{{"n":"' + b"x" * 100 + b'"}}\\n')])
except OSError as error:
    print(error.strerror, next(Path({str(tmp_path)!r}).glob(".*.spool")).stat().st_size)
    spool.roll_back()
spool.append([TraceLine("a", b'{{"n":2}}\\n')])
spool.sync()
spool.close()
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environ(), check=False)
    assert done.stdout == "File too large 50\n" and done.returncode == 0, done.stderr
    [handed] = tmp_path.glob("*.jsonl")
    assert numbers(handed) == [1, 2]


@pytest.mark.parametrize("step", ["unlink", "rename"])
def test_a_crash_while_handing_over_loses_nothing(tmp_path: Path, step: str) -> None:
    """Killed before the file is renamed into place, or after it and before the hidden one is removed."""
    code = f"""
import os, signal
from pathlib import Path
from pipelines.receiving.inbox_spool import DeliveryRule, InboxSpool
from pipelines.receiving.otlp_request import NO_TRACE, TraceLine
spool = InboxSpool(Path({str(tmp_path)!r}), DeliveryRule(file_s=0, free_bytes=0))
spool.append([TraceLine(NO_TRACE, b'{{"n":1}}\\n'), TraceLine("a", b'{{"n":2}}\\n')])
spool.sync()
setattr(Path, {step!r}, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
spool.deliver_due()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environ(), check=False)
    assert done.returncode == -9, done.stderr
    assert len(list(tmp_path.glob("*.jsonl"))) == (step == "unlink")
    InboxSpool(tmp_path, RULE).close()
    assert {number for path in tmp_path.glob("*.jsonl") for number in numbers(path)} == {1, 2}
