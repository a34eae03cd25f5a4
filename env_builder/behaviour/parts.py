"""Tools that answer a list of names with one part for each: what one name's part is, whoever else was asked for.

In: the calls of a tool that only looks, before any act that matters. Out: a `parts` rule, or None. Held to the test: each
answer whose parts all other answers tell must come out of them exactly.
Sees: objects whose keys are the names. Does not see: lists of parts, parts that depend on each other.
"""

from __future__ import annotations

from typing import Any

from env_builder.runtime.lists import STYLES
from env_builder.runtime.parts import put_together, read, written
from env_builder.world.replay import Step

MINIMUM_QUESTIONS = 5
MINIMUM_TOLD = 3
"""Answers that the others tell, all of them exactly."""
MOST_QUESTIONS = 100
Rule = dict[str, Any]


def induce(steps: list[Step]) -> Rule | None:
    """The `parts` rule of one tool."""
    said: dict[str, Step] = {}
    for step in steps:
        if not step.after and not step.call.failed:
            said.setdefault(step.call.key, step)
    asked = [(step.call.arguments, step.call.content) for _, step in sorted(said.items())][:MOST_QUESTIONS]
    names = sorted({name for arguments, _ in asked for name, value in arguments.items() if isinstance(value, list)})
    if len(asked) < MINIMUM_QUESTIONS or len(names) != 1:
        return None
    notations: list[Rule] = [{"notation": "json", "style": style} for style in STYLES] + [{"notation": "python", "style": {}}]
    for notation in notations:
        if all(_speaks(notation, names[0], arguments, content) for arguments, content in asked):
            rules = ({"rule": "parts", "argument": names[0], "order": order, **notation} for order in ("given", "fixed"))
            return next((rule for rule in rules if _holds(rule, asked)), None)
    return None


def _speaks(notation: Rule, name: str, arguments: dict[str, Any], content: str) -> bool:
    """Are the keys of the answer names that were asked for?"""
    value = read(notation["notation"], content)
    given = arguments.get(name)
    return (value is not None and isinstance(given, list) and written(notation, value) == content
            and all(key in given for key in value))


def _holds(rule: Rule, asked: list[tuple[dict[str, Any], str]]) -> bool:
    told = 0
    for place, (arguments, content) in enumerate(asked):
        text = put_together(rule, arguments, [one for other, one in enumerate(asked) if other != place])
        if text not in (None, content):
            return False
        told += text is not None and len(read(rule["notation"], content) or ()) > 1
    return told >= MINIMUM_TOLD
