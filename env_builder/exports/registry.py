"""Which exporters there are: the entry points of the group `traceroom.exports`, ours like anybody's."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from env_builder.exports.exporter import Exporter
from warehouse.errors import InputError, Missing

GROUP = "traceroom.exports"


@cache
def registered() -> dict[str, Exporter]:
    """All exporters by name."""
    exporters: dict[str, Exporter] = {}
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Exporter):
            raise InputError(
                "the entry point is no Exporter",
                f"{GROUP}: {point.name} = {point.value}",
                "name an instance of env_builder.exports.Exporter there",
            )
        exporters[loaded.name] = loaded
    return dict(sorted(exporters.items()))


def named(name: str) -> Exporter:
    """The exporter called `name`; a miss lists what there is."""
    known = registered()
    if name not in known:
        raise Missing.named("exporter", name, known)
    return known[name]
