"""Live sources: one module per platform, and the registry that finds them by name.

Platforms come from the entry points of the group `traceroom.sources`: ours are in pyproject.toml, like those of other packages.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from extractors.sources.platform import (
    Account,
    Connection,
    Cursor,
    Identity,
    Platform,
    Query,
    RecordStream,
    SourcePage,
    SourceRecord,
)
from warehouse.errors import CursorExpired, InputError, Missing, RetryableFault

__all__ = [
    "Account",
    "Connection",
    "Cursor",
    "CursorExpired",
    "Identity",
    "Platform",
    "Query",
    "RecordStream",
    "RetryableFault",
    "SourcePage",
    "SourceRecord",
    "named",
    "names",
]
GROUP = "traceroom.sources"


def names() -> list[str]:
    """Return the names of all platforms."""
    return sorted(_points())


def named(name: str) -> Platform:
    """Return the platform called `name`; a miss lists what there is."""
    if (point := _points().get(name)) is None:
        raise Missing.named("platform", name, names())
    loaded = point.load()
    if not isinstance(loaded, Platform):
        raise InputError("the entry point is no Platform", f"{GROUP}: {point.name} = {point.value}",
                         "name an instance of extractors.sources.Platform there")
    return loaded


def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
