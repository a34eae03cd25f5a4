"""When a tool refuses, and in which words: `refuse`, `check` and `validate` rules, as data (docs/behaviour.md).

In: a rule, then the arguments of a call, the document of the entity that it names, and what expressions reach. Out: the
message, or None where nothing speaks for a refusal. A condition holds, does not hold (also where a path leads nowhere in what
is known), or cannot be told. `Untold` (no rule answers) is raised where only some of a message's conditions hold, where the
rule does not say which of two messages comes first, or where arguments break the schema in a way whose wording was never seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol

from .caching import cached
from .canonical import IdentityCache
from .confirmations import EpisodeWrite
from .expressions import NUMBERS, Expression, Look, Make, NoValue, Nowhere, Run, Scope, at, compiled, positions, shared
from .precedents import PastCalls
from .records import ToolAnswer
from .schemas import Schema, is_of
from .tables import Wanted
from .texts import filled, written
from .world import Name, Row
from .writing import is_alike, is_within, length_of


class Untold(Exception):
    """Something speaks for a refusal, but not enough to know."""


Condition = list[Any]
Around = dict[str, list[Scope]]
"""What of a scope was gone through: (arguments, skip) of an `any` condition, as text -> the positions that count."""
Test = Callable[[Scope, Around], bool | None]
INNER = (dict, list)


def holds(condition: Condition, scope: Scope) -> bool | None:
    """Return whether the condition holds, or None if unknown; the condition must not change from now on."""
    return _tested(condition)(scope, {})


def _test(condition: Condition, make: Make = compiled) -> Test:
    """Return the condition as a function: True, False, or None where it cannot be told."""
    kind, *operands = condition
    if kind == "any":
        gone_through, inner = _counted(condition), _test(condition[3], make)

        def test(scope: Scope, around: Around) -> bool | None:
            try:
                truths = [inner(one, {}) for one in gone_through(scope, around)]
            except Nowhere:
                return False
            except NoValue:
                return None
            return True if True in truths else None if None in truths else False

        return test
    if kind == "among":
        runs, allowed = list(map(make, operands[0])), operands[1]
        return _compared(lambda scope: [run(scope) for run in runs] in allowed)
    one, other, compare = make(operands[0]), make(operands[1]), COMPARED[kind]
    return _compared(lambda scope: compare(one(scope), other(scope)))


def _compared(compare: Callable[[Scope], bool | None]) -> Test:
    def test(scope: Scope, around: Around) -> bool | None:
        try:
            return compare(scope)
        except Nowhere:  # what is known has no such value: there is nothing to compare
            return False
        except NoValue:
            return None

    return test


def _counted(condition: Condition) -> Callable[[Scope, Around], list[Scope]]:
    """Return the scopes of an `any` condition's positions that count, gone through once."""
    _, names, skip, _ = condition
    signature = str((names, skip))

    def gone_through(scope: Scope, around: Around) -> list[Scope]:
        scopes = around.get(signature)
        if scopes is None:
            scopes = around[signature] = counted(names, skip, scope)
        return scopes

    return gone_through


def counted(names: list[str], skip: Expression | None, scope: Scope) -> list[Scope]:
    """Return the scopes of these arguments' positions without those at which `skip` has a value. Raises NoValue."""
    inner = positions(names, scope)
    return inner if skip is None else [one for one in inner if not _has_value(compiled(skip), one)]


class Message:
    """A message of a refusal, ready to be said."""

    __slots__ = ("_pieces", "_place", "is_template", "over", "past", "rare", "when")

    def __init__(self, message: dict[str, Any]) -> None:
        pieces = message["pieces"]
        self.is_template = pieces is not None
        self.rare = bool(message.get("rare"))
        self.over: set[int] = set(message.get("over", ()))
        self.past: set[int] = {*self.over, *message.get("past", ())}
        self.when = [_test(condition, shared) for condition in message["when"]]
        self._pieces = [piece if isinstance(piece, str) else shared(piece) for piece in pieces or ()]
        place = next((condition for condition in message["when"] if condition[0] == "any"), None)
        self._place = None if place is None else (_counted(place), _test(place[3], shared))
        """Where slots are filled: at the first position where its condition holds."""

    def fill(self, scope: Scope, around: Around) -> str | None:
        """Its text, None where a slot cannot be filled."""
        if self._place is not None:
            gone_through, test = self._place
            scope = next((inner for inner in gone_through(scope, around) if test(inner, {})), scope)
        try:
            texts = [piece if isinstance(piece, str) else written(piece(scope), "plain", "as_given") for piece in self._pieces]
        except NoValue:
            return None
        return None if None in texts else "".join(map(str, texts))


def message_text(message: dict[str, Any], scope: Scope) -> str | None:
    """Return the text of a message with slots, None where one cannot be filled."""
    return Message(message).fill(scope, {})


def refusal(messages: list[dict[str, Any]]) -> Callable[[Scope], str | None]:
    """Return what gives the text of the one message whose conditions hold, None where no message's do, and raises Untold.

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
            truths = [test(scope, around) for test in message.when]
            if not message.is_template:
                if True in truths:
                    partly.add(place)
            elif all(truths):
                sure.add(place)
            elif True in truths:
                partly.add(place)
            elif False not in truths and not message.rare:
                unknown.add(place)
        if not sure and not partly and not unknown:
            return None
        first = [one for one in sure if sure | partly <= {one, *ready[one].over} and unknown <= ready[one].past]
        text = ready[first[0]].fill(scope, around) if len(first) == 1 else None
        if text is None:
            raise Untold
        return text

    return refuse


def _has_value(run: Run, scope: Scope) -> bool:
    try:
        run(scope)
    except NoValue:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


COMPARED: dict[str, Callable[[Any, Any], bool | None]] = {
    "less": lambda one, other: one < other if _is_number(one) and _is_number(other) else None,
    "differ": lambda one, other: bool(one != other),
    "strange": lambda one, other: one not in other if isinstance(one, str) and isinstance(other, INNER) else None}
_tested = IdentityCache(_test)
OF_ARGUMENTS = ("unlike", "absent", "uneven")
"""Conditions that do not ask what a document says."""
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")


class RefusableCall(NamedTuple):
    """A call with all that a condition may ask of it."""

    entity_class: str
    before: Any
    """Document of the record that it names, None where that is not known."""
    arguments: dict[str, Any]
    look: Look
    absent: Callable[[str, str, str], bool]
    """(class, key, since) -> is it known that there is no such record?"""


FIRST, LATER = "first", "later"
"""Kinds of calls: before and after the session acted."""


class State(Protocol):
    """What rules may ask of the episode."""

    def document(self, name: Name) -> str | None:
        """JSON text of an entity as the episode has it now, or None where not known."""
    def look(self, entity_class: str, key: str) -> Any:
        """Return the same as JSON value; not to be changed."""
    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Is it known that there is no such entity? All of the class are known since the instant."""
    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """Return what expressions may refer to in this call."""
    def things(self, entity_class: str, wanted: Wanted, stable: bool) -> list[tuple[str, Any]]:
        """(key, document) of the entities, or the row, that hold these values; `stable`: such values never change."""
    def holders(self, entity_class: str, wanted: Wanted) -> list[tuple[str, Any]]:
        """(key, document) of the entities that held these values when somebody read them, at any time."""
    def taught_answers(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of the tool's calls that the real one answered in this session."""
    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all known questions to the tool; none if a write call of the episode matters to this one."""
    def begun_answers(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all questions to the tool whose answer before any write call of the episode is known."""
    def always_answered(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all questions to the tool that every session was answered alike, whatever came before."""
    def writes(self) -> list[EpisodeWrite]:
        """Return the write calls of the episode, in order."""
    def writes_on(self, tool: str) -> list[EpisodeWrite]:
        """Return those of them that may have changed what a question to the tool is answered."""
    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """Return what the question is known to answer now, None where it is not on record or fails."""
    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        """Return the answer on record, after the write calls of this episode that matter to it."""
    def always(self, tool: str, key: str, kinds: Collection[str], passes: Collection[str] | None) -> Row | None:
        """Return the answer on record to the question, whatever came before it; None if there are several, or calls of the kind
        are not answered so (`FIRST`, `LATER`), or a write call that matters is not of a tool in `passes` (None: of any)."""
    def past(self) -> PastCalls:
        """Return the latest calls of this session with their answers, in order."""
    def bound(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer | None:
        """Return what the real tool that a user bound to it answers, or None."""


def asks_of_document(rule: dict[str, Any]) -> bool:
    """Return whether any of its messages depends on the document."""
    for message in rule["messages"]:
        if message["document"] or any(condition[0] not in OF_ARGUMENTS for condition in message["when"]):
            return True
    return False


def refusing(rule: dict[str, Any]) -> Callable[[Any, dict[str, Any], Any], str | None]:
    """Make a `refuse` rule ready: (document before, arguments, episode) -> the message, None where nothing speaks for one.

    The function raises Untold.
    """
    entity_class = rule["class"]
    messages = [(message, [_prepare(condition) for condition in message["when"]]) for message in rule["messages"]]

    def refuse(before: Any, arguments: dict[str, Any], state: Any) -> str | None:
        call = tuple.__new__(RefusableCall, (entity_class, before, arguments, state.look, state.absent))  # quicker
        possible: list[dict[str, Any]] = []
        partly = False
        for message, conditions in messages:
            truths = [is_met_by(call) for is_met_by in conditions]
            if True in truths:
                partly = True
                possible += [message] if False not in truths else []
        if not partly:
            return None
        contents: set[str] = {one["content"] for one in possible}
        first: set[str] = {
            one["content"] for one in possible if contents <= {one["content"], *one["over"]} and (
                before is None or (all(before.get(name) in values for name, values in one["document"].items()) and all(
                    length_of(before.get(name)) in lengths for name, lengths in one.get("lengths", {}).items())))}
        if len(first) != 1:
            raise Untold
        return first.pop()

    return refuse


def is_met(condition: Condition, call: RefusableCall) -> bool:
    """Return whether the condition holds; one about an unknown document, or an argument that is not given, does not."""
    return _prepare(condition)(call)


def _prepare(condition: Condition) -> Callable[[RefusableCall], bool]:
    kind, name, *operands = condition
    test, of_document, of_argument = CONDITIONS[kind], kind not in OF_ARGUMENTS, kind != "not"

    def is_met_by(call: RefusableCall) -> bool:
        if (of_document and call.before is None) or (of_argument and name not in call.arguments):
            return False
        try:
            return test(call, name, *operands)
        except NoValue:
            return False

    return is_met_by


def _is_uneven(call: RefusableCall, name: str, other: str) -> bool:
    lists = call.arguments[name], call.arguments.get(other)
    return all(isinstance(one, list) for one in lists) and not is_alike(*lists)


def _is_strange(call: RefusableCall, name: str, holder: Any, *path: Any) -> bool:
    scope = Scope(call.before, call.arguments, call.look)
    there = at(compiled(holder)(scope), [compiled(step)(scope) if isinstance(step, list) else step for step in path])
    return isinstance(there, dict) and isinstance(call.arguments[name], str) and call.arguments[name] not in there


CONDITIONS: dict[str, Callable[..., bool]] = {
    "unlike": lambda call, name, shapes: shape(call.arguments[name]) not in shapes,
    "absent": lambda call, name, since: isinstance(call.arguments[name], str | int) and call.absent(
        call.entity_class, str(call.arguments[name]), since),
    "uneven": _is_uneven,
    "outside": lambda call, name: not is_within(call.before, call.arguments[name]),
    "is": lambda call, name, path: bool(at(call.before, path) == call.arguments[name]),
    "not": lambda call, name, values: name in call.before and call.before[name] not in values,
    "strange": _is_strange,
}


def shape(value: Any) -> str:
    """Return what an id looks like: runs of letters as `a`, runs of digits as `9`, the rest as it is."""
    return _shape(str(value))


@cached(4096)
def _shape(text: str) -> str:
    return _DIGITS.sub("9", _LETTERS.sub("a", text))


KINDS = ("required", "types", "values", "unexpected")


class Broken(NamedTuple):
    """A violation of the schema."""

    kind: str
    name: str
    value: Any
    expected: str


def broken(schema: Schema, arguments: dict[str, Any]) -> list[Broken]:
    """All that the schema forbids in these arguments."""
    violations = [Broken("required", name, None, "") for name in schema["required"] if name not in arguments]
    for name in sorted(arguments):
        value = arguments[name]
        if schema.get("unexpected") and name not in schema["unexpected"]:
            violations.append(Broken("unexpected", name, value, ", ".join(schema["unexpected"])))
        elif value is None:
            continue
        elif name in schema["types"] and not any(is_of(value, kind) for kind in schema["types"][name]):
            violations.append(Broken("types", name, value, " or ".join(schema["types"][name])))
        elif name in schema["values"] and value not in schema["values"][name]:
            violations.append(Broken("values", name, value, ", ".join(map(str, schema["values"][name]))))
    return violations


def slots(one: Broken, tool: str) -> dict[str, Any]:
    """Return the values that a message of the tool may repeat."""
    value = one.value if isinstance(one.value, str) else json.dumps(one.value)
    return {"name": one.name, "value": value, "expected": one.expected, "tool": tool}


def invalid(rule: Schema, tool: str, arguments: dict[str, Any]) -> str | None:
    """Return the tool's message if the arguments break its schema, None if they do not. Raises Untold."""
    violations = broken(rule, arguments)
    if not violations:
        return None
    for message in rule["messages"] if len(violations) == 1 else ():
        if message["kind"] == violations[0].kind and (message["names"] is None or violations[0].name in message["names"]):
            text = filled(message, {}, slots(violations[0], tool))
            if text is not None:
                return text
    raise Untold
