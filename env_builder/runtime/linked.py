"""Conditions of refusals over whatever expressions reach: other documents, rows, computed numbers; for each element of a list.

    ["less", e, e2]              the number e is below the number e2
    ["differ", e, e2]            e and e2 are not the same
    ["among", [e, …], [[v, …], …]]   the values of e … are one of these
    ["strange", e, e2]           the object e2 has no field e, or the list e2 no element e
    ["any", [argument, …], skip, condition]
                                 at some position of these list arguments (in it each is its element there) the condition holds;
                                 positions at which the expression `skip` has a value count not; null: all count

Each holds, does not hold (also where a path leads nowhere in what is known), or cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .expressions import Expression, Missing, Nowhere, Run, Scope, compiled, positions, shared
from .kept import Kept
from .scopes import NUMBERS, Make
from .texts import written


class Untold(Exception):
    """Something speaks for a refusal, but not enough to know."""


Condition = list[Any]
Around = dict[str, list[Scope]]
"""What of a scope was gone through: (arguments, skip) of an `any` condition, as text -> the positions that count."""
Test = Callable[[Scope, Around], bool | None]
INNER = (dict, list)


def holds(condition: Condition, scope: Scope) -> bool | None:
    """Does the condition, which from now on nobody may change, hold? None where that cannot be told."""
    return _tested(condition)(scope, {})


def _test(condition: Condition, make: Make = compiled) -> Test:
    """The condition as a function: True, False, or None where it cannot be told."""
    kind, *operands = condition
    if kind == "any":
        return _anywhere(condition, make)
    if kind == "among":
        runs, known = list(map(make, operands[0])), operands[1]
        return _told(lambda scope: [run(scope) for run in runs] in known)
    one, other, compare = make(operands[0]), make(operands[1]), COMPARED[kind]
    return _told(lambda scope: compare(one(scope), other(scope)))


def _told(compare: Callable[[Scope], bool | None]) -> Test:
    def test(scope: Scope, around: Around) -> bool | None:
        try:
            return compare(scope)
        except Nowhere:  # what is known has no such thing: there is nothing to compare
            return False
        except Missing:
            return None

    return test


def _anywhere(condition: Condition, make: Make) -> Test:
    gone_through, inner = _counted(condition), _test(condition[3], make)

    def test(scope: Scope, around: Around) -> bool | None:
        try:
            found = [inner(one, {}) for one in gone_through(scope, around)]
        except Nowhere:
            return False
        except Missing:
            return None
        return True if True in found else None if None in found else False

    return test


def _counted(condition: Condition) -> Callable[[Scope, Around], list[Scope]]:
    """The scopes of an `any` condition's positions that count, gone through once."""
    _, names, skip, _ = condition
    asked = str((names, skip))

    def gone_through(scope: Scope, around: Around) -> list[Scope]:
        found = around.get(asked)
        if found is None:
            found = around[asked] = counted(names, skip, scope)
        return found

    return gone_through


def counted(names: list[str], skip: Expression | None, scope: Scope) -> list[Scope]:
    """The scopes of these arguments' positions, but for those at which the expression `skip` has a value. Raises Missing."""
    inner = positions(names, scope)
    if skip is None:
        return inner
    run = compiled(skip)
    return [one for one in inner if not _has_value(run, one)]


class Message:
    """A message of a refusal, ready to be said."""

    __slots__ = ("_pieces", "_place", "known", "over", "past", "rare", "when")

    def __init__(self, message: dict[str, Any]) -> None:
        pieces = message["pieces"]
        self.known = pieces is not None
        self.rare = bool(message.get("rare"))
        self.over: set[int] = set(message.get("over", ()))
        self.past: set[int] = {*self.over, *message.get("past", ())}
        self.when = [_test(condition, shared) for condition in message["when"]]
        self._pieces = [piece if isinstance(piece, str) else shared(piece) for piece in pieces or ()]
        place = next((condition for condition in message["when"] if condition[0] == "any"), None)
        self._place = None if place is None else (_counted(place), _test(place[3], shared))
        """Where slots are filled: at the first position where its condition holds."""

    def said(self, scope: Scope, around: Around) -> str | None:
        """Its text, None where a slot cannot be filled."""
        if self._place is not None:
            gone_through, test = self._place
            scope = next((inner for inner in gone_through(scope, around) if test(inner, {})), scope)
        texts: list[str] = []
        for piece in self._pieces:
            try:
                text = piece if isinstance(piece, str) else written(piece(scope), "plain", "as_given")
            except Missing:
                return None
            if text is None:
                return None
            texts.append(text)
        return "".join(texts)


def said(message: dict[str, Any], scope: Scope) -> str | None:
    """The text of a message with slots, None where one cannot be filled."""
    return Message(message).said(scope, {})


def refusal(messages: list[dict[str, Any]]) -> Callable[[Scope], str | None]:
    """What gives the text of the one message whose conditions hold, None where no message's do, and raises Untold.

    A message without `pieces` is one that nobody knows well enough to say: where any of its conditions holds, nobody knows.
    Neither it nor a `rare` one counts where its conditions cannot be told.
    Of messages that may apply, the one is said that was seen said where the others applied (`over`), or where nobody knew
    whether they did (`past`).
    """
    ready = list(map(Message, messages))

    def refuse(scope: Scope) -> str | None:
        sure: set[int] = set()
        partly: set[int] = set()
        unknown: set[int] = set()
        around: Around = {}
        for place, message in enumerate(ready):
            held = [test(scope, around) for test in message.when]
            if not message.known:
                if True in held:
                    partly.add(place)
            elif all(held):
                sure.add(place)
            elif True in held:
                partly.add(place)
            elif False not in held and not message.rare:
                unknown.add(place)
        if not sure and not partly and not unknown:
            return None
        first = [one for one in sure if sure | partly <= {one, *ready[one].over} and unknown <= ready[one].past]
        text = ready[first[0]].said(scope, around) if len(first) == 1 else None
        if text is None:
            raise Untold
        return text

    return refuse


def _has_value(run: Run, scope: Scope) -> bool:
    try:
        run(scope)
    except Missing:
        return False
    return True


def _less(one: Any, other: Any) -> bool | None:
    return one < other if _is_number(one) and _is_number(other) else None


def _strange(one: Any, other: Any) -> bool | None:
    return one not in other if isinstance(one, str) and isinstance(other, INNER) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


COMPARED: dict[str, Callable[[Any, Any], bool | None]] = {
    "less": _less, "differ": lambda one, other: bool(one != other), "strange": _strange}
_tested = Kept(_test)
