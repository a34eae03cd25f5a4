"""What the warehouse and the folders beside it hold, for people and for `--json`: read from the published copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.settings import Settings
from warehouse.catalogs import catalog_of
from warehouse.store import Store

ORDER = (
    "extract", "sessions", "drift", "world", "behaviour", "goals", "outcomes", "tasks", "rewards", "variants", "verify",
    "environments", "image", "datasets")
"""Stages in the order that a session goes through them; others come after."""

RAW = 200
"""Characters of a record that gave nothing."""


def summary(settings: Settings) -> dict[str, Any]:
    """Files, sessions, tasks, environments, datasets, what changed in the logs, and what was left and why; in reading order."""
    with Store.published(settings.warehouse) as store:
        environments = [_environment(settings, row) for row in store.table("mart.environments").to_dicts()]
        return {
            "out": settings.out,
            "warehouse": str(catalog_of(settings.warehouse)),
            "n_files": store.count("raw.files"),
            "n_records": store.count("raw.records"),
            "n_sessions": store.count("core.sessions"),
            "n_calls": store.read("select count(*) from core.turns where kind = 'call'").item(),
            "n_tools": store.count("core.tools"),
            "n_tasks": store.count("mart.tasks"),
            **_published(store),
            "environments": environments,
            "datasets": sorted(str(path) for path in settings.datasets.rglob("*") if path.is_file()),
            "dataset_rows": _dataset_rows(settings, store),
            "changed": _changed(store),
            "left": _in_order(store.read("select stage, reason, n from mart.funnel where not kept").to_dicts()),
        }


def _published(store: Store) -> dict[str, int]:
    """How many of the tasks are published, how many of these no session did well, and how many new ones were generated."""
    found = dict(store.read(
        "select coalesce(made_from, 'task') as way, count(*) from (select task_id from mart.tasks union select task_id from "
        "mart.variants) join mart.verdicts on subject = task_id left join mart.variants using (task_id) "
        "where stage = 'verify' and kept group by way").iter_rows())
    failures, generated = found.get("failure", 0), found.get("rebinding", 0)
    return {"n_published": found.get("task", 0) + failures, "n_from_failures": failures, "n_generated": generated}


def _environment(settings: Settings, row: dict[str, Any]) -> dict[str, Any]:
    name = row["environment"]
    return {**row, "path": str(settings.environments / name), "rewards": str(settings.rewards / name)}


def _dataset_rows(settings: Settings, store: Store) -> list[dict[str, Any]]:
    """Rows of the data by folder and kind, all sides of the split together: {"folder", "kind", "n_rows"}."""
    found = store.read(
        "select split_part(path, '/', 2) as folder, kind, sum(n_rows)::bigint as n_rows from mart.datasets "
        "where split is not null group by all order by folder, kind desc")
    return [{**row, "folder": str(settings.datasets / row["folder"])} for row in found.to_dicts()]


def changed(settings: Settings) -> list[str]:
    """What the logs are made of that appeared, vanished, was renamed or changed its type: a sentence each."""
    with Store.published(settings.warehouse) as store:
        return _changed(store)


def _changed(store: Store) -> list[str]:
    found = store.read("select detail from mart.verdicts where stage = 'drift' order by subject, reason")
    return found["detail"].to_list()


def funnel(settings: Settings) -> list[dict[str, Any]]:
    """One row a stage and reason, stages in order: {"stage", "kept", "reason", "n"}."""
    with Store.published(settings.warehouse) as store:
        return _in_order(store.read("select stage, kept, reason, n from mart.funnel").to_dicts())


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: ORDER.index(row["stage"]) if row["stage"] in ORDER else len(ORDER))


def families(settings: Settings) -> list[dict[str, Any]]:
    """Families of tasks, largest first: {"service", "family", "name", "tasks", "sessions", "good", "rate", "sentence", …}."""
    with Store.published(settings.warehouse) as store:
        return store.read(
            "select service, family, name, n_tasks as tasks, n_sessions as sessions, n_good as good, round(rate, 2) as rate, "
            "sentence, written_by from mart.families join mart.names using (service, family) "
            "order by service, tasks desc, name, family").to_dicts()


def left(settings: Settings) -> list[dict[str, Any]]:
    """Everything that was left: {"stage", "reason", "subject", "file", "line", "detail", "raw"}; `raw` is what a record that
    gave nothing begins with, as text, None of all else."""
    with Store.published(settings.warehouse) as store:
        rows = store.read(
            f"select stage, reason, subject, path as file, v.line, detail, "
            "case when starts_with(q.content::varchar, 'sealed:') then q.content "
            f"else array_slice(q.content, 1, {4 * RAW}) end as raw "
            "from mart.verdicts v left join raw.files f using (file_id) left join raw.quarantine q "
            "on q.file_id = v.file_id and q.line = v.line and v.stage = 'extract' where not kept order by all").to_dicts()
    return [{**row, "raw": None if row["raw"] is None else _opened(row["raw"]).decode("utf-8", "replace")[:RAW]}
            for row in rows]


def _opened(content: bytes) -> bytes:
    """Quarantined bytes for their owner's eyes; sealed ones stay so without the key."""
    from pipelines.privacy import owner
    from pipelines.seals import is_sealed

    if not is_sealed(content):
        return content
    return owner().opened(content) or b"(sealed with another key)"


def out_of(path: str) -> Settings:
    """Settings that name a folder that a run wrote. Raises InputError where it is none."""
    settings = Settings(logs=(), out=str(Path(path)))
    settings.must_be_folder()
    return settings
