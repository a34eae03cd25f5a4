#!/usr/bin/env python3
"""Whether nights give the same bytes whatever else differs: the order of sessions within an epoch, kills, workers.

    benchmarks/nightly_factors.py LOGS… [--first 200] [--orders 3] [--kill] [--workers 1,2] [--ray PYTHON] [--folder DIR]

The base is a build of all but the last tenth of the sessions and a night with that tenth. Then each factor alone, against it,
table by table and file by file (nightly.py): the sessions of each of the two files in other orders (`--orders` of them; a file
in another order is another file, so which file and which line of it a record was read from is not compared); a
chain of nights of which each kills itself with -9 in the midst of the next stage, then one that comes to its end (`--kill`);
so many workers (`--workers`); Ray, by an interpreter that has it (`--ray`). There is no setting of partitions, so there is no
figure of them.

The last line on stdout is one JSON object: `equal_orders`, `equal_kills`, `equal_workers` (None: not asked for), `differs`
(what differs by which factor), `killed_in` (the stages that a run was killed in: one that was over before it was seen is not
among them). Below three hundred tasks workers only read: whether they audit alike takes more sessions. With `--first 200`
they hold little.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nightly import ROOT, cpu_of, different, run, sessions_of

LAST_SHARE = 0.1


def main() -> int:
    """Build the base and every factor, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--orders", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--workers", default="")
    parser.add_argument("--ray", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        print(json.dumps({"benchmark": "nightly_factors", "figures": measured(given, Path(scratch))}))
    return 0


def measured(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Return whether each factor leaves all as it was."""
    sessions = list(sessions_of(given.logs, 1))[:given.first]
    n_last = max(1, round(LAST_SHARE * len(sessions)))
    parts = [sessions[:-n_last], sessions[-n_last:]]
    inbox, grown = scratch / "logs", scratch / "grown"
    seconds = nights(inbox, grown, parts)
    differs: dict[str, list[str]] = {}
    for number in range(1, given.orders + 1):
        draw = random.Random(number)
        name = f"order {number}"
        other = scratch / f"order-{number}"
        nights(inbox, other, [draw.sample(part, len(part)) for part in parts])
        differs[name] = different(grown, other, same_files=False)
    killed: list[str] = []
    if given.kill:
        other = scratch / "killed"
        arrive(inbox, parts[:1])
        run("base", [inbox], other)
        arrive(inbox, parts)
        killed = killed_nights(inbox, other, seconds)
        run("go on", [inbox], other)
        differs["kill"] = different(grown, other)
    for engine, n, python in [*(("processes", n, sys.executable) for n in given.workers.split(",") if n),
                              *([("ray", "2", str(given.ray))] if given.ray else [])]:
        other = scratch / f"{engine}-{n}"
        nights(inbox, other, parts, python, {"TRACEROOM_ENGINE": engine, "TRACEROOM_WORKERS": n})
        differs[f"workers {engine} {n}"] = different(grown, other)
    shutil.rmtree(inbox)

    def equal(kind: str) -> bool | None:
        own = [apart for name, apart in differs.items() if name.startswith(kind)]
        return not any(own) if own else None

    return {"equal_orders": equal("order"), "equal_kills": equal("kill"), "equal_workers": equal("workers"),
            "differs": {name: apart for name, apart in differs.items() if apart}, "factors": list(differs), "killed_in": killed,
            "n_sessions": len(sessions)}


def arrive(inbox: Path, parts: list[list[list[str]]]) -> None:
    """Leave nothing in the inbox but these files."""
    shutil.rmtree(inbox, ignore_errors=True)
    inbox.mkdir()
    for number, part in enumerate(parts):
        (inbox / f"night-{number:02}.jsonl").write_text("".join(line for lines in part for line in lines), "utf-8")


def nights(
    inbox: Path, out: Path, parts: list[list[list[str]]], python: str = sys.executable,
    environment: dict[str, str] | None = None,
) -> dict[str, float]:
    """Run after each file; return the seconds of each stage that the last one computed."""
    before = dict(os.environ)
    os.environ.update(environment or {})
    for number in range(len(parts)):
        arrive(inbox, parts[:number + 1])
        stages = json.loads(cpu_of(command(inbox, out, python), ROOT)[2])["stages"]
    os.environ.clear()
    os.environ.update(before)
    return {row["stage"]: row["seconds"] for row in stages if row["computed"]}


def command(inbox: Path, out: Path, python: str = sys.executable) -> list[str]:
    """Return the command of a run."""
    return [python, "-m", "pipelines", "run", str(inbox), "--out", str(out), "--no-image", "--json", "--privacy", "off"]


def killed_nights(inbox: Path, out: Path, seconds: dict[str, float]) -> list[str]:
    """Run once for each stage, in a process that kills itself after half the stage's seconds; return the stages."""
    killed = []
    for stage, took in seconds.items():
        done = subprocess.run(
            [sys.executable, "-c", KILLED, stage, str(took / 2), *command(inbox, out)[3:]], cwd=ROOT,
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
        if done.returncode == -9:
            killed.append(stage)
        elif done.returncode:
            raise SystemExit(done.stderr)
    return killed


KILLED = """
import os, signal, sys, threading
from pipelines import progress
from pipelines.__main__ import main
name, seconds = sys.argv.pop(1), float(sys.argv.pop(1))
tell = progress.tell
def watched(stage, *rest, **more):
    if stage == name and not more.get("finished"):
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    tell(stage, *rest, **more)
progress.tell = watched
sys.exit(main())
"""
"""A run that ends itself with -9, so many seconds after the first report of a stage."""


if __name__ == "__main__":
    sys.exit(main())
