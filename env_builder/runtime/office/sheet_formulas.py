"""Recalculate the cells of a workbook: what a formula shows.

    formula    = "=" comparison
    comparison = joined [("=" | "<>" | "<" | "<=" | ">" | ">=") joined]
    joined     = sum {"&" sum};  sum = product {("+" | "-") product};  product = power {("*" | "/") power}
    power      = signed ["^" signed];  signed = ["-" | "+"] atom ["%"]
    atom       = number | '"' text '"' | TRUE | FALSE | reference [":" reference] | NAME "(" [comparison {"," comparison}] ")" |
                 "(" comparison ")"
    reference  = [tab "!"] ["$"] letters ["$"] digits

In: the tabs of a workbook, rows of texts as they were typed. Out: the text that a cell shows. A typed text that is a number
counts as one, as spreadsheets read what is typed. Functions: SUM, AVERAGE, MIN, MAX, COUNT, COUNTA, COUNTIF, SUMIF, IF, ROUND,
ABS, CONCATENATE. Does not see, and raises Undecided: other functions, whole columns and rows, names of ranges, formats of
numbers, dates as numbers, circles. Errors of a formula (`#DIV/0!`) are undecided too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..company import Undecided

Tabs = Mapping[str, Sequence[Sequence[str]]]
Cell = tuple[str, int, int]
"""(tab, row from 0, column from 0)"""
_TOKEN = re.compile(r"""\s*(?:(?P<text>"(?:[^"]|"")*")|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<cell>(?:(?:'(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?\$?[A-Za-z]{1,3}\$?\d+\b(?!\())|(?P<name>[A-Za-z_][\w.]*)
    |(?P<sign><>|<=|>=|[-+*/^&=<>(),:;%]))""", re.VERBOSE)
_CELL = re.compile(r"(?:(?P<tab>'(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?\$?(?P<letters>[A-Za-z]{1,3})\$?(?P<row>\d+)")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CRITERION = re.compile(r"(<>|<=|>=|=|<|>)?(.*)", re.DOTALL)
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
_DEEPEST = 64


class CellRange(list[Any]):
    """The values of a range, row by row."""


def column_of(letters: str) -> int:
    """Return the column, from 0, that letters name."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def cell_of(text: str, tab: str) -> Cell:
    """Return the cell that a reference names; `tab`: where it stands. Errors: Undecided."""
    match = _CELL.fullmatch(text)
    if match is None:
        raise Undecided(f"{text!r} is no cell")
    named = match["tab"]
    own = tab if named is None else named[1:-1].replace("''", "'") if named.startswith("'") else named
    return own, int(match["row"]) - 1, column_of(match["letters"])


def number_in(text: Any) -> float | None:
    """Return the number that a value is, or None."""
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, int | float):
        return float(text)
    return float(text) if _NUMBER.fullmatch(text.strip()) else None


def shown(value: Any) -> str:
    """Return a value as a cell shows it without a format of its own."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(round(value, 10))
    return str(value)


class Recalculation:
    """The values of a workbook's cells, each found once."""

    def __init__(self, tabs: Tabs) -> None:
        self._tabs = tabs
        self._values: dict[Cell, Any] = {}
        self._open: set[Cell] = set()

    def text(self, tab: str, row: int, column: int) -> str:
        """Return what a cell shows. Errors: Undecided."""
        typed = self.typed((tab, row, column))
        return shown(self.value((tab, row, column))) if typed.startswith("=") and len(typed) > 1 else typed

    def value(self, cell: Cell) -> Any:
        """Return the value of a cell: a formula's, else the text that was typed. Errors: Undecided."""
        if cell not in self._values:
            typed = self.typed(cell)
            if not (typed.startswith("=") and len(typed) > 1):
                return typed
            if cell in self._open or len(self._open) > _DEEPEST:
                raise Undecided(f"the formula in {cell[0]} refers to itself")
            self._open.add(cell)
            try:
                self._values[cell] = _Formula(self, cell[0], typed[1:]).result()
            finally:
                self._open.discard(cell)
        return self._values[cell]

    def range(self, first: Cell, last: Cell) -> CellRange:
        """Return the values between two corners, cells that are not there left out."""
        rows = self._tabs.get(first[0])
        if rows is None:
            raise Undecided(f"there is no tab {first[0]!r}")
        top, bottom = sorted((first[1], last[1]))
        left_column, right = sorted((first[2], last[2]))
        return CellRange(self.value((first[0], row, column)) for row in range(top, min(bottom + 1, len(rows)))
                         for column in range(left_column, min(right + 1, len(rows[row]))))

    def typed(self, cell: Cell) -> str:
        """Return the text of a cell as it was typed. Errors: Undecided."""
        rows = self._tabs.get(cell[0])
        if rows is None:
            raise Undecided(f"there is no tab {cell[0]!r}")
        row = rows[cell[1]] if cell[1] < len(rows) else ()
        return str(row[cell[2]]) if cell[2] < len(row) else ""


class _Formula:
    """One formula, read and reckoned from left to right."""

    def __init__(self, workbook: Recalculation, tab: str, text: str) -> None:
        self._workbook, self._tab, self._text = workbook, tab, text
        self._tokens = list(_tokens(text))
        self._at = 0

    def result(self) -> Any:
        value = self._single(self._comparison())
        if self._at < len(self._tokens):
            raise self._unread()
        return 0.0 if value == "" else value

    def _unread(self) -> Undecided:
        return Undecided(f"the formula ={self._text} is not recalculated here")

    def _next(self, *signs: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at][1] in signs and self._tokens[self._at][0] == "sign":
            self._at += 1
            return self._tokens[self._at - 1][1]
        return None

    def _comparison(self) -> Any:
        value = self._joined()
        while sign := self._next(*_TESTS):
            one, other = _comparable(self._single(value), self._single(self._joined()))
            value = _TESTS[sign](one, other)
        return value

    def _joined(self) -> Any:
        value = self._sum()
        while self._next("&"):
            value = shown(self._single(value)) + shown(self._single(self._sum()))
        return value

    def _sum(self) -> Any:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._number(self._product())
            value = self._number(value) + (other if sign == "+" else -other)
        return value

    def _product(self) -> Any:
        value = self._power()
        while sign := self._next("*", "/"):
            other = self._number(self._power())
            if sign == "/" and other == 0:
                raise self._unread()
            value = self._number(value) * other if sign == "*" else self._number(value) / other
        return value

    def _power(self) -> Any:
        value = self._signed()
        while self._next("^"):
            try:
                value = float(self._number(value) ** self._number(self._signed()))
            except (ArithmeticError, TypeError):
                raise self._unread() from None
        return value

    def _signed(self) -> Any:
        if sign := self._next("-", "+"):
            number = self._number(self._signed())
            return -number if sign == "-" else number
        value = self._atom()
        while self._next("%"):
            value = self._number(value) / 100
        return value

    def _atom(self) -> Any:
        if self._next("("):
            value = self._comparison()
            if not self._next(")"):
                raise self._unread()
            return value
        if self._at >= len(self._tokens):
            raise self._unread()
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return float(text)
        if kind == "text":
            return text[1:-1].replace('""', '"')
        if kind == "cell":
            return self._cells(text)
        if kind == "name" and self._next("("):
            return self._call(text.upper())
        if kind == "name" and text.upper() in ("TRUE", "FALSE"):
            return text.upper() == "TRUE"
        raise self._unread()

    def _cells(self, text: str) -> Any:
        first = cell_of(text, self._tab)
        if not self._next(":"):
            return self._workbook.value(first)
        kind, other = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "cell":
            raise self._unread()
        self._at += 1
        return self._workbook.range(first, cell_of(other, first[0]))

    def _call(self, name: str) -> Any:
        given: list[Any] = []
        while not self._next(")"):
            if given and not self._next(",", ";"):
                raise self._unread()
            given.append(self._comparison())
        function = _FUNCTIONS.get(name)
        if function is None:
            raise self._unread()
        try:
            return function(given)
        except (ValueError, IndexError, ZeroDivisionError):
            raise self._unread() from None

    def _single(self, value: Any) -> Any:
        if isinstance(value, CellRange):
            raise self._unread()
        return value

    def _number(self, value: Any) -> float:
        value = self._single(value)
        number = 0.0 if value == "" else float(value) if isinstance(value, bool) else number_in(value)
        if number is None:
            raise self._unread()
        return number


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Undecided(f"the formula ={text} is not recalculated here")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()


def _comparable(one: Any, other: Any) -> tuple[Any, Any]:
    numbers = number_in(one), number_in(other)
    if None not in numbers:
        return numbers
    return str(shown(one)).casefold(), str(shown(other)).casefold()


def _numbers(given: Sequence[Any]) -> list[float]:
    """Return the numbers among arguments: of ranges those cells that are numbers, of single values all. Errors: ValueError."""
    numbers: list[float] = []
    for value in given:
        if isinstance(value, CellRange):
            numbers += [number for number in map(number_in, value) if number is not None]
        elif value != "":
            number = float(value) if isinstance(value, bool) else number_in(value)
            if number is None:
                raise ValueError("no number")
            numbers.append(number)
    return numbers


def _meets(criterion: Any) -> Callable[[Any], bool]:
    """Return the test of COUNTIF and SUMIF. Errors: ValueError for wildcards."""
    sign, wanted = _CRITERION.fullmatch(shown(criterion)).groups()  # type: ignore[union-attr]
    if any(mark in wanted for mark in "*?~"):
        raise ValueError("a pattern")
    number = number_in(wanted)

    def is_met(value: Any) -> bool:
        own = number_in(value)
        if number is not None and own is not None:
            return _TESTS[sign or "="](own, number)
        if sign in ("<", "<=", ">", ">="):
            return False
        same = number is None and shown(value).casefold() == wanted.casefold()
        return same != (sign == "<>")

    return is_met


def _sum_if(given: Sequence[Any]) -> float:
    tested, summed = given[0], given[2] if len(given) > 2 else given[0]
    if not isinstance(tested, CellRange) or not isinstance(summed, CellRange) or len(tested) != len(summed):
        raise ValueError("ranges of other sizes")
    is_met = _meets(given[1])
    return sum((number_in(value) or 0.0 for test, value in zip(tested, summed, strict=True) if is_met(test)), 0.0)


def _rounded(given: Sequence[Any]) -> float:
    number, places = _numbers(given[:1])[0], int(_numbers(given[1:2] or [0.0])[0])
    shift = 10.0 ** places
    return float(int(abs(number) * shift + .5 + 1e-9)) / shift * (1 if number >= 0 else -1)


_FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "SUM": lambda given: float(sum(_numbers(given))),
    "AVERAGE": lambda given: sum(_numbers(given)) / len(_numbers(given)),
    "MIN": lambda given: min(_numbers(given), default=0.0),
    "MAX": lambda given: max(_numbers(given), default=0.0),
    "COUNT": lambda given: float(sum(number_in(value) is not None for value in _flat(given))),
    "COUNTA": lambda given: float(sum(value != "" for value in _flat(given))),
    "COUNTIF": lambda given: float(sum(map(_meets(given[1]), _range(given[0])))),
    "SUMIF": _sum_if,
    "IF": lambda given: given[1] if _truth(given[0]) else given[2] if len(given) > 2 else False,
    "ROUND": _rounded,
    "ABS": lambda given: abs(_numbers(given[:1])[0]),
    "CONCATENATE": lambda given: "".join(map(shown, given)),
}


def _flat(given: Sequence[Any]) -> Iterator[Any]:
    for value in given:
        if isinstance(value, CellRange):
            yield from value
        else:
            yield value


def _range(value: Any) -> CellRange:
    if not isinstance(value, CellRange):
        raise ValueError("no range")
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    number = number_in(value)
    if number is None:
        raise ValueError("neither true nor false")
    return number != 0
