"""What other programs take: datasets to train on and rooms to act in, one module per consumer, and the registry of them.

In: the tables of an environment, or a built one. Out: of tables, files under `OUT/datasets/<environment>/`, split into
train, validation and held-out, and the leakage report of the split beside them; of a room, a package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from env_builder.exports import card, page_steps
from env_builder.exports.exporter import DatasetSource, Exported, Exporter, RoomExporter, named, of_tables, registered
from env_builder.exports.kit import Kit
from warehouse.errors import Missing
from warehouse.records import Decision, empty

__all__ = [
    "DatasetSource",
    "Exported",
    "Exporter",
    "Kit",
    "RoomExporter",
    "by_default",
    "export",
    "export_room",
    "named",
    "of_tables",
    "registered",
    "write",
    "write_leakage",
]

LEAKAGE = "leakage.json"


def export(name: str, out: Path, source: DatasetSource) -> Exported:
    """Write `source` with the exporter called `name` into the folder `out` (made where it is missing).

    Raises `Missing` for a name that no exporter of datasets has, with the names there are.
    """
    exporter = named(name)
    if not isinstance(exporter, Exporter):
        raise Missing.named("exporter of datasets", name, of_tables())
    out.mkdir(parents=True, exist_ok=True)
    return exporter.write(out, source)


def by_default() -> list[str]:
    """Return the names of the exporters that every run calls."""
    return [name for name, exporter in of_tables().items() if exporter.by_default]


def write(
    forms: Iterable[str], out: Path, source: DatasetSource, rejected: pl.DataFrame | None = None, licence: str = card.UNKNOWN,
    query: Mapping[str, Any] = MappingProxyType({}),
) -> Exported:
    """Write `source` in several forms into the folder `out`, with a dataset card and what was left; of a site also its steps.

    `rejected`: frame of `Decision` on what was left before any form saw it; `query`: what was asked for of the source, as the
    card and `left.json` tell it. Raises InputError where the folder holds an export of something else; other forms stay.
    """
    out.mkdir(parents=True, exist_ok=True)
    about = {"environment": source.environment, "content_digest": source.content_digest, **query}
    earlier = card.earlier_rows(out, about)
    written = {form: export(form, out, source) for form in forms}
    if source.page_steps is not None:
        written[page_steps.NAME] = page_steps.write(out, source)
    decisions = {card.ALL: empty(Decision) if rejected is None else rejected,
                 **{form: each.decisions for form, each in written.items()}}
    paths = [path for each in written.values() for path in each.paths]
    return Exported(sorted(paths + card.write(out, source, decisions, licence, about, earlier)), pl.concat(decisions.values()))


def export_room(name: str, out: Path, kit: Kit) -> Exported:
    """Write `kit` with the exporter called `name` into the folder `out` (made where it is missing).

    Raises `Missing` for a name that no exporter of rooms has, with the names there are.
    """
    exporter = named(name)
    if not isinstance(exporter, RoomExporter):
        raise Missing.named("exporter of rooms", name, sorted(set(registered()) - set(of_tables())))
    out.mkdir(parents=True, exist_ok=True)
    return exporter.write(out, kit)


def write_leakage(out: Path, report: Mapping[str, Any]) -> Path:
    """Write what the sides of the split have in common as canonical JSON; gives the file's path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / LEAKAGE
    path.write_text(json.dumps(report, sort_keys=True, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
    return path
