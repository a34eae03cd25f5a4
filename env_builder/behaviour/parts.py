"""Tools that answer a list of names with one part for each: what one name's part is, whoever else was asked for.

In: the calls of a tool that only looks, before any act that matters. Out: a `parts` rule, or None. Held to the test: each
answer whose parts all other answers tell must come out of them exactly.
Sees: objects whose keys are the names. Does not see: lists of parts, parts that depend on each other.
"""

from __future__ import annotations

from typing import Any

from env_builder.behaviour.evidence import NOTHING, UNEXPLAINED, Induced, ToolEvidence, one_or_none
from env_builder.runtime.lists import STYLES, put_together, read_object, written_object
from env_builder.world.replay import LoggedStep

MINIMUM_QUESTIONS = 5
MINIMUM_TOLD = 3
"""Answers that the others tell, all of them exactly."""
MOST_QUESTIONS = 100
Rule = dict[str, Any]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a read whose answer is put together from the answers to each item of a list."""
    if evidence.effect != "read" or not evidence.has_only(*UNEXPLAINED, "find", "nothing"):
        return NOTHING
    return one_or_none(parts_rule(evidence.steps))


def parts_rule(steps: list[LoggedStep]) -> Rule | None:
    """Return the `parts` rule of one tool."""
    by_question: dict[str, LoggedStep] = {}
    for step in steps:
        if not step.after and not step.call.failed:
            by_question.setdefault(step.call.key, step)
    questions = [(step.call.arguments, step.call.content) for _, step in sorted(by_question.items())][:MOST_QUESTIONS]
    names = sorted({name for arguments, _ in questions for name, value in arguments.items() if isinstance(value, list)})
    if len(questions) < MINIMUM_QUESTIONS or len(names) != 1:
        return None
    notations: list[Rule] = [{"notation": "json", "style": style} for style in STYLES] + [{"notation": "python", "style": {}}]
    for notation in notations:
        if all(_speaks(notation, names[0], arguments, content) for arguments, content in questions):
            rules = ({"rule": "parts", "argument": names[0], "order": order, **notation} for order in ("given", "fixed"))
            return next((rule for rule in rules if _holds(rule, questions)), None)
    return None


def _speaks(notation: Rule, name: str, arguments: dict[str, Any], content: str) -> bool:
    """Are the keys of the answer names that were asked for?"""
    value = read_object(notation["notation"], content)
    given = arguments.get(name)
    return (value is not None and isinstance(given, list) and written_object(notation, value) == content
            and all(key in given for key in value))


def _holds(rule: Rule, questions: list[tuple[dict[str, Any], str]]) -> bool:
    n_explained = 0
    for place, (arguments, content) in enumerate(questions):
        text = put_together(rule, arguments, [one for other, one in enumerate(questions) if other != place])
        if text not in (None, content):
            return False
        n_explained += text is not None and len(read_object(rule["notation"], content) or ()) > 1
    return n_explained >= MINIMUM_TOLD
