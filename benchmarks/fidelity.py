#!/usr/bin/env python3
"""How truly rooms answer, on calls that they were not built from.

    benchmarks/fidelity.py DATA [--cdc] [--own-out] [--max-examples N] [--sample N] [--built OUT]

Builds from DATA's logs alone (`traceroom run --privacy off` into an empty folder: what is asked is told in the logs' own words;
a folder called truth is never read) and plays through the public interface. What DATA holds says which protocol:

    truth/probes.jsonl              call sequences that the real tools answered, in the rooms of their sessions
        --cdc                       with the row changes of a database
        --own-out                   from an open room built from what was logged before the session began
        --max-examples N            with every tool's program induced from N calls
    truth/sessions.jsonl: trial     trials 0 and 1 of each task, then the next, in the rooms of their tasks
    truth/sessions.jsonl: task_id   three tenths of the task ids held out; each answer told after it was asked for
    else                            all days but the last two; then these, each answer told after it was asked for

--sample N: only N of the held-out sessions (requests, where there are none); --built OUT: rooms that a run made before of the
same part of the logs. Beside each figure: `cassette_…` (the latest recording of exactly this call) and `ceiling_…` (what the
log could have told, see fidelity_ceiling.py). A session without a room, and an `unknown`, count against every figure; tools
that only ever say one thing are scored apart. Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import rows
from fidelity_probes import own_out, probes
from fidelity_replay import days, tasks, trials


def main() -> int:
    """Measure the data set by its protocol and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cdc", action="store_true")
    parser.add_argument("--own-out", action="store_true")
    parser.add_argument("--max-examples", type=int)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--built", type=Path)
    options = parser.parse_args()
    if not (options.data / "logs").is_dir():
        parser.error(f"{options.data} has no folder logs/; name a data set")
    with tempfile.TemporaryDirectory() as scratch:
        figures = measure(options, Path(scratch))
    print(json.dumps({"benchmark": "fidelity", "data": options.data.resolve().name, "figures": figures}))
    return 0


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, float]:
    """Return the figures of the protocol that the data set asks for."""
    data = options.data.resolve()
    if (data / "truth" / "probes.jsonl").exists():
        if options.own_out:
            return own_out(data, scratch, options.sample)
        return probes(data, scratch, options.sample, options.built, options.cdc, options.max_examples)
    labels = data / "truth" / "sessions.jsonl"
    first = next(rows(labels)) if labels.exists() else {}
    protocol = trials if "trial" in first else tasks if "task_id" in first else days
    return protocol(data, scratch, options.sample, options.built)


if __name__ == "__main__":
    sys.exit(main())
