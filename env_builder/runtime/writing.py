"""How a `write` or a `create` rule makes a document: when it may answer, what it makes, and what else it changes.

In: a rule with guards (`when`), fields and consequences (`also`), as docs/behaviour.md describes them; the document before and
the arguments. Out: the new document, and the texts of other documents. A consequence whose path leads nowhere changes nothing;
of one whose value is not known the document is unknown from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .answers import UNKNOWN_VALUE, Document
from .canonical import IdentityCache, canonical, digest, encoding
from .expressions import NAMES, SPOKEN, Look, NoValue, Nowhere, Scope, amount, at, nothing, path_of, rows, shared
from .relevance import leaves
from .texts import form_of
from .world import Name

Guards = dict[str, Any]
INNER = (dict, list)


def allowed(when: Guards | None) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Whether all guards hold, of the document before and the arguments. None: there are none."""
    if when is None:
        return lambda before, arguments: True
    is_usual = usual(when)
    values, lengths = list(when["document"].items()), list(when["lengths"].items())
    within, alike, others = when["within"], when["alike"], when["differs"]

    def hold(before: dict[str, Any], arguments: dict[str, Any]) -> bool:
        if not is_usual(arguments):
            return False
        for name, value_sets in values:
            if before.get(name) not in value_sets:
                return False
        for name, value_sets in lengths:
            if length_of(before.get(name)) not in value_sets:
                return False
        if within:  # mostly what names the entity, which stands at the top of its document
            top = before.values() if isinstance(before, dict) else ()
            inner = [value for name in within if type(value := arguments.get(name)) is not str or value not in top]
            if inner and not is_within(before, inner):
                return False
        for one, other in alike:
            if not is_alike(arguments.get(one), arguments.get(other)):
                return False
        return not others or all(differs(arguments.get(name), before, path) for name, path in others)

    return hold


def usual(when: Guards) -> Callable[[dict[str, Any]], bool]:
    """Whether the guards hold that speak of nothing but the arguments."""
    names, values = list(map(frozenset, when["names"])), list(when["arguments"].items())
    items = [(name, *fields) for name, fields in when.get("items", {}).items()]
    forms = list(when.get("forms", {}).items())

    def hold(arguments: dict[str, Any]) -> bool:
        if not any(map(arguments.keys().__eq__, names)):
            return False
        for name, value_sets in values:
            if arguments.get(name) not in value_sets:
                return False
        for name, usual_forms in forms:
            if isinstance(text := arguments.get(name), str) and form_of(text) not in usual_forms:
                return False
        return not items or all(has_fields(arguments.get(name), always, ever) for name, always, ever in items)

    return hold


def length_of(value: Any) -> int | None:
    """Length of a list, None for anything else."""
    return len(value) if isinstance(value, list) else None


def is_within(before: dict[str, Any], value: Any) -> bool:
    """Return whether every scalar of the value is somewhere in the document."""
    sought = set(leaves(value))
    pending: list[Any] = [[before]]
    for one in pending if sought else ():  # what is nearest to the top first
        for item in one.values() if isinstance(one, dict) else one:
            if type(item) is not str and isinstance(item, INNER):
                pending.append(item)
            elif item in sought:
                sought.remove(item)
                if not sought:
                    return True
    return not sought


def is_alike(one: Any, other: Any) -> bool:
    """Are both lists, and of one length?"""
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other)


def has_fields(value: Any, always: list[str], ever: list[str]) -> bool:
    """Is it an object, or a list of objects, with all the fields that such always had and no others than such ever had?"""
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, dict) and set(always) <= item.keys() <= set(ever) for item in items)


def differs(value: Any, before: dict[str, Any], path: list[Any]) -> bool:
    """Is the value another than the document's at the path?"""
    try:
        return bool(at(before, path) != value)
    except NoValue:
        return True


Consequence = dict[str, Any]


class Unknowable(Exception):
    """What is put there is not known, so neither is the document from then on."""


class Effect:
    """One consequence, ready to be worked out."""

    __slots__ = ("_adds", "_change", "_digits", "_fields", "_over", "_path", "_puts", "encode", "key", "kind")

    def __init__(self, one: Consequence) -> None:
        self.kind: str = one["class"]
        self.key = shared(one["key"])
        self.encode = encoding(one["style"])
        self._fields = [(name, None if e is None else shared(e)) for name, e in one.get("fields", {}).items()]
        if self._fields:
            return
        self._over = None if one["over"] is None else shared(one["over"])
        self._path = path_of(one["path"], shared)
        self._puts, self._adds = "to" in one, "more" in one
        self._change = shared(one["to"] if self._puts else one["more"] if self._adds else one["by"])
        self._digits: int | None = one["digits"] if not (self._puts or self._adds) else None

    def applied(self, there: Any, scope: Scope) -> Any:
        """Return the other document after it; `there` itself is left as it is. Raises Unknowable."""
        if self._fields:
            return self._by_field(there, scope)
        if self._over is None:
            return self._once(there, scope)
        try:
            elements = self._over(scope)
        except NoValue:
            raise Unknowable from None
        for element in elements:
            there = self._once(there, Scope(element, scope.arguments, scope.look))
        return there

    def _by_field(self, there: Any, scope: Scope) -> Any:
        """Return the document with its fields as they are after the act; those of unknown values are marked with the call."""
        if not isinstance(there, dict):
            raise Unknowable
        inner, after = Scope(there, {**scope.arguments, SPOKEN: scope.before}, scope.look), dict(there)
        for name, change in self._fields:
            try:
                after[name] = _unknown(there.get(name), scope) if change is None else change(inner)
            except NoValue:
                after[name] = _unknown(there.get(name), scope)
        return after

    def _once(self, there: Any, scope: Scope) -> Any:
        try:
            path = self._path(scope)
            old = at(there, path)
        except NoValue:
            return there
        try:
            if self._puts:
                new = self._change(scope)
            elif self._adds:
                more = self._change(scope)
                new = [*rows(old), more]
            else:
                number = amount(old) + amount(self._change(scope))
                new = number if self._digits is None else round(number, self._digits)
        except NoValue:
            raise Unknowable from None
        return _put(there, path, new)


def _unknown(old: Any, scope: Scope) -> str:
    """Return the mark of a value that this call changed in an unknown way: the same after the same calls alone."""
    before = old if isinstance(old, str) and old.startswith(UNKNOWN_VALUE) else ""
    return UNKNOWN_VALUE + digest(before + canonical(scope.arguments))[:16]


def consequences(also: Sequence[Effect], scope: Scope) -> tuple[tuple[Name, str], ...]:
    """Texts of all other documents that the write is known to change or to leave alone; those not known are left out."""
    documents: dict[Name, Any] = {}
    encoders: dict[Name, Callable[[Any], str]] = {}
    for effect in also:
        try:
            name = (effect.kind, str(effect.key(scope)))
        except NoValue:
            continue
        there = documents[name] if name in documents else scope.look(*name)
        encoders[name] = effect.encode
        try:
            documents[name] = None if there is None else effect.applied(there, scope)
        except Unknowable:
            documents[name] = None
    return tuple([(name, Document.of(encoders[name](value), value)) for name, value in documents.items() if value is not None])


def effects_of(rule: dict[str, Any]) -> tuple[Effect, ...]:
    """Return what a rule says of other documents."""
    return tuple(map(Effect, rule.get("also", ())))


def applied(one: Consequence, there: Any, before: Any, arguments: dict[str, Any], look: Look = nothing) -> Any:
    """Return the other document after one consequence, which from now on nobody may change; `there` is left as it is.

    Raises Unknowable."""
    return _ready(one).applied(there, Scope(before, arguments, look))


_ready = IdentityCache(Effect)


def _put(value: Any, path: list[Any], new: Any) -> Any:
    """Return a copy of the value with `new` at the path."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _put(value[step], rest, new)}
    place = step % len(value)
    return [*value[:place], _put(value[place], rest, new), *value[place + 1:]]


class Transition(NamedTuple):
    """A field that a write always finds in one of a few states and leaves in another one."""

    kind: str
    field: str
    sources: list[Any]
    target: Any


def transitions_of(rule: dict[str, Any]) -> tuple[Transition, ...]:
    """Return the transitions of a rule that writes."""
    guarded = (rule["when"] or {}).get("document", {})
    constants = ((field, rule["fields"].get(field), sources) for field, sources in sorted(guarded.items()))
    return tuple(Transition(rule["class"], field, sources, made[1]) for field, made, sources in constants
                 if made is not None and made[0] == "constant" and made[1] not in sources)


class Writing:
    """A rule that writes."""

    __slots__ = ("_allowed", "_argument", "_copied", "_done", "_encode", "_fields", "_moves", "_order", "also", "framed",
                 "kind", "rule", "transitions")

    def __init__(self, rule: dict[str, Any]) -> None:
        self.rule = rule
        self.kind: str = rule["class"]
        self.also = effects_of(rule)
        """What it changes besides."""
        self.framed: tuple[str, str] = (rule["before"], rule["after"])
        """What stands before and after the document in an answer."""
        self._argument: str = rule.get("argument") or ""
        self._allowed = allowed(rule["when"])
        self._done = rule.get("done", {}).items()
        self._moves = rule.get("moves", False)
        self._encode = encoding(rule["style"])
        self._fields = {field: shared(e) for field, e in rule["fields"].items()}
        self._copied = frozenset(field for field, e in rule["fields"].items() if e == ["before", field])
        """Fields that it leaves as they are."""
        self._order: list[str] = rule["order"]
        self.transitions = transitions_of(rule)

    def named(self, arguments: dict[str, Any]) -> Name | None:
        value = arguments.get(self._argument)
        return (self.kind, str(value)) if isinstance(value, NAMES) else None

    def document(self, scope: Scope) -> Document | None:
        """Return the document that it makes of the one before, None where it does not answer: a rule that `moves` was never
        seen to leave a document as it is."""
        try:
            made = self.made(scope) if self._allowed(scope.before, scope.arguments) else None
        except NoValue:
            return None
        return None if made is not None and self._moves and made.value == scope.before else made

    def unless_done(self, scope: Scope) -> Document:
        """Return the document that it makes of the one before, whatever its guards say. Raises NoValue; Nowhere also if what it
        does is done already."""
        if any(scope.before.get(field) == value for field, value in self._done):
            raise Nowhere
        return self.made(scope)

    def made(self, scope: Scope) -> Document:
        """Return the document that it makes of the one before, whatever its guards say. Raises NoValue."""
        after = self.after(scope)
        return Document.of(self._encode(after), after)

    def after(self, scope: Scope) -> dict[str, Any]:
        """Return the value of it: fields from before that the rule keeps, in their order, then the new ones. Raises NoValue."""
        before, fields = scope.before, self._fields
        copied = self._copied if type(before) is dict else ()
        after = {field: before[field] if field in copied else fields[field](scope) for field in before if field in fields}
        for field in self._order:
            if field not in before:
                after[field] = fields[field](scope)
        return after
