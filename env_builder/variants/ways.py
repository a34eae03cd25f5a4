"""Ways: what an act of each tool is given, where that comes from, and what it changes, learnt from good sessions.

In: good sessions' acts, and the signatures of families. Out: a `Way` a tool, and sources of its arguments. Sees: names of
arguments that were given together, classes and fields of the documents that an act left changed in its session's own room.
Does not see: which of two ways one would take for a reason that stands in no argument.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.canonical import digest
from env_builder.runtime.episode import Room
from env_builder.variants.moves import Arguments, Move, Play

N_SESSIONS = 24
"""Good sessions of a tool that are played to see what it changes, by their hash."""
_SELDOM = 0.05
"""Share of an argument's values below which a source is left aside."""

Touched = dict[tuple[str, str], frozenset[str]]
"""(class, `made` | `changed` | `removed` | `act`) -> fields that changed."""


class Form(NamedTuple):
    """Arguments that were given together."""

    names: frozenset[str]
    example: Arguments
    session_id: str
    """Good session that the example is from."""


class Way(NamedTuple):
    """How good sessions use a tool that acts."""

    forms: tuple[Form, ...]
    """The most usual first."""
    touches: Touched
    """All that it was seen to change."""
    always: frozenset[tuple[str, str]]
    """What of that it changed every time."""

    def fits(self, touched: Touched) -> bool:
        """Is this a change such as good sessions made?"""
        return bool(touched) and self.always <= touched.keys() and all(
            kind in self.touches and fields <= self.touches[kind] for kind, fields in touched.items())


class Source(NamedTuple):
    """Where an argument's value comes from."""

    tool: str
    """The tool that it is read from; empty: it is always `value`."""
    path: str
    value: str


Sources = Mapping[tuple[str, str], list[Source]]
"""(tool, path of the argument) -> sources, the most usual first."""


def sources_of(signatures: Iterable[str]) -> Sources:
    """Sources of arguments that are read or constant, over the signatures (`mart.families`) of one service."""
    counts: dict[tuple[str, str], Counter[Source | None]] = defaultdict(Counter)
    for text in signatures:
        for entry in json.loads(text):
            for path, sources in entry["arguments"].items():
                for told in sources:
                    known = told["source"] in ("read", "constant")
                    source = Source(told.get("tool", ""), told.get("path", ""), told.get("value", "")) if known else None
                    counts[entry["tool"], path][source] += told["n_sessions"]
    return {
        where: [source for source, n in sorted(found.items(), key=lambda item: (-item[1], str(item[0])))
                if source is not None and n >= _SELDOM * found.total()]
        for where, found in counts.items()}


def ways_of(acting: frozenset[str], good: Mapping[str, list[Move]], begun: Callable[[str], Room]) -> dict[str, Way]:
    """A way for each tool of `acting` that good sessions used. `begun`: the room of a session, as of its beginning."""
    using: dict[str, list[str]] = defaultdict(list)
    for session_id in sorted(good, key=digest):
        for tool in sorted({move.tool for move in good[session_id] if move.tool in acting and not move.failed}):
            using[tool].append(session_id)
    asked = {name for names in using.values() for name in names[:N_SESSIONS]}
    touched: dict[str, list[Touched]] = defaultdict(list)
    for session_id in sorted(asked):
        for tool, change in _played(begun(session_id), good[session_id], acting):
            touched[tool].append(change)
    return {tool: _way(_forms(tool, names, good), touched[tool]) for tool, names in using.items() if touched[tool]}


def _played(room: Room, moves: list[Move], acting: frozenset[str]) -> list[tuple[str, Touched]]:
    play = Play(room)
    found = []
    for move in moves:
        if move.tool in acting and move.arguments is not None and not move.failed:
            before = play.room
            if not play.call(move.tool, move.arguments):
                break
            found.append((move.tool, touched_by(before, play.room)))
    return found


def touched_by(before: Room, after: Room) -> Touched:
    """What became of documents, and acts of unknown effect, between two states of an episode."""
    first = before.changed()
    found: Touched = {}
    for name, (text, since) in after.changed().items():
        old = before.document(name)
        if first.get(name) != (text, since) and text != old:
            what = "made" if old is None else "removed" if text is None else "changed"
            found[name[0], what] = found.get((name[0], what), frozenset()) | _fields(old, text)
    for act in after.acts[len(before.acts):]:
        if not act.documents:
            found[act.tool, "act"] = frozenset()
    return found


def _fields(old: str | None, new: str | None) -> frozenset[str]:
    if old is None or new is None:
        return frozenset()
    one, other = json.loads(old), json.loads(new)
    if not isinstance(one, dict) or not isinstance(other, dict):
        return frozenset(("",))
    return frozenset(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _forms(tool: str, session_ids: list[str], good: Mapping[str, list[Move]]) -> tuple[Form, ...]:
    given: dict[frozenset[str], list[tuple[Any, ...]]] = defaultdict(list)
    for session_id in session_ids:
        for move in good[session_id]:
            if move.tool == tool and move.arguments is not None and not move.failed:
                given[frozenset(move.arguments)].append((move.arguments, session_id))
    ordered = sorted(given.items(), key=lambda item: (-len(item[1]), sorted(item[0])))
    return tuple(Form(names, *found[0]) for names, found in ordered)


def _way(forms: tuple[Form, ...], seen: list[Touched]) -> Way:
    touches: Touched = {}
    for one in seen:
        for kind, fields in one.items():
            touches[kind] = touches.get(kind, frozenset()) | fields
    return Way(forms, touches, frozenset.intersection(*(frozenset(one) for one in seen)))
