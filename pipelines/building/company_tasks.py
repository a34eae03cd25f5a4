"""Tasks of the work that people did in a company's apps, for the stage `company_rooms`.

In: the versions, accounts and calls that the stage `apps` stored, and the pieces of work of the stage `work`. Out: tasks with
rubrics and known solutions, and a decision on each piece of work, or stretch of one, that makes none.
"""

from __future__ import annotations

from env_builder.company.content import CompanyContent
from env_builder.company.rooms import CompanyTask
from env_builder.work.demonstrations import DemonstrationFinder
from env_builder.work.publishing import WorkDecision, WorkRoom
from env_builder.work.sides import TIED, sides_of
from env_builder.work.solving import solved_tasks
from extractors.apps import record_kinds
from extractors.work.events import find_events
from pipelines.building.sealing import sealed_work
from pipelines.inspection.company import StoredCompany
from warehouse.records import Decision, WorkItem
from warehouse.store import Store

_ITEMS = """select work_item_id, refs, probability, kind, success, epoch_us(closed_at) from mart.work_items where reason = ''
    order by opened_at, work_item_id"""
_DETAIL = "no task is made of it"


def tasks_of_work(store: Store, company: StoredCompany, content: CompanyContent, stage: str, goes_on: bool = False
                  ) -> tuple[list[CompanyTask], list[Decision]]:
    """Return the tasks of the work that a run has found, and why other work makes none: the first reason of each. `goes_on`:
    others' work goes on in their episodes."""
    items, sides = items_with_sides(store)
    if not items:
        return [], []
    kinds, events = record_kinds(), find_events(company.versions, company.accounts)
    room = WorkRoom(company.world, events, kinds, company.accounts, company.prompts)
    published = room.publish(items)
    finder = DemonstrationFinder(content, events, [kind for each in kinds.values() for kind in each])
    refs = {item.item_id: item.refs for item in items} if goes_on else None
    solved = list(solved_tasks(room, finder, published.verified, sides, refs))
    rejected = [_decision(each, stage) for each in (*published.decisions, *solved) if isinstance(each, WorkDecision)]
    first = {decision.subject: decision for decision in reversed(rejected)}
    return [each for each in solved if isinstance(each, CompanyTask)], [first[subject] for subject in sorted(first)]


def items_with_sides(store: Store) -> tuple[list[WorkItem], dict[str, str]]:
    """Return the pieces of work that tasks may be made of, and the side of the split that each is on; those on several are left
    out (the stage `work` says so)."""
    rows = store.read(_ITEMS).rows()
    items = [WorkItem(key, tuple(refs), probability, kind, success) for key, refs, probability, kind, success, _ in rows]
    sides = sides_of(((row[0], row[-1]) for row in rows), sealed_work(store))
    return [item for item in items if sides[item.item_id] != TIED], sides


def _decision(rejected: WorkDecision, stage: str) -> Decision:
    subject = rejected.task_id or rejected.item_id
    return Decision(stage=stage, subject=subject, kept=False, reason=rejected.reason,
                    detail=f"{subject}: {rejected.detail or _DETAIL}.")
