"""Turns of the warehouse as calls: parsed once, in order, with failures marked, and as the tools answered them.

Something around the tools may alter answers on their way to the agent: a frame around them, a text in their place. Such frames
are removed; calls whose answer was replaced are rejected. Sees: the same few characters around answers of several tools that
are also known without them; one long text that several tools give now and then, to questions that they otherwise answer
otherwise. Does not see: an answer that was cut or reworded.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import Document, failed, parse
from env_builder.runtime.canonical import canonical
from warehouse.records import refusals_flagged


class LoggedCall(NamedTuple):
    """A tool call with its answer."""

    session_id: str
    position: int
    tool: str
    arguments: dict[str, Any]
    key: str
    """Canonical JSON of the arguments."""
    content: str
    parsed: Any
    """The answer as JSON value, None where it is not JSON."""
    failed: bool
    flagged: bool | None
    """The log's own error flag."""
    called_at: datetime | None
    event_id: str
    case: str | None = None
    """The witness that its session is part of, where sessions start from states of their own (`witnesses`)."""

    @property
    def witness(self) -> str:
        """Return what counts as one observation: the session, or all sessions of one case."""
        return self.session_id if self.case is None else self.case


class ReadCall(NamedTuple):
    """What the texts of a call say."""

    arguments: dict[str, Any]
    key: str
    parsed: Any
    failed: bool


ReadCalls = Callable[[str, str, bool | None], ReadCall]
"""(arguments, answer, error flag) -> what they say."""


def read_call(arguments: str, content: str, flagged: bool | None) -> ReadCall:
    """Read a call's arguments and its answer."""
    value, parsed = json.loads(arguments), parse(content)
    return ReadCall(value, canonical(value), parsed, failed(content, parsed, flagged))


def calls_of(turns: pl.DataFrame, read: ReadCalls = read_call) -> list[LoggedCall]:
    """Answered calls with readable arguments, by session and position. `read`: `read_call`, kept by who reads them again."""
    rows = timed(refusals_flagged(turns)).filter(
        (pl.col("kind") == "call") & pl.col("content").is_not_null() & pl.col("arguments").is_not_null()
    ).sort("session_id", "position")
    columns = ("session_id", "position", "tool", "arguments", "content", "is_error", "happened_at", "result_id", "turn_id")
    once = cache(partial(_once, read))
    return without_empty_answers([_call(once, *row) for row in rows.select(columns).iter_rows()])


def _once(read: ReadCalls, arguments: str, content: str, flagged: bool | None) -> tuple[ReadCall, str]:
    """Return what the texts of a call say, and the answer with its value: calls that say the same hold one of each."""
    reading = read(arguments, content, flagged)
    return reading, Document.of(content, reading.parsed)


def timed(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the turns with a time for each, where their session states any: a turn without one follows the last that has one
    (else comes before the first) by a microsecond a position, as its log states but the order."""
    names = [name for name in ("happened_at", "answered_at") if name in turns.columns]
    stated = pl.coalesce(pl.col(names).cast(pl.Datetime("us", "UTC")))
    behind, place = stated.forward_fill().over("session_id"), pl.col("position").cast(pl.Int64)
    since = pl.when(stated.is_not_null()).then(place).forward_fill().over("session_id")
    ahead = stated.backward_fill().over("session_id")
    until = pl.when(stated.is_not_null()).then(place).backward_fill().over("session_id")
    after, before = (pl.duration(microseconds=n) for n in (place - since, until - place))
    made = pl.coalesce(stated, behind + after, ahead - before).alias("happened_at")
    return turns.sort("session_id", "position").with_columns(made)


NOTHING = "null"
CONFIRMS = 2
"""Different answers of a tool that confirms: nothing, or that it is done."""
ANSWERS_SHARE = 0.5
"""Share of a tool's answers that are objects or lists, from which on an answer of nothing says that the call failed."""


def without_empty_answers(calls: list[LoggedCall]) -> list[LoggedCall]:
    """Mark as failed what answered `null` where the tool answers with objects or lists, and the log has no flag of its own;
    in a service that has such a tool, also of tools that say one and the same else."""
    n, n_answered = Counter(call.tool for call in calls), Counter(call.tool for call in calls if call.parsed is not None)
    answering = {tool for tool in n if n_answered[tool] >= ANSWERS_SHARE * n[tool]}
    empty = {call.tool for call in calls if call.flagged is None and call.content.strip() == NOTHING}
    if not empty.isdisjoint(answering):
        contents: dict[str, set[str]] = defaultdict(set)
        for call in calls:
            if not call.failed:
                contents[call.tool].add(call.content.strip())
        answering |= {tool for tool in empty if len(contents[tool]) == CONFIRMS}
    return [call._replace(failed=True) if call.tool in answering and call.tool in empty and call.content.strip() == NOTHING
            and call.flagged is None else call for call in calls]


def _call(
    read: Callable[[str, str, bool | None], tuple[ReadCall, str]], session_id: str, position: int, tool: str, arguments: str,
    content: str, flagged: bool | None, called_at: datetime | None, result_id: str | None, turn_id: str,
) -> LoggedCall:
    (value, key, parsed, has_failed), document = read(arguments, content, flagged)
    return LoggedCall(
        session_id, position, tool, value, key, document, parsed, has_failed, flagged, called_at, result_id or turn_id)


USER = "user"
"""Requestor of a call that the session's user made, not its agent."""


def split_openings(turns: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (turns of the sessions, calls that their users made before they began).

    Such a call opened the case that the session works on. It belongs to the world that the session finds."""
    begun = turns.join(sessions.select("session_id", "started_at"), on="session_id", how="left", maintain_order="left")
    opens = ((pl.col("requestor") == USER) & (pl.col("happened_at") < pl.col("started_at"))).fill_null(False)
    return begun.filter(~opens).drop("started_at"), begun.filter(opens).drop("started_at")


def calls_by_tool(calls: Iterable[LoggedCall]) -> dict[str, list[LoggedCall]]:
    """Return the calls of each tool, in order."""
    by_tool: dict[str, list[LoggedCall]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool].append(call)
    return by_tool


MINIMUM_TOOLS = 3
"""Tools that must show the same frame or text: one tool alone may well answer so."""
LONGEST_FRAME = 60
SHORTEST_TEXT = 20
SELDOM = 0.2
"""Share of a tool's answers up to which a text counts as not its own."""
Frame = tuple[str, str]


def unwrap_answers(calls: list[LoggedCall]) -> tuple[list[LoggedCall], list[LoggedCall]]:
    """Return (calls as the tools answered them, those whose answer is lost)."""
    contents: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in calls:
        contents[call.tool, call.key].add(call.content)
    tools: dict[Frame, set[str]] = defaultdict(set)
    for (tool, _), texts in sorted(contents.items()):
        for text in texts:
            for inner in texts:
                before, matched, after = text.partition(inner) if inner and inner != text else ("", "", "")
                if matched and before and after and len(before) + len(after) <= LONGEST_FRAME:
                    tools[before, after].add(tool)
    several = (frame for frame, having in tools.items() if len(having) >= MINIMUM_TOOLS)
    frames = sorted(several, key=lambda frame: (-len(frame[0]) - len(frame[1]), frame))
    bare = [_bare(call, frames) for call in calls]
    n = Counter(call.tool for call in bare)
    given = Counter((call.content, call.tool) for call in bare if len(call.content) >= SHORTEST_TEXT and not call.failed)
    seldom: dict[str, set[str]] = defaultdict(set)
    for (content, tool), times in given.items():
        if times <= SELDOM * n[tool]:
            seldom[content].add(tool)
    foreign = {(content, tool) for content, having in seldom.items() if len(having) >= MINIMUM_TOOLS for tool in having}
    lost = [call for call in bare if (call.content, call.tool) in foreign]
    return [call for call in bare if (call.content, call.tool) not in foreign], lost


def _bare(call: LoggedCall, frames: list[Frame]) -> LoggedCall:
    for before, after in frames:
        if call.content.startswith(before) and call.content.endswith(after) and len(call.content) >= len(before) + len(after):
            content = call.content[len(before): len(call.content) - len(after)]
            parsed = parse(content)
            return call._replace(content=content, parsed=parsed, failed=failed(content, parsed, call.flagged))
    return call


def order_of(call: LoggedCall) -> tuple[float, str, int]:
    """Sort key of a call in a shared world: time where there is one, then session and position."""
    return (call.called_at.timestamp() if call.called_at else 0.0, call.session_id, call.position)
