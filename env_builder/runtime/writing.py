"""How a `write` or a `create` rule makes a document, ready to be done: its expressions as functions, its guards asked once.

In: the rule; then a scope: the document before (of a new thing an empty one), the arguments, a look at other things. Out: the
document after, as JSON text and value.
"""

from __future__ import annotations

from typing import Any

from .answers import Document
from .canonical import encoding
from .effects import effects_of
from .expressions import Missing, Nowhere, Scope, shared
from .guards import allowed
from .scopes import NAMES
from .world import Name


class Writing:
    """A rule that writes."""

    __slots__ = (
        "_allowed", "_argument", "_copied", "_done", "_encode", "_fields", "_order", "also", "framed", "kind", "rule")

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
        self._encode = encoding(rule["style"])
        self._fields = {field: shared(e) for field, e in rule["fields"].items()}
        self._copied = frozenset(field for field, e in rule["fields"].items() if e == ["before", field])
        """Fields that it leaves as they are."""
        self._order: list[str] = rule["order"]

    def named(self, arguments: dict[str, Any]) -> Name | None:
        """The thing that the call speaks of."""
        value = arguments.get(self._argument)
        return (self.kind, str(value)) if isinstance(value, NAMES) else None

    def document(self, scope: Scope) -> Document | None:
        """The document that it makes of the one before, None where it does not answer."""
        try:
            return self.made(scope) if self._allowed(scope.before, scope.arguments) else None
        except Missing:
            return None

    def unless_done(self, scope: Scope) -> Document:
        """The document that it makes of the one before, whatever its guards say. Raises Missing; Nowhere also where what it
        does is done already."""
        if any(scope.before.get(field) == value for field, value in self._done):
            raise Nowhere
        return self.made(scope)

    def made(self, scope: Scope) -> Document:
        """The document that it makes of the one before, whatever its guards say. Raises Missing."""
        after = self.after(scope)
        return Document.of(self._encode(after), after)

    def after(self, scope: Scope) -> dict[str, Any]:
        """The value of it: fields from before that the rule keeps, in their order, then the new ones. Raises Missing."""
        before, fields = scope.before, self._fields
        copied = self._copied if type(before) is dict else ()
        after = {field: before[field] if field in copied else fields[field](scope) for field in before if field in fields}
        for field in self._order:
            if field not in before:
                after[field] = fields[field](scope)
        return after
