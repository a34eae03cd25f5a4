"""What somebody asks for: an environment, a run or rollouts in the form that another program takes.

In: a place (`OUT`, `OUT/environments/NAME`, or a folder of rollouts), the name of an exporter or `datasets`, and what of it
is wanted. Out: files, and verdicts on what was left. A dataset goes with its card and `left.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl

from env_builder import exports
from env_builder.exports import RoomExporter, Source
from env_builder.exports.card import UNKNOWN
from env_builder.exports.selection import Selection, select
from pipelines.bundling import names_of
from pipelines.cutting import cut, left_out
from pipelines.exporting import FOR_TRAINING
from pipelines.reading import task_rows
from pipelines.rollouts.datasets import source_of as rolled_out
from pipelines.rollouts.kept import TRAJECTORIES
from pipelines.settings import Settings
from pipelines.sources import source_of, ways_of
from warehouse.errors import InputError, Missing
from warehouse.records import SIDES, Verdict, empty
from warehouse.store import Store

ALL = "datasets"
"""Asked for in the place of an exporter: every form of dataset, or those named."""
EVERYTHING = Selection()
_MEMORY = "512MB"
"""That DuckDB holds while it sorts turns."""


class Export(NamedTuple):
    """What was written."""

    paths: list[Path]
    verdicts: pl.DataFrame


class Wanted(NamedTuple):
    """What of a place, and how."""

    selection: Selection = EVERYTHING
    forms: tuple[str, ...] = ()
    """Of `datasets`; empty: all there are."""
    discount: float = 1.0
    pad_to: int = 0
    licence: str = UNKNOWN
    environment: Path | None = None
    """Of rollouts: the environment that they are of; None: `OUT/environments/NAME` beside `OUT/rollouts/NAME`."""
    configuration: str | None = None
    """The file that the run was given, for a room is made anew (`pipelines/cutting.py`)."""


def export(name: str, place: Path, to: Path, wanted: Wanted) -> Export:
    """Write what `place` holds with the exporter called `name`, or as `datasets`, into the folder `to`. Raises Missing."""
    _check(wanted)
    forms = _forms(name, wanted)
    if not forms:
        splits = wanted.selection.splits or FOR_TRAINING
        task_rows(place)
        kit = cut(place, splits, wanted.configuration)
        written = exports.export_room(name, to, kit)
        return Export(written.paths, pl.concat([written.verdicts, left_out(place, kit, splits)]))
    done, many = [], _is_run(place)
    with TemporaryDirectory() as scratch:
        for source in _sources(place, Path(scratch), wanted):
            chosen = _named(source, wanted.selection)
            source, left = select(source._replace(discount=wanted.discount, pad_to=wanted.pad_to), chosen)
            done.append(exports.write(forms, to / source.environment if many else to, source, left, wanted.licence))
    return Export(
        sorted(path for each in done for path in each.paths), pl.concat([empty(Verdict), *(each.verdicts for each in done)]))


def _check(wanted: Wanted) -> None:
    if unknown := sorted(set(wanted.selection.splits) - set(SIDES)):
        raise Missing.named("split", unknown[0], SIDES)
    if not 0 <= wanted.discount <= 1:
        raise InputError("a discount lies between 0 and 1", str(wanted.discount), "give another --discount")


def _forms(name: str, wanted: Wanted) -> list[str]:
    """The dataset exporters that were asked for; none: it is an exporter of rooms."""
    known = exports.of_tables()
    if name == ALL:
        if unknown := sorted(set(wanted.forms) - set(known)):
            raise Missing.named("form", unknown[0], known)
        return sorted(wanted.forms or known)
    if name not in exports.registered():
        raise Missing.named("exporter", name, [ALL, *exports.registered()])
    return [] if isinstance(exports.named(name), RoomExporter) else [name]


def _is_run(place: Path) -> bool:
    """Is this the folder that a run wrote, with all its services?"""
    return not (place / "tasks.jsonl").is_file() and Settings(logs=(), out=str(place)).warehouse.is_file()


def _sources(place: Path, scratch: Path, wanted: Wanted) -> Iterator[Source]:
    """The tables of each environment of a place. Raises Missing where it is none."""
    if (place / TRAJECTORIES).is_file():
        environment = wanted.environment or place.parent.parent / "environments" / place.name
        task_rows(environment)
        ways = ways_of(environment, environment.parent.parent / "rewards" / environment.name)
        yield rolled_out(place, environment)._replace(ways=ways)
        return
    out = place if _is_run(place) else place.parent.parent
    published = None if _is_run(place) else {row["task_id"] for row in task_rows(place)}
    settings = Settings(logs=(), out=str(out))
    with Store.published(settings.warehouse) as store, store.holding(_MEMORY, 2):
        services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
        names = names_of(services)
        if published is not None and place.name not in names.values():
            raise Missing.named("environment", place.name, names.values())
        families = dict(store.read("select name, family from mart.names order by all").iter_rows())
        for service, name in names.items():
            if published is not None and name != place.name:
                continue
            source = source_of(store, service, name, scratch)
            ways = ways_of(out / "environments" / name, out / "rewards" / name)
            tasks = source.tasks if published is None else source.tasks.filter(pl.col("task_id").is_in(list(published)))
            yield source._replace(tasks=tasks, ways=ways, families=families)


def _named(source: Source, selection: Selection) -> Selection:
    """The selection with ids of families for what begins one, or is one's name. Raises Missing."""
    known = {*source.tasks["family"], *([] if source.ways is None else source.ways["family_id"])}
    families: list[str] = []
    for asked in selection.families:
        found = [family for family in sorted(known) if family.startswith(asked) or source.families.get(asked) == family]
        if not found:
            raise Missing.named("family", asked, sorted(known))
        families += found
    return selection._replace(families=tuple(families))
