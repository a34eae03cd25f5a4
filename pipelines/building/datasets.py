"""The stage `datasets`: what exporters write by default over each service's tasks, each site's work and a company's, written
aside and renamed into place.

What exporters take of a service: its tables, and its turns in a file that is read a part at a time. Turns are sorted by split,
task and session, so that a batch of episodes is a stretch of the file. Other formats are written on request
(`pipelines/building/export.py`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from env_builder import exports
from env_builder.exports import DatasetSource
from env_builder.exports.card import count
from env_builder.exports.exporter import PUBLISHED_TASKS
from env_builder.exports.steps import MARKS
from env_builder.rewards.commands import sessions_that_run_programs
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from extractors.configuration import Audit
from pipelines import progress
from pipelines.building.decisions import all_of
from pipelines.building.environments import move, names_of
from pipelines.building.site_datasets import site_sources
from pipelines.building.work_datasets import work_sources
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import PART_OPENS, SPLITS, Dataset, Decision, empty, frame
from warehouse.store import Store

STAGE = "datasets"
FOR_TRAINING = ("train", "validation")
"""Splits that an environment is exported with by default."""
_TURNS = f"""
    with own as (
        select split, task_id, unnest(session_ids) as session_id from mart.tasks where service = $service),
    placed as (select session_id, min(row(split, task_id)) as place from own group by session_id)
    select turns.* replace (split_part(tool, '{PART_OPENS}', 1) as tool) from core.turns as turns join placed using (session_id)
    where service = $service order by place, session_id, position
"""
_DRAWN = """
    select turn_id, usage from core.turns join core.events on turn_id = event_id
    where turns.service = $service and (usage like '%token_ids"%' or usage like '%"logprobs"%' or usage like '%"sampling"%')
    order by turn_id
"""


def source_of(store: Store, service: str, name: str, scratch: Path, audit: Audit | None = None) -> DatasetSource:
    """Read the tables of one service, as exporters take them. `scratch`: an existing folder that outlives the source.

    Sessions that run programs have no label unless how they went is known (`audit`): words and manner do not tell whether what
    they left in files is right."""
    digest = store.read("select content_digest from mart.environments where environment = $name", name=name)
    own = "where service = $service order by all"
    turns = scratch / f"{name}.turns.parquet"
    store.write_parquet(turns, _TURNS, service=service)
    outcomes = store.read(
        "select * from mart.outcomes where session_id in (select session_id from core.sessions where service = $service) "
        "order by session_id", service=service)
    tasks = store.read(f"select * from mart.tasks {own}", service=service)
    tasks, outcomes = without_guesses(tasks, outcomes, sessions_that_run_programs(pl.scan_parquet(turns).select(
        "service", "session_id", "kind", "tool", "arguments").collect()), audit or Audit())
    rows = []
    for turn_id, usage in store.read(_DRAWN, service=service).iter_rows():
        parsed = json.loads(usage)
        rows.append({
            "turn_id": turn_id, "prompt_token_ids": parsed.get("prompt_token_ids"),
            "completion_token_ids": parsed.get("completion_token_ids"), "behaviour_logprobs": parsed.get("logprobs"),
            "sampling": canonical(parsed["sampling"]) if parsed.get("sampling") else None})
    marks = pl.DataFrame(rows, schema={name: MARKS[name] for name in (
        "turn_id", "sampling", "prompt_token_ids", "completion_token_ids", "behaviour_logprobs")})
    return DatasetSource(
        name, digest["content_digest"].item() if digest.height else None,
        tasks, pl.scan_parquet(turns), outcomes,
        store.read(f"select * from core.tools {own}", service=service), marks=marks,
        privacy_policy=store.read("select max(policy) as policy from raw.privacy").item())


def without_guesses(
    tasks: pl.DataFrame, outcomes: pl.DataFrame, running: Iterable[str], audit: Audit,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return tasks and outcomes without the outcomes of sessions that run programs, as far as these are estimated only."""
    is_known = (pl.col("probability") >= audit.good_from) | (pl.col("probability") < audit.bad_below)
    guesses = outcomes.filter(pl.col("session_id").is_in(list(running)), ~is_known.fill_null(False))["session_id"]
    succeeded = pl.col("succeeded_session_ids")
    return (tasks.with_columns(succeeded.list.set_difference(guesses.to_list()).list.sort()),
            outcomes.filter(~pl.col("session_id").is_in(guesses.implode())))


def published_tasks(environment: Path, rewards: Path) -> pl.DataFrame:
    """Read the published tasks of an environment, columns of `PUBLISHED_TASKS`; none where the directories are not there."""
    tasks, rubrics, solutions = (
        {row["task_id"]: row for row in rows_of(path)} if path.is_file() else {}
        for path in (environment / "tasks.jsonl", rewards / "rubrics.jsonl", rewards / "solutions.jsonl"))
    rows: list[dict[str, Any]] = [
        {"task_id": task_id, "family_id": task["family"], "split": task["split"], "goal": task["goal"],
         "opening": canonical(task["opening"]), "rubric_id": rubrics.get(task_id, {}).get("rubric_id"),
         "solution": canonical(solutions[task_id]["steps"]) if task_id in solutions else None}
        for task_id, task in sorted(tasks.items())]
    return pl.DataFrame(rows, schema=PUBLISHED_TASKS)


def datasets(store: Store, settings: Settings) -> Counts:
    """Write OUT/datasets/<name> for each service with tasks: the files of every exporter, and the leakage report."""
    drafts, scratch = Path(settings.out) / ".datasets", Path(settings.out) / ".turns"
    for folder in (drafts, scratch):
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(parents=True)
    decisions, rows = [empty(Decision)], []
    services = store.read("select distinct service from mart.tasks order by service")["service"].to_list()
    reports = dict(store.read("select service, report from mart.leakage").iter_rows())
    for done, (service, name) in enumerate(names_of(services).items()):
        progress.tell(STAGE, done, len(services), service)
        source = source_of(store, service, name, scratch, settings.configured.audit)
        report = json.loads(reports.get(service, "{}"))
        exports.write_leakage(drafts / name, report)
        if leaks := report.get("leaks", 0) if report.get("method") == "component" else 0:
            detail = f"{leaks} records are in several splits of {source.environment}; see its leakage.json"
            decisions.append(frame(Decision, [
                Decision(stage=STAGE, subject=session, kept=False, reason="leak", detail=detail)
                for session in source.tasks["session_ids"].explode().unique().sort()]))
        else:
            decisions.append(exports.write(exports.by_default(), drafts / name, source).decisions)
        rows += _rows(drafts / name, drafts, source)
    others = list[str]()
    for source in (*site_sources(store, settings), *work_sources(store, settings)):
        decisions.append(exports.write(exports.by_default(), drafts / source.environment, source).decisions)
        others += source.tasks["session_ids"].explode().to_list()
        rows += _rows(drafts / source.environment, drafts, source)
    drafts.mkdir(parents=True, exist_ok=True)
    move(drafts, settings.datasets)
    shutil.rmtree(scratch)
    rejected = pl.concat(decisions).unique(["stage", "subject", "reason"])
    sessions = store.read("select unnest(session_ids) as session_id from mart.tasks")["session_id"]
    sessions = pl.concat([sessions, pl.Series("session_id", others, pl.String)])
    all_decisions = all_of(sessions, rejected, STAGE, "exported", "Stands in the files of every form that a run writes.")
    store.replace("mart.decisions", all_decisions, "stage = $stage", stage=STAGE)
    store.replace("mart.datasets", frame(Dataset, rows))
    return {"n_datasets": len(rows), "n_left": rejected.height}


def hold(store: Store, settings: Settings) -> bool:
    """Whether the files are still there, in their size."""
    rows = store.read("select path, n_bytes from mart.datasets").iter_rows()
    return all((path := Path(settings.out) / name).is_file() and path.stat().st_size == n_bytes for name, n_bytes in rows)


def _rows(folder: Path, drafts: Path, source: DatasetSource) -> list[Dataset]:
    return [_row(path, drafts, source.tasks.height) for path in sorted(folder.rglob("*")) if path.is_file()]


def _row(path: Path, drafts: Path, n_tasks: int) -> Dataset:
    kind, _, rest = path.name.lower().partition(".")
    split = next((side for side in SPLITS if rest.startswith(f"{side}.")), None)
    n_rows = count(path) if path.suffix in (".parquet", ".jsonl") else n_tasks
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Dataset(
        path=f"datasets/{path.relative_to(drafts).as_posix()}", kind=kind, split=split, n_rows=n_rows,
        n_bytes=path.stat().st_size, sha256=sha256)
