"""Attackers draw calls up to an epoch: what arrives later displaces none of them, until the log has grown by half."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from env_builder.audit.values import Plausible
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.world import World
from pipelines.building.arrivals import GROWN, arrivals_of, last_growth
from warehouse.records import Session, Task, Turn, frame
from warehouse.store import Store

DAY = datetime(2026, 3, 2, tzinfo=UTC)


def room(calls: list[int]) -> World:
    return World([], [{
        "tool": "cancel", "arguments": canonical({"order": n}), "content": "done", "is_error": False, "from": None, "to": None,
        "session": None, "after": [], "effects": []} for n in calls])


def task(task_id: str, *sessions: str, derived_from: str | None = None) -> Task:
    return Task(task_id=task_id, service="desk", family="f", slots="{}", goal="", session_ids=list(sessions), segment_of=None,
                derived_from=derived_from, starts_at=None, succeeded_session_ids=[], split="train", difficulty=None)


def session(name: str) -> Session:
    return Session(session_id=name, source="s", service="desk", started_at=DAY, ended_at=DAY, day="2026-03-02", n_messages=0,
                   n_calls=1, identity=None, format="f")


def turn(name: str, arguments: str) -> Turn:
    return Turn(turn_id=f"{name}-0", session_id=name, service="desk", position=0, happened_at=DAY, kind="call", role=None,
                content="done", call_id=None, tool="cancel", arguments=arguments, arguments_raw=arguments, is_error=False,
                requestor=None, answered_at=None, result_id=None, latency_ms=None, model=None)


@given(st.dictionaries(st.integers(0, 60), st.integers(1, 4), min_size=1), st.integers(1, 4), st.text())
def test_later_calls_displace_none(arrived: dict[int, int], reach: int, start: str) -> None:
    epochs = {("cancel", canonical({"order": n})): epoch for n, epoch in arrived.items()}
    early = [n for n, epoch in arrived.items() if epoch <= reach]
    values, begin = Plausible(room([*arrived]), []), digest(start)
    drawn = list(values.up_to(reach, epochs).calls("cancel", begin))
    assert drawn == list(Plausible(room(early or [*arrived]), []).calls("cancel", begin)), "as if nothing had come since"
    assert list(values.up_to(None, epochs).calls("cancel", begin)) == list(values.calls("cancel", begin))
    assert len(list(values.calls("cancel", begin))) == len(arrived), "reaches do not mix"


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12))
def test_pools_are_drawn_anew_when_the_log_has_grown_by_half(arriving: list[int]) -> None:
    sizes = list(enumerate(arriving, 1))
    totals = list(accumulate(arriving))
    last = last_growth(sizes)
    assert all(total < GROWN * totals[last - 1] for total in totals[last:]), "it has not grown by half since"
    assert last == 1 or totals[last - 1] >= GROWN * totals[last_growth(sizes[:last - 1]) - 1]


def test_a_task_reaches_as_far_as_its_first_session(tmp_path: Path) -> None:
    epochs = {f"s{n}": 1 + (n >= 8) for n in range(10)}
    tasks = frame(Task, [task(f"t{n}", f"s{n}") for n in (0, 9)] + [task("made", derived_from="t0"), task("alone")])
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        store.append("core.sessions", frame(Session, [session(name) for name in epochs]))
        store.append("core.turns", frame(Turn, [turn(f"s{n}", f'{{"order":{n % 9}}}') for n in range(10)]))
        store.append("raw.epochs", pl.DataFrame({"session_id": [*epochs], "epoch": [1] * 10}))
        assert arrivals_of(store, "desk", tasks) is None, "in one epoch all calls count"
        store.replace("raw.epochs", pl.DataFrame({"session_id": [*epochs], "epoch": [*epochs.values()]}))
        arrivals = arrivals_of(store, "desk", tasks)
    assert arrivals is not None and arrivals.reach == {"t0": 1, "t9": 2, "made": 1}
    assert arrivals.calls["cancel", '{"order":0}'] == 1 and arrivals.calls["cancel", '{"order":8}'] == 2
