"""Sessions as moves, a session that is played again, and how good sessions use each tool that writes.

In: turns of the warehouse, signatures of families. Out: moves in order; of a played session, turns of the same layout, so that
what is learnt from logged sessions is learnt from played ones too; a `ToolUse` a tool, and sources of its arguments.
Sees: calls with readable arguments that were answered, arguments that were given together, classes and fields of the documents
that a call changed in its session's own environment. Does not see: a reason for one of two uses that stands in no argument.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.relevance import leaves
from warehouse.records import Turn, refusals_flagged

ACTS = ("write", "outside")
"""Effects of tools that are known to act."""

Arguments = dict[str, Any]


class Move(NamedTuple):
    """One turn."""

    role: str
    """user, assistant, system … of words; `call`."""
    text: str
    """The words, or the answer."""
    tool: str = ""
    arguments: Arguments | None = None
    """None of words."""
    requestor: str | None = None
    failed: bool = False


def moves_of(turns: pl.DataFrame, session_ids: Iterable[str]) -> dict[str, list[Move]]:
    """Return moves of each session, in order; calls that cannot be made again are left out."""
    own = refusals_flagged(turns).filter(pl.col("session_id").is_in(list(session_ids))).sort("session_id", "position")
    columns = ("session_id", "kind", "role", "content", "tool", "arguments", "requestor", "is_error")
    by_session: dict[str, list[Move]] = {}
    for session_id, kind, role, content, tool, arguments, requestor, is_error in own.select(columns).iter_rows():
        moves = by_session.setdefault(session_id, [])
        if kind != "call":
            moves.append(Move(role or "", content or ""))
        elif arguments is not None and content is not None:
            wrong = failed(content, parse(content), is_error)
            moves.append(Move("call", content, tool, json.loads(arguments), requestor, wrong))
    return by_session


class PlayedSession:
    """A new session in an environment: what is said and called in it, as moves."""

    def __init__(self, state: EpisodeState) -> None:
        self.state = state
        self.moves: list[Move] = []

    def call(self, tool: str, arguments: Arguments, requestor: str | None = None) -> bool:
        """Make a call; what is not answered, or refused, has not been made. Gives whether it was."""
        state = self.state.fork()
        result = state.call(tool, arguments)
        if result.is_error or result.tier == "unknown":
            return False
        self.state = state
        self.moves.append(Move("call", result.content, tool, arguments, requestor))
        return True


def turns_of(session_id: str, service: str, moves: Iterable[Move]) -> list[dict[str, Any]]:
    """Rows of `Turn` of a played session."""
    rows = []
    for position, move in enumerate(moves):
        text = canonical(move.arguments)
        row = {"kind": "message", "role": move.role} if move.role != "call" else {
            "kind": "call", "tool": move.tool, "arguments": text, "arguments_raw": text, "is_error": False,
            "requestor": move.requestor}
        rows.append(dict.fromkeys(Turn.model_fields) | row | {
            "turn_id": digest(f"{session_id} {position}")[:32], "session_id": session_id, "service": service,
            "position": position, "content": move.text})
    return rows


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


class ToolUse(NamedTuple):
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


class ArgumentSource(NamedTuple):
    """Where an argument's value comes from."""

    tool: str
    """The tool that it is read from; empty: it is always `value`."""
    path: str
    value: str


ArgumentSources = Mapping[tuple[str, str], list[ArgumentSource]]
"""(tool, path of the argument) -> sources, the most usual first."""


def sources_of(signatures: Iterable[str]) -> ArgumentSources:
    """Return sources of arguments that are read or constant, over the signatures (`mart.families`) of one service."""
    counts: dict[tuple[str, str], Counter[ArgumentSource | None]] = defaultdict(Counter)
    for text in signatures:
        for entry in json.loads(text):
            for path, sources in entry["arguments"].items():
                for origin in sources:
                    usable = origin["source"] in ("read", "constant")
                    source = ArgumentSource(*(origin.get(name, "") for name in ArgumentSource._fields)) if usable else None
                    counts[entry["tool"], path][source] += origin["n_sessions"]
    return {
        where: [source for source, n in sorted(counted.items(), key=lambda item: (-item[1], str(item[0])))
                if source is not None and n >= _SELDOM * counted.total()]
        for where, counted in counts.items()}


def uses_of(acting: frozenset[str], good: Mapping[str, list[Move]], begun: Callable[[str], EpisodeState]) -> dict[str, ToolUse]:
    """Find how good sessions use each tool of `acting`. `begun`: session -> its environment at its beginning."""
    worked = [(session_id, move) for session_id in sorted(good, key=digest) for move in good[session_id]
              if move.tool in acting and not move.failed]
    using: dict[str, dict[str, None]] = defaultdict(dict)
    for session_id, move in worked:
        using[move.tool][session_id] = None
    played_ids = {name for names in using.values() for name in list(names)[:N_SESSIONS]}
    touched: dict[str, list[Touched]] = defaultdict(list)
    for session_id in sorted(played_ids):
        play = PlayedSession(begun(session_id))
        for move in good[session_id]:
            if move.tool in acting and move.arguments is not None and not move.failed:
                before = play.state
                if not play.call(move.tool, move.arguments):
                    break
                touched[move.tool].append(touched_by(before, play.state))
    return {tool: _use(forms, touched[tool]) for tool, forms in forms_of(worked).items() if touched[tool]}


def touched_by(before: EpisodeState, after: EpisodeState) -> Touched:
    """Return what became of documents, and acts of unknown effect, between two states of an episode."""
    first = before.changed()
    touched: Touched = {}
    for name, (text, since) in after.changed().items():
        old = before.document(name)
        if first.get(name) != (text, since) and text != old:
            what = "made" if old is None else "removed" if text is None else "changed"
            touched[name[0], what] = touched.get((name[0], what), frozenset()) | _fields(old, text)
    for act in after.write_calls[len(before.write_calls):]:
        if not act.documents:
            touched[act.tool, "act"] = frozenset()
    return touched


def _fields(old: str | None, new: str | None) -> frozenset[str]:
    if old is None or new is None:
        return frozenset()
    one, other = json.loads(old), json.loads(new)
    if not isinstance(one, dict) or not isinstance(other, dict):
        return frozenset(("",))
    return frozenset(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def forms_of(worked: Iterable[tuple[str, Move]]) -> dict[str, tuple[Form, ...]]:
    """Tool -> forms of its arguments in these calls (session, move), the most usual first, each with its first example."""
    given: dict[str, dict[frozenset[str], list[Form]]] = defaultdict(lambda: defaultdict(list))
    for session_id, move in worked:
        if move.arguments is not None:
            names = frozenset(move.arguments)
            given[move.tool][names].append(Form(names, move.arguments, session_id))
    return {tool: tuple(examples[0] for _, examples in sorted(forms.items(), key=lambda item: (-len(item[1]), sorted(item[0]))))
            for tool, forms in given.items()}


def _use(forms: tuple[Form, ...], changes: list[Touched]) -> ToolUse:
    touches: Touched = defaultdict(frozenset)
    for kind, fields in ((kind, fields) for one in changes for kind, fields in one.items()):
        touches[kind] |= fields
    return ToolUse(forms, touches, frozenset.intersection(*(frozenset(one) for one in changes)))


def texts_of(value: Any) -> Iterator[str]:
    """Return the single values of a JSON value as texts; names of fields are none."""
    return (text_of(one) for one in leaves(value) if isinstance(one, str | int | float) and not isinstance(one, bool))


def text_of(value: str | int | float) -> str:
    """Return a value as text."""
    return value if isinstance(value, str) else json.dumps(value)


_WORD = re.compile(r"\w")


def whole_word(value: str) -> str:
    """Return a pattern for the value where it is no part of a longer word."""
    before = r"(?<!\w)" if _WORD.match(value[0]) else ""
    after = r"(?!\w)" if _WORD.match(value[-1]) else ""
    return before + re.escape(value) + after
