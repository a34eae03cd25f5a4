"""The stage `work`: the pieces of work that people did in a company's apps.

In: `core.versions` and `core.accounts`, which privacy has passed. Out: `core.work_events`, `mart.work_items`, and a decision on
each item: kept, or rejected with one of the reasons of `_DETAILS`.
Without exports of a company there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from env_builder.work.sides import TIED
from extractors.work.finding import NO_KIND, STILL_OPEN, find_work
from extractors.work.items import NO_ACTOR, NOT_ONE_ITEM, ONE_ACT, PROBABLE, TALK
from pipelines.building.decisions import replace_decisions
from pipelines.building.sealing import seal_work
from pipelines.building.work_rows import event_rows, item_rows
from pipelines.inspection.company import accounts_of, stored_versions
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import Decision, WorkEventRow, WorkItem, WorkItemRow, empty, frame
from warehouse.store import Store

STAGE = "work"
_KEPT = "work_item"
_DETAILS = {
    ONE_ACT: "it is one act, and nothing else belongs to it",
    TALK: "people only wrote to each other, and changed nothing",
    NO_ACTOR: "no act names who did it",
    NOT_ONE_ITEM: f"the probability that its acts are one piece of work is {{item.probability:.2f}}, below {PROBABLE}",
    STILL_OPEN: "the exports end before it does; run again over later exports",
    TIED: "acts of it are on several sides of the split already; on any of them it would give the others away",
    NO_KIND: "too few items are like it, so nothing tells what is usual",
}


def work(store: Store, settings: Settings) -> Counts:
    """Find the work in the exports that the stage `apps` has read."""
    versions = stored_versions(store)
    tables = {"core.work_events": empty(WorkEventRow), "mart.work_items": empty(WorkItemRow)}
    items: Sequence[WorkItem] = ()
    if versions:
        company_work = find_work(versions, accounts_of(store.table("core.accounts").iter_rows()))
        tables = {"core.work_events": frame(WorkEventRow, event_rows(company_work)),
                  "mart.work_items": frame(WorkItemRow, item_rows(company_work))}
        items = company_work.items
    counts = {f"n_{name.partition('.')[2]}": store.replace(name, rows) for name, rows in tables.items()}
    tied = {*seal_work(store, settings)}
    decisions = [_decision(item, TIED if item.item_id in tied else item.reason) for item in items]
    replace_decisions(store, STAGE, frame(Decision, decisions))
    return counts


def _decision(item: WorkItem, reason: str) -> Decision:
    detail = _DETAILS.get(reason, "its acts are one piece of work").format(item=item)
    return Decision(stage=STAGE, subject=item.item_id, kept=not reason, reason=reason or _KEPT,
                    detail=f"{item.item_id}: {detail}.")
