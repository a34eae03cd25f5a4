"""Search lists: sessions by any word of theirs, by time, outcome, reason, tool and feedback; tasks by words, standing and
reason.

Input: a source of rows, and what a person wants (`wanted`: the parameters of a page's address). Output: pages by key, in any
of the orders of `SESSION_ORDERS` and `TASK_ORDERS`; `size` None gives all rows at once, for export. Each term of `words` must
occur somewhere in a session: in a message that is no system prompt, an answer, the arguments or name of a tool, a user, a
goal, or an id; text in double quotes is one term. Case does not matter. Does not see inflected forms, or a session that
spells a word otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from pipelines.inspection.views import DECIDED_TASKS, SIZE, STARTED, Paged, Row, RowSource, begins, paged
from warehouse.errors import InputError
from warehouse.vocabulary import OUTCOMES

MOST_TERMS = 8
"""Terms of a search."""
MOST_CHOICES = 200
"""Values that a page offers to choose from."""
SNIPPET = 90
"""Characters on each side of a match that is shown."""
ANY, NONE = "any", "none"
"""Feedback of a session: some, or none at all."""
STANDINGS = {"published": "is_published", "unverified": "not is_published"}
"""Standing of a task -> condition."""
_NO_PROMPT = "(role is null or role not in ('system', 'developer'))"
"""System prompts are the same in most sessions, so a word of one tells nothing."""
_TERM = re.compile(r'"([^"]+)"|(\S+)')
_DIRECTIONS = {"asc": ">", "desc": "<"}


class ListOrder(NamedTuple):
    """An order of a list."""

    name: str
    column: str
    """Expression that is never null."""
    direction: str
    kind: str = ""
    """SQL type of the column, where a key's text must be cast."""


_CHANCE = "coalesce(probability, -1)"
SESSION_ORDERS = {order.name: order for order in (
    ListOrder("newest first", "began", "desc", "timestamptz"), ListOrder("oldest first", "began", "asc", "timestamptz"),
    ListOrder("likeliest success first", _CHANCE, "desc"),
    ListOrder("least likely success first", "coalesce(probability, 2)", "asc"),
    ListOrder("most calls first", "n_calls", "desc"), ListOrder("most messages first", "n_messages", "desc"),
    ListOrder("longest first", "lasted", "desc"))}
TASK_ORDERS = {order.name: order for order in (
    ListOrder("by id", "task_id", "asc"), ListOrder("highest success rate first", "coalesce(rate, -1)", "desc"),
    ListOrder("lowest success rate first", "coalesce(rate, 2)", "asc"), ListOrder("most sessions first", "n_sessions", "desc"))}
SESSION_FILTERS = ("words", "service", "family", "outcome", "tool", "reason", "feedback", "since", "until", "sort")
TASK_FILTERS = ("words", "service", "family", "standing", "split", "reason", "sort")


def sessions(source: RowSource, wanted: Mapping[str, str], after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of sessions with goal, family and outcome. Raises InputError for a value that no filter takes."""
    conditions, parameters = session_conditions(wanted)
    order = _order(SESSION_ORDERS, wanted.get("sort", ""))
    base = ("select session_id, service, started_at, ended_at, n_messages, n_calls, identity, "
            f"{STARTED} as began, coalesce(epoch(ended_at - started_at), 0) as lasted from core.sessions")
    if wanted.get("outcome") or "probability" in order.column:   # a join of all sessions, so only where it is needed
        base = f"select s.*, probability from ({base}) s left join mart.outcomes using (session_id)"
    page = _ordered(source, base, conditions, parameters, order, "session_id", after, size)
    ids = [row["session_id"] for row in page.rows]
    more = {row["session_id"]: row for row in source.rows(
        "select s.session_id, probability, goal, family, name from (select unnest($ids) as session_id) s "
        "left join (select * from mart.outcomes where session_id in (select unnest($ids))) using (session_id) "
        "left join (select * from mart.goals where place = 0 and session_id in (select unnest($ids))) using (session_id) "
        "left join mart.names using (family)", ids=ids)} if ids else {}
    return page._replace(rows=[{**row, **more[row["session_id"]]} for row in page.rows])


def session_conditions(wanted: Mapping[str, str]) -> tuple[list[str], Row]:
    """Return conditions on a session in SQL, and their parameters. Raises InputError."""
    conditions, parameters = list[str](), Row()

    def add(name: str, condition: str, value: object) -> None:
        conditions.append(condition)
        parameters[name] = value

    outcome, feedback = wanted.get("outcome", ""), wanted.get("feedback", "")
    if outcome:
        conditions.append(f"({_named(OUTCOMES, outcome, 'outcome')})")
    for place, term in enumerate(terms_of(wanted.get("words", ""))):
        add(f"term{place}", _occurs(f"$term{place}"), term)
    if service := wanted.get("service", ""):
        add("service", "service = $service", service)
    if family := wanted.get("family", ""):
        add("family", "session_id in (select session_id from mart.goals where family = $family or kind = $family)", family)
    if tool := wanted.get("tool", ""):
        add("tool", "session_id in (select session_id from core.turns where kind = 'call' and tool = $tool)", tool)
    if reason := wanted.get("reason", ""):
        add("reason", "(session_id in (select subject from mart.decisions where not kept and reason = $reason) or "
            "session_id in (select unnest(session_ids) from mart.tasks join mart.decisions on subject = task_id "
            "where not kept and reason = $reason))", reason)
    if feedback in (ANY, NONE):
        conditions.append(f"session_id {'not ' if feedback == NONE else ''}in (select session_id from core.feedback)")
    elif feedback:
        add("feedback", "session_id in (select session_id from core.feedback where name || ': ' || value = $feedback)",
            feedback)
    if since := _day(wanted.get("since", "")):
        add("since", "started_at >= $since::timestamptz", f"{since} 00:00:00+00")
    if until := _day(wanted.get("until", "")):
        add("until", "started_at < $until::timestamptz", f"{until + timedelta(days=1)} 00:00:00+00")
    return conditions, parameters


def terms_of(words: str) -> list[str]:
    """Return the terms of a search in lower case. Raises InputError if they are too many."""
    terms = list(dict.fromkeys((quoted or plain).lower() for quoted, plain in _TERM.findall(words)))
    if len(terms) > MOST_TERMS:
        raise InputError(f"{len(terms)} terms (at most {MOST_TERMS})", hint="omit some, or put a phrase in double quotes")
    return terms


def _occurs(term: str) -> str:
    return (f"(contains(lower(session_id), {term}) or contains(lower(coalesce(identity, '')), {term}) or session_id in ("
            f"select session_id from core.turns where {_NO_PROMPT} and (contains(lower(content), {term}) "
            f"or contains(lower(tool), {term}) or contains(lower(arguments), {term}))) or session_id in ("
            f"select session_id from mart.goals where contains(lower(goal), {term})))")


def matches(source: RowSource, session_ids: list[str], words: str) -> dict[str, Row]:
    """Session -> its first turn with a term of `words`: {"position", "before", "match", "after"}."""
    terms = terms_of(words)
    if not terms or not session_ids:
        return {}
    text = "coalesce(tool || ' ', '') || coalesce(arguments || ' ', '') || coalesce(content, '')"
    tests = " or ".join(f"contains(lower({text}), $term{place})" for place in range(len(terms)))
    rows = source.rows(
        "with own as materialized (select session_id, position, tool, arguments, content from core.turns "
        f"where session_id in (select unnest($ids)) and {_NO_PROMPT}) "
        f"select session_id, min(position) as position, arg_min({text}, position) as text from own "
        f"where {tests} group by session_id", ids=session_ids,
        **{f"term{place}": term for place, term in enumerate(terms)})
    return {row["session_id"]: {"position": row["position"], **_snippet(row["text"], terms)} for row in rows}


def _snippet(text: str, terms: list[str]) -> Row:
    lowered = text.lower()
    at, term = min((place, term) for term in terms if (place := lowered.find(term)) >= 0)
    end = at + len(term)
    return {"before": text[max(0, at - SNIPPET):at], "match": text[at:end], "after": text[end:end + SNIPPET]}


def tasks(source: RowSource, wanted: Mapping[str, str], after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of tasks, new ones too. Raises InputError for a value that no filter takes."""
    conditions, parameters = list[str](), Row()
    if standing := wanted.get("standing", ""):
        conditions.append(f"({_named(STANDINGS, standing, 'standing')})")
    for place, term in enumerate(terms_of(wanted.get("words", ""))):
        conditions.append(f"(contains(lower(task_id), $term{place}) or contains(lower(goal), $term{place}))")
        parameters[f"term{place}"] = term
    tests = {"service": "service = $service", "family": "family = $family", "split": "split = $split",
             "reason": "task_id in (select subject from mart.decisions where not kept and reason = $reason)"}
    for name, condition in tests.items():
        if value := wanted.get(name, ""):
            conditions.append(condition)
            parameters[name] = value
    return _ordered(source, f"select * from {DECIDED_TASKS}", conditions, parameters,
                    _order(TASK_ORDERS, wanted.get("sort", "")), "task_id", after, size)


def choices(source: RowSource) -> dict[str, list[str]]:
    """Return what filters offer: services, tools that were called, reasons, and ratings."""
    queries = {
        "service": "select distinct service as value from core.sessions order by value",
        "tool": "select tool as value from core.tools where n_calls > 0 group by tool order by sum(n_calls) desc, value",
        "reason": "select distinct reason as value from mart.decisions where not kept and stage != 'drift' order by value",
        "feedback": "select name || ': ' || value as value from core.feedback where length(value) < 60 group by all "
                    "order by count(*) desc, value"}
    return {name: [str(row["value"]) for row in source.rows(f"{query} limit {MOST_CHOICES}")]
            for name, query in queries.items()}


def _ordered(source: RowSource, select: str, conditions: list[str], parameters: Row, order: ListOrder, key: str,
             after: str | None, size: int | None) -> Paged:
    conditions, parameters = ["true", *conditions], dict(parameters)
    columns = ("sorted_by", key) if order.column != key else (key,)
    if begin := begins(after, len(columns)):
        parameters |= {f"key{place}": part for place, part in enumerate(begin)}
        sign, cast = _DIRECTIONS[order.direction], f"::{order.kind}" if order.kind else ""
        conditions.append(f"{key} > $key0" if len(columns) == 1 else (
            f"({order.column} {sign} $key0{cast} or ({order.column} = $key0{cast} and {key} > $key1))"))
    rows = source.rows(
        f"select *, {order.column} as sorted_by from ({select}) where {' and '.join(conditions)} "
        f"order by {order.column} {order.direction}, {key}{f' limit {size + 1}' if size else ''}", **parameters)
    return paged(rows, columns) if size else Paged(rows, None)


def _order(orders: Mapping[str, ListOrder], name: str) -> ListOrder:
    order: ListOrder = _named(orders, name, "order") if name else next(iter(orders.values()))
    return order


def _named(options: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in options:
        raise InputError(f"invalid {what} {name!r}", hint=f"choose one of: {', '.join(options)}")
    return options[name]


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise InputError(f"invalid date {text!r} (expected YYYY-MM-DD)", hint="such as 2026-03-09") from error


