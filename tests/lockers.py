"""A real small backend to log and to rebuild: lockers that people rent, with tools that fail, and a world that drifts.

`Backend` is the real thing; `log` plays seeded sessions on it and gives the frames that the warehouse would hold.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from warehouse.records import RowChange, Session, Turn, frame

EPOCH = datetime(2031, 5, 1, tzinfo=UTC)
WORDS = ("heavy rain outside today", "the lamp is broken again", "somebody lost a blue coat", "keys were found near stairs")


class Backend:
    """The lockers as they stand."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.lockers = {
            f"L-{n}": {
                "locker": f"L-{n}", "owner": f"P-{choose.randrange(1, 5)}",
                "state": choose.choice(["closed", "closed", "open"]), "size": choose.choice(["S", "M", "L"]),
                "log": [{"what": "built", "fee": choose.randrange(10, 90)}],
            }
            for n in range(100, 112)
        }
        self.people = {f"P-{n}": {"name": f"Person {n}", "credit": choose.randrange(100, 900)} for n in range(1, 5)}

    def __deepcopy__(self, _: dict[int, Any]) -> Backend:
        """Copy what calls change, and no more: a log makes hundreds of copies. What a locker's log holds never changes."""
        same = Backend.__new__(Backend)
        same.lockers = {key: {**row, "log": [*row["log"]]} for key, row in self.lockers.items()}
        same.people = {key: {**row} for key, row in self.people.items()}
        return same

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return what the tool really answers."""
        return str(getattr(self, f"_{tool}")(**arguments))

    def _show_locker(self, locker: str) -> str:
        return json.dumps(self.lockers[locker]) if locker in self.lockers else "Error: no such locker"

    def _show_person(self, person: str) -> str:
        return json.dumps(self.people[person]) if person in self.people else "Error: no such person"

    def _open_locker(self, locker: str, reason: str) -> str:
        if locker not in self.lockers:
            return "Error: no such locker"
        found = self.lockers[locker]
        if found["state"] == "open":
            return "Error: it is open already"
        found["state"] = "open"
        found["log"].append({"what": "opened", "why": reason})
        return json.dumps(found)

    def _close_locker(self, locker: str, fee: int) -> str:
        if locker not in self.lockers:
            return "Error: no such locker"
        found = self.lockers[locker]
        found["state"] = "closed"
        self.people[found["owner"]]["credit"] -= fee  # not shown: a hidden effect
        return json.dumps(found)

    def _note(self, text: str) -> str:
        return "Noted."


def move(choose: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a call that somebody might make."""
    locker = f"L-{choose.randrange(100, 113)}"
    kind = choose.randrange(6)
    if kind == 0:
        return "show_person", {"person": f"P-{choose.randrange(1, 6)}"}
    if kind == 1:
        return "open_locker", {"locker": locker, "reason": choose.choice(["clean", "fetch"])}
    if kind == 2:
        return "close_locker", {"locker": locker, "fee": choose.randrange(1, 9)}
    if kind == 3:
        return "note", {"text": f"{choose.choice(WORDS)} {choose.randrange(1000)}"}
    return "show_locker", {"locker": locker}


def session(choose: random.Random) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of one session: it looks before it acts, and sometimes afterwards."""
    calls: list[tuple[str, dict[str, Any]]] = []
    for _ in range(choose.randrange(1, 4)):
        tool, arguments = move(choose)
        if "locker" in arguments and tool != "show_locker" and choose.random() < 0.9:
            calls.append(("show_locker", {"locker": arguments["locker"]}))
        calls.append((tool, arguments))
        if tool != "show_locker" and "locker" in arguments and choose.random() < 0.5:
            calls.append(("show_locker", {"locker": arguments["locker"]}))
    return calls


class Logged:
    """Sessions on a backend, and the backend as each began."""

    def __init__(self, seed: int, n_sessions: int, shared: bool) -> None:
        choose = random.Random(seed)
        backend = Backend(seed)
        sessions: list[dict[str, Any]] = []
        turns: list[dict[str, Any]] = []
        self.before: dict[str, Backend] = {}
        clock = EPOCH
        changes = [*_changes(None, backend, clock)] if shared else []
        for number in range(n_sessions):
            session_id = f"s{number:04d}"
            if not shared:
                backend = Backend(seed)
            self.before[session_id] = copy.deepcopy(backend)
            clock += timedelta(hours=1)
            started = clock if shared else None
            calls = session(choose)
            for position, (tool, arguments) in enumerate(calls):
                clock += timedelta(seconds=20)
                old = copy.deepcopy(backend)
                content = backend.call(tool, arguments)
                changes += _changes(old, backend, clock + timedelta(milliseconds=40)) if shared else []
                turns.append(turn(session_id, position, clock if shared else None, tool, arguments, content))
            sessions.append({
                "session_id": session_id, "source": "main", "service": "main", "started_at": started, "ended_at": started,
                "day": None, "n_messages": 0, "n_calls": len(calls), "identity": None, "format": "test"})
        self.sessions: pl.DataFrame = frame(Session, sessions)
        self.turns: pl.DataFrame = frame(Turn, turns)
        self.changes: pl.DataFrame = frame(RowChange, changes)


def _changes(old: Backend | None, new: Backend, at: datetime) -> Iterator[dict[str, Any]]:
    """Row changes as a database would log them: a snapshot first; columns of its own, lists as JSON text."""
    for table, column in (("lockers", "locker"), ("people", "person")):
        for key, row in getattr(new, table).items():
            before = getattr(old, table)[key] if old else None
            if before != row:
                images = [None if one is None else _image(column, key, one) for one in (before, row)]
                yield {
                    "change_id": f"{table}-{key}-{at.timestamp()}", "source": "main", "happened_at": at, "table_name": table,
                    "operation": "update" if old else "snapshot", "key": None, "before": images[0], "after": images[1]}


def _image(column: str, key: str, row: dict[str, Any]) -> str:
    shown = {name: json.dumps(value) if name == "log" else value for name, value in row.items()}
    return json.dumps({column: key, "rev": 7, **shown})


def turn(
    session_id: str, position: int, at: datetime | None, tool: str, arguments: dict[str, Any], content: str
) -> dict[str, Any]:
    return {
        "turn_id": f"{session_id}-{position}", "session_id": session_id, "service": "main", "position": position,
        "happened_at": at, "kind": "call", "role": None, "content": content, "call_id": None, "tool": tool,
        "arguments": canonical(arguments), "arguments_raw": json.dumps(arguments), "is_error": None,
        "requestor": "assistant", "answered_at": at, "result_id": f"{session_id}-{position}-r", "latency_ms": None,
        "model": None,
    }


def decisions_on_unseen(logged: Logged, rooms: Mapping[str, EpisodeState], seed: int) -> Counter[str]:
    """How rooms answer calls that nobody made, held against the backend: counts of exact, wrong and unknown."""
    choose, decisions = random.Random(seed), Counter[str]()
    for session_id in choose.sample(sorted(rooms), 60):
        real, room = copy.deepcopy(logged.before[session_id]), rooms[session_id].fork()
        for _ in range(3):
            tool, arguments = move(choose)
            wanted, got = real.call(tool, arguments), room.call(tool, arguments)
            decisions["unknown" if got.tier == "unknown" else "exact" if got.content == wanted else "wrong"] += 1
    return decisions


def with_faults(turns: pl.DataFrame, every: int) -> pl.DataFrame:
    """Return the same turns, where each of so many calls failed once before it worked."""
    rows = []
    for n, row in enumerate(turns.sort("session_id", "position").iter_rows(named=True)):
        row["position"] *= 2
        if n % every == 0 and not row["content"].startswith("Error"):
            names = {name: f"{row[name]}-fault" for name in ("turn_id", "result_id")}
            rows.append({**row, **names, "content": "Error: busy, try again", "is_error": True})
        rows.append({**row, "position": row["position"] + 1})
    return frame(Turn, rows)
