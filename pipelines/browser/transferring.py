"""The page of transfer: results in an environment and results on the real service, as `traceroom transfer` kept them.

In: OUT/transfer/NAME.json. Out: the page's values. Does not see: results that came after the comparison; a comparison of an
earlier build is shown, and said to be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.browser.library import Library
from pipelines.browser.trajectories import goal_of
from pipelines.rollouts import measured
from warehouse.errors import Missing

Row = dict[str, Any]
MOST_TASKS = 50
WORDS = {"answer_wrong": "answer wrong", "answer_unknown": "answer unknown", "reward_wrong": "reward wrong",
         "user_differs": "user differs", "perturbation": "perturbation", "policy_differs": "policy differs",
         "not_examined": "not examined"}
"""Causes in words."""


def transfer_page(library: Library, wanted: Mapping[str, str]) -> Row:
    """Return the page's values. Raises Missing, InputError."""
    names = [path.stem for path in sorted((library.out / measured.FOLDER).glob("[!.]*.json"))]
    name = wanted.get("id", "") or next(iter(names), "")
    built = [path.parent.name for path in (library.out / "environments").glob("*/manifest.json")]
    if name and name not in (*names, *built):
        raise Missing.named("environment with a comparison", name, names)
    compared = measured.kept(library.out, name) if name in names else None
    tasks = [{**row, "goal": _goal(library, row["task_id"])} for row in compared["tasks"][:MOST_TASKS]] if compared else []
    return {"environments": names, "environment": name, "compared": compared, "tasks": tasks, "words": WORDS,
            "is_current": compared is not None and measured.is_current(library.out, name, compared)}


def _goal(library: Library, task_id: str) -> str:
    try:
        return str(goal_of(library, task_id) or "")
    except Missing:
        return ""
