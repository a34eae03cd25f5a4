"""Which log field would turn which `unknown` into an answer: a field or record a row, what helps most first, with its tools.

In: the published warehouse and the manifests of OUT/environments (else OUT/unverified), whose coverage says
what a room was asked and left unknown. Out: one row a service and field. Sees: what was asked around tasks
(env_builder/coverage.py), calls without a result, sessions without an instant or a word on how they went. Does not see:
whether a field that is missing could be logged at all, and what two fields come to together."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.bundle import MANIFEST
from warehouse.store import Store


class Field(NamedTuple):
    """A field or kind of record that a log may lack."""

    log: str
    """What of it."""
    unit: str
    """What would be known by it."""
    why: str


_ANSWERS = "answers of the room"
FIELDS = {
    "state changes": Field(
        "the rows behind these tools, from a first snapshot on and whenever they change (CDC, audit table), with instants",
        _ANSWERS, "an agent that asks them gets `unknown`"),
    "feedback": Field("a rating, a review or what became of the case, by session id", "sessions",
                      "how these sessions went cannot be told, so they give no reward"),
    "results kept whole": Field("the answer of every call, unshortened", "calls",
                                "calls without their answer teach nothing, and cannot be given again"),
    "arguments kept whole": Field("the arguments of every call as one JSON object", "calls",
                                  "calls whose arguments are cut off or not logged match no question"),
    "clock": Field("the instant of every call", "calls", "without an instant the world as it stood cannot be told"),
    "tool list": Field("the tools with their schemas, as the agent was given them", "calls",
                       "the schemas are guessed from the calls: what nobody passed is not in them"),
    "calls": Field("sessions that call them, or their rows", "tools", "they are declared, and no session called them")}
"""Fields by name; of two that would help as much the first comes first."""
NO_ANSWER = frozenset({"tool list", "calls"})
"""Fields that make a guess sure or a room wider, and turn nothing that is unknown today into an answer."""
_ADVISED = {
    "program": "rows that it changes, or a read before and after the call", "never_seen": "such rows from a first snapshot on",
    "stale": "such rows as they change, each with its instant", "answers": "the rows that it reads, or more of its calls"}
"""Why a room does not answer -> what to log of it."""
_MISSING = """
    select service, 'results kept whole' as field, tool, count(*) filter (content is null) as n, count(*) as n_calls
    from core.turns where kind = 'call' group by service, tool
    union all select service, 'clock', tool, count(*) filter (happened_at is null), count(*)
    from core.turns where kind = 'call' group by service, tool
    union all select service, 'arguments kept whole', tool, count(*) filter (arguments is null), count(*)
    from core.turns where kind = 'call' group by service, tool
    union all select service, 'tool list', tool, case when declared then 0 else n_calls end, n_calls from core.tools
    union all select service, 'calls', tool, (declared and n_calls = 0)::integer, 1 from core.tools
    union all select service, 'feedback', null, count(*) filter (probability is null), count(*)
    from mart.outcomes join core.sessions using (session_id) group by service
    order by all
"""


_Want = tuple[str, str, int, int, list[dict[str, Any]]]
"""Service, field, n, of, tools: what one service lacks of one field."""


def unknowns(store: Store, out: Path) -> list[dict[str, Any]]:
    """{"service", "field", "log", "unit", "n", "of", "gain", "why", "tools": [{"tool", "n", "log"}]}, the largest gain first.
    `out`: folder of the run. `field`: kind of record or field; `log`: what of it; `n` of the service's `of` (answers of the
    room that were asked for, calls, sessions: `unit`) are unknown for want of it; `gain`: that share, times the service's share
    of all sessions, 0 where nothing unknown becomes an answer; `tools`: whose they are, most first."""
    weight = dict(store.read(
        "select service, count(*) / sum(count(*)) over () from core.sessions group by service").iter_rows())
    rows = [
        {"service": service, "field": name, "log": FIELDS[name].log, "unit": FIELDS[name].unit, "n": n, "of": of,
         "gain": 0.0 if name in NO_ANSWER else round(weight.get(service, 0.0) * n / of, 4), "why": FIELDS[name].why,
         "tools": sorted(tools, key=lambda tool: (-tool["n"], tool["tool"], tool["log"]))}
        for service, name, n, of, tools in (*_unanswered(store, out), *_missing(store)) if n]
    order = list(FIELDS)
    return sorted(rows, key=lambda row: (-row["gain"], order.index(row["field"]), -row["n"], row["service"]))


def _unanswered(store: Store, out: Path) -> Iterator[_Want]:
    """Yield what rooms were asked and could not answer, as their manifests say."""
    for service, manifest in _rooms(store, out):
        coverage, tools = manifest["coverage"], list[dict[str, Any]]()
        for advice in coverage["advice"]:
            above_all = f", above all their field {advice['field']}" if advice["field"] else ""
            tools.append({"tool": advice["of"], "n": advice["n"], "log": _ADVISED[advice["kind"]] + above_all})
        n_unknown = sum(tiers.get("unknown", 0) for tiers in coverage["by_tool"].values())
        yield service, "state changes", n_unknown, coverage["n_calls"], tools


def _rooms(store: Store, out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(service, manifest) of each service's room: the published one, else the unverified one."""
    coverages = {}
    for row in store.table("mart.environments").to_dicts():
        place = out / "environments" / row["environment"] / MANIFEST
        if place.is_file():
            coverages[row["service"]] = json.loads(place.read_text("utf-8"))
    for place in sorted(out.glob(f"unverified/*/{MANIFEST}")):
        manifest = json.loads(place.read_text("utf-8"))
        coverages.setdefault(manifest["service"], manifest)
    yield from sorted(coverages.items())


def _missing(store: Store) -> Iterator[_Want]:
    """Yield what calls and sessions lack."""
    by_field: dict[tuple[str, str], list[tuple[str | None, int, int]]] = defaultdict(list)
    for service, field, tool, n, of in store.read(_MISSING).iter_rows():
        by_field[service, field].append((tool, n, of))
    for (service, field), rows in by_field.items():
        tools = [{"tool": tool, "n": n, "log": FIELDS[field].log} for tool, n, _ in rows if tool and n]
        yield service, field, sum(n for _, n, _ in rows), sum(of for *_, of in rows), tools
