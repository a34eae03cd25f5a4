#!/usr/bin/env python3
"""How soon a room in a container answers: started cold, against the base image's own start, and taken from a warm pool.

    benchmarks/serving_containers.py [ENV] [--runs N]

ENV: OUT/environments/<name> of a run; by default made from the sample. Its image is built on the small base. A cold start is
what `docker run` does, by the engine's own interface: make a container, attach, start it, read. `base_start_ms`: until the base
image's Python has written a line; `cold_start_ms`: until the room has been handed a task and has answered the first call of
its known solution, asked as soon as it is attached; both with the same limits, one after the other; medians, and of the ratios
the median. `first_line_ms`: until it has answered at all. `warm_start_ms`: from asking a pool in which rooms stand ready to the
first observation of a task. `layers`: those of ours in the image; `layers_shared`: how many another environment with other
behaviour has too; `layers_touched`: how many a changed task makes anew. Needs a Docker engine. Times go to stderr; the last
line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from env_builder import image
from env_builder.layers import layers_of, read_manifest
from env_builder.pool import Pool
from env_builder.process import EnvironmentProcess
from env_builder.runtime.canonical import digest

RUNS = 15
TRIVIAL = "print('ready', flush=True)"
"""The least that a program in the base image can answer."""


def main() -> int:
    """Measure one environment and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.environment is None:
            from serving import from_sample
        environment = options.environment.resolve() if options.environment else from_sample(Path(scratch))
        measured = figures(environment, options.runs)
        name = read_manifest(environment)["name"]
    print(json.dumps({"benchmark": "serving_containers", "environment": name, "figures": measured}))
    return 0


def figures(environment: Path, runs: int = RUNS) -> dict[str, float]:
    """All figures of one environment; Unavailable where no engine answers."""
    if not image.engine().images.list(image.LOCAL_BASE):
        image.make_base()
    made = image.build(environment, image.LOCAL_BASE)
    if made.image_id is None:
        raise SystemExit(f"no image: {made.skip_reason}")
    return {**cold(environment, made.image_id, runs), **warm(environment, made.image_id, runs), **shared(environment)}


def cold(environment: Path, image_id: str, runs: int) -> dict[str, float]:
    """Milliseconds to the first answer of a new container, of the room's image and of its base."""
    task_id, call = first_call(environment)
    bases, rooms, firsts = [], [], []
    for run in range(-1, runs):  # the first of each is not counted: the kernel has not read the files yet
        base = base_start()
        first, room = room_start(environment, image_id, task_id, call)
        if run >= 0:
            bases.append(base)
            firsts.append(first)
            rooms.append(room)
    for name, times in (("base", bases), ("first line", firsts), ("first call", rooms)):
        print(f"{name}: {' '.join(f'{time:.0f}' for time in sorted(times))} ms", file=sys.stderr)
    ratios = [room / base for room, base in zip(rooms, bases, strict=True)]
    return {
        "cold_start_ratio": round(statistics.median(ratios), 3), "cold_start_ms": round(statistics.median(rooms), 1),
        "first_line_ms": round(statistics.median(firsts), 1), "base_start_ms": round(statistics.median(bases), 1)}


def base_start() -> float:
    """Milliseconds until the base image's interpreter has answered."""
    began = time.perf_counter()
    transport = image.ContainerTransport(
        image.engine(), image.LOCAL_BASE, ["python3", "-I", "-S", "-B", "-c", TRIVIAL], image.DEFAULT_LIMITS)
    if b"ready" not in transport.receive(60):
        raise SystemExit("the base image's Python says nothing")
    took = time.perf_counter() - began
    transport.close()
    return took * 1e3


def room_start(environment: Path, image_id: str, task_id: str, call: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds until a new room has answered its first line, and until it has answered a call in a task."""
    began = time.perf_counter()
    transport = image.ContainerTransport(image.engine(), image_id, ["--control"], image.DEFAULT_LIMITS)
    with contextlib.closing(EnvironmentProcess(transport, image_id, image.task_lookup(environment))) as room:
        room.open()
        first = time.perf_counter() - began
        room.reset(task_id)
        room.call(call["tool"], call["arguments"])
        took = time.perf_counter() - began
    return first * 1e3, took * 1e3


def first_call(environment: Path) -> tuple[str, dict[str, Any]]:
    """Return a task, and the first call of its known solution."""
    file = environment.parent.parent / "rewards" / environment.name / "solutions.jsonl"
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        for step in row["steps"]:
            if "tool" in step:
                return row["task_id"], step
    raise SystemExit("no known solution makes a call")


def warm(environment: Path, image_id: str, runs: int) -> dict[str, float]:
    """Milliseconds from asking a pool to the first observation, where rooms stand ready."""
    tasks = [json.loads(line)["task_id"] for line in (environment / "tasks.jsonl").read_text("utf-8").splitlines()]
    times = []
    with Pool(environment, ready=3, most=8, image_id=image_id) as pool:
        for run in range(runs):
            pool.wait()
            began = time.perf_counter()
            room = pool.take()
            shown = room.reset(tasks[run % len(tasks)])
            times.append((time.perf_counter() - began) * 1e3)
            if not shown["tools"]:
                raise SystemExit("a warm room shows no tools")
            room.close()
    print(f"warm: {' '.join(f'{time:.1f}' for time in sorted(times))} ms", file=sys.stderr)
    return {"warm_start_ms": round(statistics.median(times), 2), "warm_start_max_ms": round(max(times), 2)}


def shared(environment: Path) -> dict[str, float]:
    """Layers of ours that this environment's image has in common with that of another whose behaviour alone is another, and
    that a changed task makes anew."""
    own = layers_of(environment)
    with changed(environment, "behaviour.jsonl") as other, changed(environment, "tasks.jsonl") as retold:
        same = sum(one == another for one, another in zip(own, layers_of(other), strict=True))
        touched = sum(one != another for one, another in zip(own, layers_of(retold), strict=True))
    n_mb = round(sum(map(len, own)) / 2**20, 2)
    return {"layers": len(own), "layers_shared": same, "layers_touched": touched, "layers_mb": n_mb}


@contextlib.contextmanager
def changed(environment: Path, file: str) -> Iterator[Path]:
    """Yield a copy of the environment without the last line of a file, sealed."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, environment.name)
        shutil.copytree(environment, copy)
        lines = (copy / file).read_text("utf-8").splitlines(keepends=True)
        (copy / file).write_text("".join(lines[:-1]), "utf-8")
        manifest = read_manifest(copy)
        manifest["files"][file] = digest((copy / file).read_bytes())
        (copy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        yield copy


if __name__ == "__main__":
    sys.exit(main())
