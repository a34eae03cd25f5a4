"""What an act makes and only names in its answer: the record as the first read of it shows it, field by field.

In: the steps of a tool, and the first read of each record. Out: a `makes` rule, or None. A value of the answer that nobody gave
and that names a record which was never looked at before is the new record's key; its fields are explained by the answer, the
arguments and the records that they name, as those are at any time. Sees: records that a tool shows by their key, looked at with
no other act between. Does not see: a record that another act had changed before the first read; several records made at once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from env_builder.behaviour.evidence import NOTHING, FirstReads, Induced, Rule, ShownRecords, ToolEvidence, one_or_none
from env_builder.behaviour.examples import WriteExample
from env_builder.behaviour.writes import MINIMUM_EXAMPLES, explained
from env_builder.runtime.programs import ACTING
from env_builder.runtime.relevance import leaves
from env_builder.runtime.tables import ROWS, scalars
from env_builder.world.calls import order_of
from env_builder.world.documents import Documents, style_of
from env_builder.world.replay import LoggedStep

AGAINST = 0.02
"""Share of acts that name a record which was there before, from which the act does not make it."""
Place = tuple[str, tuple[str, ...]]
"""(class, path in the answer)"""


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that makes a record which only later reads show."""
    if evidence.effect not in ACTING:
        return NOTHING
    return one_or_none(make_rule(evidence.steps, evidence.shared.reads, evidence.shared.records))


def make_rule(steps: list[LoggedStep], looks: FirstReads, records: ShownRecords) -> Rule | None:
    """Return the `makes` rule of one tool."""
    pairs: dict[Place, list[tuple[LoggedStep, LoggedStep]]] = defaultdict(list)
    n_against: dict[Place, int] = defaultdict(int)
    for step in steps:
        for place, look in _named(step, looks) if step.act else ():
            if order_of(look.call) < order_of(step.call):
                n_against[place] += 1
            elif set(look.after) <= {(step.call.tool, step.call.key)}:
                pairs[place].append((step, look))
    for place, made in sorted(pairs.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(made) >= MINIMUM_EXAMPLES and n_against[place] <= AGAINST * len(made):
            rule = _rule(place, made, records, looks.documents)
            if rule is not None:
                return rule
    return None


def _named(step: LoggedStep, looks: FirstReads) -> Iterator[tuple[Place, LoggedStep]]:
    """Yield the records that the answer names and nobody gave, with the first read of each."""
    given = {str(leaf) for leaf in leaves(step.call.arguments)}
    answer = step.call.parsed if isinstance(step.call.parsed, dict) else {}
    for path, value in scalars(answer, depth=2):
        for kind in () if isinstance(value, float) or str(value) in given else sorted(looks.documents.classes):
            look = looks.of(step, kind, str(value))
            if look is not None and look is not step:
                yield (kind, path), look


def _rule(place: Place, made: list[tuple[LoggedStep, LoggedStep]], records: ShownRecords, documents: Documents) -> Rule | None:
    kind, path = place

    def ever(entity_class: str, key: str) -> Any:
        contents = records.documents.get((entity_class, documents.plain(entity_class, key)))
        return contents[-1] if contents else None

    classes = tuple(sorted(documents.classes))
    examples = [
        WriteExample(step.call.parsed, step.call.arguments, json.loads(look.shown[2]), ever, classes)
        for step, look in made if look.shown]
    fields, style = explained(examples), style_of([look.shown[2] for _, look in made if look.shown])
    if fields is None or style is None:
        return None
    return {
        "rule": "makes", "class": kind, "key": ["before", *path], "order": list(examples[0].after), "style": style,
        "fields": {name: _at_any_time(expression, records) for name, expression in fields.items()}}


def _at_any_time(expression: Any, records: ShownRecords) -> Any:
    """Return the expression with what it says of other records by what all reads of them agree on, where that never changed."""
    if not isinstance(expression, list):
        return expression
    if expression[:1] == ["at"] and expression[1][:1] == ["document"] and all(isinstance(step, str) for step in expression[2:]):
        (_, entity_class, key), path = expression[1], tuple(expression[2:])
        if records.stable(entity_class, [path]):
            return ["row", entity_class + ROWS, [["key", key]], "document", *path]
    return [_at_any_time(part, records) for part in expression]
