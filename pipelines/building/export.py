"""Exports on request: an environment, a run or rollouts in the format that another program reads.

In: a folder (`OUT`, `OUT/environments/NAME`, or one of rollouts), the name of an exporter or `datasets`, and a selection.
Out: files, and decisions on what was rejected. A dataset comes with its card and `left.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args

import polars as pl

from env_builder import exports
from env_builder.exports import DatasetSource, RoomExporter
from env_builder.exports.card import UNKNOWN
from env_builder.exports.selection import Selection, select
from env_builder.runtime.records import Tier
from env_builder.starts import KINDS, with_starts
from pipelines.building.cut import cut, left_out
from pipelines.building.datasets import FOR_TRAINING, published_tasks, source_of
from pipelines.building.environments import names_of
from pipelines.building.site_datasets import site_sources
from pipelines.building.work_datasets import work_sources
from pipelines.inspection.tasks import task_rows
from pipelines.rollouts.datasets import source_of as rolled_out
from pipelines.rollouts.kept import TRAJECTORIES
from pipelines.running import memory
from pipelines.settings import Settings
from warehouse.catalogs import catalog_of
from warehouse.errors import InputError, Missing
from warehouse.records import SPLITS, Decision, DifficultyBand, empty
from warehouse.store import Store

ALL = "datasets"
"""Asked for in the place of an exporter: every form of dataset, or those named."""
EVERYTHING = Selection()
_ORIGINS = """
    select task_id, t.repository, base_commit, dirty, recipe_id, recipe
    from mart.code_tasks as t join mart.recipes using (recipe_id) order by task_id"""
_MEMORY = 512
"""MB that DuckDB holds while it sorts turns."""


class Export(NamedTuple):
    """What was written."""

    paths: list[Path]
    decisions: pl.DataFrame


class Wanted(NamedTuple):
    """What to export, and how."""

    selection: Selection = EVERYTHING
    forms: tuple[str, ...] = ()
    """Of `datasets`; empty: all there are."""
    discount: float = 1.0
    pad_to: int = 0
    licence: str = UNKNOWN
    environment: Path | None = None
    """Of rollouts: the environment that they are of; None: `OUT/environments/NAME` next to `OUT/rollouts/NAME`."""
    configuration: str | None = None
    """The file that the run was given, for an environment that is made again (`pipelines/building/cut.py`)."""
    starts: tuple[str, ...] = ()
    """Kinds of tasks that start midway, to add to an environment (`env_builder/starts.py`)."""


def export(name: str, place: Path, to: Path, wanted: Wanted) -> Export:
    """Write what `place` holds with the exporter called `name`, or as `datasets`, into the folder `to`. Raises Missing."""
    formats = _formats(name, wanted)
    _check(name, to, wanted, bool(formats))
    if not formats:
        splits = wanted.selection.splits or FOR_TRAINING
        task_rows(place)
        kit = cut(place, splits, wanted.configuration)
        omitted = left_out(place, kit, splits)
        with TemporaryDirectory() as scratch:
            if wanted.starts:
                kit, started = with_starts(kit, wanted.starts, Path(scratch))
                omitted = pl.concat([omitted, started.filter(~pl.col("kept"))])
            written = exports.export_room(name, to, kit._replace(origins=_origins(place)) if kit.workspace else kit)
        return Export(written.paths, pl.concat([written.decisions, omitted]))
    done, many = [], _is_run(place)
    with TemporaryDirectory() as scratch:
        sources = list(_sources(place, Path(scratch), wanted))
        chosen = _named(sources, wanted.selection)
        selections = [select(source._replace(discount=wanted.discount, pad_to=wanted.pad_to), chosen) for source in sources]
        _check_not_empty(chosen, selections, place)
        interval = [chosen.least, chosen.most] if (chosen.least, chosen.most) != (None, None) else None
        options: dict[str, Any] = {
            "split": chosen.splits, "family": chosen.families, "band": chosen.bands, "outcome": interval, "tier": chosen.tiers,
            "policy": chosen.policies, "duplicates": chosen.duplicates, "pad": wanted.pad_to,
            "discount": None if wanted.discount == 1 else str(wanted.discount)}
        options = {name: value for name, value in options.items() if value}
        for source, rejected in selections:
            if name != ALL or wanted.forms:
                source = source._replace(page_steps=None)
            folder = to / source.environment if many else to
            done.append(exports.write(formats, folder, source, rejected, wanted.licence, options))
    return Export(
        sorted(path for each in done for path in each.paths), pl.concat([empty(Decision), *(each.decisions for each in done)]))


def _origins(place: Path) -> dict[str, dict[str, Any]]:
    """Return where tasks of repositories are from (`Kit.origins`), as far as the run that wrote an environment knows it."""
    warehouse = Settings(logs=(), out=str(place.parent.parent)).warehouse
    if not catalog_of(warehouse).is_there():
        return {}
    with Store.published(warehouse) as store:
        return {row["task_id"]: row for row in store.read(_ORIGINS).iter_rows(named=True)}


def _check(name: str, to: Path, wanted: Wanted, is_dataset: bool) -> None:
    """Check that what is wanted exists. Raises Missing, InputError."""
    selection = wanted.selection
    for kind, wanted_names, valid_names in (
            ("split", selection.splits, SPLITS), ("band", selection.bands, get_args(DifficultyBand)),
            ("tier", selection.tiers, get_args(Tier)), ("start", wanted.starts, KINDS)):
        if unknown := sorted(set(wanted_names) - set(valid_names)):
            raise Missing.named(kind, unknown[0], valid_names)
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
    if wanted.starts:
        able = [each.name for each in exports.registered().values() if isinstance(each, RoomExporter) and each.shows_calls]
        if name not in able:
            raise InputError(f"{name!r} shows no calls that were made before the agent's first move", "--start",
                             f"export {', '.join(able)}, or leave it out")
    if to.exists() and not to.is_dir():
        raise InputError("there is a file where a folder is to be written", str(to), "name another folder with --to")


def _check_not_empty(chosen: Selection, selections: Sequence[tuple[DatasetSource, pl.DataFrame]], place: Path) -> None:
    """Check that the selection is not empty. Raises InputError."""
    of_tasks = chosen == EVERYTHING._replace(splits=chosen.splits, families=chosen.families, bands=chosen.bands)
    n_prompts = sum(0 if source.published is None else source.published.height for source, _ in selections) if of_tasks else 0
    if chosen == EVERYTHING or n_prompts or any(source.tasks.height for source, _ in selections):
        return
    rejected = pl.concat([empty(Decision), *(rejected for _, rejected in selections)])
    reasons = ", ".join(f"{n} {reason}" for reason, n in rejected.group_by("reason").len("n").sort("reason").iter_rows())
    example = f" ({reasons}; the first: {rejected['detail'][0]})" if rejected.height else ""
    raise InputError(f"no episode is what was asked for{example}", str(place), "ask for something else")


def _formats(name: str, wanted: Wanted) -> list[str]:
    """Names of the dataset exporters that were asked for; none: `name` exports environments."""
    formats = exports.of_tables()
    if name == ALL:
        if unknown := sorted(set(wanted.forms) - set(formats)):
            raise Missing.named("form", unknown[0], formats)
        return sorted(wanted.forms or formats)
    if name not in exports.registered():
        raise Missing.named("exporter", name, [ALL, *exports.registered()])
    return [] if isinstance(exports.named(name), RoomExporter) else [name]


def _is_run(place: Path) -> bool:
    """Whether this is the folder that a run wrote, with all its services."""
    return not (place / "tasks.jsonl").is_file() and catalog_of(Settings(logs=(), out=str(place)).warehouse).is_there()


def _sources(place: Path, scratch: Path, wanted: Wanted) -> Iterator[DatasetSource]:
    """Yield the tables of each environment of a folder. Raises Missing where the folder has no environment."""
    if (place / TRAJECTORIES).is_file():
        environment = wanted.environment or place.parent.parent / "environments" / place.name
        task_rows(environment)
        published = published_tasks(environment, environment.parent.parent / "rewards" / environment.name)
        warehouse, families = Settings(logs=(), out=str(environment.parent.parent)).warehouse, dict[str, str]()
        if warehouse.is_file():
            with Store.published(warehouse) as store:
                families = _families(store)
        yield rolled_out(place, environment)._replace(published=published, families=families)
        return
    is_run = _is_run(place)
    out = place if is_run else place.parent.parent
    own = pl.lit(True) if is_run else pl.col("task_id").is_in([row["task_id"] for row in task_rows(place)])
    with Store.published(Settings(logs=(), out=str(out)).warehouse) as store, store.holding(memory.of_duckdb(_MEMORY), 2):
        names = names_of(store.read("select distinct service from mart.tasks order by service")["service"])
        settings = Settings(logs=(), out=str(out))
        others = [source for source in (*site_sources(store, settings), *work_sources(store, settings))
                  if is_run or source.environment == place.name]
        if not is_run and not others and place.name not in names.values():
            raise Missing.named("environment", place.name, names.values())
        families = _families(store)
        for service, name in names.items():
            if is_run or name == place.name:
                source = source_of(store, service, name, scratch)
                published = published_tasks(out / "environments" / name, out / "rewards" / name)
                yield source._replace(tasks=source.tasks.filter(own), published=published, families=families)
        for source in others:
            published = published_tasks(out / "environments" / source.environment, out / "rewards" / source.environment)
            yield source._replace(tasks=source.tasks.filter(own), published=published)


def _families(store: Store) -> dict[str, str]:
    """Ids of families by name."""
    return dict(store.read("select name, family from mart.names order by all").iter_rows())


def _named(sources: Sequence[DatasetSource], selection: Selection) -> Selection:
    """Replace families' names and the beginnings of their ids by their ids. Raises Missing."""
    family_ids = {family for source in sources for family in (
        *source.tasks["family"], *([] if source.published is None else source.published["family_id"]))}
    names = {name: family for source in sources for name, family in source.families.items() if family in family_ids}
    families: list[str] = []
    for beginning in selection.families:
        matches = [family for family in sorted(family_ids)
                   if (beginning and family.startswith(beginning)) or names.get(beginning) == family]
        if not matches:
            raise Missing.named("family", beginning, sorted(names) or sorted(family_ids))
        families += matches
    return selection._replace(families=tuple(families))
