"""What recorded calls of a chat's server teach: how far a time limit reaches, what columns hold, when reactions settle.

In: recorded calls of slack-mcp-server, the company's world. Out: conventions of the product `slack` (`office/slack.py` lists
them). Each needs calls that tell one reading from the other; without such calls it is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from env_builder.company.calls import RecordedCall
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.office.slack import MESSAGE, oldest

_ENOUGH = 10
"""Answers with settled reactions that it takes to trust the shortest time."""


class _ShownMessage(NamedTuple):
    call: RecordedCall
    row: dict[str, str]

    @property
    def key(self) -> str:
        return f"{self.row.get('Channel')}/{self.row['MsgID']}"


def learn_slack(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, Any]:
    """Return the conventions that recorded calls show."""
    answered = [call for call in calls if not call.is_error]
    shown = [_ShownMessage(call, row) for call in answered if call.tool in ("conversations_history", "conversations_replies")
             for row in _rows(call.content, "MsgID")]
    conventions = {"window": _window(answered), "roots": _roots(shown), "cursors": _cursors(answered),
             "settled": _settled(shown, world), "direct_channels": _direct_channels(answered, world)}
    return {name: value for name, value in conventions.items() if value is not None}


def _rows(content: str, first: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content))) if content.startswith(first + ",") else []


def _window(calls: Sequence[RecordedCall]) -> str | None:
    """Return `rolling` if an answer goes further back than whole days do, `days` if an answer never does that could."""
    limited = [call for call in calls if call.tool == "conversations_history"
               and (limit := str(call.arguments.get("limit") or ""))[-1:] in ("d", "w", "m") and limit[:-1].isdecimal()
               and int(limit[:-1])]
    outside = n_inside = 0
    for call in limited:
        limit, now = str(call.arguments["limit"]), call.at / 1_000_000
        first = oldest(now, limit, is_rolling=False)
        times = [float(row["MsgID"]) for row in _rows(call.content, "MsgID")]
        outside += any(time < first for time in times)
        n_inside += any(first <= time for time in times)
    return "rolling" if outside else "days" if n_inside >= 2 * _ENOUGH else None


def _roots(shown: Sequence[_ShownMessage]) -> bool | None:
    roots = [each.row["ThreadTs"] == each.row["MsgID"] for each in shown if each.call.tool == "conversations_replies"
             and each.row["MsgID"] == each.call.arguments.get("thread_ts")]
    return any(roots) if roots else None


def _cursors(calls: Sequence[RecordedCall]) -> bool | None:
    """Return whether answers that hold as many rows as were asked for say how to go on; None: no answer is that long."""
    full = []
    for call in calls:
        limit = str(call.arguments.get("limit") or "")
        rows = _rows(call.content, "MsgID") or _rows(call.content, "ID")
        if limit.isdecimal() and rows and len(rows) >= int(limit):
            full.append(bool(rows[-1].get("Cursor")))
    return any(full) if full else None


def _settled(shown: Sequence[_ShownMessage], world: CompanyWorld) -> float | None:
    """Return after how many seconds the reactions of messages were those of the end, with a margin; None: too few were seen."""
    end = world.at(2**61)
    threads = world.by_value(MESSAGE, "thread_ts")
    missing: list[float] = []
    final: list[float] = []
    for each in shown:
        reactions = end.guess(MESSAGE, each.key, "reactions")
        if not reactions:
            continue
        thread = end.guess(MESSAGE, each.key, "thread_ts") or each.row["MsgID"]
        replies = threads.get(thread, ())[-1:]
        last = max([float(each.row["MsgID"]), *(world.births[MESSAGE, key] / 1_000_000 for key in replies)])
        text = "|".join(f"{name}:{len(users)}" for name, users in reactions.items())
        (final if each.row["Reactions"] == text else missing).append(each.call.at / 1_000_000 - last)
    latest = 2 * max(missing, default=0.0)
    after = [age for age in final if age >= latest]
    return max(latest, min(after)) if len(after) >= _ENOUGH else None


def _direct_channels(calls: Sequence[RecordedCall], world: CompanyWorld) -> bool | None:
    rows = [row for call in calls if call.tool == "users_search" for row in _rows(call.content, "UserID")]
    return any(row.get("DMChannelID") for row in rows) if rows else None
