"""Hold the world of an app: an immutable base of facts over time, and what one episode changed on top of it.

In: rows of world.jsonl and recorded.jsonl, each of all sessions or of one, some with the time for which they hold. Out: the
document of an entity, or an answer on record, as of an instant and in the view of a task's sessions. What is not known is
absent (None), never defaulted.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from .answers import Document, parse, parsed
from .caching import cached
from .canonical import canonical
from .ends import unquoted
from .files import Later
from .known_names import BEGUN, KnownNames
from .numbering import Form, number_of
from .records import ToolAnswer
from .relevance import ids_in, row_names
from .tables import Origin, Table, rows_in

__all__ = ["SURE", "Name", "Overlay", "Row", "View", "World", "agreed_on", "answering"]

MAXIMUM_DEPTH = 16
"""Layers of overlay above which the next one flattens them, so that a read stays cheap."""

NEARBY = 200
"""Questions on record, before and after a new one by alphabet, that are compared with it."""

SEVERAL, MOST_ANSWERS = 3, 50
"""Answers to different questions that are compared for what stands in all of them, at least and at most."""

SURE = 0.85
"""Share of sessions that must have seen alike for it to be so in all others, where every session begins anew."""

V = TypeVar("V")
Name = tuple[str, str]
"""(class, key) of an entity, or (tool, canonical arguments) of a question."""


class World:
    """Facts and answers on record, indexed at load; never changed by an episode."""

    def __init__(
        self, facts: Iterable[Row] | Later[Name, list[Row]], recorded: Iterable[Row] | Later[Name, list[Row]],
        known_names: KnownNames | None = None,
    ) -> None:
        """`known_names`: of these rows, where it was computed before."""
        self._stored_names = known_names
        self.facts = _each(
            _named(facts, "class", "key"), lambda rows: [{**row, "value": Document(row["value"])} for row in rows])
        self.answers = _each(_named(recorded, "tool", "arguments"), _answering)
        self.questions: dict[str, list[str]] = defaultdict(list)
        self._spellings: dict[str, dict[str, str]] = {}
        """Tool -> arguments with each number in one form -> arguments on record."""
        self._tables: dict[str, Table] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._everywhere: dict[str, frozenset[str]] = {}
        self._implied: dict[str, Table] = {}
        self._keys: dict[str, list[Name]] = defaultdict(list)
        self._highest: dict[tuple[str, str], tuple[list[str], list[int]]] = {}
        """(class, form) -> instants from which there is a name, and the highest number of a name from each on."""
        for name in self.facts:
            self._keys[name[0]].append(name)
        for tool, arguments in sorted(self.answers):
            self.questions[tool].append(arguments)
        self._documents = _each(self.facts, RowHistory)
        self._answers_after = _each(self.answers, _by_calls)
        """Question -> write calls before it, as text -> what was told."""

    def strangers(self, tool: str, key: str) -> list[str] | None:
        """Return the values of a call that should be known and are not; None if nobody can say. `key`: canonical arguments."""
        return self.known_names.strangers(tool, parsed(key))

    def doubtful(self, tool: str, key: str) -> list[str]:
        """Return the values of a call that may not exist: looked up nowhere, where others are. `key`: canonical arguments."""
        return self.known_names.doubtful(tool, parsed(key))

    def spelled(self, tool: str, key: str) -> str | None:
        """Return the arguments on record that are these but for numbers written as text; None if there are none."""
        if tool not in self._spellings:
            self._spellings[tool] = {canonical(unquoted(parsed(own))): own for own in reversed(self.questions.get(tool, ()))}
        return self._spellings[tool].get(canonical(unquoted(parsed(key))))

    @cached_property
    def known_names(self) -> KnownNames:
        """What the rows name."""
        if self._stored_names:
            return self._stored_names
        key_of = {row["value"]: key for (_, key), rows in self.facts.items() for row in rows if row["value"] is not None}
        return KnownNames((key for _, key in self.facts), self.answers, self._documents_as_seen(), key_of)

    def _documents_as_seen(self) -> Iterator[tuple[str | None, str]]:
        """Yield each document with who saw it: BEGUN (the log began with it), a session, or None (somebody, later)."""
        for name in self.facts:
            rows = self.facts[name]
            shared = [row for row in rows if row["session"] is None]
            first = min(shared, key=lambda row: row["from"] or "") if shared else None
            yield from ((BEGUN if row is first or first is None else row["session"], row["value"]) for row in rows)

    def document(self, name: Name, view: View) -> str | None:
        """JSON text of the entity as of the view's instant, or None where it is not known."""
        rows = self._documents.get(name)
        row = None if rows is None else rows.at(view)
        return None if row is None else row["value"]

    def answer(self, name: Name, view: View, after: list[list[str]]) -> Row | None:
        """Return the answer on record to this question after just these write calls, or None."""
        by_write_calls = self._answers_after.get(name)
        rows = None if by_write_calls is None else by_write_calls.get(str(after) if after else "[]")
        return None if rows is None else rows.at(view)

    def session_answers(self, name: Name, after: list[list[str]]) -> list[Row]:
        """Answers to this question after just these write calls that speak for one session each."""
        by_write_calls = self._answers_after.get(name)
        rows = None if by_write_calls is None else by_write_calls.get(str(after))
        return [] if rows is None else rows.own

    def answers_to(self, tool: str, key: str) -> list[tuple[str, bool, bool]]:
        """Return all answers on record to a question, whatever came before, sorted: text, whether it fails, whether it left
        documents."""
        rows = self.answers.get((tool, key), ())
        return sorted({(row["content"], row["is_error"], bool(row["answer"].documents)) for row in rows})

    def table(self, entity_class: str, rules: dict[str, dict[str, Any]]) -> Table:
        """All rows of a class at any time. `rules`: tool -> its rule for it; for entities, rows of `key` and `document`."""
        if entity_class not in self._tables:
            table = self._tables[entity_class] = Table()
            for tool, rule in sorted(rules.items()):
                for arguments in self.questions.get(tool, ()):
                    for answer in self.answers[tool, arguments]:
                        for row in () if answer["is_error"] else rows_in(rule, parse(arguments), parse(answer["content"])):
                            table.add(row)
            for name in self._keys[entity_class]:
                for fact in self.facts[name]:
                    table.add({"key": name[1], "document": parsed(fact["value"])})
        return self._tables[entity_class]

    def implied(self, entity_class: str, makes: dict[str, dict[str, Any]], plain: Callable[[Name], Name]) -> Table:
        """Parts of entities of a class, as entities made from them showed them. `makes`: tool -> its rule that makes entities;
        `plain`: an entity by its bare key."""
        if not self._implied:
            origins = (
                Origin(rule, parse(arguments), parse(answer["content"]), plain) for tool, rule in sorted(makes.items())
                for arguments in self.questions.get(tool, ()) for answer in self.answers[tool, arguments]
                if not answer["is_error"])
            for origin in origins:
                name = origin.made()
                for fact in self.facts.get(name, ()) if name else ():
                    for kind, row in origin.rows(parse(fact["value"])):
                        self._implied.setdefault(kind, Table()).add(row)
        return self._implied.setdefault(entity_class, Table())

    def everywhere(self, tool: str) -> frozenset[str]:
        """Return the id-like words that stand in all of several answers of the tool: they name nothing."""
        if tool not in self._everywhere:
            words = [ids_in(self.answers[tool, key][0]["content"]) for key in self.questions.get(tool, ())[:MOST_ANSWERS]]
            self._everywhere[tool] = frozenset.intersection(*words) if len(words) >= SEVERAL else frozenset()
        return self._everywhere[tool]

    def lists(self, tool: str, names: frozenset[str]) -> bool:
        """Return whether some answer of the tool has a row that one of the names may name: after a write, others may."""
        if tool not in self._listed:
            answers = (answer["content"] for key in self.questions.get(tool, ()) for answer in self.answers[tool, key])
            self._listed[tool] = frozenset[str]().union(*map(row_names, answers))
        return not self._listed[tool].isdisjoint(names)

    def highest(self, entity_class: str, form: Form | None, instant: str) -> int | None:
        """Return the highest number in names of this form that entities of the class had at the instant; None: unknown."""
        numbered = (entity_class, str(form))
        if numbered not in self._highest:
            numbers = ((name, number_of(name[1], form)) for name in self._keys[entity_class])
            since = sorted((min(row["from"] or "" for row in self.facts[name]), n) for name, n in numbers if n is not None)
            self._highest[numbered] = [begin for begin, _ in since], list(accumulate((n for _, n in since), max))
        instants, highest = self._highest[numbered]
        place = bisect_right(instants, instant)
        return highest[place - 1] if place else None

    def nearest(self, tool: str, arguments: str, n: int = 3) -> list[str]:
        """Arguments on record for the tool that share most values with these; of equals those nearest by alphabet."""
        on_record = self.questions.get(tool, [])
        at = bisect_left(on_record, arguments)
        near = on_record[max(0, at - NEARBY):at + NEARBY]
        own, here = _values(arguments), min(at, NEARBY)
        ranked = sorted(range(len(near)), key=lambda index: (-len(own & _values(near[index])), abs(index - here), index))
        return [near[index] for index in ranked[:n]]


def _named(rows: Iterable[Row] | Later[Name, list[Row]], *by: str) -> dict[Name, list[Row]]:
    """Rows by their names; those of a packed file as they are, each read when it is first needed."""
    if isinstance(rows, Later):
        return rows
    named: dict[Name, list[Row]] = defaultdict(list)
    first, second = by
    for row in rows:
        named[row[first], row[second]].append(row)
    return named


def _each(rows_by_name: dict[Name, list[Row]], made: Callable[[list[Row]], V]) -> dict[Name, V]:
    """Convert the rows of each name: at once, or lazily where the rows are read lazily."""
    if isinstance(rows_by_name, Later):
        return Later(rows_by_name, lambda name: made(rows_by_name[name]), rows_by_name.kept)
    return {name: made(rows) for name, rows in rows_by_name.items()}


def _answering(rows: list[Row]) -> list[Row]:
    return [answering(row, tuple(((one["class"], one["key"]), Document(one["value"])) for one in row.get("effects", ())))
            for row in rows]


def answering(row: Row, documents: tuple[tuple[Name, str], ...]) -> Row:
    """Return an answer on record with the `ToolAnswer` of it. `documents`: those that it changed."""
    return {**row, "answer": ToolAnswer(row["content"], row["is_error"], "recorded", documents)}


def _by_calls(rows: list[Row]) -> dict[str, RowHistory]:
    by_calls: dict[str, list[Row]] = {}
    for row in rows:
        by_calls.setdefault(str(row["after"]), []).append(row)
    return {calls: RowHistory(alike) for calls, alike in by_calls.items()}


@cached(16384)
def _values(arguments: str) -> frozenset[tuple[str, str]]:
    """Top-level arguments as (name, JSON text)."""
    return frozenset((name, json.dumps(value, sort_keys=True)) for name, value in json.loads(arguments).items())


def agreed_on(rows: list[Row]) -> Row | None:
    """Return a row that agrees with (nearly) all of them, None if they differ."""
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
        """Return what the episode set last, or `otherwise` if it did not change the entity."""
        layer: Overlay | None = self
        while layer is not None:
            if name in layer._own:
                kept: V = layer._own[name]
                return kept
            layer = layer._parent
        return otherwise

    def over(self, new: dict[Name, Any]) -> Overlay:
        """Return an overlay with these new values on top of this one."""
        if self._depth < MAXIMUM_DEPTH:
            return Overlay(new, self)
        return Overlay(self.items() | new)

    def items(self) -> dict[Name, Any]:
        merged = dict(self._parent.items()) if self._parent else {}
        return merged | self._own


Row = dict[str, Any]
NOBODY: dict[str, list[Row]] = {}
"""Rows by session where there are none; shared, so never changed."""


class View(NamedTuple):
    """From where the world is seen."""

    instant: str | None
    """ISO instant; None: the world has no clock."""
    session_ids: frozenset[str]
    """Sessions of which most see alike: what they saw counts first."""


class RowHistory:
    """What is known of one entity, or told after the same write calls to one question."""

    __slots__ = ("_by_all", "_own_by_session", "own")

    def __init__(self, rows: list[Row]) -> None:
        self._by_all = [(row["from"], row["to"], row) for row in rows if row["session"] is None]
        """(from, to, row) of rows that speak for everybody."""
        self.own = [row for row in rows if row["session"] is not None]
        """Rows that speak for one session each."""
        self._own_by_session: dict[str, list[Row]] = {} if self.own else NOBODY
        for row in self.own:
            self._own_by_session.setdefault(row["session"], []).append(row)

    def at(self, view: View) -> Row | None:
        """Return the row that holds at the view's instant; what most of the view's sessions saw themselves comes first.

        One of many sessions that saw something else (its answer was cut, wrapped, withheld) does not speak for the others.
        """
        sessions = view.session_ids
        own: list[Row] | None
        if len(sessions) == 1:
            (session,) = sessions
            own = self._own_by_session.get(session)
            if own is not None and len(own) == 1:
                return own[0]
        elif self._own_by_session.keys().isdisjoint(sessions):
            own = None
        else:
            own = [row for row in self.own if row["session"] in sessions]
        instant, shared = view.instant, None
        for since, until, row in self._by_all:
            if instant is None or ((since is None or since <= instant) and (until is None or instant < until)):
                shared = row
                break
        if own is None or (len(own) == 1 and shared is not None):  # one of many sessions
            return shared
        text, n = Counter(map(text_of, own)).most_common(1)[0]
        return next(row for row in own if text_of(row) == text) if shared is None or 2 * n > len(sessions) else shared


def text_of(row: Row) -> str:
    """Return the text of the row."""
    text: str = row["content"] if "content" in row else row["value"]
    return text
