"""Conditions that people settle best: those that the policy states and the logs do not settle, and acts against others.

Input: the published warehouse. Output: `OpenCondition`s with the sessions to review, those whose tool has most waiting tasks
first. Answers on these sessions count like all reviews; a condition of which every session is settled is no longer open.
Does not see: what a sentence means, so a reviewer may find that it speaks of something else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from pipelines.inspection.views import RowSource
from warehouse.store import Store

Row = dict[str, Any]
TO_REVIEW = 4
"""Sessions of a condition to review, half of them declined where there are both kinds."""
MOST = 3
"""Conditions that a case shows."""
UNSETTLED = "condition that the policy states and the logs do not settle"
AGAINST = "acts against a condition that the logs bear out"


class OpenCondition(NamedTuple):
    """A condition for a person to settle."""

    condition_id: str
    service: str
    tool: str
    condition: str
    field: str
    sentence: str
    why: str
    n_tasks: int
    """Unpublished tasks of its sessions that wait for a known success."""
    n_declined: int
    n_acted: int
    session_ids: list[str]
    """Sessions to review."""


def open_conditions(store: Store, waiting: Mapping[str, Collection[str]], unsettled: Collection[str]) -> list[OpenCondition]:
    """Return the open conditions. `waiting`: session -> tasks that its review may open; `unsettled`: sessions without a
    settled review; those of other services are left out."""
    rows = store.read(
        "select * from mart.conditions where status = 'stated' or (status = 'borne_out' and sentence != '' and "
        "len(acted_session_ids) > 0)").to_dicts()
    opened = [each for row in rows if (each := _open(row, waiting, frozenset(unsettled))) is not None]
    return sorted(opened, key=lambda each: (-each.n_tasks, each.service, each.tool, each.condition_id))


def _open(row: Row, waiting: Mapping[str, Collection[str]], unsettled: Collection[str]) -> OpenCondition | None:
    is_stated = row["status"] == "stated"
    sides = [row["acted_session_ids"], row["declined_session_ids"] if is_stated else []]
    open_sides = [sorted((name for name in side if name in unsettled), key=lambda name: (name not in waiting, name))
                  for side in sides]
    pairs = [name for place in range(TO_REVIEW) for side in open_sides for name in side[place:place + 1]]
    if not pairs:
        return None
    tasks = {task for side in sides for name in side for task in waiting.get(name, ())}
    return OpenCondition(
        **{name: row[name] for name in ("condition_id", "service", "tool", "condition", "field", "sentence")},
        why=UNSETTLED if is_stated else AGAINST, n_tasks=len(tasks), n_declined=len(row["declined_session_ids"]),
        n_acted=len(row["acted_session_ids"]), session_ids=list(dict.fromkeys(pairs))[:TO_REVIEW])


def conditions_of_case(source: RowSource, session_id: str) -> list[Row]:
    """Return what the policy states of this session's kind of request, where it applies: {"sentence", "condition", "tool",
    "is_settled", "n_declined", "n_acted"}."""
    return source.rows(
        "select sentence, condition, tool, status = 'borne_out' as is_settled, len(declined_session_ids) as n_declined, "
        "len(acted_session_ids) as n_acted from mart.conditions where status != 'step' and sentence != '' and "
        f"list_contains(declined_session_ids || acted_session_ids, $id) order by is_settled, condition_id limit {MOST}",
        id=session_id)
