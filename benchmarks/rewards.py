#!/usr/bin/env python3
"""Whether rewards tell good from bad, whatever is tried on them.

    benchmarks/rewards.py DATA [--only PART …] [--built OUT] [--sample N]

Builds from DATA's logs alone (`traceroom run --privacy off` into an empty folder: what stands in a folder called truth is for
scoring, in the logs' own words). The
parts that DATA can be measured by, each a module of its own beside this one, are in `PARTS`; --only names some of them;
--built OUT: what a run of the same logs made before; --sample N: only N tasks of each part. A session without a room and an
unscored grade count against coverage. Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rewards_data import RewardsOptions
from rewards_mutants import attackers, mutants
from rewards_rebuilt import rebuilt
from rewards_sessions import probes, sessions
from rewards_speed import speed
from rewards_trials import trials
from rewards_variants import variants

PARTS: dict[str, Callable[[RewardsOptions], dict[str, float]]] = {
    "trials": trials, "sessions": sessions, "probes": probes, "speed": speed,
    "mutants": mutants, "attackers": attackers, "rebuilt": rebuilt, "variants": variants,
}
"""Name of a part -> its figures; empty where DATA cannot be measured by it."""


def main() -> int:
    """Measure the data set by its parts and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", action="append", choices=sorted(PARTS))
    parser.add_argument("--built", type=Path)
    parser.add_argument("--sample", type=int)
    options = parser.parse_args()
    if not (options.data / "logs").is_dir():
        parser.error(f"{options.data} has no folder logs/; name a data set")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.only or PARTS:
            place = Path(scratch) / name
            place.mkdir()
            figures |= PARTS[name](RewardsOptions(options.data.resolve(), place, options.built, options.sample))
    print(json.dumps({"benchmark": "rewards", "data": options.data.resolve().name, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
