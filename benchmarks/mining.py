#!/usr/bin/env python3
"""What people repeatedly do, found in logs, scored against truth that no part of the miner ever reads.

    benchmarks/mining.py DATA       e.g. ../shared/data/human_desk

Which data set it is, is told from the content of its truth. What is scored is what the public pipeline publishes
(`mart.tasks`, `mart.goals`, `core.sessions`), and for protocols such as "words only" the same functions on changed input.
Figures of success and calibration come from `mining_outcomes.py`. Beside each figure stand plain baselines of the same run;
those of scikit-learn where it is installed. Intervals are 95 %, by bootstrap over sessions. The table goes to stderr, the last
line on stdout is one JSON object. Where TRACEROOM_MODEL and TRACEROOM_MODEL_URL give a language model, all is mined and
measured again with it (`NAME_asked`), beside the shares of names and sentences that it wrote.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import asked, mining_outcomes, mining_streams, mining_talks  # noqa: E402 (a script of its own, from anywhere)
from benchmarks.mining_data import Data, load  # noqa: E402

_PROTOCOLS = {"plans": mining_talks.plans, "repeats": mining_talks.repeats, "office": mining_talks.repeats,
              "goals": mining_talks.goals, "cases": mining_streams.cases, "rows": mining_streams.rows}


def main() -> int:
    """Mine the data set once, score it and print the figures."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    began = time.perf_counter()
    data = load(Path(sys.argv[1]).resolve())
    if data.kind not in _PROTOCOLS:
        print(f"{data.path}/truth: no protocol knows these fields; look into benchmarks/mining_data.py", file=sys.stderr)
        return 2
    figures = asked.both_ways(_figures(data), lambda: _with_model(data))
    figures["seconds"] = round(time.perf_counter() - began, 1)
    for name, value in figures.items():
        if not name.endswith("_interval"):
            print(f"{name:46} {value!s:>10}  {figures.get(f'{name}_interval', '')}", file=sys.stderr)
    print(json.dumps({"benchmark": "mining", "data": data.path.name, "model": asked.model(), "figures": figures}))
    return 0


def _figures(data: Data, ask: bool = False) -> dict[str, Any]:
    """All figures of the data set as it was mined."""
    return {**_PROTOCOLS[data.kind](data), **mining_outcomes.figures(data.path.name, data.path, ask=ask),
            "seconds_pipeline": data.seconds}


def _with_model(data: Data) -> dict[str, Any]:
    """Return the same with a model; `seconds_pipeline` is then of what the switch computes anew."""
    found = data.asked or data
    return {**_figures(found, ask=True), **asked.of_names(found.tables["mart.names"], found.tables["mart.sentences"])}


if __name__ == "__main__":
    sys.exit(main())
