"""Runs of the command line in processes of their own, which attacks kill and starve, and what they leave in OUT.

Runs are forked from a server that has imported everything, in small chunks and with few tasks for each worker, so that a small
log keeps workers busy too. `python -m tests.attacks.runs ARGUMENTS…` is such a run as a program (for another interpreter).
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil

from env_builder import bundle
from extractors import chunks
from pipelines.cli import main
from pipelines.ingestion import ingest, readers
from pipelines.running import engines
from pipelines.stages import STAGES
from tests.command_line import ROOT, environ
from tests.pipelines.conftest import SAMPLE, files, same, tables

NAMES = tuple(stage.name for stage in STAGES)
PATIENCE_S = 300.0
N_SESSIONS, N_FORMER = 20, 16
RUN = ("run", "--no-image")
_CHUNK_BYTES = 40_000

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([__name__, *sorted({str(stage.work).partition(":")[0] for stage in STAGES})])


def small_shards() -> None:
    """Let workers of this process have shards of a small log."""
    chunks.CHUNK_BYTES, ingest._EVENTS, readers._ENOUGH, engines.ENOUGH_TASKS = _CHUNK_BYTES, 40, 0, 1


def _in_a_process(arguments: tuple[str, ...], variables: dict[str, str], messages: Path) -> None:
    os.setsid()
    pipe = os.open(messages, os.O_WRONLY)
    os.dup2(pipe, 2)
    os.close(pipe)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["traceroom", *arguments]
    small_shards()
    main()


class Run:
    """A command that runs, and what it prints to stderr."""

    def __init__(self, folder: Path, *arguments: str | Path, python: Path | None = None, **variables: str) -> None:
        messages = folder / f"{time.monotonic_ns()}.messages"
        os.mkfifo(messages)
        words, settings = tuple(map(str, arguments)), environ(**variables)
        self._process: multiprocessing.process.BaseProcess | subprocess.Popen[bytes]
        if python is None:
            process = SERVER.Process(target=_in_a_process, args=(words, settings, messages))
            process.start()
            assert process.pid is not None
            self._process, self.pid = process, process.pid
        else:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", 'exec "$@" 2>"$0"', messages, python, "-m", __name__, *words], cwd=ROOT, env=settings,
                stdout=subprocess.DEVNULL, start_new_session=True)
            self.pid = self._process.pid
        self._messages = messages.open("r", encoding="utf-8", errors="replace")
        messages.unlink()
        self.lines: list[str] = []

    def reach(self, stage: str) -> bool:
        """Wait until the stage before this one is done; False if the run has ended."""
        before = NAMES.index(stage) - 1
        if before < 0 or f"{NAMES[before]}: done\n" in self.lines:
            return True
        return self.reach_line(lambda line: line == f"{NAMES[before]}: done\n")

    def reach_line(self, is_it: Callable[[str], bool]) -> bool:
        """Wait for a line; False if the run has ended."""
        for line in self._messages:
            self.lines.append(line)
            if is_it(line):
                return True
        return False

    def send(self, by: signal.Signals) -> None:
        """Send a signal to its main process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, by)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop it meanwhile."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def workers(self) -> list[psutil.Process]:
        """Return its worker processes, of a pool or of Ray, that have work."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [each for each in psutil.Process(self.pid).children(recursive=True) if _is_worker(each)]
        return []

    def kill_a_worker(self, number: int, patience_s: float) -> bool:
        """Kill one of its workers, once it has some; False if it has none for so long, or ends."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until and self.is_alive():
            if workers := self.workers():
                with contextlib.suppress(psutil.NoSuchProcess):
                    workers[number % len(workers)].kill()
                    return True
            time.sleep(0.005)
        return False

    def kill(self, whole_group: bool) -> bool:
        """Kill its main process, or all of its processes; return whether it was still at work. AssertionError if one of its
        processes outlives it for long."""
        was_alive = self.is_alive()
        below = psutil.Process(self.pid).children(recursive=True) if was_alive else []
        if whole_group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.send(signal.SIGKILL)
        self._ended()
        _, alive = psutil.wait_procs(below, PATIENCE_S)
        assert not alive, f"{alive} outlive the run that they work for"
        return was_alive

    def end(self) -> int:
        """Wait for the end; return the exit code. What it printed is in `lines`."""
        self.lines += list(self._messages)
        return self._ended()

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._process.poll() is None if isinstance(self._process, subprocess.Popen) else self._process.is_alive()

    def _ended(self) -> int:
        if isinstance(self._process, subprocess.Popen):
            code = self._process.wait(PATIENCE_S)
        else:
            self._process.join(PATIENCE_S)
            assert self._process.exitcode is not None, "it does not end"
            code = self._process.exitcode
        self._messages.close()
        return code


def _is_worker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        words = " ".join(process.cmdline())
        return "spawn_main" in words or (words.startswith("ray::") and "IDLE" not in words)
    return False


def write_logs(folder: Path, n: int = N_SESSIONS) -> Path:
    """Write a small log in several files: sessions with feedback and tools."""
    shutil.copytree(SAMPLE, folder)
    for file in (folder / "logs").glob("*.jsonl"):
        lines = file.read_text("utf-8").splitlines(keepends=True)[:n]
        file.unlink()
        for start in range(0, len(lines), 2):
            file.with_name(f"{file.stem}-{start:03}.jsonl").write_text("".join(lines[start:start + 2]), "utf-8")
    return folder


class Wanted:
    """What an undisturbed run gives, how long each stage takes it, and what an earlier run over fewer logs gave."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.seconds: dict[str, float] = {}
        """Of each stage."""
        self.logs, fewer = write_logs(folder / "logs"), write_logs(folder / "fewer", N_FORMER)
        self.former, out = folder / "former", folder / "out"
        for logs, into in ((fewer, self.former), (self.logs, out)):
            if into == out:
                shutil.copytree(self.former, out)
            run, began, self.seconds = Run(folder, *RUN, logs, "--out", into, TRACEROOM_ENGINE="process"), time.monotonic(), {}
            for stage, after in pairwise(NAMES):
                assert run.reach(after), run.lines
                self.seconds[stage] = time.monotonic() - began - sum(self.seconds.values())
            assert run.end() == 0, run.lines
            self.seconds[NAMES[-1]] = time.monotonic() - began - sum(self.seconds.values())
        self.former_tables = tables(self.former)
        self.tables, self.files = tables(out), files(out)
        assert same(self.tables, self.former_tables), "the second run adds something"
        assert any(name.startswith("environments/") for name in self.files), "something is published"
        self._names = {path.name for path in out.iterdir()}

    def copy_former(self, out: Path) -> Path:
        """Copy what the earlier run left; with the times of change, by which a published copy is known to be the newest."""
        shutil.copytree(self.former, out)
        return out

    def differences(self, out: Path) -> list[str]:
        """Name the tables and files of OUT that are not as an undisturbed run writes them."""
        written = files(out)
        return [*same(self.tables, tables(out)),
                *sorted(name for name in written.keys() | self.files.keys() if written.get(name) != self.files.get(name)),
                *sorted(path.name for path in out.iterdir() if path.name not in self._names)]

    def destroyed(self, out: Path) -> list[str]:
        """Name what readers had and no longer have: tables of the published copy, directories that are not whole."""
        broken = [f"published {name}" for name in same(self.former_tables, tables(out))]
        for manifest in sorted((out / "environments").glob("*/manifest.json")):
            if not bundle.stands(manifest.parent, json.loads(manifest.read_text("utf-8"))["content_digest"]):
                broken.append(f"{manifest.parent.name} is not whole")
        had = {path.name for path in (self.former / "environments").iterdir()}
        return broken + [f"{name} is gone" for name in sorted(had - {path.name for path in (out / "environments").iterdir()})]


def sentence_problems(run: Run, code: int, *words: str) -> list[str]:
    """Name what is wrong with how a run failed: exit code 2, and one sentence with a hint and one of these words."""
    text = "".join(run.lines)
    failures = [line for line in run.lines if line.startswith("✗")]
    if code != 2 or len(failures) != 1 or "Traceback" in text or "mistake in Traceroom" in text:
        return [f"exit code {code}: {text[-600:]}"]
    (sentence,) = failures
    return [] if any(word in sentence for word in words) and ";" in sentence and "run again" in sentence else [sentence]


if __name__ == "__main__":
    small_shards()
    main()
