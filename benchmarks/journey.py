#!/usr/bin/env python3
"""How long the whole journey takes and what it makes, from an empty folder.

    benchmarks/journey.py DATA [ARGUMENTS OF traceroom run…]      e.g. ../shared/data/airline, or … --exclude cdc

Runs `traceroom run DATA` as a user does, in a process of its own, on an empty OUT; a folder called `truth` is never read.
Privacy is on, as by default, with a key for measuring alone where TRACEROOM_KEY is not set. The last line on stdout is one JSON
object. `seconds` is wall time with start and imports; `seconds_<stage>` what a stage took; `peak_memory_mb` the largest
resident set of the process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run the journey once and print its figures."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    data, arguments = Path(sys.argv[1]).resolve(), sys.argv[2:]
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pipelines", "run", str(data), "--out", f"{scratch}/out", "--json", *arguments],
            stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False,
            env={"TRACEROOM_KEY": "the key of a benchmark alone", **os.environ})
        seconds = time.perf_counter() - began
    if done.returncode:
        return done.returncode
    print(json.dumps({"benchmark": "journey", "data": data.name, "figures": figures(json.loads(done.stdout), seconds)}))
    return 0


def figures(made: dict[str, object], seconds: float) -> dict[str, float]:
    """Figures of a run from what it printed."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 if sys.platform == "linux" else 1024)  # kB
    stages = {f"seconds_{stage['stage']}": round(stage["seconds"], 2) for stage in made["stages"]}  # type: ignore[attr-defined]
    counts = {name: made[name] for name in ("n_sessions", "n_tasks", "n_published")}
    return {"seconds": round(seconds, 2), **stages, **counts, "peak_memory_mb": round(peak / 1024, 1)}  # type: ignore[dict-item]


if __name__ == "__main__":
    sys.exit(main())
