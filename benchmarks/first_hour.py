#!/usr/bin/env python3
"""What somebody's first hour with their own logs is like.

    benchmarks/first_hour.py [--shapes tests/extractors/formats/shapes] [--environment ENV] [--desk DATA/retail_desk]
                             [--part misread|mcp|names|twice|vocabulary|families|branches|consumers|frameworks|sources|words]
                             [--part templates|wrapped] [--out OUT] [--talks DATA/human_desk]

The last line on stdout is one JSON object. `misread`: shapes of logs that are read wrongly, or that lose something which
`sniff` does not list, of `n_shapes` (benchmarks/first_hour_misread.py); `shapes` names what is wrong with each, an empty list
where nothing is. `wrapped_wrong`: records of samples and shapes that are read otherwise, in silence, when they lie in another
container, of `n_wrapped` pairs; `wrapped_rejected`: those rejected with a reason (benchmarks/first_hour_wrapped.py).
`mcp_solved`: share of an environment's published tasks (ENV, else one built from the sample) whose known solution an MCP client
carries out alone, of `n_mcp_tasks` (benchmarks/first_hour_mcp.py). `names_left`: share of common names that privacy leaves, of
the worst of `n_groups` groups of names, each in three positions; `words_destroyed`: share of ordinary words that it replaces;
`fields_left`, `forms_left`: fields beside an address with a rare name left, and other personal data that its form shows
(benchmarks/first_hour_names.py); `left` lists them. `stored_twice`: share of conversations of two logs that are in several
sessions, `wrongly_merged`: sessions that hold several (benchmarks/first_hour_twice.py); measured where --desk names the folder.
`vocabulary`: the most names in use for one notion over rendered pages, tables and commands of a build (OUT, else one made from
the sample; benchmarks/first_hour_vocabulary.py); `left` lists the others with where they stand. `names_shared`: share of names
of families whose content words occur in half of the members, or in a tool's name (benchmarks/first_hour_families.py).
`consumers`: trainers, readers and runners that took an export as it is in a run of all of them, of `n_consumers`
(tests/consumers); it takes many minutes and their packages, and is measured where --part asks for it. `frameworks_unchanged`:
frameworks of six whose agents play an environment's tasks as the plain loop does (benchmarks/first_hour_frameworks.py); it
installs them, and is measured where --part asks for it. `live_sources`: platforms of eight whose pulled events are those of the
dump, also after a kill (benchmarks/first_hour_sources.py); likewise. `words_ari_margin`: ARI of families of sessions without
calls minus that of TF-IDF with k-means, on the worst of several sets (benchmarks/first_hour_words.py); two of them are made
from --talks. It needs scikit-learn, and is measured where --part asks for it. `templates_margin`: grouping accuracy of line
templates minus that of Drain on the worst of four made logs (benchmarks/first_hour_templates.py). `branches_ari`: ARI of
families against what should have been done, on the worst of six made logs with and without branches; `branch_names`: share of
their names that no other family of the log has (benchmarks/first_hour_branches.py).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402 (a script of its own, from anywhere)
    first_hour_branches,
    first_hour_families,
    first_hour_frameworks,
    first_hour_mcp,
    first_hour_misread,
    first_hour_names,
    first_hour_sources,
    first_hour_templates,
    first_hour_twice,
    first_hour_vocabulary,
    first_hour_words,
    first_hour_wrapped,
)
from tests.consumers import table  # noqa: E402

PARTS = ("misread", "wrapped", "mcp", "names", "twice", "vocabulary", "families", "branches", "templates")
"""What is measured where no part is named."""


def main() -> int:
    """Measure the parts, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=Path, default=ROOT / "tests" / "extractors" / "formats" / "shapes")
    parser.add_argument("--part", choices=(*PARTS, "consumers", "frameworks", "sources", "words"), action="append")
    parser.add_argument("--environment", type=Path)
    parser.add_argument("--desk", type=Path, help="folder of retail_desk, for the part twice")
    parser.add_argument("--talks", type=Path, help="folder of human_desk, for the part words")
    parser.add_argument("--out", type=Path, help="folder that a run wrote, for the part vocabulary")
    arguments = parser.parse_args()
    measured, parts = {}, arguments.part or PARTS
    if "misread" in parts:
        measured = first_hour_misread.measure(arguments.shapes)
    left: dict[str, Any] = {}
    if "wrapped" in parts:
        wrapped = first_hour_wrapped.measure(arguments.shapes)
        left |= {"wrapped": wrapped.pop("wrapped")}
        measured |= wrapped
    if {"mcp", "frameworks"} & set(parts):
        with tempfile.TemporaryDirectory() as scratch:
            environment = (arguments.environment or first_hour_mcp.from_sample(Path(scratch))).resolve()
            if "mcp" in parts:
                measured |= first_hour_mcp.measure(environment)
            if "frameworks" in parts:
                frameworks = first_hour_frameworks.measure(environment)
                measured, left = measured | frameworks["figures"], left | frameworks["left"]
    if "sources" in parts:
        sources = first_hour_sources.measure()
        measured, left = measured | sources["figures"], left | sources["left"]
    if "names" in parts:
        names = first_hour_names.measure()
        measured, left = measured | names["figures"], left | names["left"]
    if "twice" in parts and arguments.desk is not None:
        measured |= first_hour_twice.measure(arguments.desk)
    elif arguments.part and "twice" in arguments.part:
        parser.error("the part twice needs the folder of retail_desk: give --desk")
    if "consumers" in parts:
        _, noted = table.run()
        measured |= {"consumers": sum(row["decision"] == "passes" for row in noted), "n_consumers": len(noted)}
        left |= {row["consumer"]: row["ran"] for row in noted if row["decision"] != "passes"}
    if "vocabulary" in parts:
        words = first_hour_vocabulary.measure_part(arguments.out)
        measured, left = measured | {"vocabulary": words["vocabulary"]}, left | words["others"]
    if "families" in parts:
        named = first_hour_families.measure()
        left |= {"families": named.pop("names")}
        measured |= named
    if "branches" in parts:
        branched = first_hour_branches.measure()
        left |= {"branches": branched.pop("branches")}
        measured |= branched
    if "templates" in parts:
        measured |= first_hour_templates.measure()
    if "words" in parts:
        measured |= first_hour_words.measure(arguments.talks)
    shapes = measured.pop("shapes", {})
    print(json.dumps({"benchmark": "first_hour", "data": arguments.shapes.name, "figures": measured, "shapes": shapes,
                      "left": left}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
