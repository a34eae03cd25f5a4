"""One simple INSERT, UPDATE or DELETE with its parameters, to the rows that it surely made, changed or removed.

In: a statement and its parameters as text. Out: for each row what is known of it before and after; None where that is not
certain: any other shape (a query inside, ON CONFLICT, FROM, conditions beyond `column = value AND …`). A column that is set to
an expression is named in `lossy` and left out. Numbers are those that the statement spells; parameters stay text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

Row = dict[str, Any]
_TOKEN = re.compile(r"""\s+|--[^\n]*|/\*.*?\*/|(?P<name>"(?:[^"]|"")+"|[^\W\d][\w$]*)|(?P<text>'(?:[^']|'')*')|
                        (?P<parameter>\$\d+)|(?P<number>\d+\.?\d*|\.\d+)|(?P<sign>::|[^\s\w])""", re.VERBOSE | re.DOTALL)
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}
_UNKNOWN = object()
_MOST_DIGITS = 15
_ENDS = frozenset({",", ")", "where", "returning", "and", ";", ""})


@dataclass(slots=True)
class Change:
    """What one statement did to one row, as far as it says."""

    before: Row | None
    after: Row | None
    key: Row | None
    """The columns that the row was found by."""
    lossy: list[str] = field(default_factory=list)


def changes(statement: str, parameters: Sequence[str | None]) -> list[Change] | None:
    """The changes of a statement, None where they are not certain. A parameter that is None is not known."""
    found = []
    for plan in _plan(statement) or ():
        key = {name: _filled(value, parameters) for name, value in plan.key.items()}
        written = {name: _filled(value, parameters) for name, value in plan.written.items()}
        if _UNKNOWN in key.values() or None in key.values():
            return None     # a condition that names no value
        after = {name: value for name, value in {**key, **written}.items() if value is not _UNKNOWN}
        lossy = [f"unknown {name}" for name, value in written.items() if value is _UNKNOWN]
        found.append(Change(key or None, None if plan.is_delete else after, key or None, lossy))
    return found or None


class _Parameter(NamedTuple):
    """Stands for the parameter of that number."""

    number: int


class _Plan(NamedTuple):
    """What a statement does to one row, before its parameters are known."""

    key: Row
    written: Row
    is_delete: bool = False


@lru_cache(1024)
def _plan(statement: str) -> list[_Plan] | None:
    """Programs send the same statement with other parameters: it is read once."""
    reader = _Reader(statement)
    try:
        found = {"insert": reader.insert, "update": reader.update, "delete": reader.delete}[reader.take()]()
        reader.end()
    except (KeyError, ValueError):
        return None
    return found


def _filled(value: Any, parameters: Sequence[str | None]) -> Any:
    if not isinstance(value, _Parameter):
        return value
    known = parameters[value.number - 1] if 0 < value.number <= len(parameters) else None
    return _UNKNOWN if known is None else known


class _Reader:
    """Reads the tokens of a statement from left to right; ValueError where it is not simple."""

    def __init__(self, statement: str) -> None:
        self._tokens = [(str(each.lastgroup), each[0]) for each in _TOKEN.finditer(statement) if each.lastgroup]
        self._at = 0

    def insert(self) -> list[_Plan]:
        """`INTO table (columns) VALUES (…), …`"""
        self._expect("into")
        self._table()
        self._expect("(")
        columns = [self._name()]
        while self._skip(","):
            columns.append(self._name())
        self._expect(")")
        self._expect("values")
        found = [self._values(columns)]
        while self._skip(","):
            found.append(self._values(columns))
        return found

    def update(self) -> list[_Plan]:
        """`table SET column = value, … WHERE column = value AND …`"""
        self._skip("only")
        self._table()
        self._expect("set")
        assigned = self._assigned(",")
        return [_Plan(self._where(), assigned)]

    def delete(self) -> list[_Plan]:
        """`FROM table WHERE column = value AND …`"""
        self._expect("from")
        self._skip("only")
        self._table()
        return [_Plan(self._where(), {}, is_delete=True)]

    def end(self) -> None:
        """Nothing more but what the statement gives back."""
        if self._peek() != "returning":
            self._skip(";")
            if self._peek():
                raise ValueError(self._peek())

    def take(self) -> str:
        """The next token: a word in lower case, a sign; a quoted name keeps its case."""
        word = self._peek()
        self._at += 1
        return word

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        kind, text = self._tokens[self._at]
        return text if kind == "text" or text.startswith('"') else text.lower()

    def _skip(self, word: str) -> bool:
        found = self._peek() == word
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise ValueError(f"{self._peek()!r} instead of {word!r}")

    def _name(self) -> str:
        """A name, the last part of a dotted one."""
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != "name":
            raise ValueError("no name")
        name = self.take()
        while self._skip("."):
            name = self.take()
        return name[1:-1].replace('""', '"') if name.startswith('"') else name

    def _table(self) -> None:
        self._name()
        if self._skip("as") or (self._peek() not in ("set", "where", "(", "values", "returning", "", ";", "using", "from")):
            self._name()

    def _values(self, columns: list[str]) -> _Plan:
        self._expect("(")
        row = {columns[0]: self._value()}
        for name in columns[1:]:
            self._expect(",")
            row[name] = self._value()
        self._expect(")")
        return _Plan({}, row)

    def _assigned(self, separator: str) -> Row:
        found: Row = {}
        while True:
            name = self._name()
            self._expect("=")
            found[name] = self._value()
            if not self._skip(separator):
                return found

    def _where(self) -> Row:
        """The columns that a row is found by."""
        self._expect("where")
        return self._assigned("and")

    def _value(self) -> Any:
        """A literal or a parameter, with or without a cast; anything else is read over and not known."""
        start = self._at
        sign = -1 if self._skip("-") else 1
        kind = self._tokens[self._at][0] if self._at < len(self._tokens) else ""
        token = self.take()
        found = _literal(kind, token, sign)
        if self._skip("::"):
            self._cast()
        if self._peek() in _ENDS:
            return found
        self._at = start
        return self._over()

    def _cast(self) -> None:
        self._name()
        while self._peek() not in _ENDS and self._tokens[self._at][0] == "name":
            self.take()
        if self._skip("("):
            while self.take() not in (")", ""):
                pass

    def _over(self) -> Any:
        depth = 0
        while depth or self._peek() not in _ENDS - {"and"}:
            word = self.take()
            depth += (word == "(") - (word == ")")
            if word == "" or (word == "from" and depth == 0):
                raise ValueError("it ends before its end, or looks into another table")
        return _UNKNOWN


def _literal(kind: str, token: str, sign: int) -> Any:
    if kind == "parameter" and sign == 1:
        return _Parameter(int(token[1:]))
    if kind == "number":
        return sign * (int(token) if token.isdigit() else float(token)) if len(token) <= _MOST_DIGITS else _UNKNOWN
    if kind == "text" and sign == 1:
        return token[1:-1].replace("''", "'")
    return _WORDS.get(token, _UNKNOWN) if kind == "name" else _UNKNOWN

