"""How a service's tools behave in production beside what they answer: how long they take, how often they fail by themselves.

In: turns of one service and the effects of its tools. Out: rows of conditions.jsonl (docs/environment.md), from which a rollout
may draw, seeded, where it is switched on. Sees: the log's own durations, else the time between call and answer; failures that
passed by themselves (`world.faults`); sessions that run out (`world.expiries`). Does not see: what depends on load, on the hour
or on the arguments; limits on the rate of calls. How pages are turned: `env_builder.pages`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from env_builder import listings, pages
from env_builder.runtime.relevance import leaves
from env_builder.world import expiries, faults
from env_builder.world.calls import Call, calls_of

MINIMUM_TIMED = 5
"""Timed calls of a tool below which nothing is said of how long it takes."""
QUANTILES = tuple(step / 20 for step in range(21))
SHORTEST_VALUE = 3
Part = str | list[str]


def conditions(turns: pl.DataFrame, effects: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows {"tool", "n_calls", "n_timed", "latency_ms", "fault_rate", "faults", "expiry"?, "pages"?,
    "shuffled"?}, by tool; none for a tool without any.

    `latency_ms`: its 21 quantiles from the least to the most, None where fewer than 5 calls are timed. `fault_rate`: share of
    the calls that failed by themselves. `faults`: [{"content": parts, "share"}], the most frequent first; a part is text, or
    [name] for the value of an argument. `expiry`, on the row of the tool that renews: {"tools": refused, "messages": as faults,
    "hazards": [[calls since the last renewal, share that ran out there], …], "beyond": share for longer lives}.
    `pages`: how the tool turns pages (`runtime/pages.py`). `shuffled`: places of lists whose order says nothing (`listings`).
    """
    calls = calls_of(turns)
    ends = {one.renewing: one for one in expiries.find(calls)}
    passed = faults.find(calls, effects) - expiries.failures_of(ends.values()).keys()
    timed = _timed(turns)
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool].append(call)
    turned = pages.find((call for call in calls if call.event_id not in passed), effects)
    unordered = listings.find(call for call in calls if call.event_id not in passed)
    rows = (_row(tool, mine, [call for call in mine if call.event_id in passed], timed.get(tool)) | (
        {"expiry": _expiry(ends[tool])} if tool in ends else {}) | (
        {"pages": turned[tool]} if tool in turned else {}) | (
        {"shuffled": unordered[tool]} if tool in unordered else {}) for tool, mine in sorted(by_tool.items()))
    return [row for row in rows if row["latency_ms"] or row["faults"] or {"expiry", "pages", "shuffled"} & row.keys()]


def _row(tool: str, calls: list[Call], failed: list[Call], timed: pl.Series | None) -> dict[str, Any]:
    return {
        "tool": tool, "n_calls": len(calls), "n_timed": 0 if timed is None else len(timed),
        "latency_ms": None if timed is None or len(timed) < MINIMUM_TIMED else [
            round(float(timed.quantile(at, "linear") or 0), 3) for at in QUANTILES],
        "fault_rate": round(len(failed) / len(calls), 6),
        "faults": _messages(failed)}


def _messages(failed: Sequence[Call]) -> list[dict[str, Any]]:
    texts: Counter[str] = Counter()
    parts: dict[str, list[Part]] = {}
    for call in failed:
        found = _parts(call)
        texts[str(found)] += 1
        parts[str(found)] = found
    return [{"content": parts[text], "share": round(n / len(failed), 6)}
            for text, n in sorted(texts.items(), key=lambda item: (-item[1], item[0]))]


def _expiry(found: expiries.Expiry) -> dict[str, Any]:
    return {"tools": list(found.tools), "messages": _messages(found.failures), "hazards": [list(at) for at in found.hazards],
            "beyond": found.beyond}


def _timed(turns: pl.DataFrame) -> dict[str, pl.Series]:
    """Milliseconds of every timed call, by tool. A log of whole seconds, or none, in which most take no time says nothing."""
    took = pl.coalesce(
        "latency_ms", (pl.col("answered_at") - pl.col("happened_at")).dt.total_microseconds() / 1000).alias("took")
    calls = turns.filter((pl.col("kind") == "call") & pl.col("content").is_not_null()).select("tool", took)
    known = calls.filter(pl.col("took") >= 0)
    if known.is_empty() or not known.select((pl.col("took") > 0).mean() > 0.5).item():
        return {}
    of_tool = known.sort("tool", "took").group_by("tool", maintain_order=True)
    return {str(tool): frame["took"] for (tool,), frame in of_tool}


def _parts(call: Call) -> list[Part]:
    """The message with the values of top-level arguments as slots, the longest first."""
    parts: list[Part] = [call.content]
    values = [(name, str(value)) for name, value in call.arguments.items() if not isinstance(value, dict | list | bool)]
    for name, value in sorted(values, key=lambda item: (-len(item[1]), item[0])):
        if len(value) >= SHORTEST_VALUE and value in leaves(call.arguments):
            parts = [piece for part in parts for piece in _cut(part, name, value)]
    return parts


def _cut(part: Part, name: str, value: str) -> list[Part]:
    if not isinstance(part, str):
        return [part]
    pieces: list[Part] = []
    for index, text in enumerate(part.split(value)):
        pieces += [[name]] * bool(index) + [text] * bool(text)
    return pieces
