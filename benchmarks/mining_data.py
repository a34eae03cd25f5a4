"""What the mining benchmark works on: a data set told from its truth, and what the public pipeline makes of its logs (with
privacy off: truth is told in their own words)."""

from __future__ import annotations

import csv
import json
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import asked
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import InputError
from warehouse.store import Store

_STAGES = ("extract", "sessions", "world", "goals", "names", "outcomes", "tasks")
_TABLES = ("core.events", "core.sessions", "core.turns", "core.feedback", "core.row_changes", "core.tools", "raw.records",
           "raw.files", "mart.services", "mart.behaviours", "mart.outcomes", "mart.tasks", "mart.goals", "mart.names",
           "mart.sentences", "mart.leakage")
_ALWAYS_LEFT = ("truth", "otlp", "cdc")
"""Never read: the truth; the same sessions in another format; row changes."""


@dataclass(frozen=True)
class Data:
    """A data set, its truth, and the tables that the pipeline made of its logs."""

    path: Path
    kind: str
    """repeats, office, goals, plans, cases or rows: which protocol its truth asks for."""
    truth: list[dict[str, Any]]
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    seconds: float = 0.0
    """What the pipeline took up to the tasks."""
    asked: Data | None = None
    """The same with a language model, where one is given."""

    @property
    def effects(self) -> pl.DataFrame:
        """service, tool, effect, as the stages pass it on."""
        return self.tables["mart.behaviours"].select("service", "tool", "effect")

    @property
    def starts_from(self) -> dict[str, str]:
        """service -> reset or shared."""
        return dict(self.tables["mart.services"].select("service", "starts_from").iter_rows())

    @property
    def families(self) -> dict[str, str]:
        """session -> family of its task."""
        tasks = self.tables["mart.tasks"].select("family", "session_ids").explode("session_ids")
        return dict(tasks.select("session_ids", "family").iter_rows())


def load(path: Path) -> Data:
    """Tell the data set from its truth and run the pipeline on its logs, without feedback where success is to be mined."""
    truth, kind = _truth(path)
    left = (*_ALWAYS_LEFT, *(("feedback",) if kind in ("repeats", "office") else ()))
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(logs=(str(path),), out=scratch, without=left, image=False, privacy=False).checked()
        told = settings.model_copy(update={"configuration": asked.configuration(scratch)}) if asked.model() else None
        found = Data(path, kind, truth, *_made(settings))
        if told is None:
            return found
        tables, seconds = _made(told)
        return replace(found, asked=replace(found, tables=tables, seconds=seconds))


def _made(settings: Settings) -> tuple[dict[str, pl.DataFrame], float]:
    """Return the tables of a run up to the tasks, and what it took."""
    began = time.perf_counter()
    for stage in STAGES:
        if stage.name in _STAGES:
            carry_out(stage, settings)
    seconds = time.perf_counter() - began
    with Store.open(settings.warehouse) as store:
        known = set(store.read("select table_schema || '.' || table_name as name from information_schema.tables")["name"])
        return {name: store.table(name) for name in _TABLES if name in known}, round(seconds, 1)


def _truth(path: Path) -> tuple[list[dict[str, Any]], str]:
    folder = path / "truth"
    for name in ("sessions.jsonl", "cases.jsonl"):
        if (folder / name).is_file():
            rows = [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
            return rows, _kind(rows[0])
    rows = [{"file": file.name, "row": int(row["row"]), "case_id": row["case_id"]}
            for file in sorted(folder.glob("*.csv")) for row in csv.DictReader(file.open(encoding="utf-8"))]
    if not rows:
        raise InputError("it holds no truth to score by", str(folder), "name a folder of a data set with truth/")
    return rows, "rows"


def _kind(row: dict[str, Any]) -> str:
    """Which protocol a row of truth asks for."""
    marks = {"selected": "plans", "requests": "cases", "kinds": "goals", "reward": "repeats", "success": "office"}
    return next((kind for mark, kind in marks.items() if mark in row), "unknown")
