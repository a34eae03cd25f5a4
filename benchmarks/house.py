#!/usr/bin/env python3
"""How the house stands: names, structure, size, pages; and that nothing changed for who plays.

    benchmarks/house.py [--before FOLDER] [--data FOLDER …] [--rounds 5] [--clone] [--hops]

Always: `product_lines`, `modules`, `helpers_with_one_caller` (private functions that their module calls at one place),
`circles` (imports inside functions count), `class_names_twice`, `pipelines_root_modules`, `banned_names`, and of docs/
`banned_words_docs`, `words_a_sentence`, `words_a_sentence_p90`, and `lines_for_a_kind` (the package that a test installs as a
third party's kind of environment).

--hops: `hops_a_served_call`, frames of our code between an MCP request and the program that answers it.
--clone: `clean_clone_failed`, the default tests that fail in a clone with nothing beside it (takes as long as ./test).
--before FOLDER (a checkout of another commit, set up): both build the logs of --data (by default the sample), and what is
published is played by both (house_play.py): `episodes_compared`, `answers_differ`, `grades_differ`, and `episodes_share`, the
median over interleaved rounds of today's episodes a second over the others'.

The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import house_docs
import house_source

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "logs" / "airline"
PLAYER = ROOT / "benchmarks" / "house_play.py"
THIRD_PARTY = ROOT / "tests" / "third_party_backend"


def main() -> int:
    """Measure what is asked for and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--data", type=Path, nargs="+", default=[SAMPLE])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clone", action="store_true")
    parser.add_argument("--hops", action="store_true")
    options = parser.parse_args()
    figures: dict[str, Any] = measure_source() | house_docs.measure_docs(ROOT / "docs")
    with tempfile.TemporaryDirectory() as scratch:
        if options.hops:
            import house_hops

            figures["hops_a_served_call"] = house_hops.hops_a_served_call(built(ROOT, SAMPLE, Path(scratch) / "hops"))
        if options.clone:
            figures["clean_clone_failed"] = failures_in_a_clone(Path(scratch) / "clone")
        if options.before:
            figures |= compare(options.before.resolve(), options.data, options.rounds, Path(scratch))
    print(json.dumps({"benchmark": "house", "figures": figures}))
    return 0


def measure_source() -> dict[str, int]:
    """Return the figures that the source alone gives."""
    lists = {"circles": house_source.circles(ROOT), "class_names_twice": house_source.class_names_twice(ROOT),
             "banned_names": house_source.banned_names(ROOT)}
    for name, entries in lists.items():
        print(f"{name}: {entries}", file=sys.stderr)
    kind = [path for path in THIRD_PARTY.rglob("*") if path.suffix in (".py", ".toml")]
    return {
        "product_lines": house_source.product_lines(ROOT), **{name: len(entries) for name, entries in lists.items()},
        "helpers_with_one_caller": house_source.helpers_with_one_caller(ROOT), "modules": len(house_source.sources(ROOT)),
        "pipelines_root_modules": house_source.pipelines_root_modules(ROOT),
        "lines_for_a_kind": sum(path.read_text("utf-8").count("\n") for path in kind)}


def built(checkout: Path, logs: Path, out: Path) -> Path:
    """Run a checkout over logs; return the folder of its first published environment."""
    command = [checkout / ".venv" / "bin" / "python", "-P", "-m", "pipelines", "run", logs, "--out", out]
    subprocess.run(
        [*map(str, command), "--no-image", "--json", "--privacy", "off"], cwd=checkout, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(checkout)})
    return min((out / "environments").iterdir())


def failures_in_a_clone(folder: Path) -> int:
    """Count the default tests that fail in a clone of HEAD with nothing beside it, its own .venv set up by its own ./test."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "traceroom")], check=True)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRACEROOM_")}
    done = subprocess.run(["./test"], cwd=folder / "traceroom", env=environ, capture_output=True, text=True, check=False)
    print(done.stdout[-2000:], file=sys.stderr)
    failed = re.search(r"(\d+) failed", done.stdout)
    return int(failed[1]) if failed else int(done.returncode != 0)


def compare(before: Path, data: list[Path], rounds: int, scratch: Path) -> dict[str, Any]:
    """Play what both checkouts build of each folder of logs, by both."""
    figures = {"episodes_compared": 0, "answers_differ": 0, "grades_differ": 0}
    shares = []
    for number, logs in enumerate(data):
        outs = {checkout: scratch / f"{number}-{name}" for name, checkout in (("before", before), ("now", ROOT))}
        for checkout, out in outs.items():
            built(checkout, logs, out)
        probes = logs / "truth" / "probes.jsonl"
        more = ["--probes", str(probes)] if probes.exists() else []
        first, second = (episodes(played(checkout, out, *more)) for checkout, out in outs.items())
        figures["episodes_compared"] += len(first.keys() | second.keys())
        for key in first.keys() | second.keys():
            (one, one_grade), (two, two_grade) = first.get(key, (None, None)), second.get(key, (None, None))
            figures["answers_differ"] += one != two
            figures["grades_differ"] += one_grade != two_grade
            if one != two or one_grade != two_grade:
                print(f"{logs.name} {key} differs", file=sys.stderr)
        for _ in range(rounds):
            speeds = [json.loads(played(checkout, out, "--rounds", "7")[-1])["episodes_s"] for checkout, out in outs.items()]
            shares.append(speeds[1] / speeds[0])
    return {**figures, "episodes_share": round(statistics.median(shares), 3) if shares else None}


def played(checkout: Path, out: Path, *more: str) -> list[str]:
    """Return the lines that the player prints when it runs on a checkout's code."""
    done = subprocess.run(
        [str(checkout / ".venv" / "bin" / "python"), str(PLAYER), str(out), *more], cwd=checkout, check=True, text=True,
        stdout=subprocess.PIPE)
    return done.stdout.splitlines()


def episodes(lines: list[str]) -> dict[tuple[str, ...], tuple[Any, float | None]]:
    """Return (environment, task, what was played) -> answers and reward."""
    rows = [json.loads(line) for line in lines[:-1]]
    return {tuple(row[:3]): (row[3], row[4]) for row in rows}


if __name__ == "__main__":
    sys.exit(main())
