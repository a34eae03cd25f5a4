"""Measure how well the work that a company did is found in the exports of its apps.

    python benchmarks/company_work.py ../shared/data/company [SCORER]

The folder holds `exports/`, which alone the product sees, and `truth/`, which alone the scorer reads (`company_score.py`).
`items_b3_f1`, `items_found`: which acts belong to one piece of work. The baseline joins acts of one thread.
`demonstrations_replay` and what belongs to it: `company_demonstrations.py`, over the found items, and `on_true_items`.
Prints one JSON object on the last line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from company import load_scorer
from company_demonstrations import demonstration_figures
from company_refs import truth_ref

from env_builder.company.content import company_content
from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld
from extractors.work.events import WorkEvent, find_events
from extractors.work.items import WorkItem, find_items
from pipelines.inspection.company import read_company, recorded_calls_of
from pipelines.settings import Settings

EVERY = 5
"""Of the true items, each fifth is demonstrated: a check of the tools alone."""


def predicted(items: Iterable[WorkItem], events: Sequence[WorkEvent]) -> list[dict[str, Any]]:
    """Return items as the scorer takes them."""
    names = {event.ref: truth_ref(event) for event in events}
    return [{"work_item_id": item.item_id, "refs": [names[ref] for ref in item.refs]}
            | ({"family": item.kind} if item.kind else {}) | ({} if item.success is None else {"success": item.success})
            for item in items]


def by_thread(events: Sequence[WorkEvent]) -> list[dict[str, Any]]:
    """Return the acts of each thread, the baseline."""
    threads: dict[str, list[str]] = {}
    for event in events:
        threads.setdefault(event.thread, []).append(truth_ref(event))
    return [{"work_item_id": thread, "refs": refs} for thread, refs in threads.items()]


def true_items(truth: Path, named: Mapping[str, str]) -> list[WorkItem]:
    """Return the true pieces of work: what demonstrations lose besides the items that were found wrongly."""
    items: dict[str, list[str]] = {}
    for line in (truth / "events.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["item"] and event["ref"] in named:
            items.setdefault(event["item"], []).append(named[event["ref"]])
    return [WorkItem(item_id, tuple(refs), 1.0) for item_id, refs in items.items()]


def main(folder: Path, scorer_path: Path) -> None:
    """Measure and print."""
    settings = Settings(logs=(str(folder / "exports"),), out="out")
    company = read_company(settings)
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(company.versions).at(2**61))}
    begin = time.process_time()
    events = find_events(company.versions, accounts)
    items = find_items(events)
    seconds = time.process_time() - begin
    scorer = load_scorer(scorer_path)
    score = scorer.items(str(folder / "truth"), predicted(items, events))
    baseline = scorer.items(str(folder / "truth"), by_thread(events))
    content = company_content(company.versions, recorded_calls_of(settings, company), accounts, {})
    named = {truth_ref(event): event.ref for event in events}
    of_truth = true_items(folder / "truth", named)[::EVERY]
    score |= demonstration_figures(content, events, [item for item in items if not item.reason])
    score["on_true_items"] = demonstration_figures(content, events, of_truth)
    print(json.dumps({"baseline": {name: baseline[name] for name in ("b3_f1", "items_found")},
                      "items_cpu_s": round(seconds, 2), **score}))


if __name__ == "__main__":
    data = Path(sys.argv[1])
    main(data, Path(sys.argv[2]) if len(sys.argv) > 2 else data.parents[1] / "acceptance" / "company_score.py")
