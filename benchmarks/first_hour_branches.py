"""Do families separate branches that end in different work, and only these?

`measure()` makes logs of desks and of clicks. Those with branches: one form of request that ends in an exchange or in a return,
as the order's state wants it; the same beside requests that name the work; a request that ends in a change or in a transfer;
a routine that opens one form and goes on to one of two jobs. Those without: look-ups by one key or another, steps that some
sessions add, two ways to fill one field. In all of them some sessions are declined, some calls fail, and some agents do the
wrong work. `branches_ari`: ARI of the families against what should have been done, on the worst log. `branch_names`: share of
families with a name that no other family of the log has. Mined by the pipeline's own stages, with the effects that it mines.
"""

from __future__ import annotations

import json
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from benchmarks.mining_scores import ari
from extractors.sessions import assemble
from extractors.tasks import goals_of
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.records import Event, frame, frame_schema
from warehouse.store import Store

_STAGES = ("extract", "sessions", "world", "goals", "names")
_DECLINED, _FAILED, _WRONG, _ADDED = 0.1, 0.05, 0.06, 0.4
"""Shares of sessions: declined, with a call that failed, with the wrong work, with an additional step."""
_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_SEEDS = range(3)


class Work(NamedTuple):
    """What somebody asks for, and the tool that does it."""

    words: tuple[str, ...]
    tool: str
    share: float


_OPEN = ("something is not right with order {id}, please sort it out", "order {id} is not what i wanted, can you fix that",
         "i am not happy with what came in order {id}")
_BRANCHED = (Work(_OPEN, "exchange_items", 0.4), Work(_OPEN, "return_items", 0.25),
             Work(("cancel order {id} please", "i want to cancel my order {id}"), "cancel_order", 0.2),
             Work(("where is order {id} now", "when will order {id} arrive"), "", 0.15))
_BESIDE = (*_BRANCHED, Work(("exchange an item of order {id} for me", "swap the lamp in order {id}"), "exchange_items", 0.2),
           Work(("send order {id} back for a refund", "i return the whole order {id}"), "return_items", 0.2))
_MOVED = ("change the address of order {id}", "order {id} must go to another address", "i moved, send order {id} elsewhere")
_TRANSFER = (Work(_MOVED, "update_address", 0.6), Work(_MOVED, "transfer_to_courier", 0.25),
             Work(("cancel order {id} please", "i want to cancel my order {id}"), "cancel_order", 0.15))
_PLAIN = (Work(_MOVED, "update_address", 0.5), Work(("cancel order {id} please", "i want to cancel my order {id}"),
                                                    "cancel_order", 0.3), Work(("where is order {id} now",), "", 0.2))
DESKS = {"one_form": _BRANCHED, "beside_named": _BESIDE, "transferred": _TRANSFER, "no_branches": _PLAIN}


def measure(n: int = 240) -> dict[str, Any]:
    """Return branches_ari, branch_names and, by log, its ARI (mean over seeds), families and true branches."""
    logs: dict[str, list[dict[str, Any]]] = {}
    for seed in _SEEDS:
        for name, works in DESKS.items():
            logs.setdefault(name, []).append(_scored(_desk(works, n, seed)))
        for name, jobs in ROUTINES.items():
            logs.setdefault(name, []).append(_scored(_clicks(jobs, n, seed)))
    branches = {name: {"ari": round(sum(each["ari"] for each in own) / len(own), 4), "n_families": [
        each["n_families"] for each in own], "n_branches": own[0]["n_branches"], "names": own[0]["names"]}
        for name, own in logs.items()}
    named = [share for own in logs.values() for each in own if (share := each["named_apart"]) is not None]
    return {"branches_ari": min(each["ari"] for each in branches.values()), "branch_names": round(sum(named) / len(named), 4),
            "branches": branches}


class Mined(NamedTuple):
    """A log as it was mined."""

    true: dict[str, str]
    """Session -> what should have been done."""
    families: dict[str, str]
    """Session -> family."""
    names: dict[str, str]
    """Family -> name."""


def _scored(mined: Mined) -> dict[str, Any]:
    true, families, names = mined
    ids = sorted(true)
    own = {families.get(each, "none") for each in ids}
    spelled = [names[family] for family in sorted(own) if family in names]
    return {"ari": ari([true[each] for each in ids], [families.get(each, "none") for each in ids]), "n_families": len(own),
            "n_branches": len(set(true.values())), "names": sorted(spelled),
            "named_apart": sum(spelled.count(name) == 1 for name in spelled) / len(spelled) if spelled else None}


# desks ------------------------------------------------------------------------------------------------------------------------


def _desk(works: tuple[Work, ...], n: int, seed: int) -> Mined:
    """Mine the sessions of a desk."""
    chance = random.Random(seed)
    tools = sorted({work.tool for work in works} - {""})
    true, rows = {}, []
    for number in range(n):
        work = chance.choices(works, [each.share for each in works])[0]
        true[f"s{number:04}"] = work.tool
        at = (_START + timedelta(minutes=20 * number)).isoformat()
        rows.append({"session_id": f"s{number:04}", "created_at": at, "messages": _talk(work, tools, number, chance)})
    with tempfile.TemporaryDirectory() as scratch:
        logs = Path(scratch, "logs")
        logs.mkdir()
        (logs / "desk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        settings = Settings(logs=(str(logs),), out=str(Path(scratch, "out")), image=False, privacy=False).checked()
        for stage in STAGES:
            if stage.name in _STAGES:
                carry_out(stage, settings)
        with Store.open(settings.warehouse) as store:
            goals, names = store.table("mart.goals"), store.table("mart.names")
    return Mined(true, dict(goals.select("session_id", "family").unique().iter_rows()),
                 dict(names.select("family", "name").iter_rows()))


def _talk(work: Work, tools: list[str], number: int, chance: random.Random) -> list[dict[str, Any]]:
    """Write the messages of one session."""
    order = f"W{70000 + 13 * number}"
    known = {"order": order, "status": chance.choice(("pending", "delivered")), "total": chance.randint(10, 400)}
    by_mail = ("find_by_mail", {"mail": f"p{number}@mail.example"})
    look = ("find_order", {"order": order}) if chance.random() < _ADDED else by_mail
    steps: list[tuple[str, dict[str, Any], dict[str, Any]]] = [(*look, known)]
    draw = chance.random()
    tool = work.tool if draw > _WRONG else chance.choice(tools)
    declined = bool(tool) and _WRONG < draw < _WRONG + _DECLINED
    if tool and not declined:
        failed = draw > 1 - _FAILED
        done = {"error": "the service is down"} if failed else {**known, "status": f"{tool} recorded"}
        steps.append((tool, {"order": order, "item": f"i{chance.randint(100, 999)}"}, done))
        if not failed and chance.random() < _ADDED:
            steps.append(("add_note", {"order": order, "text": "done as the customer wanted"}, {"notes": 1}))
        if not failed and chance.random() < _ADDED:
            steps.append(("find_order", {"order": order}, {**known, "status": f"{tool} recorded"}))
    messages: list[dict[str, Any]] = [{"role": "user", "content": chance.choice(work.words).format(id=order)}]
    for place, (name, arguments, answer) in enumerate(steps):
        call = {"id": f"c{number}-{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(answer)}]
    last = "I am sorry, this is not possible under our terms." if declined else "That is settled, have a nice day."
    return [*messages, {"role": "assistant", "content": last}]


# clicks -----------------------------------------------------------------------------------------------------------------------

_FORM = ("open case", "copy name", "paste name")
ROUTINES = {
    "clicks": {"pay": ((*_FORM, "open ledger", "enter sum", "press book"), 0.6),
               "ship": ((*_FORM, "open parcel", "print label", "press send"), 0.4)},
    "clicks_one_job": {"pay": ((*_FORM, "open ledger", "pick card", "enter sum", "press book"), 0.6),
                       "pay ": ((*_FORM, "open ledger", "pick bank", "enter sum", "press book"), 0.4)}}
"""Routine -> its steps and how often it is run; the second log's two differ in one choice alone."""


def _clicks(jobs: dict[str, tuple[tuple[str, ...], float]], n: int, seed: int) -> Mined:
    """Mine runs of clicks of two people, one after another, cut as the miner cuts them."""
    chance = random.Random(seed)
    rows, job_of = [], {}
    blank: dict[str, Any] = dict.fromkeys(frame_schema(Event))
    for number in range(n):
        job = chance.choices(list(jobs), [share for _, share in jobs.values()])[0]
        steps = list(jobs[job][0])
        if chance.random() < _FAILED:
            steps = steps[:len(_FORM)]
        for second, step in enumerate(steps):
            what, on = step.split()
            place = len(rows)
            rows.append({**blank, "event_id": f"e{place:05}", "record_id": f"e{place:05}", "file_id": "f", "source": "main",
                         "format": "made", "kind": "business", "tool": what, "name": f"person {number % 2}",
                         "position": place, "happened_at": _START + timedelta(seconds=60 * number + second),
                         "arguments": json.dumps({"on": on, "n": place})})
            job_of[f"e{place:05}"] = job.strip()
    made = assemble(frame(Event, rows))
    effects = pl.DataFrame(schema={"service": pl.String, "tool": pl.String, "effect": pl.String})
    goals = goals_of(made.sessions, made.turns, effects)
    true = {session: job_of[turn] for turn, session in made.turns.select("turn_id", "session_id").iter_rows()}
    return Mined(true, dict(goals.select("session_id", "family").unique().iter_rows()), {})
