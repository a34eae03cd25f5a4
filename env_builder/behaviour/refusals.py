"""When tools refuse and in which words, by contrast: what holds in every refusal with one message and in no call that worked.

In: the steps of one tool. Out: a `refuse` rule (runtime/refusals.py), or None. All conditions that survive are kept and must
hold together, so that a coincidence among few refusals makes the rule silent, not wrong. Faults that passed are no refusals.
Sees: the conditions of runtime/refusals.py. Does not see: messages that are not on record, numbers in messages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC
from typing import Any, NamedTuple

from env_builder.behaviour.guards import few_values
from env_builder.runtime.answers import parsed
from env_builder.runtime.expressions import Look
from env_builder.runtime.refusals import Condition, holds, shape
from env_builder.world.changes import Feed
from env_builder.world.features import features
from env_builder.world.replay import Step

MINIMUM_REFUSALS = 3
MAXIMUM_CONDITIONS = 5
MINIMUM_KEYS = 10
"""Known keys from which a shape that none of them has says something."""


class Case:
    """A call with all that a condition may speak of."""

    def __init__(self, step: Step, entity_class: str, argument: str | None) -> None:
        self.arguments = step.call.arguments
        self.content = step.call.content
        self.look: Look = step.look
        key = self.arguments.get(argument) if argument else None
        known = parsed(step.before) if step.before is not None else None
        if known is None and isinstance(key, str | int):
            known = step.look(entity_class, str(key))
        self.before: Any = known if isinstance(known, dict) else None

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Whether a thing is absent is not learnt but known (`world/changes.py`)."""
        return False


class Unknown(NamedTuple):
    """What tools of a class say where there is no such thing."""

    content: str
    since: str
    """ISO instant from which all things of the class are known."""


def unknown(steps: list[Step], argument_of: dict[str, str], feed: Feed | None) -> Unknown | None:
    """The one message of all tools of a class to keys that are known to name nothing; None where none or several are on
    record. `steps`: of all these tools; `argument_of`: tool -> argument that is the key."""
    if feed is None or not feed.complete:
        return None
    said: Counter[str] = Counter()
    for step in (each for each in steps if each.call.failed):
        at, key = step.call.called_at, step.call.arguments.get(argument_of[step.call.tool])
        if at is not None and at >= feed.since and isinstance(key, str | int) and feed.at(str(key), at) is None:
            said[step.call.content] += 1
    if len(said) != 1 or said.total() < MINIMUM_REFUSALS:
        return None
    return Unknown(next(iter(said)), feed.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


def induce(
    steps: list[Step], entity_class: str, argument: str | None, keys: frozenset[str], absent: Unknown | None = None
) -> dict[str, Any] | None:
    """The `refuse` rule of one tool that speaks of a class by an argument. `keys`: all known keys of the class; `absent`:
    what tools of the class say where there is no such thing, which no other message comes before."""
    worked = [Case(step, entity_class, argument) for step in steps if not step.call.failed]
    by_message: dict[str, list[Case]] = defaultdict(list)
    for step in (each for each in steps if each.call.failed):
        by_message[step.call.content].append(Case(step, entity_class, argument))
    shapes = sorted({shape(key) for key in keys}) if len(keys) >= MINIMUM_KEYS else []
    messages: list[dict[str, Any]] = []
    for content, refused in sorted(by_message.items()):
        when = list(_conditions(refused, worked, entity_class, argument, shapes)) if len(refused) >= MINIMUM_REFUSALS else []
        if when:
            known = [case.before for case in [*refused, *worked] if case.before is not None]
            free = {name for kind, name, *_ in when if kind == "not"}
            document = {name: values for name, values in few_values(known).items() if name not in free}
            messages.append({"content": content, "when": when, "document": document if _needs(when) else {}})
    for one in messages:
        cases = by_message[one["content"]]
        one["over"] = [other["content"] for other in messages if other is not one and any(
            all(_holds(condition, entity_class, case) for condition in other["when"]) for case in cases)]
    if absent is not None and argument is not None:
        over = sorted({one["content"] for one in messages} - {absent.content})
        messages.append({
            "content": absent.content, "when": [["absent", argument, absent.since]], "document": {}, "over": over})
    return {"rule": "refuse", "class": entity_class, "argument": argument, "messages": messages} if messages else None


def _needs(when: list[Condition]) -> bool:
    """Do the conditions speak of a document?"""
    return not any(kind in ("unlike", "absent") for kind, *_ in when)


def _conditions(
    refused: list[Case], worked: list[Case], entity_class: str, argument: str | None, shapes: list[str]
) -> Iterator[Condition]:
    """What holds in all refusals and in no call that worked, at most `MAXIMUM_CONDITIONS`."""
    n = 0
    for condition in _candidates(refused, worked, argument, shapes):
        if n < MAXIMUM_CONDITIONS and all(_holds(condition, entity_class, case) for case in refused) and not any(
            _holds(condition, entity_class, case) for case in worked
        ):
            n += 1
            yield condition


def _holds(condition: Condition, entity_class: str, case: Case) -> bool:
    return holds(condition, entity_class, case.before, case.arguments, case)


def _candidates(
    refused: list[Case], worked: list[Case], argument: str | None, shapes: list[str]
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
    yield from _strange(worked)


def _strange(worked: list[Case]) -> Iterator[Condition]:
    """Arguments that calls which worked took from the keys of an object of the document."""
    known = next((case for case in worked if case.before is not None), None)
    for name, given in sorted(known.arguments.items()) if known else ():
        for field, value in sorted(known.before.items()) if known else ():
            if isinstance(value, dict) and isinstance(given, str) and given in value:
                yield ["strange", name, ["before"], field]
