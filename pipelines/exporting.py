"""Datasets of a run: what exporters write by default over each service's tasks, written aside and renamed into place.

What else there is is written where somebody asks for it (`pipelines/outgoing.py`)."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl

from env_builder import exports
from env_builder.exports import Source
from env_builder.exports.card import count
from pipelines import progress
from pipelines.bundling import move, names_of
from pipelines.engine import Counts
from pipelines.settings import Settings
from pipelines.sources import source_of
from pipelines.verdicts import all_of
from warehouse.records import SIDES, Dataset, Verdict, empty, frame
from warehouse.store import Store

STAGE = "datasets"
FOR_TRAINING = ("train", "validation")
"""Sides of the split that a room is exported with where nobody says otherwise."""


def datasets(store: Store, settings: Settings) -> Counts:
    """OUT/datasets/<name> for each service with tasks: the files of every exporter, and the leakage report."""
    drafts, scratch = Path(settings.out) / ".datasets", Path(settings.out) / ".turns"
    for folder in (drafts, scratch):
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(parents=True)
    verdicts, rows = [empty(Verdict)], []
    services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
    reports = dict(store.read("select service, report from mart.leakage").iter_rows())
    for done, (service, name) in enumerate(names_of(services).items()):
        progress.tell(STAGE, done, len(services), service)
        source = source_of(store, service, name, scratch)
        report = json.loads(reports.get(service, "{}"))
        exports.write_leakage(drafts / name, report)
        leaks = report.get("leaks", 0) if report.get("method") == "component" else 0
        if leaks:
            verdicts.append(_leaking(source, leaks))
        else:
            forms = [name for name, exporter in exports.of_tables().items() if exporter.by_default]
            verdicts.append(exports.write(forms, drafts / name, source).verdicts)
        rows += [_row(path, drafts, source.tasks.height) for path in sorted((drafts / name).rglob("*")) if path.is_file()]
    drafts.mkdir(parents=True, exist_ok=True)
    move(drafts, settings.datasets)
    shutil.rmtree(scratch)
    left = pl.concat(verdicts).unique(["stage", "subject", "reason"])
    sessions = store.read("select unnest(session_ids) as session_id from mart.tasks")["session_id"]
    told = all_of(sessions, left, STAGE, "exported", "Stands in the files of every form that a run writes.")
    store.replace("mart.verdicts", told, "stage = $stage", stage=STAGE)
    store.replace("mart.datasets", frame(Dataset, rows))
    return {"n_datasets": len(rows), "n_left": left.height}


def hold(store: Store, settings: Settings) -> bool:
    """Are the files still there, in their size?"""
    rows = store.read("select path, n_bytes from mart.datasets")
    places = [(Path(settings.out) / path, n_bytes) for path, n_bytes in rows.iter_rows()]
    return all(place.is_file() and place.stat().st_size == n_bytes for place, n_bytes in places)


def _leaking(source: Source, n_leaks: int) -> pl.DataFrame:
    """Verdicts on all sessions of a service whose split leaks."""
    detail = f"{n_leaks} things stand on several sides of the split of {source.environment}; see its leakage.json"
    return frame(Verdict, [
        Verdict(stage=STAGE, subject=session, kept=False, reason="leak", detail=detail)
        for session in source.tasks["session_ids"].explode().unique().sort()])


def _row(path: Path, drafts: Path, n_tasks: int) -> Dataset:
    kind, _, rest = path.name.lower().partition(".")
    split = next((side for side in SIDES if rest.startswith(f"{side}.")), None)
    n_rows = count(path) if path.suffix in (".parquet", ".jsonl") else n_tasks
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Dataset(
        path=f"datasets/{path.relative_to(drafts).as_posix()}", kind=kind, split=split, n_rows=n_rows,
        n_bytes=path.stat().st_size, sha256=sha256)
