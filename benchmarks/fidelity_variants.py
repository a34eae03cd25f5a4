"""Rooms from less than the whole log: few examples for each tool, or only what was logged before an instant."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from fidelity_data import sample

from env_builder import bundle, rooms
from env_builder.behaviour import induce
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.world import ServiceWorld, build
from pipelines.building.worlds import configured_starts
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.lock import writing
from warehouse.records import Rubric, Task, empty
from warehouse.store import Store


def few_examples(out: Path, copy: Path, n: int) -> Path:
    """Return the rooms of a run with each tool's program induced anew from n of its calls; the world stays as it is."""
    settings = Settings(logs=(), out=str(out))
    with Store.open(settings.warehouse, write=False) as store:
        sessions, turns, tools, changes = (
            store.table(f"core.{name}") for name in ("sessions", "turns", "tools", "row_changes"))
        world = build(sessions, turns, tools, configured_starts(store, settings)[1], changes)
        cut = world._replace(services={name: _cut(service, n) for name, service in world.services.items()})
        behaviours = induce(cut, tools)
    for manifest in sorted(out.glob("*/*/manifest.json")):
        room = copy / manifest.parent.relative_to(out)
        shutil.copytree(manifest.parent, room)
        service = Environment.load_room(room).manifest["service"]
        programs = behaviours.filter(pl.col("service") == service).sort("tool")["program"]
        (room / "behaviour.jsonl").write_text("".join(f"{program}\n" for program in programs), "utf-8")
    return copy


def _cut(service: ServiceWorld, n: int) -> ServiceWorld:
    """Of each tool's steps the n whose events have the first hashes."""
    events: dict[str, list[str]] = defaultdict(list)
    for step in service.steps:
        events[step.call.tool].append(step.call.event_id)
    kept = set().union(*(sample(own, n) for own in events.values()))
    return service._replace(steps=[step for step in service.steps if step.call.event_id in kept])


def before_each(out: Path, scratch: Path, starts: dict[str, str]) -> Iterator[tuple[str, Environment | None]]:
    """(session, room) from the latest start to the earliest: each room knows only what was logged before that instant.

    Takes the events of the run's warehouse away as it goes: nothing else may use it. None: nothing was logged before.
    """
    settings = Settings(logs=(), out=str(out))
    for session_id in sorted(starts, key=lambda name: (starts[name], name), reverse=True):
        start = starts[session_id]
        with writing(settings.warehouse, "a benchmark"), Store.open(settings.warehouse) as store:
            store.change("delete from core.events where happened_at >= cast($start as timestamptz)", start=start)
            store.change("update raw.stages set digest = $start where stage = 'extract'", start=start)
        for stage in STAGES:
            if stage.name in ("sessions", "world"):
                carry_out(stage, settings)
        with Store.open(settings.warehouse, write=False) as store:
            yield session_id, _room(store, scratch)


def _room(store: Store, scratch: Path) -> Environment | None:
    """Return the open room of the service with the most calls, as a run would write it."""
    services = store.read(
        "select service, count(*) as n from core.turns where kind = 'call' group by all order by n desc, service")
    if services.is_empty():
        return None
    service = services["service"][0]
    own = pl.col("service") == service
    starts_from = dict(store.read("select service, starts_from from mart.services order by all").iter_rows())[service]
    rows = rooms.rows_of(service, store.table("mart.facts"), store.table("mart.recorded"), store.table("mart.behaviours"))
    scripts = pl.DataFrame(schema={"task_id": pl.String, "opening": pl.String, "script": pl.String})
    made = bundle.Bundle(canonical(service), service, starts_from, rows, store.table("core.tools").filter(own), empty(Task),
                         scripts, empty(Rubric), 0, {}, [])
    bundle.write_room(made, scratch, {"left": "a benchmark needs none"})
    return Environment.load_room(scratch)
