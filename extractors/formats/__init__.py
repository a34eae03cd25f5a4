"""Log formats: one module each, and the registry that finds them by content.

Formats come from the entry points of the group `traceroom.formats`: ours are in pyproject.toml, like those of other packages.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from extractors.formats.format import Block, Emit, Format, Head, LogRecord
from warehouse.errors import InputError, Missing

__all__ = ["Block", "Emit", "Format", "Head", "LogRecord", "history_of", "named", "recognise", "registered",
           "without_routines"]
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
    """Return the format called `name`; a miss lists what there is."""
    for each in registered():
        if each.name == name:
            return each
    raise Missing.named("format", name, (each.name for each in registered()))


@cache
def history_of(name: str) -> str:
    """Return what the records of a format tell of a conversation (`Format.history`); all of it where it is not installed."""
    return next((each.history for each in registered() if each.name == name), "full")


@cache
def without_routines() -> tuple[str, ...]:
    """Return the formats whose business events show no routine (`Format.routines`)."""
    return tuple(each.name for each in registered() if not each.routines)


def recognise(head: Head) -> Format | None:
    """Return the first format that claims a file which begins so."""
    return next((each for each in registered() if each.claims(head)), None)
