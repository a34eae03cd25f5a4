"""Work out the formulas of a workbook: references, arithmetic, comparison, SUM and COUNTIF.

In: the text of a cell, a function that gives the text of any other cell. Out: the cell's value as the product shows it.

    comparison = sum { ("=" | "<>" | "<" | ">" | "<=" | ">=") sum }
    sum        = joined part { ("+" | "-") product }          "&" joins texts, below "+"
    product    = power { ("*" | "/") power }
    power      = unary { "^" unary }
    unary      = [ "+" | "-" ] value [ "%" ]
    value      = number | text | reference | range | NAME "(" arguments ")" | "(" comparison ")"

Sees: cells as texts; a text that is a number counts as one. Does not see: formats of numbers, so that a result made of numbers
written with decimal zeros ("12.50") is undecided; dates as numbers; every other function (`Undecided`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, DivisionByZero, InvalidOperation
from typing import NamedTuple

from ..company import Undecided

_TOKEN = re.compile(r"""\s*(?:(?P<number>\d+(?:\.\d*)?|\.\d+)|"(?P<text>(?:[^"]|"")*)"
    |(?P<reference>(?:(?:'(?:[^']|'')+'|[A-Za-z_]\w*)!)?\$?[A-Za-z]{1,3}\$?\d+(?::\$?[A-Za-z]{1,3}\$?\d+)?)(?![\w(])
    |(?P<name>[A-Za-z][\w.]*)|(?P<sign><>|<=|>=|[-+*/^&=<>()%,;]))""", re.VERBOSE)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)")
_ZEROS = re.compile(r"[-+]?\d*\.\d*0")
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d+)")
_DEEPEST = 200
_MOST_CELLS = 1_000_000
Value = Decimal | str | bool
CellText = Callable[[str, int, int], str]
"""Tab ("" for the formula's own), row and column (from 1) -> the cell's text, a formula included; empty outside."""


class FormulaError(Exception):
    """An error that the product shows in the cell (`#DIV/0!`); the text is what it shows."""


class _Block(NamedTuple):
    """A range of cells."""

    tab: str
    top: int
    first_column: int
    bottom: int
    last_column: int

    def cells(self) -> Iterator[tuple[str, int, int]]:
        if (self.bottom - self.top + 1) * (self.last_column - self.first_column + 1) > _MOST_CELLS:
            raise Undecided("the range has more cells than are worked out")
        for row in range(self.top, self.bottom + 1):
            for column in range(self.first_column, self.last_column + 1):
                yield self.tab, row, column


def column_number(letters: str) -> int:
    """Return the number of a column by its letters: A is 1."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """Return the letters of a column by its number."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def shown_value(text: str, tab: str, cell_text: CellText) -> str:
    """Return what the product shows in a cell. Errors: Undecided."""
    if not text.startswith("="):
        return text
    try:
        value = Formulas(cell_text).value_of(text, tab)
    except FormulaError as error:
        return str(error)
    if isinstance(value, bool):
        return str(value).upper()
    return _number_text(value) if isinstance(value, Decimal) else value


def _number_text(value: Decimal) -> str:
    if value == value.to_integral_value():
        return f"{value.to_integral_value():f}".replace("-0", "0") if not value else f"{value.to_integral_value():f}"
    return f"{value.normalize():f}" if len(value.normalize().as_tuple().digits) <= 10 else f"{float(value):.10g}"


class Formulas:
    """Works out formulas; follows references, and says where they go round."""

    def __init__(self, cell_text: CellText) -> None:
        self._cell_text = cell_text
        self._open: list[tuple[str, int, int]] = []

    def value_of(self, formula: str, tab: str) -> Value:
        """Return the value of a formula that stands in a tab. Errors: FormulaError, Undecided."""
        parser = _FormulaParser(self, _formula_tokens(formula[1:]), tab)
        value = parser.comparison()
        parser.finish()
        return self.single(value)

    def cell(self, tab: str, row: int, column: int) -> Value:
        """Return the value of a cell; an empty text if it is empty. Errors: FormulaError, Undecided."""
        text = self._cell_text(tab, row, column)
        if not text.startswith("="):
            if _ZEROS.fullmatch(text):
                raise Undecided(f"the format of the number {text!r} is not on record")
            return Decimal(text) if _NUMBER.fullmatch(text) else text
        name = (tab, row, column)
        if name in self._open:
            raise FormulaError("#REF!")
        if len(self._open) > _DEEPEST:
            raise Undecided("the formulas refer to each other more deeply than is worked out")
        self._open.append(name)
        try:
            return self.value_of(text, tab)
        finally:
            self._open.pop()

    def single(self, value: Value | _Block) -> Value:
        """Return the value of an operand that is one cell."""
        if not isinstance(value, _Block):
            return value
        if (value.top, value.first_column) != (value.bottom, value.last_column):
            raise Undecided("a range where one value is expected")
        return self.cell(value.tab, value.top, value.first_column)

    def number(self, value: Value | _Block) -> Decimal:
        """Return a number. Errors: FormulaError, Undecided."""
        one = self.single(value)
        if isinstance(one, bool):
            return Decimal(int(one))
        if isinstance(one, Decimal):
            return one
        if one == "":
            return Decimal(0)
        if re.search(r"\d", one):
            raise Undecided(f"whether {one!r} counts as a number is not known")
        raise FormulaError("#VALUE!")

    def call(self, name: str, arguments: list[Value | _Block]) -> Value:
        """Return the value of a function. Errors: FormulaError, Undecided."""
        if name == "SUM":
            return sum((self._sum_of(argument) for argument in arguments), Decimal(0))
        if name == "COUNTIF" and len(arguments) == 2 and isinstance(arguments[0], _Block):
            test = _criterion(self.single(arguments[1]))
            return Decimal(sum(test(self.cell(*cell)) for cell in arguments[0].cells()))
        raise Undecided(f"the function {name} is not worked out")

    def _sum_of(self, argument: Value | _Block) -> Decimal:
        if not isinstance(argument, _Block):
            return self.number(argument)
        values = (self.cell(*cell) for cell in argument.cells())
        return sum((value for value in values if isinstance(value, Decimal)), Decimal(0))


def _criterion(wanted: Value) -> Callable[[Value], bool]:
    """Return the test of COUNTIF's criterion."""
    text = _number_text(wanted) if isinstance(wanted, Decimal) else str(wanted)
    match = re.match(r"<>|<=|>=|[<>=]", text)
    sign, last_operand = (match[0], text[match.end():]) if match else ("=", text)
    if _NUMBER.fullmatch(last_operand):
        number = Decimal(last_operand)
        return lambda value: _compare(value, sign, number) if isinstance(value, Decimal) else sign == "<>"
    if sign in ("=", "<>"):
        wild = "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in last_operand)
        pattern = re.compile(wild, re.IGNORECASE | re.DOTALL)
        return lambda value: (isinstance(value, str) and pattern.fullmatch(value) is not None) is (sign == "=")
    raise Undecided(f"the criterion {text!r} compares texts")


def _compare(first_operand: Value, sign: str, last_operand: Value) -> bool:
    if isinstance(first_operand, Decimal) and isinstance(last_operand, Decimal):
        order = (first_operand > last_operand) - (first_operand < last_operand)
    elif isinstance(first_operand, str) and isinstance(last_operand, str):
        order = (first_operand.casefold() > last_operand.casefold()) - (first_operand.casefold() < last_operand.casefold())
    elif sign in ("=", "<>") and "" not in (first_operand, last_operand):
        return sign == "<>"
    else:
        raise Undecided("values of two kinds are compared")
    return {"=": order == 0, "<>": order != 0, "<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[sign]


def _formula_tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Undecided(f"the formula has {text[at:]!r}, which is outside the grammar")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _FormulaParser:
    """Recursive descent that works out what it reads."""

    def __init__(self, formulas: Formulas, tokens: list[tuple[str, str]], tab: str) -> None:
        self._formulas, self._tokens, self._tab, self._at = formulas, tokens, tab, 0

    def finish(self) -> None:
        if self._at < len(self._tokens):
            raise Undecided(f"the formula does not end before {self._tokens[self._at][1]!r}")

    def _sign(self, *signs: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "sign" and self._tokens[self._at][1] in signs:
            self._at += 1
            return self._tokens[self._at - 1][1]
        return None

    def comparison(self) -> Value | _Block:
        first_operand = self._joined()
        while (sign := self._sign("=", "<>", "<=", ">=", "<", ">")) is not None:
            last_operand = self._joined()
            first_operand = _compare(self._formulas.single(first_operand), sign, self._formulas.single(last_operand))
        return first_operand

    def _joined(self) -> Value | _Block:
        first_operand = self._sum()
        while self._sign("&"):
            parts = [self._formulas.single(each) for each in (first_operand, self._sum())]
            first_operand = "".join(_number_text(part) if isinstance(part, Decimal) else str(part) for part in parts)
        return first_operand

    def _sum(self) -> Value | _Block:
        first_operand = self._product()
        while (sign := self._sign("+", "-")) is not None:
            last_operand = self._formulas.number(self._product())
            first_operand = self._formulas.number(first_operand) + (last_operand if sign == "+" else -last_operand)
        return first_operand

    def _product(self) -> Value | _Block:
        first_operand = self._power()
        while (sign := self._sign("*", "/")) is not None:
            last_operand = self._formulas.number(self._power())
            first_operand = _calculated(self._formulas.number(first_operand), sign, last_operand)
        return first_operand

    def _power(self) -> Value | _Block:
        first_operand = self._unary()
        while self._sign("^"):
            first_operand = _calculated(self._formulas.number(first_operand), "^", self._formulas.number(self._unary()))
        return first_operand

    def _unary(self) -> Value | _Block:
        sign = self._sign("+", "-")
        value = self._value() if sign is None else self._unary()
        if sign == "-":
            value = -self._formulas.number(value)
        while self._sign("%"):
            value = self._formulas.number(value) / 100
        return value

    def _value(self) -> Value | _Block:
        if self._at >= len(self._tokens):
            raise Undecided("the formula ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return Decimal(text)
        if kind == "text":
            return text.replace('""', '"')
        if kind == "reference":
            return _block(text, self._tab)
        if kind == "name" and self._sign("("):
            return self._formulas.call(text.upper(), self._arguments())
        if kind == "name" and text.upper() in ("TRUE", "FALSE"):
            return text.upper() == "TRUE"
        if (kind, text) == ("sign", "("):
            value = self.comparison()
            if self._sign(")"):
                return value
        raise Undecided(f"the formula has {text!r} where a value is expected")

    def _arguments(self) -> list[Value | _Block]:
        arguments: list[Value | _Block] = []
        if self._sign(")"):
            return arguments
        while True:
            arguments.append(self.comparison())
            if self._sign(")"):
                return arguments
            if not self._sign(",", ";"):
                raise Undecided("the arguments of a function do not end")


def _calculated(first: Decimal, sign: str, second: Decimal) -> Decimal:
    try:
        return first * second if sign == "*" else first / second if sign == "/" else first ** second
    except (DivisionByZero, InvalidOperation) as error:
        if sign == "/" and not second:
            raise FormulaError("#DIV/0!") from error
        raise FormulaError("#NUM!") from error


def _block(text: str, tab: str) -> _Block:
    sheet, _, cells = text.rpartition("!")
    first, _, last = cells.partition(":")
    corners = [match for match in map(_CELL.fullmatch, (first, last or first)) if match]
    rows, columns = sorted(int(match[2]) for match in corners), sorted(column_number(match[1]) for match in corners)
    return _Block(sheet.strip("'").replace("''", "'") or tab, rows[0], columns[0], rows[-1], columns[-1])
