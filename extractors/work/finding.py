"""All that is learnt of a company's work from its apps' exports: acts, pieces of work, their kinds, slots and outcomes.

In: the versions of all fields, and whose accounts are whose. Out: `CompanyWork`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from extractors.apps.version import AppVersion
from extractors.work.events import find_events
from extractors.work.items import find_items
from extractors.work.kinds import assign_kinds
from extractors.work.shapes import ActShapes
from extractors.work.slots import WorkSlot, find_slots, slot_values
from extractors.work.success import WorkOutcome, judge_items
from warehouse.records import WorkEvent, WorkItem

STILL_OPEN, NO_KIND = "still_open", "no_kind"
_PERSON, _DEPARTMENT = "person", "dept"


class CompanyWork(NamedTuple):
    """The work that people of a company did."""

    events: list[WorkEvent]
    items: list[WorkItem]
    """With kind, success, and why one makes no task."""
    shapes: ActShapes
    slots: dict[str, list[WorkSlot]]
    """Of each kind."""
    values: dict[str, dict[str, str]]
    """Of each item, by slot."""
    outcomes: dict[str, WorkOutcome]


def find_work(versions: Sequence[AppVersion], accounts: Mapping[str, Mapping[str, str]]) -> CompanyWork:
    """Return the work in a company's exports. `accounts`: address -> class of accounts -> id."""
    events = find_events(versions, accounts)
    return describe_items(find_items(events), events, roles_of(versions))


def describe_items(items: Sequence[WorkItem], events: list[WorkEvent], roles: Mapping[str, str]) -> CompanyWork:
    """Return items with their kinds, slots and outcomes. `roles`: address -> department."""
    shapes = ActShapes(events)
    kinds = assign_kinds(items, events, roles)
    outcomes = judge_items(kinds, events)
    judged = [item._replace(success=outcomes[item.item_id].probability, reason=item.reason or _reason(
        item, outcomes[item.item_id])) for item in kinds]
    slots = find_slots(judged, events, shapes)
    return CompanyWork(events, judged, shapes, slots, slot_values(judged, events, shapes, slots), outcomes)


def roles_of(versions: Sequence[AppVersion]) -> dict[str, str]:
    """Return the last known department of each person of the directory, by address."""
    return {version.entity_id: str(version.value) for version in versions
            if version.entity_class == _PERSON and version.field == _DEPARTMENT and version.value}


def _reason(item: WorkItem, outcome: WorkOutcome) -> str:
    if not item.kind or not outcome.votes:
        return NO_KIND
    return STILL_OPEN if outcome.probability is None else ""
