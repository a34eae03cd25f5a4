"""Lists of sessions, and one session: its conversation, its calls, what speaks for and against its success."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from extractors.outcomes.corrected import CORRECTION
from extractors.outcomes.signals import registered
from pipelines.browser.library import Library
from pipelines.browser.paging import SIZE, Paged, begins, paged
from warehouse.errors import InputError, Missing

Row = dict[str, Any]
GOING = {
    "good": "probability >= 0.9", "open": "probability > 0.1 and probability < 0.9", "bad": "probability <= 0.1",
    "untold": "probability is null"}
"""How a session went -> the condition."""
TURNS = 200
"""Turns of a page."""
_NEVER = datetime(1, 1, 1, tzinfo=UTC)
_STARTED = f"coalesce(started_at, timestamptz '{_NEVER:%Y-%m-%d} 00:00:00+00')"


def sessions(
    library: Library, service: str = "", family: str = "", going: str = "", words: str = "", after: str | None = None
) -> Paged:
    """A page of sessions, newest first: with what was asked, the family and the outcome.

    `words`: of the goal, or the beginning of a session's id. Raises InputError where `going` is none of `GOING`.
    """
    if going and going not in GOING:
        raise InputError(f"{going!r} is no way that a session went", mend=f"choose one of: {', '.join(GOING)}")
    wanted, told = ["true"], {}
    for name, value, condition in (
            ("service", service, "service = $service"),
            ("family", family, "session_id in (select session_id from mart.goals where family = $family or kind = $family)"),
            ("words", words.lower(), "(starts_with(session_id, $words) or session_id in (select session_id from mart.goals "
                                     "where contains(lower(goal), $words)))")):
        if value:
            wanted.append(condition)
            told[name] = value
    if going:
        wanted.append(f"session_id in (select session_id from mart.outcomes where {GOING[going]})")
    if key := begins(after, 2):
        wanted.append(f"({_STARTED} < $at::timestamptz or ({_STARTED} = $at::timestamptz and session_id > $last))")
        told |= {"at": key[0], "last": key[1]}
    found = library.rows(
        f"select session_id, service, started_at, {_STARTED} as began, n_messages, n_calls, identity from core.sessions "
        f"where {' and '.join(wanted)} order by began desc, session_id limit {SIZE + 1}", **told)
    page = paged(found, ("began", "session_id"))
    return page._replace(rows=_with_goals(library, page.rows))


def _with_goals(library: Library, rows: list[Row]) -> list[Row]:
    ids = [row["session_id"] for row in rows]
    more = {row["session_id"]: row for row in library.rows(
        "select s.session_id, probability, goal, family, name from (select unnest($ids) as session_id) s "
        "left join mart.outcomes using (session_id) "
        "left join (select * from mart.goals where place = 0 and session_id in (select unnest($ids))) using (session_id) "
        "left join mart.names using (family)", ids=ids)} if ids else {}
    return [{**row, **more[row["session_id"]]} for row in rows]


def session(library: Library, session_id: str) -> Row:
    """All that is known of a session but its turns. Raises Missing."""
    found = library.row("select * from core.sessions where session_id = $id", id=session_id)
    if found is None:
        raise Missing(f"no session {session_id!r}", mend="look for it in the list of sessions")
    goals = library.rows(
        "select g.*, s.sentence, name from mart.goals g left join mart.sentences s using (goal_id) "
        "left join mart.names using (family) where session_id = $id order by place", id=session_id)
    outcome = library.row("select * from mart.outcomes where session_id = $id", id=session_id)
    return {
        **found, "goals": goals, "outcome": outcome, "votes": votes(library, found["service"], outcome),
        "feedback": library.rows("select * from core.feedback where session_id = $id order by happened_at", id=session_id),
        "tasks": library.rows(
            "select task_id, family, list_contains(good_session_ids, $id) as is_good, split, "
            "exists (select 1 from mart.verdicts where stage = 'verify' and subject = task_id and kept) as is_published "
            "from mart.tasks where list_contains(session_ids, $id) order by task_id", id=session_id),
        "verdicts": library.rows(
            "select stage, kept, reason, detail from mart.verdicts where subject = $id order by stage, reason", id=session_id)}


def votes(library: Library, service: str, outcome: Row | None) -> list[Row]:
    """The votes behind an outcome, strongest first, each with what such a vote was found to be worth in the service."""
    worth = {(row["signal"], row["side"]): row for row in library.rows(
        "select signal, side, n_votes, agreement, log_odds from mart.signals where service in ($service, $service || "
        "' without words')", service=service)}
    groups = {name: signal.group for name, signal in registered().items()}
    found = []
    for vote in json.loads(outcome["signals"]) if outcome else []:
        side = "for" if vote["vote"] > 0 else "against"
        known = worth.get((groups.get(vote["name"], vote["name"]), side))
        found.append({**vote, "worth": known, "is_person": vote["name"] == CORRECTION})
    return sorted(found, key=lambda vote: (not vote["is_person"], -abs(vote["vote"]), vote["name"]))


def turns(library: Library, session_id: str, begin: int = 0) -> list[Row]:
    """Turns of a session from a position on, a page and one more at most."""
    return library.rows(
        "select * from core.turns where session_id = $id and position >= $begin order by position "
        f"limit {TURNS + 1}", id=session_id, begin=begin)


def turn_of(library: Library, event_id: str) -> Row | None:
    """The turn that an event is (a message, a call or a call's result); None where it is none."""
    return library.row(
        "select session_id, position, turn_id from core.turns where turn_id = $id or result_id = $id limit 1", id=event_id)
