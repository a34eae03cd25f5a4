#!/usr/bin/env python3
"""How time and memory of each stage grow with the logs, and what a thousand million events would take.

    [TRACEROOM_MEMORY=2GB] benchmarks/scale.py ../shared/data/retail_desk [--copies 1,4,16] [--days 14] [--services 1] \
        [--stages extract,sessions] [--part-mb 18] [--folder DIR] [--ray PYTHON]

The set's logs, and copies of them (benchmarks/scale_data.py), which `--services N` deals to N services, each taken from an
empty folder through all stages, without images and with privacy off. Each stage is a process of its own. Its seconds are
processor time of it and its children, without imports (and `wall` seconds): a machine that does other work shows the same.
`slope_<stage>` is the exponent of its growth: the line through the logarithms of seconds over those of copies; 1 doubles when
the logs double. `peak_memory_mb` is the largest sum of resident sets of any stage's processes at the largest size;
`memory_bound_mb` is TRACEROOM_MEMORY where that is set. `partition_memory_growth_<n>x` is the most that any stage's memory is
at n copies, as a multiple of that at the smallest size, and `partition_memory_growth_<n>x_<stage>` that of each, those that
do not work by parts among them; parts are of `--part-mb` at every size (18: the set in one part). `ray_speedup`
(benchmarks/scale_ray.py, on the last size) needs --ray, or this interpreter, to have the extra `ray`. Tables go to stderr after
every size; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import scale_data  # noqa: E402 (a script of its own, from anywhere)
from benchmarks.memory import Memory  # noqa: E402
from pipelines.building import parts  # noqa: E402
from pipelines.running.memory import limit  # noqa: E402
from pipelines.stages import STAGES  # noqa: E402

EVENTS = 1_000_000_000
"""What the sizing table is for."""
_LOADED = ("extractors.drift", "extractors.outcomes.calibration", "extractors.tasks.names", "env_builder.rewards",
           "env_builder.variants", "pipelines.building.worlds", "pipelines.building.environments",
           "pipelines.building.datasets")
"""What stages import when they begin: that costs the same at every size."""
Figures = dict[str, float]


def main() -> int:
    """Measure each size and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--copies", default="1,4,16")
    parser.add_argument("--days", type=int, default=scale_data.DAYS)
    parser.add_argument("--services", type=int, default=1)
    parser.add_argument("--stages", help="the first ones, where not all are of interest")
    parser.add_argument("--part-mb", type=float, default=parts.PART_BYTES / 1e6)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ray", default=sys.executable if find_spec("ray") else None)
    parser.add_argument("--measure", nargs=2, metavar=("STAGE", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        parts.PART_BYTES = int(arguments.part_mb * 1e6)
        print(json.dumps(_stage(arguments.measure[0], arguments.data, Path(arguments.measure[1]))))
        return 0
    measured: dict[int, dict[str, Figures]] = {}
    speedup: Figures = {}
    sizes = [int(n) for n in arguments.copies.split(",")]
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
            logs = scale_data.write(arguments.data.resolve(), Path(scratch, "logs"), n, arguments.days, arguments.services)
            measured[n] = {stage.name: _measured(stage.name, logs, Path(scratch, "out"), n, arguments.part_mb)
                           for stage in STAGES if not arguments.stages or stage.name in arguments.stages.split(",")}
            print(_table(measured), _sizing(measured), sep="\n\n", end="\n\n", file=sys.stderr, flush=True)
            if arguments.ray and n == sizes[-1]:
                speedup = _on_ray(arguments.ray, logs)
    print(json.dumps({"benchmark": "scale", "data": arguments.data.name, "n_services": arguments.services,
                      "figures": figures(measured) | speedup}))
    return 0


def _on_ray(python: str, logs: Path) -> Figures:
    """One against two Ray workers, by an interpreter that has Ray; what else is needed it takes from here."""
    packages = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    done = subprocess.run(
        [python, ROOT / "benchmarks" / "scale_ray.py", logs], stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "PYTHONPATH": packages})
    return {"ray_speedup": json.loads(done.stdout.splitlines()[-1])["ray_speedup"]}


def _measured(stage: str, logs: Path, out: Path, n: int, part_mb: float) -> Figures:
    """Carry out a stage in a process of its own; gives its figures."""
    command = [sys.executable, __file__, str(logs), "--measure", stage, str(out), "--part-mb", str(part_mb)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    watch = Memory(process.pid)
    watch.start()
    printed, _ = process.communicate()
    watch.done.set()
    watch.join()
    if process.returncode:
        raise SystemExit(f"the stage {stage} failed at {n} copies")
    figures = {**json.loads(printed.splitlines()[-1]), "memory_mb": round(watch.most / 1e6, 1)}
    print(f"{n} x {stage}: {figures}", file=sys.stderr, flush=True)
    return figures


def _stage(name: str, logs: Path, out: Path) -> dict[str, Any]:
    """Carry out one stage in this process."""
    from pipelines.running.stage import carry_out
    from pipelines.settings import Settings

    for loaded in _LOADED:
        importlib.import_module(loaded)
    settings = Settings(logs=(str(logs),), out=str(out), image=False, privacy=False)
    stage = next(stage for stage in STAGES if stage.name == name)
    began, used = time.perf_counter(), _used()
    report = carry_out(stage, settings)
    return {"seconds": round(_used() - used, 3), "wall": round(time.perf_counter() - began, 3),
            "n_rows": sum(look.n_rows for look in report.tables.values()),
            "n_events": report.tables["core.events"].n_rows if "core.events" in report.tables else 0}


def _used() -> float:
    """Processor seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def figures(measured: dict[int, dict[str, Figures]]) -> Figures:
    """Return the figures of all sizes: {copies: {stage: {seconds, wall, memory_mb, …}}}."""
    most = max(measured)
    slopes = {
        f"slope_{stage}": round(_slope({n: at[stage]["seconds"] for n, at in measured.items()}), 3) for stage in measured[most]
    }
    total = {n: sum(each["seconds"] for each in at.values()) for n, at in measured.items()}
    bound = limit()
    return {
        **slopes, "slope_all": round(_slope(total), 3), "worst_slope": max(slopes.values()),
        "peak_memory_mb": max(each["memory_mb"] for each in measured[most].values()),
        "seconds_per_million_events": round(total[most] / measured[most]["extract"]["n_events"] * 1e6, 1),
        "n_events": measured[most]["extract"]["n_events"], "copies": most,
        **({} if bound is None else {"memory_bound_mb": bound / 1e6}), **_growth(measured)}


def _growth(measured: dict[int, dict[str, Figures]]) -> Figures:
    """Return what each stage's memory grew to, and the most of any, as a multiple of that at the smallest size."""
    least, *larger = sorted(measured)
    grown: Figures = {}
    for n in larger:
        by_stage = {stage: round(at["memory_mb"] / measured[least][stage]["memory_mb"], 2) for stage, at in measured[n].items()}
        grown[f"partition_memory_growth_{n}x"] = max(by_stage.values())
        grown |= {f"partition_memory_growth_{n}x_{stage}": each for stage, each in by_stage.items()}
    return grown


def _slope(seconds: dict[int, float]) -> float:
    """Least squares of log seconds over log copies; a hundredth of a second is the least that is told apart."""
    points = [(math.log(n), math.log(max(each, 0.01))) for n, each in seconds.items()]
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _table(measured: dict[int, dict[str, Figures]]) -> str:
    lines = ["stage".ljust(14) + "".join(f"{f'{n} x':>9}{'wall':>9}{'MB':>8}" for n in measured) + f"{'slope':>8}"]
    for stage in measured[max(measured)]:
        rows = [at[stage] for at in measured.values()]
        slope = _slope({n: at[stage]["seconds"] for n, at in measured.items()})
        lines.append(stage.ljust(14) + "".join(
            f"{row['seconds']:>9.2f}{row['wall']:>9.2f}{row['memory_mb']:>8.0f}" for row in rows) + f"{slope:>8.2f}")
    return "\n".join(lines)


def _sizing(measured: dict[int, dict[str, Figures]]) -> str:
    """Return what each stage would take for `EVENTS`, as it grew here, on one processor of this machine: seconds by their
    slope,
    memory by the line through the least and the most copies (what is loaded at any size is no growth)."""
    least, most = min(measured), max(measured)
    n_events = measured[most]["extract"]["n_events"]
    lines = [f"{'stage':<14}{'hours':>10}{'memory, GB':>12}   for {EVENTS:.0e} events"]
    for stage, at in measured[most].items():
        slope = _slope({n: each[stage]["seconds"] for n, each in measured.items()})
        grown = max(0.0, at["memory_mb"] - measured[least][stage]["memory_mb"]) / max(1, most - least)   # MB a copy
        factor = EVENTS / n_events
        hours = at["seconds"] * factor ** max(slope, 1.0) / 3600
        memory = (at["memory_mb"] + grown * most * (factor - 1)) / 1000
        lines.append(f"{stage:<14}{hours:>10.1f}{memory:>12.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
