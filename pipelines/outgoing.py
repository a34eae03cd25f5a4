"""What somebody asks for: an environment, a run or rollouts in the form that another program takes.

In: a place (`OUT`, `OUT/environments/NAME`, or a folder of rollouts), the name of an exporter or `datasets`, and what of it
is wanted. Out: files, and verdicts on what was left. A dataset goes with its card and `left.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args

import polars as pl

from env_builder import exports
from env_builder.exports import RoomExporter, Source
from env_builder.exports.card import UNKNOWN
from env_builder.exports.selection import Selection, select
from env_builder.runtime.records import Tier
from pipelines import memory
from pipelines.bundling import names_of
from pipelines.cutting import cut, left_out
from pipelines.exporting import FOR_TRAINING
from pipelines.reading import task_rows
from pipelines.rollouts.datasets import source_of as rolled_out
from pipelines.rollouts.kept import TRAJECTORIES
from pipelines.settings import Settings
from pipelines.sources import source_of, ways_of
from warehouse.catalogs import catalog_of
from warehouse.errors import InputError, Missing
from warehouse.records import SIDES, Band, Verdict, empty
from warehouse.store import Store

ALL = "datasets"
"""Asked for in the place of an exporter: every form of dataset, or those named."""
EVERYTHING = Selection()
_MEMORY = 512
"""MB that DuckDB holds while it sorts turns."""


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
    forms = _forms(name, wanted)
    _check(name, to, wanted, bool(forms))
    if not forms:
        splits = wanted.selection.splits or FOR_TRAINING
        task_rows(place)
        kit = cut(place, splits, wanted.configuration)
        written = exports.export_room(name, to, kit)
        return Export(written.paths, pl.concat([written.verdicts, left_out(place, kit, splits)]))
    done, many = [], _is_run(place)
    with TemporaryDirectory() as scratch:
        sources = list(_sources(place, Path(scratch), wanted))
        chosen = _named(sources, wanted.selection)
        found = [select(source._replace(discount=wanted.discount, pad_to=wanted.pad_to), chosen) for source in sources]
        _something(chosen, found, place)
        for source, left in found:
            folder = to / source.environment if many else to
            done.append(exports.write(forms, folder, source, left, wanted.licence, _asked(wanted, chosen)))
    return Export(
        sorted(path for each in done for path in each.paths), pl.concat([empty(Verdict), *(each.verdicts for each in done)]))


def _check(name: str, to: Path, wanted: Wanted, is_dataset: bool) -> None:
    """Raises Missing, InputError where what is wanted can't be had."""
    selection = wanted.selection
    for kind, asked, known in (("split", selection.splits, SIDES), ("band", selection.bands, get_args(Band)),
                               ("tier", selection.tiers, get_args(Tier))):
        if unknown := sorted(set(asked) - set(known)):
            raise Missing.named(kind, unknown[0], known)
    if not 0 <= wanted.discount <= 1:
        raise InputError("a discount lies between 0 and 1", str(wanted.discount), "give another --discount")
    low, high = (limit if limit is not None else end for limit, end in ((selection.least, 0.0), (selection.most, 1.0)))
    if not 0 <= low <= high <= 1:
        raise InputError("an interval of rewards lies between 0 and 1, its lower end first", f"{low:g}:{high:g}",
                         "write for example --outcome 0.8:1")
    if wanted.forms and name != ALL:
        raise InputError(f"{name!r} is one form, and --form chooses among several", "", f"leave it out, or export {ALL!r}")
    if not is_dataset and (selection._replace(splits=()) != EVERYTHING or (wanted.discount, wanted.pad_to) != (1.0, 0)):
        raise InputError(f"{name!r} takes a room, of which --split alone can be chosen", name, "leave the other options out")
    if to.exists() and not to.is_dir():
        raise InputError("there is a file where a folder is to be written", str(to), "name another folder with --to")


def _asked(wanted: Wanted, chosen: Selection) -> dict[str, Any]:
    """What was asked for, by the names of the options, as the export tells it."""
    interval = [chosen.least, chosen.most] if (chosen.least, chosen.most) != (None, None) else None
    told = {"split": chosen.splits, "family": chosen.families, "band": chosen.bands, "outcome": interval, "tier": chosen.tiers,
            "policy": chosen.policies, "duplicates": chosen.duplicates, "pad": wanted.pad_to,
            "discount": None if wanted.discount == 1 else str(wanted.discount)}
    return {name: value for name, value in told.items() if value}


def _something(chosen: Selection, found: Sequence[tuple[Source, pl.DataFrame]], place: Path) -> None:
    """Raises InputError where something was asked for, and nothing is that."""
    of_tasks = chosen == EVERYTHING._replace(splits=chosen.splits, families=chosen.families, bands=chosen.bands)
    n_prompts = sum(0 if source.ways is None else source.ways.height for source, _ in found) if of_tasks else 0
    if chosen == EVERYTHING or n_prompts or any(source.tasks.height for source, _ in found):
        return
    left = pl.concat([empty(Verdict), *(left for _, left in found)])
    reasons = ", ".join(f"{n} {reason}" for reason, n in left.group_by("reason").len("n").sort("reason").iter_rows())
    example = f" ({reasons}; the first: {left['detail'][0]})" if left.height else ""
    raise InputError(f"no episode is what was asked for{example}", str(place), "ask for something else")


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
    return not (place / "tasks.jsonl").is_file() and catalog_of(Settings(logs=(), out=str(place)).warehouse).is_there()


def _sources(place: Path, scratch: Path, wanted: Wanted) -> Iterator[Source]:
    """The tables of each environment of a place. Raises Missing where it is none."""
    if (place / TRAJECTORIES).is_file():
        environment = wanted.environment or place.parent.parent / "environments" / place.name
        task_rows(environment)
        ways = ways_of(environment, environment.parent.parent / "rewards" / environment.name)
        yield rolled_out(place, environment)._replace(ways=ways, families=_names(environment.parent.parent))
        return
    out = place if _is_run(place) else place.parent.parent
    published = None if _is_run(place) else {row["task_id"] for row in task_rows(place)}
    settings = Settings(logs=(), out=str(out))
    with Store.published(settings.warehouse) as store, store.holding(memory.of_duckdb(_MEMORY), 2):
        services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
        names = names_of(services)
        if published is not None and place.name not in names.values():
            raise Missing.named("environment", place.name, names.values())
        families = _families(store)
        for service, name in names.items():
            if published is not None and name != place.name:
                continue
            source = source_of(store, service, name, scratch)
            ways = ways_of(out / "environments" / name, out / "rewards" / name)
            tasks = source.tasks if published is None else source.tasks.filter(pl.col("task_id").is_in(list(published)))
            yield source._replace(tasks=tasks, ways=ways, families=families)


def _families(store: Store) -> dict[str, str]:
    return dict(store.read("select name, family from mart.names order by all").iter_rows())


def _names(out: Path) -> dict[str, str]:
    """Ids of families by name, as the run that wrote the folder found them; none where it is no such folder."""
    warehouse = Settings(logs=(), out=str(out)).warehouse
    if not warehouse.is_file():
        return {}
    with Store.published(warehouse) as store:
        return _families(store)


def _named(sources: Sequence[Source], selection: Selection) -> Selection:
    """The selection with ids of families for what begins one, or is one's name. Raises Missing."""
    known = {family for source in sources for family in (
        *source.tasks["family"], *([] if source.ways is None else source.ways["family_id"]))}
    names = {name: family for source in sources for name, family in source.families.items() if family in known}
    families: list[str] = []
    for asked in selection.families:
        found = [family for family in sorted(known) if (asked and family.startswith(asked)) or names.get(asked) == family]
        if not found:
            raise Missing.named("family", asked, sorted(names) or sorted(known))
        families += found
    return selection._replace(families=tuple(families))
