"""Measure how well the work that a company did is found in the exports of its apps.

    python benchmarks/company_work.py ../shared/data/company [SCORER]

The folder holds `exports/`, which alone the product sees, and `truth/`, which alone the scorer reads (`company_score.py`).
`items_b3_f1`, `items_found`: which acts belong to one piece of work. The baseline joins acts of one thread.
`tasks`: the tasks made of the pieces of work that were found; `tasks_of_true_items`: of the true ones, the upper mark.
`tasks_verified`: good items with tasks whose rubrics, over two apps at least, pay the item's own recorded changes;
`false_accept`, `false_reject`: items that stayed wrong, and good or corrected ones, by the same replay.
`kinds_ari`, `success_auroc`: kinds and success over the items that were found; under `true_items` the same of the truth's own
items, which tells errors of these from errors of the items.
`in_environment`: how many of the tasks an agent could earn (`company_earned.py`).
`demonstrations_replay` and what belongs to it: `company_demonstrations.py`, over the found items, and `on_true_items`.
Prints one JSON object on the last line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from company import load_scorer
from company_demonstrations import demonstration_figures
from company_earned import earned_figures
from company_refs import truth_ref
from company_tasks import TrueWork, tasks_score

from env_builder.company.content import company_content
from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld
from env_builder.work.publishing import WorkRoom
from extractors.apps import record_kinds
from extractors.work.finding import describe_items, find_work, roles_of
from pipelines.inspection.company import prompts_of, read_company, recorded_calls_of
from pipelines.settings import Settings
from warehouse.records import WorkEvent, WorkItem

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


def true_items(truth: Path, events: Sequence[WorkEvent]) -> list[WorkItem]:
    """Return the truth's own pieces of work, of the acts that the product finds."""
    rows = [json.loads(line) for line in (truth / "events.jsonl").read_text("utf-8").splitlines()]
    item_of = {row["ref"]: row["item"] for row in reversed(rows) if not row.get("lost")}
    refs: dict[str, list[str]] = {}
    for event in events:
        if item := item_of.get(truth_ref(event)):
            refs.setdefault(item, []).append(event.ref)
    return [WorkItem(each[0], tuple(each), 1.0) for each in refs.values()]


def figures(score: dict[str, Any]) -> dict[str, Any]:
    """Return the figures on kinds and success by their names of the issue."""
    return {"kinds_ari": score.get("family_ari_of_found"), "success_auroc": score.get("success_auroc_of_found")}


def main(folder: Path, scorer_path: Path) -> None:
    """Measure and print."""
    settings = Settings(logs=(str(folder / "exports"),), out="out")
    company = read_company(settings)
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(company.versions).at(2**61))}
    begin = time.process_time()
    work = find_work(company.versions, accounts)
    seconds = time.process_time() - begin
    scorer, truth = load_scorer(scorer_path), folder / "truth"
    score = scorer.items(str(truth), predicted(work.items, work.events))
    baseline = scorer.items(str(truth), by_thread(work.events))
    true = describe_items(true_items(truth, work.events), work.events, roles_of(company.versions))
    room = WorkRoom(CompanyWorld(company.versions), work.events, record_kinds(), accounts, prompts_of(settings, company))
    known = TrueWork(truth, work.events)
    published = room.publish(work.items)
    tasks = {"tasks": tasks_score(room, published, work.items, known, truth),
             "tasks_of_true_items": tasks_score(room, room.publish(true.items), true.items, known, truth)}
    content = company_content(company.versions, recorded_calls_of(settings, company), accounts, {})
    score |= demonstration_figures(content, work.events, [item for item in work.items if not item.reason])
    print(json.dumps({
        **tasks, "in_environment": earned_figures(room, published.verified, content),
        "baseline": {name: baseline[name] for name in ("b3_f1", "items_found")},
        "items_cpu_s": round(seconds, 2), **score,
        **figures(score), "true_items": figures(scorer.items(str(truth), predicted(true.items, true.events))),
        "on_true_items": demonstration_figures(content, work.events, true.items[::EVERY])}))


if __name__ == "__main__":
    data = Path(sys.argv[1])
    main(data, Path(sys.argv[2]) if len(sys.argv) > 2 else data.parents[1] / "acceptance" / "company_score.py")
