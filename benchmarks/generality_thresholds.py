#!/usr/bin/env python3
"""Leave-one-service-out figures of thresholds: does the value in the source hold on services that did not choose it?

    benchmarks/generality_thresholds.py DATA… [--only NAME…] [--thresholds NAME…] [--jobs N]

Every set is built and played as in generality.py, with the values in the source, and once with each other value of each
threshold. For each threshold and each set, the value is chosen on all other sets (most exact answers among the values whose
wrong ones stay below .005 of their calls, the one in the source where none does) and scored on the set left out. Figures,
pooled over the sets left out: `exact_NAME` and `wrong_NAME` with the values so chosen, `own_NAME` the share of sets for which
the value in the source was chosen; `exact` and `wrong` with the values in the source. About two minutes a value on two cores.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import Built
from fidelity_score import share
from generality import COUNTS, chosen_sets, measure

import env_builder
from pipelines.cli import app

MOST_WRONG = 0.005
OTHER_VALUES: dict[str, tuple[float, ...]] = {
    "env_builder.runtime.world.SURE": (0.7, 0.95),
    "env_builder.behaviour.always.SURE_ENOUGH": (0.9, 0.99),
    "env_builder.behaviour.writes.MINIMUM_EXAMPLES": (3, 8),
    "env_builder.behaviour.writes.AGAINST": (0.0, 0.05),
}
"""Constant -> values that are tried beside its own."""


class Job(NamedTuple):
    """One set, built and played with one value."""

    group: str
    data: Path
    name: str | None
    """Constant; None: all values as in the source."""
    value: float | None

    @property
    def threshold(self) -> str | None:
        """Return the constant without its module."""
        return self.name and self.name.rpartition(".")[2]


def main() -> int:
    """Build and play every set with every value, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--thresholds", nargs="+", choices=[name.rpartition(".")[2] for name in OTHER_VALUES])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sets = chosen_sets(options.data, options.only)
    if not sets:
        parser.error("no folder with logs/ and truth/ is there; name a data set")
    values = [(None, None), *((name, value) for name, others in OTHER_VALUES.items() for value in others
                              if not options.thresholds or name.rpartition(".")[2] in options.thresholds)]
    jobs = [Job(*one, *value) for value in values for one in sets]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as workers:
        measured = list(zip(jobs, workers.map(played, jobs), strict=True))
    rows = [{"set": job.data.name, "threshold": job.threshold, "value": job.value, **row} for job, row in measured]
    figures = assemble(rows)
    for name, figure in figures.items():
        print(f"{name:36} {figure}", file=sys.stderr)
    print(json.dumps({"benchmark": "generality_thresholds", "data": [data.name for _, data in sets], "figures": figures,
                      "rows": rows}))
    return 0


def played(job: Job) -> dict[str, int]:
    """Build and play a set in this process, which is its own."""
    if job.name is not None:
        set_threshold(*job[2:])
    row = measure((job.group, job.data), None, built_here)
    return {name: row[name] for name in COUNTS}


def built_here(logs: Path, out: Path, *arguments: str) -> Built:
    """Run `traceroom run` as the benchmarks do, in this process."""
    app(["run", str(logs), "--out", str(out), "--no-image", "--json", "--privacy", "off", *arguments], standalone_mode=False)
    return Built(out, 0, 0)


def set_threshold(name: str, value: float) -> None:
    """Give a constant another value, in every module that took it over."""
    for package in ("behaviour", "runtime", "world"):
        for module in pkgutil.iter_modules([str(Path(env_builder.__file__).parent / package)], f"env_builder.{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    home, _, constant = name.rpartition(".")
    own = getattr(sys.modules[home], constant)
    for module_name, loaded in list(sys.modules.items()):
        if module_name.startswith("env_builder") and vars(loaded).get(constant) is own:
            setattr(loaded, constant, value)


def assemble(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the figures, over the sets left out one by one."""
    own = {row["set"]: row for row in rows if row["threshold"] is None}
    figures = _pooled("", list(own.values()))
    for threshold in sorted({row["threshold"] for row in rows} - {None}):
        left_out = list(_left_out(own, [row for row in rows if row["threshold"] == threshold]))
        figures |= _pooled(f"_{threshold}", left_out)
        figures[f"own_{threshold}"] = share(sum(row["threshold"] is None for row in left_out), len(left_out))
    return figures


def _left_out(own: dict[str, dict[str, Any]], others: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each set's row with the value that all other sets choose."""
    by_value: dict[float | None, dict[str, dict[str, Any]]] = {None: own}
    for row in others:
        by_value.setdefault(row["value"], {})[row["set"]] = row
    for name in own:
        def worth(value: float | None, without: str = name) -> tuple[bool, int, bool]:
            rest = [row for each, row in by_value[value].items() if each != without]
            n, n_wrong = (sum(row[part] for row in rest) for part in ("n", "wrong"))
            holds = n_wrong <= MOST_WRONG * n
            return holds, sum(row["exact"] for row in rest) if holds else 0, value is None

        yield by_value[max(by_value, key=worth)][name]


def _pooled(suffix: str, rows: list[dict[str, Any]]) -> dict[str, float]:
    n = sum(row["n"] for row in rows)
    return {f"{part}{suffix}": share(sum(row[part] for row in rows), n) for part in ("exact", "wrong")}


if __name__ == "__main__":
    sys.exit(main())
