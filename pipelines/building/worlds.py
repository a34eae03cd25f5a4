"""The stage `world`: the rebuilt world of each service, and what its tools do.

Behaviours are induced, then corrected by the programs that people wrote and, where it is configured, by those of a model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from env_builder.behaviour import asked, corrections, induce, learn
from env_builder.behaviour.standing import NO_LEDGER, ProgramLedger
from env_builder.world import InducedWorld, ServiceWorld, SeveralWorlds, build, read_logs, split_worlds
from env_builder.world.begin import Begin
from pipelines.building.decisions import replace_decisions
from pipelines.building.sealing import take_over
from pipelines.resources import asking
from pipelines.running.cache import partitions_of, record_partitions
from pipelines.running.code import code_digest
from pipelines.running.stage import Counts
from pipelines.settings import Settings, model_name, programs
from warehouse.errors import InputError
from warehouse.records import (
    Behaviour,
    Decision,
    Fact,
    LearntProgram,
    Record,
    Recorded,
    Service,
    SessionWorld,
    empty,
    frame,
)
from warehouse.store import Store


class WorldTables(NamedTuple):
    """What the stage makes of some services."""

    services: pl.DataFrame
    worlds: pl.DataFrame
    facts: pl.DataFrame
    recorded: pl.DataFrame
    behaviours: pl.DataFrame
    programs: pl.DataFrame
    decisions: pl.DataFrame


class BehaviourTables(NamedTuple):
    """What the tools of some services do."""

    behaviours: pl.DataFrame
    decisions: pl.DataFrame
    programs: pl.DataFrame
    """Rows of the ledger."""
    n_learnt: int


_RECORDS: tuple[type[Record], ...] = (Service, SessionWorld, Fact, Recorded, Behaviour, LearntProgram, Decision)
_OF_ITSELF = "(select * exclude (alike, other_session_ids) from core.sessions)"
"""What a service's world is made from: not which sessions of others may be the same."""


def worlds(store: Store, settings: Settings) -> Counts:
    """Fill the tables of the stage `world`: recompute services of which something changed, keep all others. A file of programs
    may speak of any service: where there are some, or a model is asked, all are made together."""
    tools, row_changes, config = store.table("core.tools"), store.table("core.row_changes"), settings.configured.behaviour
    services, starts = configured_starts(store, settings)
    changes = store.version("core.row_changes")
    partitions = partitions_of(store, "world", code_digest(__name__), {name: [starts.get(name), changes] for name in services},
                               (_OF_ITSELF, "core.turns", "core.tools"))
    ledger = _ledger(store, settings)
    n_learnt = 0
    groups = [(name, [name]) for name in partitions.stale]
    if config.ask or config.programs is not None:
        partitions = partitions.with_stale(partitions.wanted)
        groups = [("", partitions.stale)]
    made = [WorldTables(*map(empty, _RECORDS))]
    decisions: dict[str, pl.DataFrame] = {}
    for name, group in groups:
        sessions, turns = (  # what is found of one service depends on no other
            store.table(f"core.{each}", "list_contains($services, service)", services=group) for each in ("sessions", "turns"))
        tables, n_more = _made(sessions, turns, tools, starts, row_changes, settings, ledger)
        made.append(tables)
        n_learnt += n_more
        decisions[name] = made[-1].decisions
    recorded = record_partitions(store, "world", partitions, decisions)
    for stage in ("world", "behaviour"):
        replace_decisions(store, stage, recorded.filter(pl.col("stage") == stage))
    kept = [*partitions.standing, *store.read(
        "select distinct world from mart.worlds where list_contains($kept, service)", kept=list(partitions.standing))["world"]]
    n_rows = {}
    for place, table in enumerate(("services", "worlds", "facts", "recorded", "behaviours")):
        rows = pl.concat([each[place] for each in made])
        store.replace(f"mart.{table}", rows, "not list_contains($kept, service)", kept=kept)
        n_rows[f"n_{table}"] = store.count(f"mart.{table}")
    store.replace("raw.programs", pl.concat([each.programs for each in made]), "not list_contains($kept, service)", kept=kept)
    return {name: n_rows[name] for name in ("n_facts", "n_recorded", "n_behaviours")} | {"n_learnt": n_learnt}


def _ledger(store: Store, settings: Settings) -> ProgramLedger:
    take_over(store, settings, "raw.programs")
    programs = [LearntProgram(**row) for row in store.table("raw.programs").to_dicts()]
    epochs = dict(store.table("raw.epochs").select("session_id", "epoch").iter_rows())
    return ProgramLedger(code_digest("env_builder.behaviour"), epochs, {(one.service, one.tool): one for one in programs})


def relearn(store: Store, services: Sequence[str]) -> int:
    """Forget what was learnt of the tools of these services, of all where none is named: the next run learns it from the whole
    log. Gives the programs that were forgotten."""
    where = "len($services) = 0 or list_contains($services, service)"
    n_programs = store.count("raw.programs")
    with store.transaction():
        store.change(f"delete from raw.programs where {where}", None, services=list(services))
        store.change(f"delete from raw.partitions where stage = 'world' and ({where})", None, services=list(services))
        store.change("delete from raw.stages where stage = 'world'", None)   # it has something to do in the next run
    return n_programs - store.count("raw.programs")


def _made(
    sessions: pl.DataFrame, turns: pl.DataFrame, tools: pl.DataFrame, starts: dict[str, Begin], row_changes: pl.DataFrame,
    settings: Settings, ledger: ProgramLedger,
) -> tuple[WorldTables, int]:
    """Rebuild some services, and count the tools that were learnt. Where the sessions of one are of several worlds, each world
    is also rebuilt as a service of its own; the service itself is what holds in all, and what each session saw."""
    logs = read_logs(sessions, turns)
    several = {service: worlds for service, log in logs.items() if service not in starts and (
        worlds := split_worlds(
            sessions.filter(pl.col("service") == service), turns.filter(pl.col("service") == service), log))}
    built = build(sessions, turns, tools, {**starts, **dict.fromkeys(several, "reset")}, row_changes, logs)
    induced, tried, learnt, n_learnt = behaviours(built, tools, settings, ledger)
    parts = [WorldTables(
        empty(Service), empty(SessionWorld), built.facts, built.recorded, induced, learnt, pl.concat([built.decisions, tried]))]
    begins: dict[str, Service] = {name: _service(name, each) for name, each in built.services.items()}
    for service, worlds in several.items():
        own = frame(SessionWorld, [
            {"session_id": session, "service": service, "world": f"{service}#{world + 1}"}
            for session, world in sorted(worlds.of_session.items())])
        in_worlds = [in_their_worlds(rows.join(own, on="session_id", how="semi"), own) for rows in (sessions, turns)]
        each = build(in_worlds[0], in_worlds[1], _for_worlds(tools, own), {})
        programs_of_worlds = _as_written(induce(each, _for_worlds(tools, own)), _for_worlds(induced, own))
        parts.append(WorldTables(empty(Service), own, each.facts, each.recorded, programs_of_worlds, empty(LearntProgram),
                                 empty(Decision)))
        begins[service] = _several(service, worlds, list(each.services.values()))
    services = frame(Service, [begins[name] for name in sorted(begins)])
    return WorldTables(services, *(pl.concat(tables) for tables in zip(*(part[1:] for part in parts), strict=True))), n_learnt


def in_their_worlds(rows: pl.DataFrame, worlds: pl.DataFrame) -> pl.DataFrame:
    """Return rows of sessions with the world in the place of the service, where there are several."""
    return rows.join(worlds.select("session_id", "world"), on="session_id", how="left", maintain_order="left").with_columns(
        service=pl.coalesce("world", "service")).select(rows.columns)


def _for_worlds(rows: pl.DataFrame, worlds: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the service once for each of its worlds."""
    return worlds.select("service", "world").unique().join(rows, on="service").with_columns(service="world").select(
        rows.columns).sort("service", "tool")


def _as_written(induced: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """Put the programs that somebody wrote for a service in the place of those that were induced of its worlds."""
    written = whole.filter(pl.col("program").str.json_path_match("$.written_by").is_not_null())
    return pl.concat([induced.join(written, on=["service", "tool"], how="anti"), written]).sort("service", "tool")


def _service(name: str, world: ServiceWorld) -> Service:
    return Service(service=name, starts_from=world.starts_from, decided_by=world.decided_by,
                   votes=json.dumps(world.votes, sort_keys=True), worlds="{}")


def _several(service: str, several: SeveralWorlds, worlds: list[ServiceWorld]) -> Service:
    """Return how the sessions of a service of several worlds begin: sharing the state of their world if those of all do."""
    decided = sorted({world.decided_by for world in worlds if world.decided_by})
    votes = sum((Counter(world.votes) for world in worlds), Counter[str]())
    evidence = {
        "sessions": [n for _, n in sorted(Counter(several.of_session.values()).items())], "alike": several.split.n_agreeing,
        "against": several.split.n_against, "attribute": several.separation and several.separation.attribute,
        "right": several.separation and several.separation.n_right}
    return Service(
        service=service, starts_from="shared" if all(world.starts_from == "shared" for world in worlds) else "reset",
        decided_by=decided[0] if len(decided) == 1 else None,
        votes=json.dumps({"reset": votes["reset"], "shared": votes["shared"]}), worlds=json.dumps(evidence, sort_keys=True))


def configured_starts(store: Store, settings: Settings) -> tuple[list[str], dict[str, Begin]]:
    """(all services, what the configuration says of how sessions of a service begin). Raises InputError."""
    configured = {source.name: source.starts_from for source in settings.configured.sources if source.starts_from is not None}
    starts: dict[str, Begin] = {}
    sources = store.read("select distinct service, source from core.sessions order by all")
    for service, source in sources.iter_rows():
        if source in configured and starts.setdefault(service, configured[source]) != configured[source]:
            raise InputError(
                f"sources of the service {service!r} say both that sessions begin anew and that they share one state",
                str(settings.configuration), "give them one starts_from, or services of their own")
    return sources["service"].unique().sort().to_list(), starts


def behaviours(
    world: InducedWorld, tools: pl.DataFrame, settings: Settings, ledger: ProgramLedger = NO_LEDGER
) -> BehaviourTables:
    """Return the behaviours of all tools. Raises InputError where a file of the folder is no program, or half a model is
    configured."""
    config = settings.configured.behaviour
    learnt = learn(world, tools, ledger)
    induced, decisions = corrections.corrected(learnt.behaviours, world, programs(config.programs))
    if ask := asking(settings) if config.ask else None:
        induced, more = asked.written(induced, world, tools, ask, model_name())
        decisions = pl.concat([decisions, more])
    return BehaviourTables(induced, decisions, learnt.programs, learnt.n_learnt)
