"""When a tool refuses, and in which words: a `refuse` rule, as data.

    class, argument   the thing that the call speaks of
    messages          [{content, when, document, over}, …]; a message is given where all its conditions hold, the scalar fields
                      of the document have values in `document`, and every other message whose conditions hold is in `over`

Conditions, over the arguments and the document before (where the call names one):

    ["unlike", argument, shapes]     no known key looks like the argument's value (`shape`)
    ["absent", argument, instant]    since this instant all things of the class are known, and the argument names none
    ["uneven", argument, argument]   two lists of different length
    ["outside", argument]            a value of the argument stands nowhere in the document
    ["is", argument, path]           the argument is the value at a path of the document
    ["not", field, values]           the field has none of the values with which the call was seen to work
    ["strange", argument, e, path]   the argument is no key of the object at a path of the document that e names

Where only some of a message's conditions hold, or nothing says which of two comes first, nobody knows: no rule answers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Protocol

from .expressions import Look, Missing, Scope, value_of
from .guards import is_alike, is_within
from .linked import Untold
from .scopes import at

Condition = list[Any]
OF_ARGUMENTS = ("unlike", "absent", "uneven")
"""Conditions that do not ask what a document says."""
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")


class Complete(Protocol):
    """What of the episode is needed."""

    @property
    def look(self) -> Look:
        """Document of a thing as JSON value."""

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Is it known that there is no such thing?"""


def asks_of_document(rule: dict[str, Any]) -> bool:
    """Does any of its messages ask what the document says?"""
    for message in rule["messages"]:
        if message["document"] or any(condition[0] not in OF_ARGUMENTS for condition in message["when"]):
            return True
    return False


def refused(rule: dict[str, Any], before: Any, arguments: dict[str, Any], state: Complete) -> str | None:
    """The message of the refusal, None where nothing speaks for one. Raises Untold."""
    possible: list[dict[str, Any]] = []
    partly = False
    for message in rule["messages"]:
        held = [holds(condition, rule["class"], before, arguments, state) for condition in message["when"]]
        if any(held):
            partly = True
            possible += [message] if all(held) else []
    if not partly:
        return None
    said: set[str] = {one["content"] for one in possible}
    first: set[str] = {one["content"] for one in possible if _seen(one, before) and said <= {one["content"], *one["over"]}}
    if len(first) != 1:
        raise Untold
    return first.pop()


def _seen(message: dict[str, Any], before: Any) -> bool:
    """Is the document in a state in which the message was learnt?"""
    return before is None or all(before.get(name) in values for name, values in message["document"].items())


def holds(condition: Condition, entity_class: str, before: Any, arguments: dict[str, Any], state: Complete) -> bool:
    """Does the condition hold? One about a document that is not known does not."""
    kind, name, *rest = condition
    if name not in arguments and kind != "not":
        return False
    if kind == "unlike":
        return shape(arguments[name]) not in rest[0]
    if kind == "absent":
        return isinstance(arguments[name], str | int) and state.absent(entity_class, str(arguments[name]), rest[0])
    if kind == "uneven":
        one, other = arguments[name], arguments.get(rest[0])
        return isinstance(one, list) and isinstance(other, list) and not is_alike(one, other)
    return before is not None and _in_document(kind, name, rest, before, arguments, state)


def _in_document(kind: str, name: str, rest: list[Any], before: Any, arguments: dict[str, Any], state: Complete) -> bool:
    if kind == "outside":
        return not is_within(before, arguments[name])
    if kind == "not":
        return name in before and before[name] not in rest[0]
    try:
        there = at(before, rest[0]) if kind == "is" else _inside(rest, Scope(before, arguments, state.look))
    except Missing:
        return False
    if kind == "is":
        return bool(there == arguments[name])
    return isinstance(there, dict) and isinstance(arguments[name], str) and arguments[name] not in there


def _inside(operands: list[Any], scope: Scope) -> Any:
    """What an expression gives, at a path."""
    value = value_of(operands[0], scope)
    return at(value, [value_of(step, scope) if isinstance(step, list) else step for step in operands[1:]])


def shape(value: Any) -> str:
    """What an id looks like: runs of letters as `a`, runs of digits as `9`, the rest as it is."""
    return _shape(str(value))


@lru_cache(4096)
def _shape(text: str) -> str:
    return _DIGITS.sub("9", _LETTERS.sub("a", text))
