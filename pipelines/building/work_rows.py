"""Rows of `core.work_events` and `mart.work_items`, of the work that the extractors find."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from extractors.work.events import WorkEvent
from extractors.work.finding import CompanyWork
from warehouse.records import WorkEventRow, WorkItemRow


def event_rows(company_work: CompanyWork) -> list[WorkEventRow]:
    """Return acts as rows of `core.work_events`."""
    return [WorkEventRow(
        position=number, ref=event.ref, happened_at=_instant(event.at), entity_class=event.record[0], entity_id=event.record[1],
        verb=event.verb, container=company_work.shapes.container(event), actor=event.actor, place=event.place,
        thread=event.thread,
        addressees=list(event.addressees), texts=list(event.texts), record=event.source,
        changes=_text([change._asdict() for change in event.changes])) for number, event in enumerate(company_work.events)]


def item_rows(company_work: CompanyWork) -> list[WorkItemRow]:
    """Return pieces of work as rows of `mart.work_items`, by the time of their first act."""
    acts: dict[str, WorkEvent] = {event.ref: event for event in company_work.events}
    rows = []
    for item in company_work.items:
        outcome = company_work.outcomes[item.item_id]
        rows.append(WorkItemRow(
            work_item_id=item.item_id, refs=list(item.refs), kind=item.kind, probability=item.probability,
            success=item.success, opened_at=_instant(acts[item.refs[0]].at), closed_at=_instant(acts[item.refs[-1]].at),
            reason=item.reason, slots=_text(company_work.values[item.item_id]),
            votes=_text([vote._asdict() for vote in outcome.votes]),
            corrections=_text([{"position": " ".join(each.position), "wrong": each.wrong, "right": each.right}
                               for each in outcome.corrections])))
    return rows


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC)


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
