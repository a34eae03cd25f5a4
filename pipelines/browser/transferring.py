"""The page of transfer: results in an environment beside results on the real service, as `traceroom transfer` kept them.

In: OUT/transfer/NAME.json. Out: the page's values. Does not see: results that came after the comparison; a comparison of an
earlier build is shown, and said to be one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipelines.browser.library import Library
from pipelines.browser.trajectories import goal_of
from warehouse.errors import InputError, Missing

Row = dict[str, Any]
MOST_TASKS = 50
WORDS = {"answer_wrong": "answer wrong", "answer_unknown": "answer unknown", "reward_wrong": "reward wrong",
         "user_differs": "user differs", "perturbation": "perturbation", "none_known": "no cause known"}
"""Causes in words."""


def transfer_page(library: Library, wanted: Mapping[str, str]) -> Row:
    """Return the page's values. Raises Missing, InputError."""
    paths = {path.stem: path for path in sorted((library.out / "transfer").glob("*.json")) if not path.name.startswith(".")}
    name = wanted.get("id", "") or next(iter(paths), "")
    if name and name not in paths:
        if (library.out / "environments" / name / "manifest.json").is_file() and "/" not in name:
            return {"environments": list(paths), "environment": name, "compared": None, "tasks": [], "words": WORDS}
        raise Missing.named("environment with a comparison", name, paths)
    if not name:
        return {"environments": [], "environment": "", "compared": None, "tasks": [], "words": WORDS}
    try:
        compared = json.loads(paths[name].read_text("utf-8"))
        manifest = library.out / "environments" / name / "manifest.json"
        current = json.loads(manifest.read_text("utf-8"))["content_digest"] if manifest.is_file() else None
        tasks = [{**row, "goal": _goal(library, row["task_id"])} for row in compared["tasks"][:MOST_TASKS]]
        is_current = compared["content_digest"] == current
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("the comparison cannot be read", f"transfer/{name}.json", "make it anew: traceroom transfer") from error
    return {"environments": list(paths), "environment": name, "compared": compared, "tasks": tasks, "words": WORDS,
            "is_current": is_current}


def _goal(library: Library, task_id: str) -> str:
    try:
        return str(goal_of(library, task_id) or "")
    except Missing:
        return ""
