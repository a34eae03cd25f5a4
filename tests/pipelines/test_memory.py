"""A run holds to the memory that TRACEROOM_MEMORY says: less is begun, or it ends with a sentence, and nothing is lost."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from benchmarks.memory import Memory
from env_builder.runtime import expressions
from pipelines.running import engines, memory
from tests.command_line import ROOT, environ, process
from tests.pipelines.ingestion import digest, session
from warehouse.errors import InputError

N_SESSIONS, LONG = 1600, "the door was painted green again " * 1500
GROWS = """
import sys
from pathlib import Path
from pipelines.running import memory
from warehouse.store import Store
held = []
with Store.open(Path(sys.argv[1])) as store, memory.bounded("grow", store):
    while len(held) < 2000:
        held.append(b"x" * (1 << 20))
"""
WORKERS = {"TRACEROOM_ENGINE": "processes", "TRACEROOM_WORKERS": "6"}


def long_session(number: int) -> str:
    said = [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": f"{number} {LONG}"}]
    return json.dumps({"session_id": f"s{number}", "messages": said}) + "\n"


def read(out: Path, logs: Path, **settings: str) -> float:
    """Read logs in a process of its own; gives the most MB that it held with its workers."""
    script = ("import sys; from pathlib import Path; from pipelines.running.stage import carry_out; "
              "from pipelines.settings import Settings; from pipelines.stages import STAGES\n"
              "if __name__ == '__main__': carry_out(STAGES[0], Settings(logs=(sys.argv[2],), out=sys.argv[1], privacy=False))")
    with subprocess.Popen([sys.executable, "-c", script, str(out), str(logs)], cwd=ROOT, env=environ(**settings)) as reader:
        watch = Memory(reader.pid)
        watch.start()
        assert reader.wait(300) == 0
        watch.done.set()
        watch.join()
    return watch.most / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only /proc says what processes hold")
def test_what_six_readers_would_take_fits_the_setting(tmp_path: Path) -> None:
    logs = tmp_path / "long.jsonl"
    logs.write_text("".join(map(long_session, range(N_SESSIONS))))
    free = read(tmp_path / "free", logs, **WORKERS)
    for number in range(3):   # how many of the readers have work at once depends on the machine
        free = max(free, read(tmp_path / f"free{number}", logs, **WORKERS)) if free <= 900 else free
    assert free > 900, "else it shows nothing"
    bound = read(tmp_path / "bound", logs, **WORKERS, TRACEROOM_MEMORY="900MB")
    assert bound <= 900
    assert digest(tmp_path / "free") == digest(tmp_path / "bound")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only /proc says what processes hold")
@pytest.mark.slow
def test_a_stage_that_needs_more_ends_with_a_sentence_and_the_next_run_goes_on(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs.jsonl", tmp_path / "out"
    logs.write_text("".join(map(session, range(10))))
    ended = process("run", logs, "--out", out, "--no-image", TRACEROOM_MEMORY="40MB")
    assert ended.returncode == 2
    said = " ".join(ended.stderr.split())
    assert "TRACEROOM_MEMORY: the stage 'extract' needs more memory than 0.04 GB; allow more" in said
    assert "Traceback" not in said
    assert process("run", logs, "--out", out, "--no-image", TRACEROOM_MEMORY="3 GiB").returncode == 0
    assert process("run", logs, "--out", tmp_path / "other", "--no-image").returncode == 0
    assert digest(out) == digest(tmp_path / "other")


@pytest.mark.parametrize(("told", "n"), [("", None), ("4GB", 4 * 10**9), ("800 MB", 8 * 10**8), ("1.5gib", 3 << 29)])
def test_the_setting_is_a_size(told: str, n: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_MEMORY", told)
    assert memory.limit() == n


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only /proc says what processes hold")
def test_a_stage_that_grows_is_broken_off_also_where_a_shell_began_it_in_the_background(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)   # as it has it then
    try:
        ended = subprocess.run([sys.executable, "-c", GROWS, tmp_path / "warehouse.duckdb"], capture_output=True, text=True,
                               cwd=ROOT, env=environ(TRACEROOM_MEMORY="500MB"), timeout=120, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the stage 'grow' needs more memory than 0.5 GB" in ended.stderr


@pytest.mark.parametrize("told", ["4", "GB", "-4GB", "4 GB please", "4KB"])
def test_what_is_no_size_is_refused(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_MEMORY", told)
    with pytest.raises(InputError, match="no size of memory; write it as 4GB"):
        memory.limit()


def test_no_more_workers_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_ENGINE", "processes")
    monkeypatch.setenv("TRACEROOM_WORKERS", "3")
    own = max(memory.resident(os.getpid()), 300_000_000)
    counts = []
    for room in (0.5, 3.5, 9):
        monkeypatch.setenv("TRACEROOM_MEMORY", f"{int(room * own / 1e6)}MB")
        counts.append(engines.n_workers())
    assert counts[0] == 0 < counts[1] < counts[2] == 3


def test_a_run_loads_no_dagster() -> None:
    script = ("import pkgutil, sys, pipelines.cli, pipelines.running.run; from pipelines.stages import STAGES\n"
              "for stage in STAGES: callable(stage.work) or pkgutil.resolve_name(stage.work)\n"
              "print(sorted({name.split('.')[0] for name in sys.modules} & {'dagster', 'polars'}))")
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environ(), check=True)
    assert loaded.stdout.strip() == "['polars']"


class Expression(list[str]):
    """An expression whose end can be watched."""


@pytest.mark.parametrize("cached", [expressions.compiled, expressions.shared])
def test_an_expression_that_a_stage_compiled_goes_with_the_stage(cached: expressions.IdentityCache[object]) -> None:
    expression = Expression(["argument", "size"])
    cached(expression)
    watched = weakref.ref(expression)
    del expression
    gc.collect()
    assert watched() is not None, "else it shows nothing"
    memory.release(least=0)
    assert watched() is None


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only /proc says what processes hold")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    held = [f"{number:>2000}" for number in range(100_000)]
    last, before = f"{0:>2000}", memory.resident(os.getpid())   # the last keeps the end of the heap where it is
    del held
    memory.release(least=0)
    assert len(last) == 2000
    assert before - memory.resident(os.getpid()) > 100_000_000
