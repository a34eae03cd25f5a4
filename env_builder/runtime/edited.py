"""Answer a list after write calls that add, remove and change rows of it: `edited` rules (docs/behaviour.md).

In: a rule, arguments, all answers of the tool before any write call, and the write calls since. Out: the text of the answer,
or None. Answers to one question with several windows (pages, offsets, limits) are put together; each write call edits the rows
in all ways that the log leaves possible, and the answer is given only where these ways agree.
Sees: rows that are told apart by one column; windows of fixed or given length; fields next to the list that count its rows.
Does not see: rows that no answer and no write call shows.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

from .answers import parse, parsed
from .canonical import canonical
from .filters import without_blanks

Rule = dict[str, Any]
Way = list[Any]
"""Edits of one write call: ["remove", sources], ["add", sources], ["change", sources, column, number to add]. Sources: paths in
the write call that all have the value, of which one may be missing."""
MOST_WAYS = 64
"""Combinations of ways that are compared."""
UNKNOWN = object()
"""Stands for a value of an added row that is not known."""


class UndecidedEdit(Exception):
    """What an edit makes of the list is not known."""


class Contradicted(Exception):
    """An edit cannot be, as it would add a row that is there."""


class Question(NamedTuple):
    """Which rows are asked for."""

    group: dict[str, Any]
    """Arguments that say which list is meant."""
    start: int
    size: int | None
    """Rows that are shown at most; None: all."""


class Page(NamedTuple):
    """An answer: the rows of a window, and the fields next to them."""

    question: Question
    rows: list[Any]
    around: dict[str, Any]


class Edited(NamedTuple):
    """A write call, and what it says: `argument`, `answer`, `before` (the document that it names, as it was)."""

    tool: str
    sources: dict[str, Any]
    is_answered: bool = True
    """Is it known that it worked? Else it may have been refused."""


class Extent(NamedTuple):
    """The first rows of a list, as far as they are known, and how many there are at least and at most (None: no limit)."""

    rows: list[Any]
    low: int
    high: int | None
    is_edited: bool = False
    """May a write call have edited it?"""

    @property
    def is_whole(self) -> bool:
        return self.high == len(self.rows)

    def bounded(self, low: int, high: int | None) -> Extent | None:
        """Return the extent with further bounds, None if they contradict it."""
        lowest = max(self.low, low, len(self.rows))
        highest = self.high if high is None else high if self.high is None else min(self.high, high)
        return Extent(self.rows, lowest, highest) if highest is None or lowest <= highest else None


class ShownRows(NamedTuple):
    """What the answers show of each row, by its key."""

    rows: dict[str, Any]
    """The row; UNKNOWN if answers differ."""
    groups: dict[str, dict[str, Any]]
    """The arguments of an answer that shows it."""


def question_of(rule: Rule, arguments: dict[str, Any]) -> Question | None:
    """Return what is asked for, None if it is no window."""
    window, given = rule["window"], without_blanks(arguments)
    size = given.pop(window["limit"], window["size"])
    place = given.pop(window["argument"], window["first"])
    if not _is_whole_number(place) or not (size is None or _is_whole_number(size)):
        return None
    start = place - window["first"] if window["by"] == "row" else (place - window["first"]) * (size or 0)
    return Question(given, start, size) if start >= 0 and (size is None or size > 0) else None


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def page_of(rule: Rule, arguments: dict[str, Any], content: str) -> Page | None:
    """Return the rows that an answer shows, None if it is no such answer."""
    question, value, field = question_of(rule, arguments), parse(content), rule["field"]
    rows = value if field is None else value.get(field) if isinstance(value, dict) else None
    if question is None or not isinstance(rows, list) or any(key_of(rule, row) is None for row in rows):
        return None
    return Page(question, rows, {} if field is None else {name: item for name, item in value.items() if name != field})


def key_of(rule: Rule, row: Any) -> str | None:
    """Return the value that tells the row from others, None if it has none."""
    value = row if rule["key"] is None else value_at(row, rule["key"])
    return str(value) if isinstance(value, str | int | float) else None


def value_at(row: Any, column: str | int) -> Any:
    """Return the value in a column of an object or a list, None if there is none."""
    if isinstance(row, dict):
        return row.get(column)
    return row[column] if isinstance(row, list) and isinstance(column, int) and column < len(row) else None


def bounds_of(rule: Rule, page: Page) -> tuple[int, int | None]:
    """Return how many rows the list has at least and at most, as one page of it tells."""
    start, size, n_shown = page.question.start, page.question.size, len(page.rows)
    low, high = start + n_shown if n_shown else 0, None if size is not None and n_shown == size else start + n_shown
    for name, (how, *_) in rule["around"].items():
        value = page.around[name]
        if how == "total":
            low, high = max(low, value), value if high is None else min(high, value)
        elif how == "pages" and size is not None:
            low, high = max(low, (value - 1) * size + (value > 1)), value * size if high is None else min(high, value * size)
        elif how == "more":
            low, high = (max(low, start + n_shown + 1), high) if value else (low, start + n_shown)
    return low, high


def extent_of(rule: Rule, pages: list[Page]) -> Extent | None:
    """Return the rows that pages of one list show together, None if they contradict each other."""
    placed: dict[int, Any] = {}
    for page in pages:
        if any(placed.setdefault(page.question.start + index, row) != row for index, row in enumerate(page.rows)):
            return None
    n_first = next(index for index in range(len(placed) + 1) if index not in placed)
    extent: Extent | None = Extent([placed[index] for index in range(n_first)], max(placed, default=-1) + 1, None)
    for page in pages:
        extent = None if extent is None else extent.bounded(*bounds_of(rule, page))
    return None if len({key_of(rule, row) for row in placed.values()}) < len(placed) else extent


def begun_extent(rule: Rule, pages: list[Page]) -> Extent | None:
    """Return the rows that pages of one list show together, and what answers after write calls tell of its beginning."""
    extent = extent_of(rule, pages)
    for group, text, low, high in rule["begun"]:
        rows = parsed(text)
        if extent is not None and group == pages[0].question.group and rows[:len(extent.rows)] == extent.rows:
            extent = Extent(rows, extent.low, extent.high).bounded(low, high)
    return extent


def shown_rows(rule: Rule, pages: Iterable[Page]) -> ShownRows:
    """Return all rows of the answers by their keys."""
    shown = ShownRows({}, {})
    for page in pages:
        for row in page.rows:
            key = str(key_of(rule, row))
            if shown.rows.setdefault(key, row) != row:
                shown.rows[key] = UNKNOWN
            shown.groups.setdefault(key, page.question.group)
    return shown


def source_at(write: Edited, sources: list[list[str]]) -> tuple[Any, Any]:
    """Return the value of the first source that has one, and the object in which it stands. Raises UndecidedEdit."""
    for source in sources:
        value: Any = write.sources
        parent: Any = None
        for step in source:
            parent, value = value, value.get(step) if isinstance(value, dict) else None
        if value is not None:
            return value, parent
    raise UndecidedEdit


class EditedList:
    """One list, edited by write calls in turn."""

    def __init__(self, rule: Rule, group: dict[str, Any], extent: Extent, shown: ShownRows) -> None:
        self._rule, self._group, self._shown = rule, group, shown
        self._rows, self._low, self._high = list(extent.rows), extent.low, extent.high
        self._gone: set[str] = set()
        self._is_edited = False

    @property
    def extent(self) -> Extent:
        return Extent(self._rows, self._low, self._high, self._is_edited)

    def edit(self, way: Way, write: Edited) -> None:
        """Carry out the edits of one write call. Raises UndecidedEdit."""
        for kind, sources, *how in way:
            value, parent = source_at(write, sources)
            if kind == "add":
                self._add(str(value), parent)
            elif kind == "remove":
                self._remove(str(value), parent)
            else:
                self._change(str(value), *how)

    def _place_of(self, key: str) -> int | None:
        return next((index for index, row in enumerate(self._rows) if key_of(self._rule, row) == key), None)

    def _belongs(self, key: str, parent: dict[str, Any]) -> bool:
        """Return whether a row is one of this list, as its arguments tell. Raises UndecidedEdit."""
        shown = self._shown.groups.get(key, {})
        for name, value in self._group.items():
            own = parent.get(name, shown.get(name))
            if own is None or name not in self._rule["partitions"]:
                raise UndecidedEdit
            if own != value:
                return False
        return True

    def _remove(self, key: str, parent: dict[str, Any]) -> None:
        place = self._place_of(key)
        if place is None and (self.extent.is_whole or key in self._gone):
            return
        self._gone.add(key)
        if place is not None:
            del self._rows[place]
            self._low -= 1
        else:
            try:
                if not self._belongs(key, parent):
                    return
            except UndecidedEdit:
                self._low, self._is_edited = max(self._low - 1, len(self._rows)), True
                return
            self._low = max(self._low - 1, len(self._rows))
        self._high, self._is_edited = None if self._high is None else self._high - 1, True

    def _add(self, key: str, parent: dict[str, Any]) -> None:
        if not self._belongs(key, parent):
            return
        if self._place_of(key) is not None:
            raise Contradicted
        self._gone.discard(key)
        row = self._new_row(key, parent)
        place, is_whole = self._place_for(row), self.extent.is_whole
        if place < len(self._rows) or is_whole:
            self._rows.insert(place, row)
        self._is_edited = True
        self._low, self._high = self._low + 1, None if self._high is None else self._high + 1

    def _new_row(self, key: str, parent: dict[str, Any]) -> Any:
        """Return the row as answers showed it, else as the object has it in which its key stands. Raises UndecidedEdit."""
        shown = self._shown.rows.get(key, UNKNOWN)
        if shown is UNKNOWN and self._rule["columns"]:
            return {column: parent.get(column, UNKNOWN) for column in self._rule["columns"]}
        if shown is UNKNOWN:
            raise UndecidedEdit
        return shown

    def _place_for(self, row: Any) -> int:
        """Return the place of a new row in the order of all rows. Raises UndecidedEdit."""
        places = set()
        for column, is_descending in self._rule["orders"]:
            new = value_at(row, column)
            values = [value_at(other, column) for other in self._rows]
            if new is UNKNOWN or new in values or any(type(value) is not type(new) for value in values):
                raise UndecidedEdit
            places.add(len(values) - bisect_left(values[::-1], new) if is_descending else bisect_left(values, new))
        if len(places) != 1:
            raise UndecidedEdit
        return int(places.pop())

    def _change(self, key: str, column: str | int, step: float) -> None:
        place = self._place_of(key)
        if place is not None:
            self._is_edited = True
            row = self._rows[place]
            new = value_at(row, column) + step
            self._rows[place] = ({**row, column: new} if isinstance(row, dict)
                                 else [new if index == column else value for index, value in enumerate(row)])
        elif not self.extent.is_whole:
            raise UndecidedEdit


def rendered(rule: Rule, question: Question, extent: Extent, pages: list[Page]) -> str | None:
    """Return the text of a window of a list, None if it is not known. `pages`: answers that show the same list."""
    end = len(extent.rows) if question.size is None else question.start + question.size
    rows = extent.rows[question.start:end]
    is_open = not extent.is_whole and (question.size is None or end > len(extent.rows))
    if is_open or (not rows and not rule["empty"]) or any(
            isinstance(row, dict) and UNKNOWN in row.values() for row in rows):
        return None
    value: Any = rows
    if rule["field"] is not None:
        value = {}
        for name in rule["fields"]:
            try:
                value[name] = rows if name == rule["field"] else _around(rule, name, question, extent, len(rows), pages)
            except UndecidedEdit:
                return None
    return json.dumps(value, **rule["style"])


def _around(rule: Rule, name: str, question: Question, extent: Extent, n_shown: int, pages: list[Page]) -> Any:
    """Return the value of a field next to the list. Raises UndecidedEdit."""
    how, *operands = rule["around"][name]
    if how == "constant":
        return operands[0]
    if how == "place":
        return rule["window"]["first"] + (
            question.start // (question.size or 1) if rule["window"]["by"] == "page" else question.start)
    if how == "size":
        return question.size
    if how == "shown":
        return n_shown
    if how == "group":
        counts = [page.around.get(name) for page in pages]
    else:
        counts = [_counted(how, question, n_shown, total) for total in (extent.low, extent.high)]
    if len(set(map(canonical, counts))) > 1 or (how != "group" and counts[0] is None):
        raise UndecidedEdit
    return counts[0]


def _counted(how: str, question: Question, n_shown: int, total: int | None) -> int | bool | None:
    """Return what a field says of a list with so many rows (None: without limit), None if that is not known."""
    if how == "more":
        return total is None or question.start + n_shown < total
    if total is None or how == "total":
        return total
    return -(-total // (question.size or 1))


def extents_after(
    rule: Rule, group: dict[str, Any], extent: Extent, shown: ShownRows, writes: list[Edited],
) -> list[Extent] | None:
    """Return what the list is after the write calls, in every way that is possible (none: no way fits); None: unknown."""
    ways_by_tool = {write.tool: rule["edits"].get(write.tool, {"ways": []})["ways"] for write in writes}
    outcomes = [[True] if write.is_answered else [True, False] for write in writes]
    combinations = list(product(product(*ways_by_tool.values()), product(*outcomes)))
    if not 0 < len(combinations) <= MOST_WAYS:
        return None
    extents = []
    for ways, worked in combinations:
        way_of = dict(zip(ways_by_tool, ways, strict=True))
        edited = EditedList(rule, group, extent, shown)
        try:
            for write, has_worked in zip(writes, worked, strict=True):
                edited.edit(way_of[write.tool] if has_worked else [], write)
        except Contradicted:
            continue
        except (UndecidedEdit, TypeError):
            return None
        extents.append(edited.extent)
    return extents


def answered_after(
    rule: Rule, arguments: dict[str, Any], answers: Sequence[tuple[dict[str, Any], str]], writes: list[Edited],
) -> str | None:
    """Return what the question is answered after the write calls, None if it is not known."""
    question = question_of(rule, arguments)
    shown = [page for given, content in answers for page in [page_of(rule, given, content)] if page is not None]
    pages = [page for page in shown if question is not None and page.question.group == question.group]
    extent = begun_extent(rule, pages) if pages else None
    if question is None or extent is None:
        return None
    extents = extents_after(rule, question.group, extent, shown_rows(rule, shown), writes)
    if extents and not any(each.is_edited for each in extents):
        return next((content for given, content in answers if canonical(given) == canonical(arguments)),
                    rendered(rule, question, extents[0], pages))
    texts = {rendered(rule, question, each, pages) for each in extents or ()}
    return next(iter(texts)) if len(texts) == 1 else None
