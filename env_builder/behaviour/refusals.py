"""When tools refuse and in which words, by contrast: what holds in every refusal with one message and in no call that worked.

In: the steps of one tool. Out: a `refuse` rule (runtime/refusals.py), or None. All conditions that survive are kept and must
hold together, so that a coincidence among few refusals makes the rule silent, not wrong. Faults that passed are no refusals.
Sees: the conditions of runtime/refusals.py. Does not see: messages that are not on record, numbers in messages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC
from itertools import islice
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, ToolEvidence, one_or_none
from env_builder.behaviour.guards import few_values
from env_builder.runtime.answers import parsed
from env_builder.runtime.refusals import Condition, RefusableCall, is_met, shape
from env_builder.runtime.writing import length_of
from env_builder.world.changes import Feed
from env_builder.world.features import features
from env_builder.world.replay import LoggedStep

MINIMUM_REFUSALS = 3
MAXIMUM_CONDITIONS = 5
MINIMUM_KEYS = 10
"""Known keys from which a shape that none of them has says something."""


class Unknown(NamedTuple):
    """What tools of a class say where there is no such record."""

    content: str
    since: str
    """ISO instant from which all records of the class are known."""


def unknown(steps: list[LoggedStep], argument_of: dict[str, str], feed: Feed | None) -> Unknown | None:
    """Return the one message of all tools of a class to keys that are known to name nothing; None where none or several are on
    record. `steps`: of all these tools; `argument_of`: tool -> argument that is the key."""
    if feed is None or not feed.complete:
        return None
    counts: Counter[str] = Counter()
    for step in (each for each in steps if each.call.failed):
        at, key = step.call.called_at, step.call.arguments.get(argument_of[step.call.tool])
        if at is not None and at >= feed.since and isinstance(key, str | int) and feed.at(str(key), at) is None:
            counts[step.call.content] += 1
    if len(counts) != 1 or counts.total() < MINIMUM_REFUSALS:
        return None
    return Unknown(next(iter(counts)), feed.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that refuses calls of a tool that speaks of a class of records by an argument."""
    tool = evidence.document_tool
    if tool is None or tool.argument is None:
        return NOTHING
    kind, service = tool.entity_class, evidence.service
    keys = frozenset(step.shown[1] for step in service.steps if step.shown and step.shown[0] == kind)
    argument_of = {name: other.argument for name, other in service.documents.tools.items()
                   if other.entity_class == kind and other.argument is not None}
    steps = [step for step in service.steps if step.call.tool in argument_of]
    absent = unknown(steps, argument_of, service.feeds.get(kind))
    return one_or_none(refuse_rule(evidence.steps, kind, tool.argument, keys, absent))


def _case(step: LoggedStep, entity_class: str, argument: str | None) -> RefusableCall:
    """Build the call as conditions see it. Whether a record is absent is not learnt but known (`world/changes.py`)."""
    key = step.call.arguments.get(argument) if argument else None
    document = parsed(step.before) if step.before is not None else None
    if document is None and isinstance(key, str | int):
        document = step.look(entity_class, str(key))
    before = document if isinstance(document, dict) else None
    return RefusableCall(entity_class, before, step.call.arguments, step.look, lambda *_: False)


def refuse_rule(
    steps: list[LoggedStep], entity_class: str, argument: str | None, keys: frozenset[str], absent: Unknown | None = None
) -> dict[str, Any] | None:
    """Return the `refuse` rule of one tool that speaks of a class by an argument. `keys`: all known keys of the class;
    `absent`: what tools of the class say where there is no such record, which no other message comes before."""
    worked = [_case(step, entity_class, argument) for step in steps if not step.call.failed]
    by_message: dict[str, list[RefusableCall]] = defaultdict(list)
    for step in (each for each in steps if each.call.failed):
        by_message[step.call.content].append(_case(step, entity_class, argument))
    shapes = sorted({shape(key) for key in keys}) if len(keys) >= MINIMUM_KEYS else []
    messages: list[dict[str, Any]] = []
    for content, refused in sorted(by_message.items()):
        when = list(_conditions(refused, worked, argument, shapes)) if len(refused) >= MINIMUM_REFUSALS else []
        if when:
            documents = [case.before for case in [*refused, *worked] if case.before is not None]
            free = {name for kind, name, *_ in when if kind == "not"}
            document = {name: values for name, values in few_values(documents).items() if name not in free}
            of_documents = not any(kind in ("unlike", "absent") for kind, *_ in when)
            lengths = _lengths(when, [case.before for case in refused if case.before is not None])
            messages.append({"content": content, "when": when, "document": document if of_documents else {},
                             **({"lengths": lengths} if lengths else {})})
    for one in messages:
        cases = by_message[one["content"]]
        one["over"] = [other["content"] for other in messages if other is not one and any(
            all(is_met(condition, case) for condition in other["when"]) for case in cases)]
    if absent is not None and argument is not None:
        over = sorted({one["content"] for one in messages} - {absent.content})
        messages.append({"content": absent.content, "when": [["absent", argument, absent.since]], "document": {}, "over": over})
    return {"rule": "refuse", "class": entity_class, "argument": argument, "messages": messages} if messages else None


def _lengths(when: list[Condition], documents: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Lengths that lists of which a condition takes an element by its place had, by field."""
    fields = {path[0] for kind, _, *operands in when if kind == "is" for path in operands if any(
        isinstance(step, int) for step in path[1:2])}
    lengths = {field: {length_of(document.get(field)) for document in documents} for field in sorted(fields)}
    return {field: sorted(length for length in own if length is not None) for field, own in lengths.items()}


def _conditions(
    refused: list[RefusableCall], worked: list[RefusableCall], argument: str | None, shapes: list[str]
) -> Iterator[Condition]:
    """Yield what holds in all refusals and in no call that worked, at most `MAXIMUM_CONDITIONS`."""
    separating = (
        condition for condition in _candidates(refused, worked, argument, shapes)
        if all(is_met(condition, case) for case in refused) and not any(is_met(condition, case) for case in worked))
    yield from islice(separating, MAXIMUM_CONDITIONS)


def _candidates(
    refused: list[RefusableCall], worked: list[RefusableCall], argument: str | None, shapes: list[str]
) -> Iterator[Condition]:
    first = refused[0]
    if argument is not None and shapes:
        yield ["unlike", argument, shapes]
    lists = sorted(name for name, value in first.arguments.items() if isinstance(value, list))
    yield from (["uneven", one, other] for one in lists for other in lists if one < other)
    if first.before is None:
        return
    yield from (["outside", name] for name in sorted(first.arguments))
    for expression, value in features(first.before, {}, first.look, ()):
        for name, given in sorted(first.arguments.items()):
            if isinstance(given, str) and given == value:
                yield ["is", name, expression[1:]]
    good = few_values([case.before for case in worked if case.before is not None])
    yield from (["not", name, values] for name, values in sorted(good.items()) if name in first.before)
    # arguments that calls which worked took from the keys of an object of the document
    example = next((case for case in worked if case.before is not None), None)
    for name, given in sorted(example.arguments.items()) if example else ():
        for field, value in sorted(example.before.items()) if example else ():
            if isinstance(value, dict) and isinstance(given, str) and given in value:
                yield ["strange", name, ["before"], field]
