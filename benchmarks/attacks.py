#!/usr/bin/env python3
"""Attack real servers, processes and files, and count what gets through.

    benchmarks/attacks.py [--share SHARE] [--only NAME …] [--list]

Each attack is a file of tests/attacks with `attack(folder, share)`; `--share` is the share of its full count (1; the tests take
a hundredth), `--only` a part of its name. Tables and problems go to stderr; the last line on stdout is one JSON object:
`attacks` is their number, `passed` how many got through. Of figures that several attacks measure, counts are added
(`fuzzed_requests_bad`, `kills_unequal`, `originals_left` …) and the largest share counts (`memory_growth`); the others are
those of their attack. Exit code 1: one got through.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.attacks.report import Report  # noqa: E402

SUMMED = frozenset({
    "fuzzed_requests_bad", "rollouts_aborted", "kills_unequal", "handles_left", "originals_left", "credentials_left"})
LARGEST = frozenset({"memory_growth"})
"""Figures that several attacks measure: they are added, or the largest counts."""


def together(figures: dict[str, float], more: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of some attacks with those of one more."""
    merged = dict(figures)
    for name, value in more.items():
        before = merged.get(name, 0.0)
        merged[name] = before + value if name in SUMMED else max(before, value) if name in LARGEST else value
    return merged


def attacks(only: list[str]) -> dict[str, ModuleType]:
    """Return the modules of attacks by their names."""
    names = sorted(path.stem for path in (ROOT / "tests" / "attacks").glob("test_*.py"))
    wanted = [name for name in names if not only or any(part in name for part in only)]
    modules = {name.removeprefix("test_"): importlib.import_module(f"tests.attacks.{name}") for name in wanted}
    return {name: module for name, module in modules.items() if hasattr(module, "attack")}


def attacked(module: ModuleType, share: float) -> Report:
    """Run an attack in a folder of its own; one that cannot be run to its end has got through."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            report: Report = module.attack(Path(folder), share)
        except (AssertionError, OSError, RuntimeError, ValueError, LookupError, TypeError) as error:
            report = Report(0, (f"the attack ended with {type(error).__name__}: {error}",))
    return report


def main() -> int:
    """Run the attacks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    modules = attacks(options.only)
    if options.list:
        for name, module in modules.items():
            print(f"{name}: {(module.__doc__ or '').splitlines()[0]}")
        return 0
    figures: dict[str, float] = {"attacks": len(modules), "passed": 0}
    for name, module in modules.items():
        begun = time.monotonic()
        report = attacked(module, options.share)
        print(f"{name:45} {report.n_tried:8} {time.monotonic() - begun:7.1f} s  "
              f"{'got through' if report.problems else 'kept out'}  {report.figures or ''}", file=sys.stderr)
        for problem in report.problems:
            print(f"    {problem}", file=sys.stderr)
        figures["passed"] += bool(report.problems)
        figures = together(figures, report.figures)
    print(json.dumps({"benchmark": "attacks", "data": "tests/attacks", "share": options.share, "figures": figures}))
    return int(figures["passed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
