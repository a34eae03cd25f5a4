"""Measure how well the work that a company did is found in the exports of its apps.

    python benchmarks/company_work.py ../shared/data/company [SCORER]

The folder holds `exports/`, which alone the product sees, and `truth/`, which alone the scorer reads (`company_score.py`).
`items_b3_f1`, `items_found`: which acts belong to one piece of work. The baseline joins acts of one thread.
`tasks`: the tasks made of the pieces of work that were found; `tasks_of_true_items`: of the true ones, the upper mark.
`tasks_verified`: good items with tasks whose rubrics, over two apps at least, pay the item's own recorded changes;
`false_accept`, `false_reject`: items that stayed wrong, and good or corrected ones, by the same replay.
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
from company_refs import truth_ref
from company_tasks import TrueWork, tasks_score

from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld
from env_builder.work.publishing import WorkRoom
from extractors.apps import AppVersion, installed_apps
from extractors.work.events import WorkEvent, find_events
from extractors.work.items import WorkItem, find_items
from extractors.work.kinds import assign_kinds
from extractors.work.success import judge_items
from pipelines.inspection.company import read_company
from pipelines.settings import Settings


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


def judged(items: Sequence[WorkItem], events: Sequence[WorkEvent], accounts: Mapping[str, Mapping[str, str]],
           versions: Sequence[AppVersion]) -> list[WorkItem]:
    """Return items with their kinds, and how well each ended."""
    latest = CompanyWorld(versions).at(2**61)
    roles = {address: str(latest.guess("person", owned["person"], "dept") or "") for address, owned in accounts.items()
             if "person" in owned}
    kinded = assign_kinds(items, events, roles)
    outcomes = judge_items(kinded, events)
    return [item._replace(success=outcomes[item.item_id].probability) for item in kinded]


def main(folder: Path, scorer_path: Path) -> None:
    """Measure and print."""
    company = read_company(Settings(logs=(str(folder / "exports"),), out="out"))
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(company.versions).at(2**61))}
    begin = time.process_time()
    events = find_events(company.versions, accounts)
    items = find_items(events)
    seconds = time.process_time() - begin
    kinded = judged(items, events, accounts, company.versions)
    scorer = load_scorer(scorer_path)
    score = scorer.items(str(folder / "truth"), predicted(kinded, events))
    baseline = scorer.items(str(folder / "truth"), by_thread(events))
    true = TrueWork(folder / "truth", events)
    room = WorkRoom(CompanyWorld(company.versions), events, installed_apps(), accounts)
    upper = judged(true.as_found(), events, accounts, company.versions)
    tasks = {name: tasks_score(room, room.publish(found), found, true, folder / "truth")
             for name, found in (("tasks", kinded), ("tasks_of_true_items", upper))}
    print(json.dumps({**tasks, "baseline": {name: baseline[name] for name in ("b3_f1", "items_found")},
                      "items_cpu_s": round(seconds, 2), **score}))


if __name__ == "__main__":
    data = Path(sys.argv[1])
    main(data, Path(sys.argv[2]) if len(sys.argv) > 2 else data.parents[1] / "acceptance" / "company_score.py")
