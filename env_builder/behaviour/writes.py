"""Programs of tools that change the thing an argument names and show it: one expression a field, from examples.

In: the steps of a tool whose answers show a document, with the document as it was just before. Out: a `write` rule, or None.
A rule answers only where its guards hold (`guards`); it is dropped where logged failures look to it like calls that work.
Sees: the document, the arguments. Does not see: other documents, so a change computed from them is not explained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.behaviour import guards, joins
from env_builder.behaviour.examples import Example
from env_builder.behaviour.synthesis import explain
from env_builder.runtime.behaviour import write
from env_builder.runtime.canonical import digest
from env_builder.runtime.tables import Table
from env_builder.world.documents import STYLES
from env_builder.world.replay import Step

MINIMUM_EXAMPLES = 5
"""Fewer leave too much to coincidence: wrong answers of the prototype came from tools with 3 to 5."""
AGAINST = 0.02
"""Share of logged failures among the calls that the rule would answer, from which it is dropped."""


NO_ROWS: Mapping[str, Table] = MappingProxyType({})


class Written(NamedTuple):
    """A rule and what speaks for and against it."""

    rule: dict[str, Any]
    n_support: int
    n_against: int


def induce(
    steps: list[Step], showing: dict[str, Any], classes: tuple[str, ...], rows: Mapping[str, Table] = NO_ROWS
) -> Written | None:
    """The write rule of one tool. `showing`: its `document` rule (class, key argument, frame of the answer)."""
    done = [step for step in steps if step.before is not None and step.shown and not step.call.failed]
    if len(done) < MINIMUM_EXAMPLES:
        return None
    examples = [
        Example(json.loads(step.before or ""), step.call.arguments, json.loads(step.shown[2]), step.look, classes, rows)
        for step in done if step.shown]
    failed = [(json.loads(step.before), step) for step in steps
              if step.call.failed and step.before is not None]
    fields = explained(examples)
    style = style_of(done)
    if fields is None or style is None or all(expression == ["before", name] for name, expression in fields.items()):
        return None
    when = guards.learn(examples, [(before, step.call.arguments) for before, step in failed])
    lengths = {name: seen for name, seen in when["lengths"].items() if len(seen) == 1 or _counts(fields, name)}
    rule = {
        **showing, "rule": "write", "fields": fields, "order": list(examples[0].after), "style": style,
        "when": {**when, "lengths": lengths},
    }
    against = sum(write(rule, before, step.call.arguments, step.look) is not None for before, step in failed)
    return Written(rule, len(done), against) if against <= AGAINST * len(done) else None


def _counts(expression: Any, name: str) -> bool:
    """Does it matter how long the list is: does an expression take an element by its position?"""
    if isinstance(expression, dict):
        return any(_counts(one, name) for one in expression.values())
    if not isinstance(expression, list):
        return False
    if expression[:2] == ["before", name] and any(isinstance(step, int) for step in expression[2:]):
        return True
    return any(_counts(one, name) for one in expression)


def held_out(
    steps: list[Step], showing: dict[str, Any], classes: tuple[str, ...], rows: Mapping[str, Table] = NO_ROWS
) -> tuple[float | None, float]:
    """(exact of answered, share not answered) where each half of the sessions is answered by the other half's rule."""
    exact = answered = n = 0
    for half in (0, 1):
        rest = [step for step in steps if _half(step) != half]
        written = induce(rest, showing, classes, rows)
        asked = [step for step in steps if _half(step) == half and step.before is not None]
        n += len(asked)
        if written:
            texts = [
                (write(written.rule, json.loads(step.before or ""), step.call.arguments, step.look), step) for step in asked]
            answered += sum(text is not None for text, _ in texts)
            exact += sum(step.shown is not None and text == step.shown[2] for text, step in texts)
    return (exact / answered if answered else None), (1 - answered / n if n else 1.0)


def _half(step: Step) -> int:
    return int(digest(step.call.session_id), 16) % 2


def explained(examples: list[Example]) -> dict[str, Any] | None:
    """Expression of every field that the document has afterwards, None where one is not explained."""
    names = {tuple(sorted(example.after)) for example in examples}
    always = set.intersection(*(set(found) for found in names))
    fields: dict[str, Any] = {}
    left: list[str] = []
    for name in sorted(set().union(*names)):
        having = [example._replace(after=example.after[name]) for example in examples if name in example.after]
        expression = explain(having, [name]) or joins.mapped(having, [name])
        if expression is None:
            left.append(name)
        elif name not in always and expression != ["before", name]:
            return None
        else:
            fields[name] = expression
    for name in left:  # what is made of other fields
        having = [example._replace(after=example.after[name]) for example in examples if name in example.after]
        expression = joins.grown(having, [name], fields, explain) if name in always else None
        if expression is None:
            return None
        fields[name] = expression
    return fields


def style_of(done: list[Step]) -> dict[str, Any] | None:
    """How all the answers write JSON."""
    for style in STYLES:
        if all(json.dumps(json.loads(step.shown[2]), **style) == step.shown[2] for step in done if step.shown):
            return dict(style)
    return None
