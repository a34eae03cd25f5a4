"""Data sets for the fidelity benchmark: calls of logs, truths, splits, and the run that builds rooms from logs alone.

Truth is read for scoring; what is built sees a folder of logs only (`traceroom run` never reads a folder called truth).
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from fidelity_score import Call

from env_builder.runtime import Environment
from env_builder.runtime.answers import failed, parse
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.store import Store

ROOT = Path(__file__).resolve().parent.parent
ACCEPTANCE = ROOT.parent / "shared" / "acceptance"
READING = ("GET ", "HEAD ", "OPTIONS ")


class Built(NamedTuple):
    """What a run made, and what it took."""

    out: Path
    seconds: float
    peak_memory_mb: float

    def figures(self) -> dict[str, float]:
        """Return what building took."""
        return {"seconds": round(self.seconds, 2), "peak_memory_mb": round(self.peak_memory_mb, 1)}


def build(logs: Path, out: Path, *arguments: str) -> Built:
    """Run `traceroom run` on a folder of logs, as a user does, in a process of its own; with `--privacy off`, for truth and
    held-out sessions are told in the logs' own words."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pipelines", "run", str(logs), "--out", str(out), "--no-image", "--json", "--privacy", "off",
         *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 if sys.platform == "linux" else 1024)  # kB
    return Built(out, time.perf_counter() - began, peak / 1024)


def read_logs(logs: Path, out: Path, without: tuple[str, ...] = ()) -> Path:
    """Carry out the stages that read logs into sessions, and no more; gives `out`."""
    settings = Settings(logs=(str(logs),), out=str(out), without=without, privacy=False)
    for stage in STAGES[:2]:
        carry_out(stage, settings)
    return out


def acceptance() -> Path:
    """Return the folder of the splits, which are not ours: beside the data."""
    data = os.environ.get("TRACEROOM_DATA")
    return Path(data).resolve().parent / "acceptance" if data else ACCEPTANCE


def split(data: Path, out: Path, by: str) -> tuple[Path, Path]:
    """(folder to build from, folder to score on), cut by the script that everybody uses."""
    subprocess.run([sys.executable, str(acceptance() / "split.py"), str(data), str(out), by], check=True)
    return out / "build", out / "held"


def split_days(data: Path, out: Path, n_last: int) -> Path:
    """Return a folder with the logs of all days but the last."""
    files = sorted(path for path in (data / "logs").iterdir() if path.is_file())
    for path in files[:-n_last]:
        (out / "build" / "logs").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, out / "build" / "logs")
    return out / "build"


def truth(data: Path) -> dict[str, dict[str, Any]]:
    """Rows of truth/sessions.jsonl by session."""
    return {row["session_id"]: row for row in rows(data / "truth" / "sessions.jsonl")}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def environments(out: Path, kept: str = "*") -> Iterator[Environment]:
    """All rooms of a run, or those in one of its folders: the published ones first."""
    for manifest in sorted(out.glob(f"{kept}/*/manifest.json")):
        yield Environment.load(manifest.parent)


def rooms(out: Path) -> dict[str, Environment]:
    """Return a room of each service."""
    by_service: dict[str, Environment] = {}
    for environment in environments(out):
        by_service.setdefault(environment.manifest["service"], environment)
    return by_service


def calls(out: Path) -> list[Call]:
    """All answered calls that a run read, in order of time, as its warehouse holds them."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        turns = store.read(
            "select service, session_id, tool, arguments, content, is_error, happened_at from core.turns "
            "where kind = 'call' and content is not null and arguments is not null "
            "order by happened_at, session_id, position")
    instants = pl.col("happened_at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    return [
        Call(service, session_id, tool, json.loads(arguments), content, failed(content, parse(content), flagged), at)
        for service, session_id, tool, arguments, content, flagged, at in turns.with_columns(instants).iter_rows()]


def effects(data: Path, out: Path, probed: Iterable[dict[str, Any]] = ()) -> dict[tuple[str, str], str]:
    """(service, tool) -> read, write or other: as the truth says it, else the request's method, else as was found.

    A truth without effects that lists what each session meant to do names the writes; all others read.
    """
    kinds: dict[tuple[str, str], str] = {}
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        behaviours = store.read(
            "select service, tool, coalesce(effect, 'unknown') from core.tools left join mart.behaviours using (service, tool)")
    meant = {step[0] for row in probed for step in row.get("intended", ())}
    for service, tool, effect in behaviours.iter_rows():
        method = tool.split(" ")[0].isupper() and " /" in tool
        own = "read" if effect in ("read", "pure", "constant") else "write"
        if meant:
            own = "write" if tool in meant else "read"
        kinds[service, tool] = ("read" if tool.startswith(READING) else "write") if method else own
    for path in sorted((data / "truth").glob("tool_effects_*.json")):
        service = path.stem.removeprefix("tool_effects_")
        for tool, says in json.loads(path.read_text("utf-8")).items():
            kind = says.get("tool_type")
            kinds[service, tool] = kind if kind in ("read", "write") else "other"
    return kinds


def constants(recorded: Iterable[Call]) -> set[tuple[str, str]]:
    """(service, tool) of tools that only ever say one thing, in three calls or more."""
    texts: dict[tuple[str, str], list[str]] = {}
    for call in recorded:
        texts.setdefault((call.service, call.tool), []).append(call.content)
    return {tool for tool, contents in texts.items() if len(contents) > 2 and len(set(contents)) == 1}


def sample(names: Iterable[str], n: int | None) -> set[str]:
    """Return the n names whose hashes come first; all where n is None."""
    ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return set(ordered[:n])
