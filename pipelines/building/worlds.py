"""The stage `world`: the rebuilt world of each service, and what its tools do.

Behaviours are induced, then corrected by the programs that people wrote and, where it is configured, by those of a model.
"""

from __future__ import annotations

import json
from typing import Literal

import polars as pl

from env_builder.behaviour import asked, corrections, induce
from env_builder.world import InducedWorld, build
from pipelines.building.decisions import replace_decisions
from pipelines.resources import asking
from pipelines.running.cache import partitions_of, record_partitions, replace_stale
from pipelines.running.code import code_digest
from pipelines.running.stage import Counts
from pipelines.settings import Settings, model_name, programs
from warehouse.errors import InputError
from warehouse.records import Behaviour, Fact, Recorded, Service, empty, frame
from warehouse.store import Store

Start = Literal["reset", "shared"]


def worlds(store: Store, settings: Settings) -> Counts:
    """Fill the tables of the stage `world`: recompute services of which something changed, keep all others. A file of programs
    may speak of any service: where there are some, or a model is asked, all are made together."""
    tools, row_changes, config = store.table("core.tools"), store.table("core.row_changes"), settings.configured.behaviour
    services, starts = configured_starts(store, settings)
    changes = store.version("core.row_changes")
    partitions = partitions_of(store, "world", code_digest(__name__), {name: [starts.get(name), changes] for name in services},
                               ("core.sessions", "core.turns", "core.tools"))
    groups = [(name, [name]) for name in partitions.stale]
    if config.ask or config.programs is not None:
        partitions = partitions.with_stale(partitions.wanted)
        groups = [("", partitions.stale)]
    made = {"mart.services": [empty(Service)], "mart.facts": [empty(Fact)], "mart.recorded": [empty(Recorded)],
            "mart.behaviours": [empty(Behaviour)]}
    decisions: dict[str, pl.DataFrame] = {}
    for name, group in groups:
        sessions, turns = (  # what is found of one service depends on no other
            store.table(f"core.{each}", "list_contains($services, service)", services=group) for each in ("sessions", "turns"))
        built = build(sessions, turns, tools, starts, row_changes)
        induced, tried = behaviours(built, tools, settings)
        rows = [{"service": service, "starts_from": each.starts_from, "votes": json.dumps(each.votes, sort_keys=True)}
                for service, each in sorted(built.services.items())]
        for table, new in zip(made.values(), (frame(Service, rows), built.facts, built.recorded, induced), strict=True):
            table.append(new)
        decisions[name] = pl.concat([built.decisions, tried])
    recorded = record_partitions(store, "world", partitions, decisions)
    for stage in ("world", "behaviour"):
        replace_decisions(store, stage, recorded.filter(pl.col("stage") == stage))
    n_rows = {table: replace_stale(store, table, partitions, pl.concat(frames)) for table, frames in made.items()}
    return {f"n_{name}": n_rows[f"mart.{name}"] for name in ("facts", "recorded", "behaviours")}


def configured_starts(store: Store, settings: Settings) -> tuple[list[str], dict[str, Start]]:
    """(all services, what the configuration says of how sessions of a service begin). Raises InputError."""
    configured = {source.name: source.starts_from for source in settings.configured.sources if source.starts_from is not None}
    starts: dict[str, Start] = {}
    sources = store.read("select distinct service, source from core.sessions order by all")
    for service, source in sources.iter_rows():
        if source in configured and starts.setdefault(service, configured[source]) != configured[source]:
            raise InputError(
                f"sources of the service {service!r} say both that sessions begin anew and that they share one state",
                str(settings.configuration), "give them one starts_from, or services of their own")
    return sources["service"].unique().sort().to_list(), starts


def behaviours(world: InducedWorld, tools: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(behaviours of all tools, decisions). Raises InputError where a file of the folder is no program, or half a model is
    configured."""
    config = settings.configured.behaviour
    induced, decisions = corrections.corrected(induce(world, tools), world, programs(config.programs))
    if ask := asking(settings) if config.ask else None:
        induced, more = asked.written(induced, world, tools, ask, model_name())
        decisions = pl.concat([decisions, more])
    return induced, decisions
