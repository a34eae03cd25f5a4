"""The world of a room: an immutable base of facts over time, and what one episode changed on top of it.

Goes in: rows of world.jsonl and recorded.jsonl. Comes out: the document of a thing, or an answer on record, as of an instant
and in the view of a task's sessions. What is not known is absent (None), never defaulted.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

from .answers import Document, parse, parsed
from .files import Later
from .implied import Origin
from .numbering import Form, Highest, number_of
from .records import Answer
from .tables import Table, rows_in
from .views import Held, Row, View, text_of

__all__ = ["SURE", "Name", "Overlay", "Row", "View", "World", "agreed_on", "answering"]

MAXIMUM_DEPTH = 16
"""Layers of overlay above which the next one flattens them, so that a look stays cheap."""

NEARBY = 200
"""Questions on record, before and after a new one by alphabet, that are compared with it."""

SURE = 0.85
"""Share of sessions that must have seen alike for it to be so in all others, where every session begins anew."""

V = TypeVar("V")
Name = tuple[str, str]
"""(class, key) of a thing, or (tool, canonical arguments) of a question."""


class World:
    """Facts and answers on record, indexed at load; never changed by an episode."""

    def __init__(self, facts: Iterable[Row] | Later[Name, list[Row]], recorded: Iterable[Row] | Later[Name, list[Row]]) -> None:
        self.facts = _each(_named(facts, "class", "key"), _documented)
        self.answers = _each(_named(recorded, "tool", "arguments"), _answering)
        self.asked: dict[str, list[str]] = defaultdict(list)
        self._tables: dict[str, Table] = {}
        self._implied: dict[str, Table] = {}
        self._keys: dict[str, list[Name]] = defaultdict(list)
        self._highest: dict[tuple[str, str], Highest] = {}
        for name in self.facts:
            self._keys[name[0]].append(name)
        for tool, arguments in sorted(self.answers):
            self.asked[tool].append(arguments)
        self._documents = _each(self.facts, Held)
        self._told = _each(self.answers, _by_acts)
        """Question -> acts before it, as text -> what was told."""

    def document(self, name: Name, view: View) -> str | None:
        """JSON text of the thing as of the view's instant, or None where it is not known."""
        held = self._documents.get(name)
        row = None if held is None else held.at(view)
        return None if row is None else row["value"]

    def answer(self, name: Name, view: View, after: list[list[str]]) -> Row | None:
        """The answer on record to this question after just these acts, or None."""
        told = self._told.get(name)
        held = None if told is None else told.get(str(after) if after else "[]")
        return None if held is None else held.at(view)

    def told_once(self, name: Name, after: list[list[str]]) -> list[Row]:
        """Answers to this question after just these acts that speak for one session each."""
        told = self._told.get(name)
        held = None if told is None else told.get(str(after))
        return [] if held is None else held.own

    def table(self, entity_class: str, rules: dict[str, dict[str, Any]]) -> Table:
        """All rows of a class at any time. `rules`: tool -> its rule for it; for things, rows of `key` and `document`."""
        if entity_class not in self._tables:
            table = self._tables[entity_class] = Table()
            for tool, rule in sorted(rules.items()):
                for arguments in self.asked.get(tool, ()):
                    for answer in self.answers[tool, arguments]:
                        for row in () if answer["is_error"] else rows_in(rule, parse(arguments), parse(answer["content"])):
                            table.add(row)
            for name in self._keys[entity_class]:
                for fact in self.facts[name]:
                    table.add({"key": name[1], "document": parsed(fact["value"])})
        return self._tables[entity_class]

    def implied(self, entity_class: str, makes: dict[str, dict[str, Any]], plain: Callable[[Name], Name]) -> Table:
        """Parts of things of a class, as things made from them showed them. `makes`: tool -> its rule that makes things;
        `plain`: a thing by its bare key."""
        if not self._implied:
            origins = (
                Origin(rule, parse(arguments), parse(answer["content"]), plain) for tool, rule in sorted(makes.items())
                for arguments in self.asked.get(tool, ()) for answer in self.answers[tool, arguments] if not answer["is_error"])
            for origin in origins:
                name = origin.made()
                for fact in self.facts.get(name, ()) if name else ():
                    for kind, row in origin.rows(parse(fact["value"])):
                        self._implied.setdefault(kind, Table()).add(row)
        return self._implied.setdefault(entity_class, Table())

    def highest(self, entity_class: str, form: Form | None, instant: str) -> int | None:
        """The highest number in names of this form that things of the class had at the instant; None: nobody knows any."""
        asked = (entity_class, str(form))
        if asked not in self._highest:
            numbers = ((name, number_of(name[1], form)) for name in self._keys[entity_class])
            self._highest[asked] = Highest(
                (min(row["from"] or "" for row in self.facts[name]), n) for name, n in numbers if n is not None)
        return self._highest[asked].at(instant)

    def nearest(self, tool: str, arguments: str, n: int = 3) -> list[str]:
        """Arguments on record for the tool that share most values with these; of equals those nearest by alphabet."""
        asked = self.asked.get(tool, [])
        at = bisect_left(asked, arguments)
        near = asked[max(0, at - NEARBY):at + NEARBY]
        own, here = _values(arguments), min(at, NEARBY)
        ranked = sorted(range(len(near)), key=lambda index: (-len(own & _values(near[index])), abs(index - here), index))
        return [near[index] for index in ranked[:n]]


def _named(rows: Iterable[Row] | Later[Name, list[Row]], *by: str) -> dict[Name, list[Row]]:
    """Rows by their names; those of a packed file as they are, each read when it is looked up."""
    if isinstance(rows, Later):
        return rows
    held: dict[Name, list[Row]] = defaultdict(list)
    first, second = by
    for row in rows:
        held[row[first], row[second]].append(row)
    return held


def _each(held: dict[Name, list[Row]], made: Callable[[list[Row]], V]) -> dict[Name, V]:
    """What is made of the rows of each name: at once, or when it is looked up where the rows are read so."""
    if isinstance(held, Later):
        return Later(held, lambda name: made(held[name]))
    return {name: made(rows) for name, rows in held.items()}


def _documented(rows: list[Row]) -> list[Row]:
    return [{**row, "value": Document(row["value"])} for row in rows]


def _answering(rows: list[Row]) -> list[Row]:
    return [answering(row, tuple(((one["class"], one["key"]), Document(one["value"])) for one in row.get("effects", ())))
            for row in rows]


def answering(row: Row, documents: tuple[tuple[Name, str], ...]) -> Row:
    """An answer on record, with what a rule gives back of it. `documents`: those that it left behind."""
    return {**row, "answer": Answer(row["content"], row["is_error"], "recorded", documents)}


def _by_acts(rows: list[Row]) -> dict[str, Held]:
    by_acts: dict[str, list[Row]] = {}
    for row in rows:
        by_acts.setdefault(str(row["after"]), []).append(row)
    return {acts: Held(alike) for acts, alike in by_acts.items()}


@lru_cache(16384)
def _values(arguments: str) -> frozenset[tuple[str, str]]:
    """Top-level arguments as (name, JSON text)."""
    return frozenset((name, json.dumps(value, sort_keys=True)) for name, value in json.loads(arguments).items())


def agreed_on(rows: list[Row]) -> Row | None:
    """A row that says what (nearly) all of them say, None where they differ."""
    counts = Counter(map(text_of, rows))
    text, n = counts.most_common(1)[0] if rows else ("", 0)
    return next(row for row in rows if text_of(row) == text) if rows and n >= SURE * len(rows) else None


class Overlay:
    """Documents that an episode changed: layers that nobody changes, so that a fork costs nothing whatever the world's size."""

    __slots__ = ("_depth", "_own", "_parent")

    def __init__(self, own: dict[Name, Any] | None = None, parent: Overlay | None = None) -> None:
        self._own: dict[Name, Any] = own or {}
        self._parent = parent
        self._depth: int = parent._depth + 1 if parent else 0

    def get(self, name: Name, otherwise: V) -> V:
        """What the episode set last, or `otherwise` where it left the thing alone."""
        layer: Overlay | None = self
        while layer is not None:
            if name in layer._own:
                kept: V = layer._own[name]
                return kept
            layer = layer._parent
        return otherwise

    def over(self, new: dict[Name, Any]) -> Overlay:
        """An overlay with these new values on top of this one."""
        if self._depth < MAXIMUM_DEPTH:
            return Overlay(new, self)
        return Overlay(self.items() | new)

    def items(self) -> dict[Name, Any]:
        """All that was changed."""
        merged = dict(self._parent.items()) if self._parent else {}
        return merged | self._own
