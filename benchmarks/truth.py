#!/usr/bin/env python3
"""Hold what is published against what is true.

    benchmarks/truth.py DATA… [--scorers DIR] [--ways logs feedback reviews] [--only NAME…] [--min-precision P] [--jobs N]

    benchmarks/truth.py ../shared/data/zoo --ways logs feedback           the zoo: about two minutes on two cores

DATA: data sets (folders with logs/ and truth/), or folders of such. --only names some of the sets, or the services of the zoo.
Each set is built by `traceroom run --privacy off` into an empty folder, once in every way that its figures are reported in:
from logs alone, with feedback/, and from logs with 30 reviews a service. --min-precision builds with this gate.
docs/benchmarks.md#truth has the figures; counts are pooled over services before they are divided. The scorers of --scorers (by
default the folder acceptance above DATA) run as they are. A figure that cannot be computed is null, with the reason in `notes`.
The last line on stdout is one JSON object: `figures`, and to work with: `services` (a row per build), `errors` (wrong verdicts
of the zoo by policy), `effects` (wrong ones), `notes`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from truth_data import WAYS, Clock, DataSet, Job, MissingCommand, data_sets, scorers_beside
from truth_figures import assemble
from truth_measures import MEASURES, extra_ways


def main() -> int:
    """Build and score every set in every way, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--scorers", type=Path)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--min-precision", type=float)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sets = data_sets(options.data, options.only)
    if not sets:
        parser.error("no folder with logs/ is there; name a data set")
    clock, scorers = Clock(), options.scorers or scorers_beside(sets[0].path)
    jobs = [Job(each, way, scorers.resolve(), options.min_precision) for each in sets for way in ways_of(each, options.ways)]
    with ProcessPoolExecutor(options.jobs) as workers:
        measured = list(workers.map(measure, jobs))
    report = assemble(measured)
    for name, value in report["figures"].items():
        print(f"{name:36} {value}", file=sys.stderr)
    print(json.dumps({"benchmark": "truth", "data": [each.path.name for each in sets], **report, "seconds": clock.seconds()}))
    return 0


def ways_of(data: DataSet, asked: list[str]) -> list[str]:
    """Return the ways in which a set is built: those that were asked for, and changed copies of its logs."""
    return [way for way in data.ways if way in asked] + (extra_ways(data) if "logs" in asked else [])


def measure(job: Job) -> dict[str, Any]:
    """Build a set in one way and return what was counted on it, or the `note` that says why there is nothing."""
    clock = Clock()
    row: dict[str, Any] = {"set": job.data.path.name, "kind": job.data.kind, "way": job.way}
    with tempfile.TemporaryDirectory(prefix="truth-") as scratch:
        try:
            row |= MEASURES.get(job.way, MEASURES["logs"])(job, Path(scratch))
        except (MissingCommand, SystemExit) as error:
            row["note"] = str(error)
    row["seconds"] = clock.seconds()
    print(f"{row['set']}, {row['way']}: {row['seconds']} s {row.get('note', '')}", file=sys.stderr)
    return row


if __name__ == "__main__":
    sys.exit(main())
