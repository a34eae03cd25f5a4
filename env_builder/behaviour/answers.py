"""What calls that worked answer, of tools whose answers show no record: one expression for all of them.

In: the steps of a tool, and the records that its calls name as they were just before. Out: an `answer` rule and the `check`
rule before it, or none. The expression speaks of the arguments, of the record that an argument names, and of records and rows
that these name; it is kept only if it gives every answer exactly, and answers only where the guards of `guards` hold of that
record and of the arguments. It is dropped if failures in the log look to it like calls that work.
Sees: texts and JSON values, objects field by field, texts word by word. Does not see: answers of several forms; what depends on
records that no argument names.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

from env_builder.behaviour import guards, volatile
from env_builder.behaviour.evidence import NOTHING, UNEXPLAINED, Induced, Rule, ToolEvidence
from env_builder.behaviour.examples import Expression, WriteExample
from env_builder.behaviour.synthesis import explain
from env_builder.behaviour.writes import AGAINST, MINIMUM_EXAMPLES, WriteContext, answered, check_rule
from env_builder.runtime.relevance import ids, ids_in
from env_builder.world.calls import LoggedCall
from env_builder.world.documents import STYLES
from env_builder.world.replay import LoggedStep

NAMED = 0.5
"""Share of the calls that worked whose record must be known, from which an argument counts as naming it."""
MINIMUM_COPIES = 3
"""Different questions that are enough where all answers are alike."""


class NamedRecord(NamedTuple):
    """The class of records that calls name by an argument; None, None: they name none."""

    entity_class: str | None
    argument: str | None

    def before(self, step: LoggedStep) -> Any:
        """Return the record as it was just before the call, {} where none is named, None where it is not known."""
        if self.argument is None or self.entity_class is None:
            return {}
        named = step.call.arguments.get(self.argument)
        return step.look(self.entity_class, str(named)) if isinstance(named, str | int) else None


NO_RECORD = NamedRecord(None, None)


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that may write, names a record, and answers what is none."""
    naming = _naming(evidence)
    return NOTHING if naming is None or naming == NO_RECORD else _induced(evidence, naming) or NOTHING


def induce_unnamed(evidence: ToolEvidence) -> Induced:
    """Induce the same of a tool that names no record; where it speaks of things that are not understood, whether it works
    hangs on these."""
    if _naming(evidence) != NO_RECORD or _speaks_of_things(evidence.tool, evidence.steps, evidence.service.calls):
        return NOTHING
    return _induced(evidence, NO_RECORD) or NOTHING


def _naming(evidence: ToolEvidence) -> NamedRecord | None:
    """Return by which argument most calls name records that are known, of such as the tool does not leave alone, where it names
    any; None for a tool that other rules answer."""
    if evidence.effect in ("read", "pure", "constant") or not evidence.has_only(*UNEXPLAINED, "makes", "changes"):
        return None
    worked = [step for step in evidence.steps if not step.call.failed]
    n = Counter(NamedRecord(kind, name) for step in worked for name, value in step.call.arguments.items()
                for kind in sorted(evidence.service.documents.classes)
                if isinstance(value, str | int) and step.look(kind, str(value)) is not None)
    relation = evidence.service.programs[evidence.tool]["relation"]
    frequent = sorted((relation.get(naming.entity_class) == "keeps", -count, naming) for naming, count in n.items()
                      if count >= NAMED * len(worked))
    return None if not worked else frequent[0][2] if frequent else NO_RECORD


def _speaks_of_things(tool: str, steps: list[LoggedStep], calls: list[LoggedCall]) -> bool:
    """Return whether most calls that worked name something that other tools show."""
    shown = frozenset[str]().union(*(ids_in(call.content) for call in calls if call.tool != tool and not call.failed))
    worked = [step for step in steps if not step.call.failed]
    return 2 * sum(not shown.isdisjoint(ids(step.call.arguments)) for step in worked) >= len(worked)


def _induced(evidence: ToolEvidence, naming: NamedRecord) -> Induced | None:
    classes = tuple(sorted(evidence.service.documents.classes))
    usable = [step for step in evidence.steps if naming.before(step) is not None]
    done = [step for step in usable if not step.call.failed]
    style, values = _values([step.call.content for step in done])
    examples = [WriteExample(naming.before(step), step.call.arguments, value, step.look, classes, evidence.shared.records.rows)
                for step, value in zip(done, values, strict=True)]
    value = _explained(examples, done)
    if value is None or _is_fresh(value):
        return None
    failed = [step for step in usable if step.call.failed]
    when = guards.learn(examples, [(before, step.call.arguments) for step in failed
                                   if isinstance(before := naming.before(step), dict)])
    rule = {"rule": "answer", "class": naming.entity_class, "argument": naming.argument, "value": value, "style": style,
            "when": {**when, "lengths": {}}}
    others = _others(naming, done, classes)
    with_others = (_guarded({**rule, "named": others}, failed, done, evidence) for _ in range(bool(others)))
    return _guarded(rule, failed, done, evidence) or next(with_others, None)


def _others(naming: NamedRecord, done: list[LoggedStep], classes: tuple[str, ...]) -> list[list[Any]]:
    """Return [argument, class, {field: values}] of further records that calls which worked name, as far as they were known."""
    others: list[list[Any]] = []
    for name in sorted(frozenset.intersection(*(frozenset(step.call.arguments) for step in done)) - {naming.argument}):
        for kind in classes:
            keys = [(step, value) for step in done if isinstance(value := step.call.arguments[name], str | int)]
            records = [record for step, key in keys if isinstance(record := step.look(kind, str(key)), dict)]
            if len(records) >= MINIMUM_EXAMPLES:
                others.append([name, kind, guards.limits(records, [])])
    return others


def _guarded(rule: Rule, failed: list[LoggedStep], done: list[LoggedStep], evidence: ToolEvidence) -> Induced | None:
    """Return the rule with what comes before it, None where it takes failures of the log for calls that work."""
    rows, before = evidence.shared.records.rows, [one for one in evidence.rules if one["rule"] in ("refuse", "validate")]
    service = evidence.service
    around = WriteContext(rule, tuple(sorted(service.documents.classes)), rows, service.starts_from == "reset")
    open_ = [step for step in failed if answered(before, step, rule, rows) is None]
    check = check_rule(open_, done, rule | {"fields": {"answer": rule["value"]}}, around)
    own = [check, rule] if check else [rule]
    replies = [(answered([*before, *own], step, rule, rows), step) for step in failed]
    odd = [step for reply, step in replies if reply is not None and reply.content != step.call.content]
    return None if len({step.call.key for step in odd}) > AGAINST * len(done) else Induced(own, len(odd))


def _values(contents: list[str]) -> tuple[dict[str, Any] | None, list[Any]]:
    """(JSON style in which all are written, their values); None, the texts: they are no JSON in one style."""
    try:
        values = [json.loads(content) for content in contents]
    except (ValueError, RecursionError):
        return None, list(contents)
    style = next((dict(style) for style in STYLES if all(
        json.dumps(value, **style) == content for value, content in zip(values, contents, strict=True))), None)
    return (style, values) if style is not None else (None, list(contents))


def _explained(examples: list[WriteExample], done: list[LoggedStep]) -> Expression | None:
    n_questions = len({step.call.key for step in done})
    if len({step.call.content for step in done}) == 1 and n_questions >= MINIMUM_COPIES:
        return constant(examples[0].after)
    if n_questions < MINIMUM_EXAMPLES:
        return None
    return explain([one._replace(tool=done[0].call.tool) for one in examples], [])


def constant(value: Any) -> Expression:
    """Return the expression of a value, whose objects keep the order of their fields."""
    if isinstance(value, dict):
        return ["object", [[name, constant(item)] for name, item in value.items()]]
    if isinstance(value, list):
        return ["append", ["constant", []], *map(constant, value)]
    return ["constant", value]


def _is_fresh(value: Expression) -> bool:
    """Return whether nobody could foretell the answer."""
    return bool(volatile.paths(value))


