"""How many conversations are stored twice, or merged wrongly, where two logs keep the same ones.

In: the chat rows of a desk, made into two logs that differ (benchmarks/first_hour_twice_data.py). Both are read and assembled
as a run does. A conversation is stored twice if its events stand in more than one session; a session is merged wrongly if it
holds, or is joined from, more than one conversation. `stored_twice` is the share over all nights; where a log has days for
times, conversations with the words of another are not counted, as nothing decides them. `stored_twice_unreported`: how many of
all that are stored twice (these too) no decision names.
Does not see: whether the fields of a merged session are the best of both.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.first_hour_twice_data import NIGHTS, Night, conversations, lookalikes, night
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble

_MOST = 150


def measure(desk: Path, most: int = _MOST) -> dict[str, Any]:
    """Return {"stored_twice", "wrongly_merged", "n_conversations", "stored_twice_by_night"}; raises FileNotFoundError."""
    if not (desk / "logs").is_dir():
        raise FileNotFoundError(f"{desk} has no folder logs: give the folder of retail_desk with --desk")
    real = conversations(desk, most)
    everything = [*real, *lookalikes(real)]
    retried = {each.messages[0]["content"] for each in everything if each.is_common}
    common = {each.name for each in everything if each.messages[0]["content"] in retried}
    twice, total, n_wrong, n_undecided, n_silent = {}, 0, 0, 0, 0
    for name, log in NIGHTS.items():
        made, truth = _assembled(night(everything, log))
        holders, wrong = _scored(made, truth)
        again = {each for each, sessions in holders.items() if len(sessions) > 1}
        twice[name] = len(again - common) if log.by_day else len(again)
        reported = set(made.decisions.filter(reason="maybe_same_conversation")["subject"])
        n_silent += sum(not holders[each] & reported for each in again)
        total += len(everything) - (len(common) if log.by_day else 0)
        n_wrong += wrong
        n_undecided += made.decisions.filter(reason="maybe_same_conversation").height
    return {"stored_twice": round(sum(twice.values()) / total, 4), "wrongly_merged": n_wrong, "n_conversations": total,
            "n_undecided_sessions": n_undecided, "stored_twice_unreported": n_silent, "stored_twice_by_night": twice}


def _assembled(logs: Night) -> tuple[AssembledSessions, dict[str, tuple[str | None, str]]]:
    """Read the two files and assemble; (tables, event id -> (session id as logged, conversation))."""
    with tempfile.TemporaryDirectory() as folder:
        events, truth = [], {}
        for name, lines in (("chat", logs.chat), ("spans", logs.spans)):
            path = Path(folder) / f"{name}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for _, line in lines))
            for file in discover([path])[0]:
                reading = read(file)
                line_of = dict(reading.records.select("record_id", "line").iter_rows())
                rows = reading.events.select("event_id", "record_id", "session_id").iter_rows()
                truth.update({event: (session, lines[line_of[record] - 1][0]) for event, record, session in rows})
                events.append(reading.events)
        return assemble(pl.concat(events)), truth


def _scored(made: AssembledSessions, truth: dict[str, tuple[str | None, str]]) -> tuple[dict[str, set[str]], int]:
    """Return the sessions that hold each conversation, and how many sessions hold several."""
    aliases = {other: session for session, others in made.sessions.select("session_id", "other_session_ids").iter_rows()
               for other in others}
    holders: dict[str, set[str]] = defaultdict(set)
    contents: dict[str, set[str]] = defaultdict(set)
    for turn, session in made.turns.select("turn_id", "session_id").iter_rows():
        holders[truth[turn][1]].add(session)
        contents[session].add(truth[turn][1])
    for session, conversation in truth.values():
        if session in aliases:
            contents[aliases[session]].add(conversation)
    return holders, sum(len(each) > 1 for each in contents.values())
