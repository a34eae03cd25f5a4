"""What dataset exporters take, from a run's warehouse: the tables of one service, its turns in a file that is read a part
at a time.

In: the store, a service. Out: `Source`. Turns lie by side, task and session, so that a batch of episodes is a stretch of
the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from env_builder.exports import Source
from env_builder.exports.exporter import WAYS
from env_builder.exports.steps import MARKS
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from warehouse.store import Store

_TURNS = """
    with own as (
        select split, task_id, unnest(session_ids) as session_id from mart.tasks where service = $service),
    placed as (select session_id, min(row(split, task_id)) as place from own group by session_id)
    select turns.* from core.turns as turns join placed using (session_id)
    where service = $service order by place, session_id, position
"""
_DRAWN = """
    select turn_id, usage from core.turns join core.events on turn_id = event_id
    where turns.service = $service and (usage like '%token_ids"%' or usage like '%"logprobs"%' or usage like '%"sampling"%')
    order by turn_id
"""


def source_of(store: Store, service: str, name: str, scratch: Path) -> Source:
    """The tables of one service, as exporters take them. `scratch`: an existing folder that outlives the source."""
    digest = store.read("select content_digest from mart.environments where environment = $name", name=name)
    own = "where service = $service order by all"
    turns = scratch / f"{name}.turns.parquet"
    store.write_parquet(turns, _TURNS, service=service)
    outcomes = store.read(
        "select * from mart.outcomes where session_id in (select session_id from core.sessions where service = $service) "
        "order by session_id", service=service)
    return Source(
        name, digest["content_digest"].item() if digest.height else None,
        store.read(f"select * from mart.tasks {own}", service=service), pl.scan_parquet(turns), outcomes,
        store.read(f"select * from core.tools {own}", service=service), marks=_marks(store, service),
        privacy_policy=store.read("select max(policy) as policy from raw.privacy").item())


def _marks(store: Store, service: str) -> pl.DataFrame:
    """How the answers of a service were drawn, as its logs say: columns of `MARKS`."""
    rows = []
    for turn_id, usage in store.read(_DRAWN, service=service).iter_rows():
        told = json.loads(usage)
        rows.append({
            "turn_id": turn_id, "prompt_token_ids": told.get("prompt_token_ids"),
            "completion_token_ids": told.get("completion_token_ids"), "behaviour_logprobs": told.get("logprobs"),
            "sampling": canonical(told["sampling"]) if told.get("sampling") else None})
    columns = ("turn_id", "sampling", "prompt_token_ids", "completion_token_ids", "behaviour_logprobs")
    return pl.DataFrame(rows, schema={name: MARKS[name] for name in columns})


def ways_of(environment: Path, rewards: Path) -> pl.DataFrame:
    """The published tasks of an environment, columns of `WAYS`; none where the directories are not there."""
    tasks, rubrics, solutions = (
        {row["task_id"]: row for row in rows_of(path)} if path.is_file() else {}
        for path in (environment / "tasks.jsonl", rewards / "rubrics.jsonl", rewards / "solutions.jsonl"))
    rows: list[dict[str, Any]] = [
        {"task_id": task_id, "family_id": task["family"], "split": task["split"], "goal": task["goal"],
         "opening": canonical(task["opening"]), "rubric_id": rubrics.get(task_id, {}).get("rubric_id"),
         "solution": canonical(solutions[task_id]["steps"]) if task_id in solutions else None}
        for task_id, task in sorted(tasks.items())]
    return pl.DataFrame(rows, schema=WAYS)
