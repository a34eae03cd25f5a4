"""What the signals read, put together once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import polars as pl

from extractors.tasks.arguments import calls_of, values_of
from extractors.tasks.requests import find_requests, same_request
from warehouse.records import PART_OPENS, CodeChangeRow, Goal, Memoize, RowChange, empty, recompute

VOTES = {"session_id": pl.String(), "vote": pl.Float64(), "description": pl.String(), "evidence": pl.List(pl.String())}
"""What a signal gives: a row a session that it votes on; a session without a row is one it abstains on."""
_LOOKING = (
    r"(?i)^(?:get|head|options|list|find|search|read|look|lookup|show|fetch|view|query|check|count|describe|calculate|compute|"
    r"think)(?:[^a-z]|$)")
"""Names of tools that only look or reckon; asked only where what a tool does was not seen."""
_ALIKE = 0.7
"""Share of all tools of two services that both have, from which on they are one kind of service."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Frames that signals read; none holds anything that a signal of ours made."""

    turns: pl.DataFrame
    """Turns by session and position."""
    feedback: pl.DataFrame
    """What people said, without what reviewers found."""
    calls: pl.DataFrame
    """Of `arguments.calls_of`; `acts` also where a tool's effect is unknown and its name doesn't say that it only looks."""
    everyones_calls: pl.DataFrame
    """The same, with the calls that users made."""
    values: pl.DataFrame
    """Of `arguments.values_of`, for everyone's calls."""
    session_requests: pl.DataFrame
    """Of `requests.find_requests`; `service` is the kind of service: services with nearly the same tools are one."""
    goals: pl.DataFrame
    """Frame of `Goal`."""
    requests: pl.DataFrame
    """Columns session_id, request (`requests.same_request`), of services whose sessions all start from the same state. Sessions
    without words are left out: their request is read from what they did, so their ends would agree by themselves."""
    row_changes: pl.DataFrame
    """Frame of `RowChange`."""
    code_changes: pl.DataFrame = field(default_factory=lambda: empty(CodeChangeRow))
    """Frame of `CodeChangeRow`."""
    memoize: Memoize = recompute
    """What signals read in the steps of one session goes through it."""

    @property
    def writes(self) -> pl.DataFrame:
        return self.calls.filter(pl.col("acts") & ~pl.col("failed"))

    @property
    def everyones_writes(self) -> pl.DataFrame:
        """Return the successful writes of agents and users: together they make the state that a session ends in."""
        return self.everyones_calls.filter(pl.col("acts") & ~pl.col("failed"))


_Made = TypeVar("_Made")


def once(make: Callable[[Evidence], _Made]) -> Callable[[Evidence], _Made]:
    """Make what several signals read of the same evidence once. None of them may change it."""
    made: WeakKeyDictionary[Evidence, _Made] = WeakKeyDictionary()

    @wraps(make)
    def made_of(evidence: Evidence) -> _Made:
        if evidence not in made:
            made[evidence] = make(evidence)
        return made[evidence]

    return made_of


def gather(sessions: pl.DataFrame, turns: pl.DataFrame, feedback: pl.DataFrame, effects: pl.DataFrame,
           starts_from: Mapping[str, str], goals: pl.DataFrame | None = None,
           row_changes: pl.DataFrame | None = None, memoize: Memoize = recompute) -> Evidence:
    """Gather the evidence of all sessions."""
    ordered = turns.sort("session_id", "position")
    own = pl.col("tool").str.replace(rf"^.*{PART_OPENS}[^=]*=(?:\w+[.:/])*", "")   # of a part, what is done
    acting = (pl.col("effect") == "unknown") & ~own.str.contains(_LOOKING)
    acting = acting & ~pl.struct("service", "tool").is_in(_refused_after(ordered))
    assumed = effects.with_columns(pl.when(acting).then(pl.lit("write")).otherwise("effect").alias("effect"))
    calls = calls_of(ordered, assumed)
    session_requests, _ = find_requests(sessions, ordered)
    reset = sorted(name for name, start in starts_from.items() if start == "reset")
    kind = kinds_of(calls, reset)
    session_requests = session_requests.with_columns(pl.col("service").replace(kind))
    requests = same_request(session_requests.filter(pl.col("service").is_in(reset) & pl.col("worded")))
    everyones_calls = calls_of(ordered.with_columns(pl.lit(None, pl.String).alias("requestor")), assumed)
    return Evidence(
        ordered, feedback, calls, everyones_calls, values_of(everyones_calls), session_requests,
        empty(Goal) if goals is None else goals, requests, empty(RowChange) if row_changes is None else row_changes,
        memoize=memoize)


_REFUSED = 2, 0.04
"""Calls of a tool, and share of its calls, right after which the agent declines, from which on the tool is taken to look."""
_REFUSED_ALIKE = 0.5
"""The share where all calls of the tool have one answer, such as "OK"."""


def _refused_after(turns: pl.DataFrame) -> list[dict[str, str]]:
    """Return the tools after whose calls agents decline: they look something up first, and what was done is not declined.

    An answer that is the same for every call gives no reason to decline: then most calls must be followed by a refusal."""
    if "stance" not in turns.columns:
        return []
    following = turns.with_columns(pl.col("stance").shift(-1).over("session_id").alias("then"))
    rows = following.filter(pl.col("kind") == "call").group_by("service", "tool").agg(
        (pl.col("then") == "declines").sum().alias("n_refused"), pl.len().alias("n"),
        pl.when(pl.col("content").n_unique() > 1).then(_REFUSED[1]).otherwise(_REFUSED_ALIKE).alias("share"))
    looking = rows.filter((pl.col("n_refused") >= _REFUSED[0]) & (pl.col("n_refused") >= pl.col("share") * pl.col("n")))
    return looking.select("service", "tool").sort("service", "tool").to_dicts()


def kinds_of(calls: pl.DataFrame, services: list[str]) -> dict[str, str]:
    """Service -> the first of those that it shares nearly all tools with, among services that start from the same state."""
    used = {name: set(part["tool"]) for (name,), part in calls.select("service", "tool").unique().group_by("service")}
    kind: dict[str, str] = {}
    for name in services:
        mine = used.get(str(name), set())
        alike = (each for each in kind.values() if len(mine & used[each]) >= _ALIKE * len(mine | used[each]) > 0)
        kind[name] = next(alike, name)
        used.setdefault(name, set())
    return kind


def votes(rows: pl.DataFrame, vote: float | pl.Expr, description: str | pl.Expr, evidence: pl.Expr) -> pl.DataFrame:
    """Rows as `VOTES`; `evidence` gives a list of event ids."""
    value = pl.lit(vote, dtype=pl.Float64) if isinstance(vote, int | float) else vote
    text = pl.lit(description) if isinstance(description, str) else description
    return (
        rows.select("session_id", value.cast(pl.Float64).alias("vote"), text.alias("description"), evidence.alias("evidence"))
        .cast(pl.Schema(VOTES)).sort("session_id"))
