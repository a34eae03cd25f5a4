"""Which log field would turn which `unknown` into an answer: by service and tool, how often, and what to log.

In: the published warehouse and the manifests of OUT/environments, whose coverage says what a room was asked and left unknown.
Out: one row a tool and want, most first. Sees: what was asked around tasks (env_builder/coverage.py), calls without a result,
sessions without an instant or a word on how they went. Does not see: whether a field that is missing could be logged at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from env_builder.bundle import MANIFEST
from warehouse.store import Store

FIELDS = {
    "program": ("state changes", "the rows that it changes (CDC, audit table), or a look before and after the call"),
    "never_seen": ("state changes", "changes of such rows from a first snapshot on"),
    "stale": ("state changes", "changes of such rows, each with its instant"),
    "answers": ("state changes", "the rows that it looks in, or more of its calls"),
}
"""Why a room does not answer -> (kind of record, what of it)."""
_MISSING = """
    select service, tool, 'results kept whole' as field, 'the answer of every call, unshortened' as log,
        count(*) filter (content is null) as n, count(*) as n_calls
    from core.turns where kind = 'call' group by service, tool having n > 0
    union all select service, tool, 'clock', 'the instant of every call', count(*) filter (happened_at is null), count(*)
    from core.turns where kind = 'call' group by service, tool having count(*) filter (happened_at is null) > 0
    union all select service, tool, 'arguments kept whole', 'the arguments of every call as one JSON object',
        count(*) filter (arguments is null), count(*)
    from core.turns where kind = 'call' group by service, tool having count(*) filter (arguments is null) > 0
    union all select service, tool, 'tool list', 'the tool with its schema, as the agent was given it', n_calls, n_calls
    from core.tools where not declared
    union all select service, null, 'feedback', 'a rating, a review or what became of the case, by session id',
        count(*) filter (probability is null), count(*)
    from mart.outcomes join core.sessions using (session_id) group by service
        having count(*) filter (probability is null) > 0
    order by all
"""


def unknowns(store: Store, environments: Path) -> list[dict[str, Any]]:
    """{"service", "tool", "field", "log", "n", "of", "why"}, what is asked most often first.

    `environments`: the folder of rooms. `field`: kind of record or field; `log`: what of it; `n` of `of` calls
    (of sessions where `tool` is None) would gain by it; `why`: what it is that cannot be told, a sentence.
    """
    rows = [*_asked(store, environments), *_missing(store)]
    return sorted(rows, key=lambda row: (-row["n"], row["service"], row["tool"] or "", row["field"], row["why"]))


def _asked(store: Store, environments: Path) -> Iterator[dict[str, Any]]:
    """What rooms were asked and could not answer, as their manifests say."""
    for row in store.table("mart.environments").to_dicts():
        place = environments / row["environment"] / MANIFEST
        told = json.loads(place.read_text("utf-8"))["coverage"] if place.is_file() else {"advice": [], "by_tool": {}}
        for advice in told["advice"]:
            field, log = FIELDS.get(advice["kind"], ("more of its calls", "the rows that it looks in"))
            of = sum(told["by_tool"].get(advice["of"], {}).values())
            named = f": above all its field {advice['field']}" if advice["field"] else ""
            yield {"service": row["service"], "tool": advice["of"], "field": field, "log": f"{log}{named}", "n": advice["n"],
                   "of": of, "why": f"its rooms answer `unknown`: {advice['says']}"}
        for tool in told.get("never_called", ()):
            yield {"service": row["service"], "tool": tool, "field": "calls", "log": "sessions that call it, or its rows",
                   "n": 0, "of": 0, "why": "it is declared, and no session called it"}


_WHY = {
    "results kept whole": "calls without their answer teach nothing, and cannot be given again",
    "clock": "without an instant the world as it stood cannot be told",
    "arguments kept whole": "calls whose arguments are cut off or not logged match no question",
    "tool list": "the schema is guessed from the calls: what nobody passed is not in it",
    "feedback": "how these sessions went cannot be told, so they give no reward",
}


def _missing(store: Store) -> Iterator[dict[str, Any]]:
    for service, tool, field, log, n, of in store.read(_MISSING).iter_rows():
        yield {"service": service, "tool": tool, "field": field, "log": log, "n": n, "of": of, "why": _WHY[field]}
