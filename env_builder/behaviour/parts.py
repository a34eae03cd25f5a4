"""Tools that answer a list of names with one part for each: what one name's part is, whoever else was asked for.

In: the calls of a tool that is not known to act, before any act that matters. Out: a `parts` rule, or None. Held to the test:
each answer whose parts all other answers tell must come out of them exactly. Where sessions begin anew and the answers of all
sessions agree part by part, after acts as well, the rule answers whatever came before (`always`).
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
MINIMUM_AFTER = 5
"""Those of them after acts, from which the parts hold whatever came before."""
MOST_QUESTIONS = 100
Rule = dict[str, Any]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool whose answer is put together from the answers to each item of a list."""
    if evidence.effect not in ("read", "unknown") or not evidence.has_only(*UNEXPLAINED, "find", "nothing"):
        return NOTHING
    begins_anew = evidence.service.starts_from == "reset"
    return one_or_none((always_rule(evidence.steps) if begins_anew else None) or parts_rule(evidence.steps))


def parts_rule(steps: list[LoggedStep]) -> Rule | None:
    """Return the `parts` rule of one tool."""
    by_question: dict[str, LoggedStep] = {}
    for step in steps:
        if not step.after and not step.call.failed:
            by_question.setdefault(step.call.key, step)
    return _rule([step for _, step in sorted(by_question.items())])


def always_rule(steps: list[LoggedStep]) -> Rule | None:
    """Return the rule that holds whatever came before, of a tool that never answered a question in two ways."""
    by_question: dict[str, LoggedStep] = {}
    for step in (step for step in steps if not step.call.failed):
        first = by_question.setdefault(step.call.key, step)
        if first.call.content != step.call.content:
            return None
        if step.after:
            by_question[step.call.key] = step
    after_first = sorted(by_question.items(), key=lambda item: (not item[1].after, item[0]))
    rule = _rule([step for _, step in after_first], MINIMUM_AFTER)
    return None if rule is None else {**rule, "always": True}


def _rule(steps: list[LoggedStep], n_after: int = 0) -> Rule | None:
    """Return the rule that gives these answers to different questions, `n_after` of them after acts; None where none does."""
    questions = [(step.call.arguments, step.call.content) for step in steps[:MOST_QUESTIONS]]
    after = {place for place, step in enumerate(steps[:MOST_QUESTIONS]) if step.after}
    names = sorted({name for arguments, _ in questions for name, value in arguments.items() if isinstance(value, list)})
    if len(questions) < MINIMUM_QUESTIONS or len(names) != 1:
        return None
    notations: list[Rule] = [{"notation": "json", "style": style} for style in STYLES] + [{"notation": "python", "style": {}}]
    for notation in notations:
        if all(_speaks(notation, names[0], arguments, content) for arguments, content in questions):
            rules = ({"rule": "parts", "argument": names[0], "order": order, **notation} for order in ("given", "fixed"))
            explained = ((rule, _explained(rule, questions)) for rule in rules)
            return next((rule for rule, places in explained
                         if len(places) >= MINIMUM_TOLD and len(places & after) >= n_after), None)
    return None


def _speaks(notation: Rule, name: str, arguments: dict[str, Any], content: str) -> bool:
    """Are the keys of the answer names that were asked for?"""
    value = read_object(notation["notation"], content)
    given = arguments.get(name)
    return (value is not None and isinstance(given, list) and written_object(notation, value) == content
            and all(key in given for key in value))


def _explained(rule: Rule, questions: list[tuple[dict[str, Any], str]]) -> set[int]:
    """Return the places of the answers of several parts that all others tell; none where one is told wrongly."""
    places: set[int] = set()
    for place, (arguments, content) in enumerate(questions):
        text = put_together(rule, arguments, [one for other, one in enumerate(questions) if other != place])
        if text not in (None, content):
            return set()
        if text is not None and len(read_object(rule["notation"], content) or ()) > 1:
            places.add(place)
    return places
