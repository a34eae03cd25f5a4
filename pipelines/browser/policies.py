"""The page that compares two policies task by task. Input: rollouts of an environment, and the names of two policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.browser.library import Library
from pipelines.browser.trajectories import ROLLOUTS, episodes_by_task, goal_of, rolled_out
from pipelines.inspection.views import SIZE, begins, paged
from pipelines.rollouts.pairing import PairedPolicies, pair_policies
from warehouse.errors import Missing

Row = dict[str, Any]


def comparison_page(library: Library, wanted: Mapping[str, str]) -> Row:
    """Return the page's values: the environments, the policies to choose from, and the comparison if two are named."""
    rooms = {row["environment"]: [each["policy"] for each in row["policies"]] for row in rolled_out(library)}
    name = wanted.get("id", "") or next((room for room, own in rooms.items() if len(own) > 1), next(iter(rooms), ""))
    if name and name not in rooms:
        raise Missing.named("environment with rollouts", name, rooms)
    named = rooms.get(name, [])
    first = wanted.get("one", "") or (named[0] if named else "")
    second = wanted.get("other", "") or next((policy for policy in named if policy != first), first)
    for policy in (first, second):
        if policy and policy not in named:
            raise Missing.named("policy", policy, named)
    paired = _paired(library, name, first, second) if first != second else None
    begin = next((key for key in begins(wanted.get("after"), 1) if isinstance(key, int) and key > 0), 0)
    rows = _rows(library, paired, begin, begin + SIZE + 1) if paired else []
    return {"environments": list(rooms), "environment": name, "policies": named, "first": first, "second": second,
            "paired": paired, "page": paged(rows, ("place",)), "filters": {"id": name, "one": first, "other": second}}


def compared_rows(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    """Return every task of a comparison."""
    page = comparison_page(library, {name: value for name, value in wanted.items() if name != "after"})
    paired: PairedPolicies | None = page["paired"]
    return _rows(library, paired, 0, len(paired.tasks)) if paired else []


def _paired(library: Library, name: str, first: str, second: str) -> PairedPolicies:
    episodes = [row for rows in episodes_by_task(library, library.out / ROLLOUTS / name).values() for row in rows]
    return pair_policies(episodes, first, second)


def _rows(library: Library, paired: PairedPolicies, begin: int, end: int) -> list[Row]:
    return [{"place": place, **task._asdict(), "is_certain": task.is_certain, "goal": goal_of(library, task.task_id)}
            for place, task in enumerate(paired.tasks[begin:end], begin + 1)]
