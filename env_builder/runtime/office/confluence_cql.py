"""Confluence's query language (CQL), as a declared grammar; the tool `confluence_search` reads it.

    query  := or ['order' 'by' field ['asc' | 'desc'] (',' …)*]
    or     := and ('or' and)*
    and    := not ('and' not)*
    not    := 'not' not | '(' or ')' | clause
    clause := field operator value | field ['not'] 'in' '(' value (',' value)* ')'
    operator := '=' | '!=' | '~' | '!~' | '>' | '>=' | '<' | '<='
    value  := "text" | 'text' | word | function '(' ["text"] ')'

A query without `=`, `~`, `>`, `<`, ` AND `, ` OR ` and `currentUser()` is a simple one: `siteSearch ~ "query"`.
In: a query. Out: a tree of clauses. Does not see: what the fields of a page are; the product's module asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

_TOKEN = re.compile(r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<op>!=|!~|>=|<=|[=~<>])|(?P<mark>[(),])"""
                    r"""|(?P<word>[^\s"'(),=~<>!]+))""")
_MARKS = ("=", "~", ">", "<", " AND ", " OR ", "currentUser()")


class InvalidCql(ValueError):
    """A query that does not follow the grammar; the text says where."""


class CqlValue(NamedTuple):
    """A value of a clause: a text, or a function's name with its argument."""

    text: str
    is_function: bool = False
    argument: str = ""


class CqlClause(NamedTuple):
    """A comparison of a field with values; more than one for `in`."""

    field: str
    operator: str
    values: tuple[CqlValue, ...]


class CqlGroup(NamedTuple):
    """`and`, `or` or `not` over parts."""

    word: str
    parts: tuple[CqlGroup | CqlClause, ...]


class CqlQuery(NamedTuple):
    """A condition, and the fields to order by, each with whether it falls."""

    condition: CqlGroup | CqlClause | None
    order: tuple[tuple[str, bool], ...] = ()


def parse_query(query: str) -> CqlQuery:
    """Return a simple query or a CQL query as the server reads it. Errors: InvalidCql."""
    if not any(mark in query for mark in _MARKS):
        return CqlQuery(CqlClause("sitesearch", "~", (CqlValue(query),)))
    return _CqlParser(query).query()


def satisfies(condition: CqlGroup | CqlClause | None, test: Callable[[CqlClause], bool]) -> bool:
    """Return whether a condition holds, where `test` judges a clause."""
    if condition is None:
        return True
    if isinstance(condition, CqlClause):
        return test(condition)
    if condition.word == "not":
        return not satisfies(condition.parts[0], test)
    return (all if condition.word == "and" else any)(satisfies(part, test) for part in condition.parts)


class _CqlParser:
    """Tokens of a query, read from left to right."""

    def __init__(self, query: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while query[place:].strip():
            match = _TOKEN.match(query, place)
            if match is None or match.lastgroup is None:
                raise InvalidCql(f"Could not parse cql : {query}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self._text, self._place = query, 0

    def query(self) -> CqlQuery:
        """Return the whole query."""
        condition = None if self._is_word("order") else self._either()
        order: list[tuple[str, bool]] = []
        if self._takes_word("order"):
            self._require(self._takes_word("by"))
            more = True
            while more:
                name = self._take("word").lower()
                falls = self._takes_word("desc")
                if not falls:
                    self._takes_word("asc")
                order.append((name, falls))
                more = self._takes_mark(",")
        self._require(self._place == len(self._tokens) and (condition is not None or bool(order)))
        return CqlQuery(condition, tuple(order))

    def _either(self) -> CqlGroup | CqlClause:
        return self._joined("or", lambda: self._joined("and", self._negated))

    def _joined(self, word: str, part: Callable[[], Any]) -> CqlGroup | CqlClause:
        parts = [part()]
        while self._takes_word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else CqlGroup(word, tuple(parts))

    def _negated(self) -> CqlGroup | CqlClause:
        if self._takes_word("not"):
            return CqlGroup("not", (self._negated(),))
        if self._takes_mark("("):
            inner = self._either()
            self._require(self._takes_mark(")"))
            return inner
        return self._clause()

    def _clause(self) -> CqlClause:
        field = self._take("word").lower()
        negated = self._takes_word("not")
        if negated or self._is_word("in"):
            self._require(self._takes_word("in") and self._takes_mark("("))
            values = [self._value()]
            while self._takes_mark(","):
                values.append(self._value())
            self._require(self._takes_mark(")"))
            return CqlClause(field, "!=" if negated else "=", tuple(values))
        return CqlClause(field, self._take("op"), (self._value(),))

    def _value(self) -> CqlValue:
        kind, text = self._next()
        if kind == "text":
            return CqlValue(re.sub(r"\\(.)", r"\1", text[1:-1]))
        self._require(kind == "word")
        if not self._takes_mark("("):
            return CqlValue(text)
        if self._takes_mark(")"):
            return CqlValue(text.lower(), True)
        kind, argument = self._next()
        self._require(kind == "text" and self._takes_mark(")"))
        return CqlValue(text.lower(), True, argument[1:-1])

    def _next(self) -> tuple[str, str]:
        self._require(self._place < len(self._tokens))
        self._place += 1
        return self._tokens[self._place - 1]

    def _take(self, kind: str) -> str:
        token_kind, text = self._next()
        self._require(token_kind == kind)
        return text

    def _is_word(self, word: str) -> bool:
        return self._place < len(self._tokens) and self._tokens[self._place] == (
            "word", self._tokens[self._place][1]) and self._tokens[self._place][1].lower() == word

    def _takes_word(self, word: str) -> bool:
        taken = self._is_word(word)
        self._place += taken
        return taken

    def _takes_mark(self, mark: str) -> bool:
        taken = self._place < len(self._tokens) and self._tokens[self._place] == ("mark", mark)
        self._place += taken
        return taken

    def _require(self, is_met: bool) -> None:
        if not is_met:
            raise InvalidCql(f"Could not parse cql : {self._text}")
