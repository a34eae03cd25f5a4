"""Parse the search language of Jira (JQL), and combine the results of clauses as Jira does.

In: the text of a query. Out: a `JqlQuery`: clauses, joined by `and`, `or` and `not`, and what to sort by. The grammar:

    query   = [any] ["ORDER" "BY" key {"," key}]            key    = field ["ASC" | "DESC"]
    any     = all {"OR" all}                                all    = one {"AND" one}
    one     = "NOT" one | "(" any ")" | clause
    clause  = field ("=" | "!=" | "~" | "!~" | "<" | "<=" | ">" | ">=") value
            | field ["NOT"] "IN" "(" value {"," value} ")"  | field "IS" ["NOT"] ("EMPTY" | "NULL")
    value   = word | quoted text | "EMPTY" | "NULL" | name "(" [value {"," value}] ")"

Sees: the text alone. Does not see: what fields mean and hold (`jira_search.py`), history (`WAS`, `CHANGED`): a query outside of
the grammar raises `UnsupportedQuery`, for nothing is known of its answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..company import Undecided

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|(!=|!~|<=|>=|[=~<>(),])|([^\s"\'=~<>(),!&|]+))', re.DOTALL)
_SIGNS = ("=", "!=", "~", "!~", "<=", ">=", "<", ">")
_WORDS = frozenset({"and", "or", "not", "in", "is", "order", "by", "was", "changed"})
_EMPTY = frozenset({"empty", "null"})
_MOST_NESTED = 50


class UnsupportedQuery(Undecided):
    """A query that is malformed, or has a clause outside of the grammar."""


class JqlValue(NamedTuple):
    """What a field is compared with."""

    text: str
    """The word or the text; the name of a function; empty for EMPTY."""
    kind: str = "text"
    """`text`, `call` or `empty`."""
    arguments: tuple[str, ...] = ()


class JqlClause(NamedTuple):
    """A comparison: a field as written, an operator (`=`, `~`, `<`, `<=`, `>`, `>=`), values of which one has to meet it."""

    field: str
    operator: str
    values: tuple[JqlValue, ...]


class JqlGroup(NamedTuple):
    """Clauses that `and`, `or` or `not` joins."""

    operator: str
    parts: tuple[JqlClause | JqlGroup, ...]


JqlNode = JqlClause | JqlGroup


class JqlQuery(NamedTuple):
    """A parsed query."""

    where: JqlNode | None
    """None: all issues."""
    order: tuple[tuple[str, bool], ...]
    """(field, whether descending); the first one decides first."""


def parse_jql(text: str) -> JqlQuery:
    """Parse a query. Errors: UnsupportedQuery says what is malformed or outside of the grammar."""
    return _JqlParser(text).query()


def is_met(node: JqlNode, test: Callable[[JqlClause], bool | None]) -> bool | None:
    """Return whether a row meets a node, in logic with three values.

    `test` returns None for a clause over an empty field: neither the clause nor its opposite is met then. It may raise
    Undecided, which this raises too, unless the other clauses decide.
    """
    if isinstance(node, JqlClause):
        return test(node)
    if node.operator == "not":
        result = is_met(node.parts[0], test)
        return None if result is None else not result
    decisive = node.operator == "or"
    gap: Undecided | None = None
    has_empty = False
    for part in node.parts:
        try:
            result = is_met(part, test)
        except Undecided as undecided:
            gap = undecided
            continue
        if result is decisive:
            return decisive
        has_empty = has_empty or result is None
    if gap is not None:
        raise gap
    return None if has_empty else not decisive


def required_clauses(node: JqlNode | None) -> list[JqlClause]:
    """Return the clauses that every row of the answer meets."""
    if isinstance(node, JqlClause):
        return [node]
    return [clause for part in node.parts for clause in required_clauses(part)] if node and node.operator == "and" else []


class _JqlParser:
    """Recursive descent over tokens (kind, text); kinds are `quoted`, `sign` and `word`."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._next = self._depth = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise UnsupportedQuery(f"cannot read the query at character {position}")
            number = match.lastindex or 1
            kind = ("quoted", "quoted", "sign", "word")[number - 1]
            value = match[number]
            self._tokens.append((kind, re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL) if kind == "quoted" else value))
            position = match.end()

    def query(self) -> JqlQuery:
        where = None if not self._tokens or self._is("order") else self._any()
        order: list[tuple[str, bool]] = []
        if self._take("order"):
            self._expect("by")
            order.append(self._sort_key())
            while self._take(","):
                order.append(self._sort_key())
        if self._next < len(self._tokens):
            raise UnsupportedQuery(f"unexpected {self._tokens[self._next][1]!r} in the query")
        return JqlQuery(where, tuple(order))

    def _sort_key(self) -> tuple[str, bool]:
        field = self._name()
        return field, self._take("desc") or (self._take("asc") and False)

    def _any(self) -> JqlNode:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else JqlGroup("or", tuple(parts))

    def _all(self) -> JqlNode:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else JqlGroup("and", tuple(parts))

    def _one(self) -> JqlNode:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise UnsupportedQuery(f"more than {_MOST_NESTED} nested clauses in the query")
        result: JqlNode
        if self._take("not"):
            result = JqlGroup("not", (self._one(),))
        elif self._take("("):
            result = self._any()
            self._expect(")")
        else:
            result = self._clause()
        self._depth -= 1
        return result

    def _clause(self) -> JqlNode:
        field = self._name()
        sign = next((sign for sign in _SIGNS if self._take(sign)), None)
        if sign is not None:
            clause = JqlClause(field, sign.removeprefix("!"), (self._value(),))
            return JqlGroup("not", (clause,)) if sign.startswith("!") else clause
        if self._take("is"):
            is_opposite = self._take("not")
            value = self._value()
            if value.kind != "empty":
                raise UnsupportedQuery("expected EMPTY or NULL after IS in the query")
            clause = JqlClause(field, "=", (value,))
            return JqlGroup("not", (clause,)) if is_opposite else clause
        is_opposite = self._take("not")
        self._expect("in")
        clause = JqlClause(field, "=", (self._value(),) if not self._is("(") else self._list())
        return JqlGroup("not", (clause,)) if is_opposite else clause

    def _list(self) -> tuple[JqlValue, ...]:
        self._expect("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._expect(")")
        return tuple(values)

    def _value(self) -> JqlValue:
        kind, value = self._current("a value")
        self._next += 1
        if kind == "quoted":
            return JqlValue(value)
        if kind == "sign" or value.casefold() in _WORDS:
            raise UnsupportedQuery(f"expected a value, not {value!r} in the query")
        if not self._take("("):
            return JqlValue("", "empty") if value.casefold() in _EMPTY else JqlValue(value)
        arguments: list[str] = []
        while not self._take(")"):
            argument = self._value()
            if argument.kind != "text":
                raise UnsupportedQuery(f"a function in {value}() of the query")
            arguments.append(argument.text)
            if not self._is(")"):
                self._expect(",")
        return JqlValue(value, "call", tuple(arguments))

    def _name(self) -> str:
        kind, value = self._current("a field")
        if kind == "sign" or (kind == "word" and value.casefold() in _WORDS):
            raise UnsupportedQuery(f"expected a field, not {value!r} in the query")
        self._next += 1
        return value

    def _current(self, wanted: str) -> tuple[str, str]:
        if self._next >= len(self._tokens):
            raise UnsupportedQuery(f"the query ends where {wanted} is expected")
        return self._tokens[self._next]

    def _is(self, word: str) -> bool:
        if self._next >= len(self._tokens):
            return False
        kind, value = self._tokens[self._next]
        return kind != "quoted" and value.casefold() == word

    def _take(self, word: str) -> bool:
        if not self._is(word):
            return False
        self._next += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise UnsupportedQuery(f"expected {word!r}, not {self._current(word)[1]!r} in the query")
