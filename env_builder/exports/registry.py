"""Which exporters there are: the entry points of the group `traceroom.exports`, ours like anybody's."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from env_builder.exports.exporter import Exporter, RoomExporter
from warehouse.errors import InputError, Missing

GROUP = "traceroom.exports"


@cache
def registered() -> dict[str, Exporter | RoomExporter]:
    """All exporters by name."""
    exporters: dict[str, Exporter | RoomExporter] = {}
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Exporter | RoomExporter):
            raise InputError(
                "the entry point is no Exporter and no RoomExporter",
                f"{GROUP}: {point.name} = {point.value}",
                "name an instance of env_builder.exports.Exporter or RoomExporter there",
            )
        exporters[loaded.name] = loaded
    return dict(sorted(exporters.items()))


def of_tables() -> dict[str, Exporter]:
    """The exporters of datasets by name."""
    return {name: exporter for name, exporter in registered().items() if isinstance(exporter, Exporter)}


def named(name: str) -> Exporter | RoomExporter:
    """The exporter called `name`; a miss lists what there is."""
    known = registered()
    if name not in known:
        raise Missing.named("exporter", name, known)
    return known[name]
