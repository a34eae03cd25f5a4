"""Routines: runs are found in streams that nobody cut, of clicks and of requests, whoever else acts in between."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from extractors.routines import run_begins
from extractors.sessions import assemble
from extractors.tasks import find
from warehouse.records import Event, Outcome, empty, frame, frame_schema

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
PAY = ["open invoice", "copy sum", "paste sum", "press pay"]
HIRE = ["open letter", "copy name", "paste name", "copy day", "paste day", "press save"]
BOOK = ["pick room", "copy name", "paste name", "press save"]


def stream(*routines: list[str], n: int = 60, seed: int = 0) -> tuple[list[str], list[bool]]:
    """Actions of runs in random order, and where each begins."""
    chance = random.Random(seed)
    runs = [list(chance.choice(routines)) for _ in range(n)]
    return [action for run in runs for action in run], [place == 0 for run in runs for place in range(len(run))]


def test_one_routine_again_and_again_begins_where_the_stream_does() -> None:
    actions, true = stream(PAY)
    assert run_begins(actions) == true


def test_routines_that_share_steps_are_told_apart_by_where_the_stream_forgets() -> None:
    for seed in range(5):
        actions, true = stream(PAY, HIRE, BOOK, seed=seed)
        found = run_begins(actions)
        assert found is not None and sum(a != b for a, b in zip(found, true, strict=True)) == 0, seed


def test_actions_without_an_order_are_no_routine() -> None:
    chance = random.Random(1)
    assert run_begins([chance.choice("abcdefgh") for _ in range(400)]) is None
    assert run_begins(PAY * 3) is None, "too short to tell"


def events(rows: list[dict[str, Any]]) -> pl.DataFrame:
    blank: dict[str, Any] = dict.fromkeys(frame_schema(Event))
    return frame(Event, [{**blank, "record_id": row["event_id"], "file_id": "f", "source": "main", "format": "made", **row}
                         for row in rows])


def test_clicks_become_sessions_by_person_and_their_families_are_the_routines() -> None:
    rows, true = [], {}
    for person in ("ann", "ben"):
        actions, new = stream(PAY, HIRE, seed=len(rows))
        run = 0
        for place, (action, first) in enumerate(zip(actions, new, strict=True)):
            run += first
            name = f"{person}{place:04}"
            what, on = action.split()
            rows.append({"event_id": name, "kind": "business", "tool": what, "name": person, "position": place,
                         "happened_at": START + timedelta(seconds=place), "arguments": json.dumps({"on": on, "n": place})})
            true[name] = (person, run)
    random.Random(3).shuffle(rows)
    made = assemble(events(rows))
    found = dict(made.turns.select("turn_id", "session_id").iter_rows())
    assert len(set(zip(true.values(), map(found.get, true), strict=True))) == len(set(true.values())) == made.sessions.height
    nothing = pl.DataFrame(schema={"service": pl.String, "tool": pl.String, "effect": pl.String})
    assert find(made.sessions, made.turns, empty(Outcome), nothing, {}).tasks["family"].n_unique() == 2


def test_a_clerk_takes_up_what_customers_filed_and_each_case_is_a_session() -> None:
    rows: list[dict[str, Any]] = []

    def ask(who: str, at: int, method: str, path: str, answer: dict[str, Any]) -> str:
        name = f"r{len(rows):04}"
        rows.append({"event_id": name, "kind": "request", "tool": f"{method} {path}", "name": who,
                     "happened_at": START + timedelta(seconds=at), "arguments": json.dumps({"query": {}}),
                     "value": json.dumps({"status": 200, "body": answer})})
        return name

    cases = []
    for n in range(30):
        filed = ask(f"customer{n}", 7 * n, "POST", "/letters", {"letter_id": f"L{5000 + n}"})
        ask(f"customer{n + 1}", 7 * n + 1, "GET", f"/parts/{n}77", {"part": n})
        cases.append({filed})
    for n in range(30):
        at = 600 + 50 * n
        steps = [("GET", f"/letters/L{5000 + n}"), ("GET", f"/people/{n}88"), *([("GET", f"/parts/{n}77")] if n % 3 else []),
                 ("POST", f"/people/{n}88/visits"), ("PATCH", f"/letters/L{5000 + n}")]
        cases[n] |= {ask("clerk", at + i, method, path, {"ok": True}) for i, (method, path) in enumerate(steps)}
    made = assemble(events(rows))
    members = made.turns.group_by("session_id").agg("turn_id")["turn_id"].to_list()
    assert {frozenset(case) for case in cases} <= {frozenset(each) for each in members}
    filed = {min(case) for case in cases}
    by_user = made.turns.filter(pl.col("requestor") == "user")
    assert set(by_user["turn_id"]) == filed, "what a customer filed is a step of the session's user"
    begun = made.sessions.join(by_user, on="session_id").filter(pl.col("started_at") > pl.col("happened_at"))
    assert begun.height == len(cases), "and the session begins with the clerk's first step"
