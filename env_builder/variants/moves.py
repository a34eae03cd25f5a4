"""Sessions as moves, and a play that makes new ones: who said what, which call was made and what it answered.

In: turns of the warehouse. Out: moves in order; of a play, turns of the same layout, so that whatever is learnt from logged
sessions is learnt from played ones in the same way. Sees: calls with readable arguments that were answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import Room
from warehouse.records import Turn, frame

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
    """Moves of each session, in order; calls that cannot be made again are left out."""
    own = turns.filter(pl.col("session_id").is_in(list(session_ids))).sort("session_id", "position")
    columns = ("session_id", "kind", "role", "content", "tool", "arguments", "requestor", "is_error")
    found: dict[str, list[Move]] = {}
    for session_id, kind, role, content, tool, arguments, requestor, is_error in own.select(columns).iter_rows():
        moves = found.setdefault(session_id, [])
        if kind != "call":
            moves.append(Move(role or "", content or ""))
        elif arguments is not None and content is not None:
            wrong = failed(content, parse(content), is_error)
            moves.append(Move("call", content, tool, json.loads(arguments), requestor, wrong))
    return found


class Play:
    """A new session in a room: what is said and called in it, as moves."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.moves: list[Move] = []

    def say(self, move: Move) -> None:
        """Somebody says something."""
        self.moves.append(move)

    def call(self, tool: str, arguments: Arguments, requestor: str | None = None) -> bool:
        """Make a call; what is not answered, or refused, has not been made. Gives whether it was."""
        room = self.room.fork()
        result = room.call(tool, arguments)
        if result.is_error or result.tier == "unknown":
            return False
        self.room = room
        self.moves.append(Move("call", result.content, tool, arguments, requestor))
        return True

    def shown(self) -> list[tuple[str, str]]:
        """(tool, answer) of the calls so far."""
        return [(move.tool, move.text) for move in self.moves if move.role == "call"]


def turns_of(session_id: str, service: str, moves: Iterable[Move]) -> list[dict[str, Any]]:
    """Rows of `Turn` of a played session."""
    rows = []
    empty = dict.fromkeys(Turn.model_fields)
    for position, move in enumerate(moves):
        row = empty | {"turn_id": digest(f"{session_id} {position}")[:32], "session_id": session_id, "service": service,
                       "position": position, "content": move.text}
        if move.role == "call":
            text = canonical(move.arguments)
            row |= {"kind": "call", "tool": move.tool, "arguments": text, "arguments_raw": text, "is_error": False,
                    "requestor": move.requestor}
        else:
            row |= {"kind": "message", "role": move.role}
        rows.append(row)
    return rows


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Frame of `Turn`."""
    return frame(Turn, rows)
