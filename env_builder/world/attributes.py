"""What tells the worlds of a service apart: an attribute of its sessions that goes with the world.

Sees: source, format, identity, model, day and hour of a session, its system message, and arguments that keep one value in a
session. Does not see: attributes of a record that no field of ours holds; pairs of attributes that tell together what neither
tells alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.world.calls import LoggedCall

NEARLY = 0.95
"""Share of the sessions whose world the others with their value tell, from which on an attribute tells worlds apart."""
MINIMUM_ALIKE = 3
"""Sessions of a value, all of one world, from which on it tells the world of another session."""
Attributes = dict[str, dict[str, str]]
"""Attribute -> session -> value."""


class Separation(NamedTuple):
    """An attribute that tells worlds apart."""

    attribute: str
    n_right: int
    """Sessions whose world the other sessions with their value tell."""
    n: int
    """All sessions whose world is known."""


def attributes_of(sessions: pl.DataFrame, turns: pl.DataFrame, calls: list[LoggedCall]) -> Attributes:
    """Collect the attributes of all sessions. `sessions`, `turns`: frames of `Session` and `Turn`; `calls`: of the same."""
    attributes: Attributes = {
        name: dict(sessions.select("session_id", value.cast(pl.String)).drop_nulls().iter_rows())
        for name, value in (
            ("source", pl.col("source")), ("format", pl.col("format")), ("identity", pl.col("identity")),
            ("day", pl.col("started_at").dt.date()), ("hour", pl.col("started_at").dt.hour()))}
    by_position = turns.sort("session_id", "position")
    system = by_position.filter((pl.col("kind") == "message") & pl.col("role").is_in(["system", "developer"]))
    for name, rows, column in (("model", by_position, "model"), ("system message", system, "content")):
        first = rows.drop_nulls(column).group_by("session_id", maintain_order=True).first()
        attributes[name] = dict(first.select("session_id", column).iter_rows())
    return attributes | _arguments(calls)


def _arguments(calls: list[LoggedCall]) -> Attributes:
    values: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for call in calls:
        for name, value in call.arguments.items():
            values[name][call.session_id].add(canonical(value))
    return {f"argument {name}": {session: next(iter(own)) for session, own in by_session.items() if len(own) == 1}
            for name, by_session in sorted(values.items())}


def tell(attributes: Attributes, worlds: Mapping[str, int]) -> Separation | None:
    """Return the attribute that tells worlds apart exactly or nearly; of several the one with the fewest values."""
    ranked: list[tuple[int, int, str]] = []
    for name, values in attributes.items():
        counts = _by_value(values, worlds)
        n_right = sum(
            n for by_world in counts.values() for world, n in by_world.items()
            if n > 1 and n > max((other for each, other in by_world.items() if each != world), default=0))
        ranked.append((-n_right, len(counts), name))
    n_wrong, _, name = min(ranked, default=(0, 0, ""))
    return Separation(name, -n_wrong, len(worlds)) if worlds and -n_wrong >= NEARLY * len(worlds) else None


def spread(values: Mapping[str, str], worlds: Mapping[str, int]) -> dict[str, int]:
    """Return the worlds of all sessions: those without one belong to the world of all others with their value."""
    counts = _by_value(values, worlds)
    more = {session: next(iter(by_world)) for session, value in values.items()
            if session not in worlds and len(by_world := counts.get(value, Counter())) == 1
            and by_world.total() >= MINIMUM_ALIKE}
    return {**worlds, **more}


def _by_value(values: Mapping[str, str], worlds: Mapping[str, int]) -> dict[str, Counter[int]]:
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for session, world in worlds.items():
        if session in values:
            counts[values[session]][world] += 1
    return counts
