"""What the warehouse and the folders next to it hold, for people and for `--json`: read from the published copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.inspection.services import open_decisions
from pipelines.quality.precision import (
    Precision,
    published_precision,
    sentence_on,
    sentence_on_code,
    sentence_on_companies,
    sentence_on_sites,
)
from pipelines.settings import Settings
from warehouse.catalogs import catalog_of
from warehouse.store import Store

ORDER = (
    "extract", "sessions", "drift", "world", "behaviour", "goals", "outcomes", "tasks", "rewards", "variants", "verify",
    "environments", "image", "datasets")
"""Stages in the order that a session goes through them; others come after."""
_ROOMS = """
    select environment, repository as of_what, n_tasks from mart.code_rooms
    union all select environment, host, n_tasks from mart.site_rooms
    union all select environment, 'the company', n_tasks from mart.company_rooms where folder = 'environments'
    order by environment"""
RAW = 200
"""Characters of a record that gave nothing."""


def summary(settings: Settings) -> dict[str, Any]:
    """Files, sessions, tasks, environments, datasets, what changed in the logs, and what was left and why; in reading order."""
    with Store.published(settings.warehouse) as store:
        environments = [_environment(settings, row) for row in store.table("mart.environments").to_dicts()]
        published = dict(store.read(
            "select coalesce(made_from, 'task') as origin, count(*) from (select task_id from mart.tasks union "
            "select task_id from mart.variants) join mart.decisions on subject = task_id "
            "left join mart.variants using (task_id) where stage = 'verify' and kept group by origin").iter_rows())
        rows = store.read(
            "select split_part(path, '/', 2) as folder, kind, sum(n_rows)::bigint as n_rows from mart.datasets "
            "where split is not null group by all order by folder, kind desc")
        precision, n_rewards = published_precision(store)
        return {
            "out": settings.out, "warehouse": str(catalog_of(settings.warehouse)), "n_files": store.count("raw.files"),
            "n_records": store.count("raw.records"), "n_events": store.count("core.events") + store.count("raw.declarations"),
            "n_sessions": store.count("core.sessions"),
            "n_calls": store.read("select count(*) from core.turns where kind = 'call'").item(),
            "n_tools": store.count("core.tools"), "n_tasks": store.count("mart.tasks"),
            "n_published": published.get("task", 0) + published.get("failure", 0),
            "n_from_failures": published.get("failure", 0), "n_generated": published.get("rebinding", 0),
            "precision": precision and precision._asdict(), "statement": _statement(store, precision, n_rewards),
            "environments": environments, "rooms": [_environment(settings, row) for row in store.read(_ROOMS).to_dicts()],
            "datasets": sorted(str(path) for path in settings.datasets.rglob("*") if path.is_file()),
            "dataset_rows": [{**row, "folder": str(settings.datasets / row["folder"])} for row in rows.to_dicts()],
            "changed": _changed(store), "open_decisions": open_decisions(store),
            "left": _in_order(store.read("select stage, reason, n from mart.funnel where not kept").to_dicts())}


def _statement(store: Store, precision: Precision | None, n_rewards: int) -> str:
    """Say what the published rewards rest on: of services, of repositories and of sites."""
    of_rooms = [sentence for sentence in (
        sentence_on_code(store), sentence_on_sites(store), sentence_on_companies(store)) if sentence is not None]
    return " ".join([sentence_on(precision, n_rewards), *of_rooms] if n_rewards or not of_rooms else of_rooms)


def _environment(settings: Settings, row: dict[str, Any]) -> dict[str, Any]:
    name = row["environment"]
    return {**row, "path": str(settings.environments / name), "rewards": str(settings.rewards / name)}


def changed(settings: Settings) -> list[str]:
    """Return what the logs are made of that appeared, vanished, was renamed or changed its type: a sentence each."""
    with Store.published(settings.warehouse) as store:
        return _changed(store)


def _changed(store: Store) -> list[str]:
    rows = store.read("select detail from mart.decisions where stage = 'drift' order by subject, reason")
    return rows["detail"].to_list()


def funnel(settings: Settings) -> list[dict[str, Any]]:
    """One row a stage and reason, stages in order: {"stage", "kept", "reason", "n"}."""
    with Store.published(settings.warehouse) as store:
        return _in_order(store.read("select stage, kept, reason, n from mart.funnel").to_dicts())


def place_of(stage: str) -> int:
    """Return the place of a stage in `ORDER`."""
    return ORDER.index(stage) if stage in ORDER else len(ORDER)


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: place_of(row["stage"]))


def families(settings: Settings) -> list[dict[str, Any]]:
    """Return families, largest first: {"service", "family", "name", "tasks", "sessions", "succeeded", "rate", "sentence"}."""
    with Store.published(settings.warehouse) as store:
        return store.read(
            "select service, family, name, n_tasks as tasks, n_sessions as sessions, n_succeeded as succeeded, "
            "round(rate, 2) as rate, sentence, written_by from mart.families join mart.names using (service, family) "
            "order by service, tasks desc, name, family").to_dicts()


def rejected_rows(settings: Settings) -> list[dict[str, Any]]:
    """Everything that was left: {"stage", "reason", "subject", "file", "line", "detail", "raw"}; `raw` is what a record that
    gave nothing begins with, as text, None of all else."""
    with Store.published(settings.warehouse) as store:
        rows = store.read(
            f"select stage, reason, subject, path as file, v.line, detail, "
            "case when starts_with(q.content::varchar, 'sealed:') then q.content "
            f"else array_slice(q.content, 1, {4 * RAW}) end as raw "
            "from mart.decisions v left join raw.files f using (file_id) left join raw.quarantine q "
            "on q.file_id = v.file_id and q.line = v.line and v.stage = 'extract' where not kept order by all").to_dicts()
    return [{**row, "raw": None if row["raw"] is None else _opened(row["raw"]).decode("utf-8", "replace")[:RAW]}
            for row in rows]


def _opened(content: bytes) -> bytes:
    """Quarantined bytes for their owner's eyes; sealed ones stay so without the key."""
    from pipelines.privacy.guard import owner
    from pipelines.privacy.keys import is_sealed

    if not is_sealed(content):
        return content
    return owner().decrypt(content) or b"(sealed with another key)"


def out_of(path: str) -> Settings:
    """Return settings that name a folder that a run wrote. Raises InputError where it is a file."""
    settings = Settings(logs=(), out=str(Path(path)))
    settings.must_be_folder()
    return settings
