"""What an act makes and only names in its answer: the thing as the first look at it shows it, field by field.

In: the steps of a tool, and the first look at each thing. Out: a `makes` rule, or None. A value of the answer that nobody gave
and that names a thing which was never looked at before is the new thing's key; its fields are explained by the answer, the
arguments and the things that they name, as those are at any time.
Sees: things that a tool shows by their key, looked at with no other act between. Does not see: a thing that another act had
changed before the first look; several things made at once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from env_builder.behaviour.examples import Example
from env_builder.behaviour.finds import Things
from env_builder.behaviour.writes import MINIMUM_EXAMPLES, explained, style_of
from env_builder.runtime.relevance import leaves
from env_builder.runtime.tables import ROWS
from env_builder.world.documents import Documents
from env_builder.world.effects import order_of
from env_builder.world.replay import Step

AGAINST = 0.02
"""Share of acts that name a thing which was there before, from which the act does not make it."""
MAXIMUM_DEPTH = 3
Rule = dict[str, Any]
Place = tuple[str, tuple[str, ...]]
"""(class, path in the answer)"""


class Looks:
    """The first look at each thing: of all sessions, or of each where every one begins anew."""

    def __init__(self, steps: Iterable[Step], documents: Documents, shared: bool) -> None:
        self.documents = documents
        self._shared = shared
        self._first: dict[tuple[str, ...], Step] = {}
        for step in steps:
            if step.shown:
                name = self._scope(step, step.shown[0], step.shown[1])
                known = self._first.get(name)
                if known is None or order_of(step.call) < order_of(known.call):
                    self._first[name] = step

    def of(self, act: Step, entity_class: str, key: str) -> Step | None:
        """The first look at the thing, in the world of this act."""
        return self._first.get(self._scope(act, entity_class, self.documents.plain(entity_class, key)))

    def _scope(self, step: Step, entity_class: str, key: str) -> tuple[str, ...]:
        return (entity_class, key) if self._shared else (step.call.session_id, entity_class, key)


def induce(steps: list[Step], looks: Looks, things: Things) -> Rule | None:
    """The `makes` rule of one tool."""
    seen: dict[Place, list[tuple[Step, Step]]] = defaultdict(list)
    n_against: dict[Place, int] = defaultdict(int)
    for step in steps:
        for place, look in _named(step, looks) if step.act else ():
            if order_of(look.call) < order_of(step.call):
                n_against[place] += 1
            elif set(look.after) <= {(step.call.tool, step.call.key)}:
                seen[place].append((step, look))
    for place, made in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(made) >= MINIMUM_EXAMPLES and n_against[place] <= AGAINST * len(made):
            rule = _rule(place, made, things, looks.documents)
            if rule is not None:
                return rule
    return None


def _named(step: Step, looks: Looks) -> Iterator[tuple[Place, Step]]:
    """Things that the answer names and nobody gave, with the first look at each."""
    given = {str(leaf) for leaf in leaves(step.call.arguments)}
    for path, value in _texts(step.call.parsed, ()):
        for kind in () if value in given else sorted(looks.documents.classes):
            look = looks.of(step, kind, value)
            if look is not None and look is not step:
                yield (kind, path), look


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and len(path) < MAXIMUM_DEPTH:
        for name, item in value.items():
            yield from _texts(item, (*path, name))
    elif isinstance(value, str) or type(value) is int:
        yield path, str(value)


def _rule(place: Place, made: list[tuple[Step, Step]], things: Things, documents: Documents) -> Rule | None:
    kind, path = place

    def ever(entity_class: str, key: str) -> Any:
        seen = things.documents.get((entity_class, documents.plain(entity_class, key)))
        return seen[-1] if seen else None

    classes = tuple(sorted(documents.classes))
    examples = [
        Example(step.call.parsed, step.call.arguments, json.loads(look.shown[2]), ever, classes)
        for step, look in made if look.shown]
    fields, style = explained(examples), style_of([look for _, look in made])
    if fields is None or style is None:
        return None
    return {
        "rule": "makes", "class": kind, "key": ["before", *path], "order": list(examples[0].after), "style": style,
        "fields": {name: _at_any_time(expression, things) for name, expression in fields.items()}}


def _at_any_time(expression: Any, things: Things) -> Any:
    """The expression with what it says of other things by what all looks at them agree on, where that never changed."""
    if not isinstance(expression, list):
        return expression
    if expression[:1] == ["at"] and expression[1][:1] == ["document"] and all(isinstance(step, str) for step in expression[2:]):
        (_, entity_class, key), path = expression[1], tuple(expression[2:])
        if things.stable(entity_class, [path]):
            return ["row", entity_class + ROWS, [["key", key]], "document", *path]
    return [_at_any_time(part, things) for part in expression]
