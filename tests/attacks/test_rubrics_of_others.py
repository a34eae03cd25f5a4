"""Rubrics with weights that are no numbers, kinds that are programs, patterns and depth: each is refused, or its reward lies
in its bounds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode
from tests.attacks.report import Report


def check(**changed: Any) -> dict[str, Any]:
    """Return a check with changes."""
    return {"check_id": "c", "kind": "state", "role": "score", "weight": 1.0, "description": "", "parameters": {
        "accepted": [{"documents": {}, "write_calls": []}]}, **changed}


def nested(depth: int) -> dict[str, Any]:
    """Return checks in checks."""
    inner = check()
    for number in range(depth):
        inner = {"check_id": f"n{number}", "kind": "all", "role": "gate", "parameters": {"checks": [inner]}}
    return inner


CHECKS = (
    check(weight=float("nan")), check(weight=float("inf")), check(weight=-5), check(weight=1e308), check(weight=10 ** 400),
    check(weight="1"), check(weight=True), check(weight=None),
    check(kind="python"), check(kind="os.system"), check(kind="../state"), check(kind=""), check(kind=5), check(role="god"),
    check(role=None), check(parameters=[]), check(parameters=None),
    check(parameters={"accepted": "x"}), check(parameters={"accepted": [{"documents": {"a/b": 5}, "write_calls": 1}]}),
    check(check_id=None), check(description=5),
    check(kind="order", parameters={}), check(kind="judge", parameters={"criteria": [{"name": "a", "text": "b",
    "weight": float("nan")}]}),
    check(kind="judge", parameters={"criteria": [{"name": "a", "text": "b"}], "votes": 10 ** 9}), check(kind="call",
    parameters={"calls": [{"tool": "(a+)+$"}], "at_most": -1}),
    nested(5), nested(300), {}, [], None, "x", 5)


def attack(folder: Path, share: float) -> Report:
    """Grade an episode by each, alone and beside an honest check, in both modes."""
    problems, n_tried = [], 0
    episode = Episode(({"kind": "say", "content": "a" * 30, "reply": None},), {"documents": {"x/1": "{}"}, "write_calls": []},
        (), frozenset())
    for each in CHECKS:
        for checks in ([each], [check(), each], [each] * 3, each):
            for mode in ("eval", "train"):
                n_tried += 1
                try:
                    reward = grade({"rubric_id": "r", "checks": checks}, episode, mode,
                        lambda prompt: "yes").reward  # type: ignore[dict-item]
                except ValueError:
                    continue
                except Exception as error:
                    problems.append(f"{json.dumps(each, default=str)[:100]}: {type(error).__name__}: {str(error)[:100]}")
                    continue
                least = 0.0 if mode == "eval" else -1.0
                problems += [f"{json.dumps(each, default=str)[:80]}: reward {reward}"] if reward is not None and (
                    math.isnan(reward) or not least <= reward <= 1.0) else []
    return Report(n_tried, tuple(dict.fromkeys(problems)))


def test_a_reward_lies_in_its_bounds(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
