"""Datasets: every registered exporter over each service's tasks, written aside and renamed into place."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder import exports
from env_builder.exports import RoomExporter, Source
from pipelines import progress
from pipelines.bundling import move, names_of
from pipelines.cutting import cut
from pipelines.engine import Counts
from pipelines.reading import task_rows
from pipelines.settings import Settings
from pipelines.verdicts import all_of
from warehouse.errors import Missing
from warehouse.records import SIDES, Dataset, Verdict, empty, frame
from warehouse.store import Store

STAGE = "datasets"
FOR_TRAINING = ("train", "validation")
"""Sides of the split that a room is exported with where nobody says otherwise."""


class Export(NamedTuple):
    """What an exporter wrote for one environment."""

    paths: list[Path]
    verdicts: pl.DataFrame


def datasets(store: Store, settings: Settings) -> Counts:
    """OUT/datasets/<name> for each service with tasks: the files of every exporter, and the leakage report."""
    drafts = Path(settings.out) / ".datasets"
    shutil.rmtree(drafts, ignore_errors=True)
    verdicts, rows = [empty(Verdict)], []
    services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
    reports = dict(store.read("select service, report from mart.leakage").iter_rows())
    for done, (service, name) in enumerate(names_of(services).items()):
        progress.tell(STAGE, done, len(services), service)
        source = source_of(store, service, name)
        report = json.loads(reports.get(service, "{}"))
        exports.write_leakage(drafts / name, report)
        leaks = report.get("leaks", 0) if report.get("method") == "component" else 0
        if leaks:
            verdicts.append(_leaking(source, leaks))
        for exporter in () if leaks else exports.of_tables():
            verdicts.append(exports.export(exporter, drafts / name, source).verdicts)
        rows += [_row(path, drafts, source.tasks.height) for path in sorted((drafts / name).rglob("*")) if path.is_file()]
    drafts.mkdir(parents=True, exist_ok=True)
    move(drafts, settings.datasets)
    left = pl.concat(verdicts).unique(["stage", "subject", "reason"])
    sessions = store.read("select unnest(session_ids) as session_id from mart.tasks")["session_id"]
    told = all_of(sessions, left, STAGE, "exported", "Stands in the files of every exporter.")
    store.replace("mart.verdicts", told, "stage = $stage", stage=STAGE)
    store.replace("mart.datasets", frame(Dataset, rows))
    return {"n_datasets": len(rows), "n_left": left.height}


def hold(store: Store, settings: Settings) -> bool:
    """Are the files still there, in their size?"""
    rows = store.read("select path, n_bytes from mart.datasets")
    places = [(Path(settings.out) / path, n_bytes) for path, n_bytes in rows.iter_rows()]
    return all(place.is_file() and place.stat().st_size == n_bytes for place, n_bytes in places)


def export(
    environment: Path, exporter: str, to: Path, splits: Collection[str] = (), configuration: str | None = None
) -> Export:
    """Write a published environment with one exporter into the folder `to`: the tables of its tasks, or the room itself.

    `splits`: sides to write; by default all of a dataset, and those to train on of a room.
    `configuration`: the file that the run was given, for a room is made anew (`pipelines/cutting.py`). Raises Missing.
    """
    unknown = sorted(set(splits) - set(SIDES))
    if unknown:
        raise Missing.named("split", unknown[0], SIDES)
    if isinstance(exports.named(exporter), RoomExporter):
        return _export_room(environment, exporter, to, splits or FOR_TRAINING, configuration)
    settings = Settings(logs=(), out=str(environment.parent.parent))
    with Store.published(settings.warehouse) as store:
        row = store.read("select service from mart.environments where environment = $name", name=environment.name)
        if row.is_empty():
            known = store.read("select environment from mart.environments")["environment"]
            raise Missing.named("environment", environment.name, known)
        source = source_of(store, row["service"].item(), environment.name)
    tasks = [row["task_id"] for row in task_rows(environment)]
    chosen = source.tasks.filter(pl.col("task_id").is_in(tasks) & pl.col("split").is_in(list(splits or SIDES)))
    written = exports.export(exporter, to, source._replace(tasks=chosen))
    return Export(written.paths, written.verdicts)


def _export_room(
    environment: Path, exporter: str, to: Path, splits: Collection[str], configuration: str | None
) -> Export:
    written = exports.export_room(exporter, to, cut(environment, splits, configuration))
    return Export(written.paths, written.verdicts)


def source_of(store: Store, service: str, name: str) -> Source:
    """The tables of one service, as exporters take them."""
    digest = store.read("select content_digest from mart.environments where environment = $name", name=name)
    own = "where service = $service order by all"
    turns = store.read(f"select * from core.turns {own}", service=service)
    outcomes = store.table("mart.outcomes").join(turns.select("session_id").unique(), on="session_id", how="semi")
    return Source(
        name, digest["content_digest"].item() if digest.height else None,
        store.read(f"select * from mart.tasks {own}", service=service), turns, outcomes,
        store.read(f"select * from core.tools {own}", service=service))


def _leaking(source: Source, n_leaks: int) -> pl.DataFrame:
    """Verdicts on all sessions of a service whose split leaks."""
    detail = f"{n_leaks} things stand on several sides of the split of {source.environment}; see its leakage.json"
    return frame(Verdict, [
        Verdict(stage=STAGE, subject=session, kept=False, reason="leak", detail=detail)
        for session in source.tasks["session_ids"].explode().unique().sort()])


def _row(path: Path, drafts: Path, n_tasks: int) -> Dataset:
    kind, _, rest = path.name.partition(".")
    split = next((side for side in SIDES if rest.startswith(f"{side}.")), None)
    content = path.read_bytes()
    n_rows = pl.scan_parquet(path).select(pl.len()).collect().item() if path.suffix == ".parquet" else (
        content.count(b"\n") if path.suffix == ".jsonl" else n_tasks)
    return Dataset(
        path=f"datasets/{path.relative_to(drafts).as_posix()}", kind=kind, split=split, n_rows=n_rows, n_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest())
