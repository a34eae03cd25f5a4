"""The same shards give the same results wherever they are worked on, and a worker that dies costs nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pipelines.running import engines
from tests.command_line import ROOT, environ
from tests.pipelines.ingestion import digest, ingest, session
from tests.ray_interpreter import with_our_packages
from warehouse.errors import InputError, Missing


def test_the_environment_says_where_shards_are_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_WORKERS", "3")
    told = {name: (monkeypatch.setenv("TRACEROOM_ENGINE", name), engines.n_workers())[1] for name in engines.ENGINES}
    assert told == {"process": 0, "processes": 3, "ray": 3}
    monkeypatch.setenv("TRACEROOM_ENGINE", "process")
    assert engines.opened() is None
    monkeypatch.setenv("TRACEROOM_ENGINE", "rays")
    with pytest.raises(Missing, match="no engine 'rays'"):
        engines.n_workers()
    monkeypatch.setenv("TRACEROOM_ENGINE", "ray")
    monkeypatch.setenv("TRACEROOM_WORKERS", "many")
    with pytest.raises(InputError, match="no number of workers"):
        engines.n_workers()


@pytest.mark.slow
def test_a_shard_whose_ray_worker_dies_is_done_by_another(ray_python: Path, tmp_path: Path) -> None:
    """On a cluster of this machine: one is killed, one raises; and logs are read as they are read here."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for part in range(3):
        (logs / f"{part}.jsonl").write_text("".join(map(session, range(10 * part, 10 * part + 14))))
    done = subprocess.run(
        [ray_python, "-m", "tests.pipelines.ray_shards", tmp_path, tmp_path / "out", logs], capture_output=True, text=True,
        check=False, timeout=600, cwd=ROOT,
        env=environ(TRACEROOM_ENGINE="ray", TRACEROOM_WORKERS="2", PYTHONPATH=with_our_packages()))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["squares"] == ["0", "1", "4", "9", "16", "five"]
    assert (tmp_path / "died").exists()
    ingest(tmp_path / "here", logs)
    assert told["digest"] == digest(tmp_path / "here")
