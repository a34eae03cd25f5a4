"""The rebuilt world, with more of it than the tables hold (programs, steps, documents)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from pipelines.settings import Settings
from warehouse.errors import InputError
from warehouse.store import Store

if TYPE_CHECKING:
    from env_builder.world import World
    from extractors.configuration import Configuration


def world_of(store: Store, settings: Settings) -> World:
    """The world of the sessions in the warehouse."""
    from env_builder import world

    sessions = store.table("core.sessions")
    return world.build(sessions, store.table("core.turns"), store.table("core.tools"), told(sessions, settings),
                       store.table("core.row_changes"))


def told(sessions: pl.DataFrame, settings: Settings) -> dict[str, Literal["reset", "shared"]]:
    """What the configuration says of how sessions begin, by service."""
    says = {
        source.name: source.starts_from for source in configuration_of(settings).sources if source.starts_from is not None}
    found: dict[str, Literal["reset", "shared"]] = {}
    for service, source in sessions.select("service", "source").unique().sort("service", "source").iter_rows():
        if source in says and found.setdefault(service, says[source]) != says[source]:
            raise InputError(
                f"sources of the service {service!r} say both that sessions begin anew and that they share one state",
                str(settings.configuration), "give them one starts_from, or services of their own")
    return found


def configuration_of(settings: Settings) -> Configuration:
    """The configuration file, or what stands where none is given."""
    return settings.configured
