#!/usr/bin/env python3
"""What somebody's first hour with their own logs is like.

    benchmarks/first_hour.py [--shapes tests/extractors/formats/shapes] [--environment ENV] [--desk DATA/retail_desk]
                             [--part misread|mcp|twice]

The last line on stdout is one JSON object. `misread`: shapes of logs that are read wrongly, or that lose something which
`sniff` does not list, of `n_shapes` (benchmarks/first_hour_misread.py); `shapes` names what is wrong with each, an empty list
where nothing is. `mcp_solved`: share of an environment's published tasks (ENV, else one built from the sample) whose known
solution an MCP client carries out alone, of `n_mcp_tasks` (benchmarks/first_hour_mcp.py). `stored_twice`: share of
conversations of two logs that are in several sessions, `wrongly_merged`: sessions that hold several
(benchmarks/first_hour_twice.py); measured where --desk names the folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import first_hour_mcp, first_hour_misread, first_hour_twice  # noqa: E402 (a script of its own, from anywhere)

PARTS = ("misread", "mcp", "twice")


def main() -> int:
    """Measure the parts, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=ROOT / "tests" / "extractors" / "formats" / "shapes")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--environment", type=Path)
    parser.add_argument("--desk", type=Path, help="folder of retail_desk, for the part twice")
    arguments = parser.parse_args()
    measured, parts = {}, arguments.part or PARTS
    if "misread" in parts:
        measured = first_hour_misread.measure(arguments.shapes)
    if "mcp" in parts:
        with tempfile.TemporaryDirectory() as scratch:
            measured |= first_hour_mcp.measure((arguments.environment or first_hour_mcp.from_sample(Path(scratch))).resolve())
    if "twice" in parts and arguments.desk is not None:
        measured |= first_hour_twice.measure(arguments.desk)
    elif arguments.part and "twice" in arguments.part:
        parser.error("the part twice needs the folder of retail_desk: give --desk")
    shapes = measured.pop("shapes", {})
    print(json.dumps({"benchmark": "first_hour", "data": arguments.shapes.name, "figures": measured, "shapes": shapes}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
