"""Which formats there are, and which of them a file is in.

Formats come from the entry points of the group `traceroom.formats`: ours stand in pyproject.toml like anybody's.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from extractors.formats.format import Format, Head
from warehouse.errors import InputError, Missing

GROUP = "traceroom.formats"


@cache
def registered() -> tuple[Format, ...]:
    """All formats, in the order in which they are asked."""
    formats = []
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Format):
            raise InputError("the entry point is no Format", f"{GROUP}: {point.name} = {point.value}",
                             "name an instance of extractors.formats.Format there")
        formats.append(loaded)
    return tuple(sorted(formats, key=lambda each: (each.rank, each.name)))


def named(name: str) -> Format:
    """The format called `name`; a miss lists what there is."""
    for each in registered():
        if each.name == name:
            return each
    raise Missing.named("format", name, (each.name for each in registered()))


@cache
def history_of(name: str) -> str:
    """What the records of a format tell of a conversation (`Format.history`); of one that is not there any more, all of it."""
    return next((each.history for each in registered() if each.name == name), "full")


def recognise(head: Head) -> Format | None:
    """The first format that claims a file which begins so."""
    return next((each for each in registered() if each.claims(head)), None)
