"""The rebuilt world, with more of it than the tables hold (programs, steps, documents), and its tables, service by service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

from pipelines.parts import Parts, note, parts, put
from pipelines.settings import Settings
from warehouse.errors import InputError
from warehouse.records import Behaviour, Fact, Recorded, Service, empty, frame
from warehouse.store import Store

if TYPE_CHECKING:
    from env_builder.world import World
    from extractors.configuration import Configuration

Start = Literal["reset", "shared"]


def world_of(store: Store, settings: Settings) -> World:
    """The world of the sessions in the warehouse."""
    return _Logged(store, settings).world()


class _Logged:
    """What worlds are made from; sessions and their turns are read when they are asked for."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self.tools, self.row_changes = store.table("core.tools"), store.table("core.row_changes")
        sources = store.read("select distinct service, source from core.sessions order by all")
        self.starts = told(sources, settings)
        self.services: list[str] = sources["service"].unique().sort().to_list()

    def world(self, services: list[str] | None = None) -> World:
        """The world of all services, or of these: what is found of one depends on no other."""
        from env_builder import world

        own, asked = "list_contains($services, service)", self.services if services is None else services
        return world.build(
            self._store.table("core.sessions", own, services=asked), self._store.table("core.turns", own, services=asked),
            self.tools, self.starts, self.row_changes)


class _Made(NamedTuple):
    """Rows of services."""

    services: pl.DataFrame
    facts: pl.DataFrame
    recorded: pl.DataFrame
    behaviours: pl.DataFrame
    verdicts: dict[str, pl.DataFrame]
    """By service; of all together under an empty name."""


def worlds(store: Store, settings: Settings) -> dict[str, int]:
    """Fill the tables of the stage `world`: of services of which something changed anew, of all others as they stand.

    A file of programs may speak of any service: where there are some, or a model is asked, all are made together.
    """
    logged, behaviour = _Logged(store, settings), configuration_of(settings).behaviour
    changes = store.version("core.row_changes")
    found = parts(store, "world", {name: [logged.starts.get(name), changes] for name in logged.services},
                  ("core.sessions", "core.turns", "core.tools"))
    together = behaviour.ask or behaviour.programs is not None
    if together:
        found = found.again(found.wanted)
    made = _made(logged, settings, found, together)
    verdicts = note(store, "world", found, made.verdicts)
    for stage in ("world", "behaviour"):
        own = verdicts.filter(pl.col("stage") == stage).unique(["stage", "subject", "reason"])
        store.replace("mart.verdicts", own, "stage = $stage", stage=stage)
    put(store, "mart.services", found, made.services)
    return {"n_facts": put(store, "mart.facts", found, made.facts),
            "n_recorded": put(store, "mart.recorded", found, made.recorded),
            "n_behaviours": put(store, "mart.behaviours", found, made.behaviours)}


def _made(logged: _Logged, settings: Settings, found: Parts, together: bool) -> _Made:
    from pipelines.behaviours import behaviours

    rows: list[dict[str, Any]] = []
    facts, recorded, does = [empty(Fact)], [empty(Recorded)], [empty(Behaviour)]
    verdicts: dict[str, pl.DataFrame] = {}
    for name, group in [("", found.stale)] if together else [(name, [name]) for name in found.stale]:
        built = logged.world(group)
        tried = behaviours(built, logged.tools, settings)
        rows += [{"service": service, "starts_from": each.starts_from, "votes": json.dumps(each.votes, sort_keys=True)}
                 for service, each in sorted(built.services.items())]
        facts.append(built.facts)
        recorded.append(built.recorded)
        does.append(tried.behaviours)
        verdicts[name] = pl.concat([built.verdicts, tried.verdicts])
    return _Made(frame(Service, rows), pl.concat(facts), pl.concat(recorded), pl.concat(does), verdicts)


def told(sessions: pl.DataFrame, settings: Settings) -> dict[str, Start]:
    """What the configuration says of how sessions begin, by service."""
    says = {
        source.name: source.starts_from for source in configuration_of(settings).sources if source.starts_from is not None}
    found: dict[str, Start] = {}
    for service, source in sessions.select("service", "source").unique().sort("service", "source").iter_rows():
        if source in says and found.setdefault(service, says[source]) != says[source]:
            raise InputError(
                f"sources of the service {service!r} say both that sessions begin anew and that they share one state",
                str(settings.configuration), "give them one starts_from, or services of their own")
    return found


def configuration_of(settings: Settings) -> Configuration:
    """The configuration file, or what stands where none is given."""
    return settings.configured
