"""Read logs of any format: files in, events and sessions out.

    from extractors import assemble, discover, read

    files, rejected = discover(["logs"])
    readings = [read(file) for file in files]
    sessions = assemble(polars.concat([reading.events for reading in readings]))

A new format is a `Format` that the entry point `traceroom.formats` names: it claims a `Head` and turns each `LogRecord` into
`Event` rows by an `Emit`. Everything else in this package is private: it may change without notice.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extractors.formats.format import Emit, Format, Head, LogRecord
    from extractors.inventory import SourceFile, discover
    from extractors.reading import Reading, read
    from extractors.sessions import AssembledSessions, assemble
    from warehouse.records import Event

__all__ = ["AssembledSessions", "Emit", "Event", "Format", "Head", "LogRecord", "Reading", "SourceFile", "assemble", "discover",
           "read"]
_MODULES = {
    "extractors.formats.format": ("Emit", "Format", "Head", "LogRecord"), "extractors.inventory": ("SourceFile", "discover"),
    "extractors.reading": ("Reading", "read"), "extractors.sessions": ("AssembledSessions", "assemble"),
    "warehouse.records": ("Event",)}
"""Modules are imported when a name is used: a command that reads no log starts without them."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'extractors' has no attribute {name!r}")
