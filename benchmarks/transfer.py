#!/usr/bin/env python3
"""Do scripted policies rank in rebuilt environments as they truly do?

    benchmarks/transfer.py DATA… [--only NAME…] [--way logs|feedback] [--scorers DIR] [--matrix FOLDER] [--jobs N]

    benchmarks/transfer.py ../shared/data/retail_desk ../shared/data/zoo

DATA: data sets with truth/policies.jsonl, or folders of such. Each is built by `traceroom run --privacy off`; then the scorer
`verdicts.py` plays each policy on each published task, as it is. Environment: its grade (None: not graded, no pair); real: the
true verdict of truth/policies.jsonl. `spearman_retail`, `spearman_zoo` (mean over the services that have one; `n_zoo` says how
many) and `choosing_regret` (the worst over all sets) are those of `pipelines.rollouts.transfer`. A policy's rate is over its
own pairs: the scripts are not all made for the same sessions. What is not graded is in `unscored` of each set.
--matrix writes the recorded matrices, which `traceroom transfer` reads. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from truth_data import Clock, DataSet, Job, build, data_sets, score, scorer, scorers_beside

from pipelines.rollouts.matrix import write_matrix
from pipelines.rollouts.transfer import PLACES, PlacedResult, transfer


def main() -> int:
    """Build, play and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--way", choices=("logs", "feedback"), default="logs")
    parser.add_argument("--scorers", type=Path)
    parser.add_argument("--matrix", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sets = [each for each in data_sets(options.data, options.only) if each.kind in ("zoo", "retail")]
    if not sets:
        parser.error("no data set with truth/policies.jsonl is there")
    clock, scorers = Clock(), (options.scorers or scorers_beside(sets[0].path)).resolve()
    with ProcessPoolExecutor(options.jobs) as workers:
        rows = list(workers.map(partial(measured, way=options.way, scorers=scorers, matrix=options.matrix), sets))
    print(json.dumps({"benchmark": "transfer", "way": options.way, "figures": figures(rows), "sets": rows,
                      "seconds": clock.seconds()}))
    return 0


def figures(rows: list[dict[str, Any]]) -> dict[str, float | int | None]:
    """Return the figures of all sets; one that cannot be computed is None."""
    retail, zoo = ([row["spearman"] for row in rows if row["kind"] == kind and row["spearman"] is not None]
                   for kind in ("retail", "zoo"))
    regrets = [row["regret"] for row in rows if row["regret"] is not None]
    return {"spearman_retail": _mean(retail), "spearman_zoo": _mean(zoo), "n_zoo": len(zoo),
            "choosing_regret": round(max(regrets), 4) if regrets else None}


def measured(data: DataSet, way: str, scorers: Path, matrix: Path | None) -> dict[str, Any]:
    """Build a set, grade its policies, and compare."""
    with tempfile.TemporaryDirectory(prefix="transfer-") as scratch:
        out = build(Job(data, way, scorers).staged(Path(scratch)), Path(scratch) / "out").out
        results = graded_pairs(scorers, out, data)
    if matrix is not None:
        matrix.mkdir(parents=True, exist_ok=True)
        write_matrix(matrix / f"{data.path.name}.jsonl", results)
    found = transfer(results)
    print(f"{data.path.name}: spearman {found.spearman}, regret {found.regret}, {found.n_pairs} pairs", file=sys.stderr)
    return {"set": data.path.name, "kind": data.kind, "spearman": found.spearman, "low": found.spearman_low,
            "high": found.spearman_high, "slope": found.slope, "intercept": found.intercept, "regret": found.regret,
            "pairs": found.n_pairs, "unscored": len(results) // 2 - found.n_pairs,
            "policies": [each._asdict() for each in found.policies]}


def graded_pairs(scorers: Path, out: Path, data: DataSet) -> list[PlacedResult]:
    """Return the grade and the true verdict of each play that the scorer makes. The seed tells apart plays of one policy on
    one task: a task of several sessions has a script of each."""
    module = scorer(scorers, "verdicts")
    plain_score, results, seeds = module.score, list[PlacedResult](), dict[tuple[str, str], int]()

    def kept_score(tasks: Any, grade: Any) -> Any:
        def kept(task: Any, policy: dict[str, Any]) -> bool | None:
            paid: bool | None = grade(task, policy)
            key = policy["policy"], task[1]
            seeds[key] = seeds.get(key, -1) + 1
            results.extend(PlacedResult(*key, seeds[key], place, success)
                           for place, success in zip(PLACES, (paid, bool(policy["truth"])), strict=True))
            return paid
        return plain_score(tasks, kept)

    module.score = kept_score
    score(module, str(out), str(data.path))
    return results


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


if __name__ == "__main__":
    sys.exit(main())
