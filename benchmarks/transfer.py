#!/usr/bin/env python3
"""Do scripted policies rank in rebuilt environments as they truly do?

    benchmarks/transfer.py DATA… [--only NAME…] [--way logs|feedback] [--scorers DIR] [--matrix FOLDER] [--engines FILE]
                           [--jobs N]

    benchmarks/transfer.py ../shared/data/retail_desk ../shared/data/zoo --engines ../shared/data/zoo/engine.py

DATA: data sets with truth/policies.jsonl, or folders of such. Each is built by `traceroom run --privacy off`; then the scorer
`verdicts.py` plays each policy on each published task, as it is. Environment: its grade (None: not graded, no pair); real: the
true verdict of truth/policies.jsonl. `spearman_retail`, `spearman_zoo` (mean over the services that have one; `n_zoo` says how
many) and `choosing_regret` (the worst over all sets) are those of `pipelines.rollouts.transfer`. A policy's rate is over its
own pairs: the scripts are not all made for the same sessions. What is not graded is in `unscored` of each set.
With --engines each play of the zoo is made on the real service too, from the state in which its session began: the engine makes
the set again, which must give the same scripts. `causes` are then those of its disagreements, by both journals
(`pipelines.rollouts.divergence`), `cause_shares` their shares over all sets with engines; other sets are not examined.
--matrix writes the recorded matrices, which `traceroom transfer` reads. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from real_services import Start, engines, record
from truth_data import Clock, DataSet, Job, build, data_sets, score, scorer, scorers_beside

from pipelines.rollouts.matrix import write_matrix
from pipelines.rollouts.transfer import PLACES, PlacedResult, transfer

Row = dict[str, Any]
SEED = "7"
"""Of the zoo's sets, as their README says."""


def main() -> int:
    """Build, play and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--way", choices=("logs", "feedback"), default="logs")
    parser.add_argument("--scorers", type=Path)
    parser.add_argument("--matrix", type=Path)
    parser.add_argument("--engines", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sets = [each for each in data_sets(options.data, options.only) if each.kind in ("zoo", "retail")]
    if not sets:
        parser.error("no data set with truth/policies.jsonl is there")
    clock, scorers = Clock(), (options.scorers or scorers_beside(sets[0].path)).resolve()
    measure = partial(measured, way=options.way, scorers=scorers, matrix=options.matrix, engine_file=options.engines)
    with ProcessPoolExecutor(options.jobs) as workers:
        rows = list(workers.map(measure, sets))
    print(json.dumps({"benchmark": "transfer", "way": options.way, "figures": figures(rows), "sets": rows,
                      "seconds": clock.seconds()}))
    return 0


def figures(rows: list[dict[str, Any]]) -> dict[str, float | int | None]:
    """Return the figures of all sets; one that cannot be computed is None."""
    retail, zoo = ([row["spearman"] for row in rows if row["kind"] == kind and row["spearman"] is not None]
                   for kind in ("retail", "zoo"))
    regrets = [row["regret"] for row in rows if row["regret"] is not None]
    return {"spearman_retail": _mean(retail), "spearman_zoo": _mean(zoo), "n_zoo": len(zoo),
            "choosing_regret": round(max(regrets), 4) if regrets else None, **cause_shares(rows)}


def cause_shares(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the share of each cause over the sets that were examined, and how many disagreements they have."""
    counts = sum((Counter(row["causes"]) for row in rows if row["examined"]), Counter[str]())
    return {"n_examined": counts.total(),
            "cause_shares": {name: round(n / counts.total(), 4) for name, n in sorted(counts.items())}}


def measured(data: DataSet, way: str, scorers: Path, matrix: Path | None, engine_file: Path | None = None) -> dict[str, Any]:
    """Build a set, grade its policies, and compare."""
    with tempfile.TemporaryDirectory(prefix="transfer-") as scratch:
        out = build(Job(data, way, scorers).staged(Path(scratch)), Path(scratch) / "out").out
        engine = engines(engine_file) if engine_file is not None and data.kind == "zoo" else None
        starts = started(engine, data, Path(scratch) / "again") if engine is not None else {}
        results = graded_pairs(scorers, out, data, starts)
    if matrix is not None:
        matrix.mkdir(parents=True, exist_ok=True)
        write_matrix(matrix / f"{data.path.name}.jsonl", results)
    found = transfer(results)
    print(f"{data.path.name}: spearman {found.spearman}, regret {found.regret}, {found.n_pairs} pairs", file=sys.stderr)
    return {"set": data.path.name, "kind": data.kind, "spearman": found.spearman, "low": found.spearman_low,
            "high": found.spearman_high, "slope": found.slope, "intercept": found.intercept, "regret": found.regret,
            "pairs": found.n_pairs, "unscored": len(results) // 2 - found.n_pairs,
            "examined": bool(starts), "causes": found.causes,
            "cause_shares": [each._asdict() for each in found.cause_shares] if starts else [],
            "policies": [each._asdict() for each in found.policies]}


def started(engine: ModuleType, data: DataSet, scratch: Path) -> dict[str, Start]:
    """Return session -> how it began, by making the set again; none if that does not give the same scripts."""
    starts = record(engine, data.path.name, scratch, SEED)
    same = [(folder / "truth" / "policies.jsonl").read_bytes() for folder in (data.path, scratch / "data" / data.path.name)]
    return starts if same[0] == same[1] else {}


def on_service(start: Start, journal: Sequence[Row]) -> tuple[Row, ...]:
    """Return the journal that the same moves make at the real service; the user is the environment's."""
    service, rows = start.service.fork(), []
    for row in journal:
        if row["kind"] == "call":
            content, is_error = service.call(row["tool"], row["arguments"])
            row = {**row, "content": str(content), "is_error": bool(is_error)}
        rows.append(row)
    return tuple(rows)


def graded_pairs(
    scorers: Path, out: Path, data: DataSet, starts: Mapping[str, Start] | None = None,
) -> list[PlacedResult]:
    """Return the grade and the true verdict of each play that the scorer makes. The seed tells apart plays of one policy on
    one task: a task of several sessions has a script of each. `starts`: of the sessions, for the journals of both places."""
    module = scorer(scorers, "verdicts")
    plain_score, results, seeds = module.score, list[PlacedResult](), dict[tuple[str, str], int]()

    def kept_score(tasks: Any, grade: Any) -> Any:
        def kept(task: Any, policy: dict[str, Any]) -> bool | None:
            paid: bool | None = grade(task, policy)
            key = policy["policy"], task[1]
            seeds[key] = seeds.get(key, -1) + 1
            start = (starts or {}).get(policy.get("session_id", ""))
            journals = (task[0].journal, on_service(start, task[0].journal)) if start else (None, None)
            results.extend(PlacedResult(*key, seeds[key], place, success, journal=journal) for place, success, journal in zip(
                PLACES, (paid, bool(policy["truth"])), journals, strict=True))
            return paid
        return plain_score(tasks, kept)

    module.score = kept_score
    score(module, str(out), str(data.path))
    return results


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


if __name__ == "__main__":
    sys.exit(main())
