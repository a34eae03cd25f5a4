"""Measure how much of a company's work can be said in calls of its apps' tools (`company_work.py` prints it).

`demonstrations_replay`: share of the items with an act of a listed person whose calls, played in a fresh episode, reach the end
on record. `demonstrations_by_app`: that share over the items that touch an app. `demonstrations_missed`: the reasons, with
counts. `ids_shown`: share of ids in arguments that an answer or the opening had shown before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from env_builder.company.content import CompanyContent
from env_builder.work.demonstrations import Demonstration, find_demonstrations
from extractors.apps import installed_apps
from extractors.work.events import WorkEvent
from extractors.work.items import WorkItem

MOST_REASONS = 12


def demonstration_figures(content: CompanyContent, events: Sequence[WorkEvent], items: Iterable[WorkItem]) -> dict[str, Any]:
    """Return the figures of items."""
    found = list(find_demonstrations(content, events, items, [kind for app in installed_apps() for kind in app.kinds]))
    by_app: dict[str, list[bool]] = {}
    reasons: Counter[str] = Counter()
    for demonstration, differences in found:
        reaches = not differences and not demonstration.missed
        for app in apps_of(demonstration):
            by_app.setdefault(app, []).append(reaches)
        reasons.update(f"{act.entity_class}: {act.reason}" for act in demonstration.missed)
        if differences and not demonstration.missed:
            reasons.update(f"end differs: {difference}" for difference in differences)
    steps = [step for demonstration, _ in found for step in demonstration.steps]
    shown, ids = (sum(demonstration.grounded[place] for demonstration, _ in found) for place in (0, 1))
    reached = sum(not differences and not demonstration.missed for demonstration, differences in found)
    return {
        "demonstrations_replay": _share(reached, len(found)), "demonstrations_items": len(found),
        "demonstrations_by_app": {app: _share(sum(own), len(own)) for app, own in sorted(by_app.items())},
        "demonstrations_missed": dict(reasons.most_common(MOST_REASONS)),
        "demonstration_steps": {"writes": sum(bool(step.refs) for step in steps), "looks": sum(not step.refs for step in steps),
                                "edited_later": sum("edited_later" in step.lossy for step in steps),
                                "doer_inferred": sum("doer_inferred" in step.lossy for step in steps)},
        "ids_shown": _share(shown, ids)}


def apps_of(demonstration: Demonstration) -> set[str]:
    """Return the classes of records that an item's acts are on."""
    return {ref.partition(":")[0] for ref in demonstration.refs}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
