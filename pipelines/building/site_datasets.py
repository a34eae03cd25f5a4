"""The tables of a site's work as exporters take them: what people did right on its pages, call by call.

In: `mart.site_steps` and the published environment. Out: a source for each site: a session is an episode, its goal the user's
words, its calls those that do the work again in the environment. A published task was solved by them, so its reward is 1; other
episodes have none. Does not see: work that was wrong, or without an ask.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from env_builder.exports import DatasetSource
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from pipelines.settings import Settings
from warehouse.records import Outcome, SiteStepRow, Task, Tool, Turn, empty, frame
from warehouse.store import Store

_STEPS = """
    select s.*, w.kind, w.task_id is not null as is_published from mart.site_steps as s
    left join mart.site_work as w using (session_id, host) where host = $host order by split, s.task_id, position"""


def site_sources(store: Store, settings: Settings) -> Iterator[DatasetSource]:
    """Yield the tables of each site that has an environment."""
    policy = store.read("select max(policy) as policy from raw.privacy").item()
    for row in store.table("mart.site_rooms").sort("environment").to_dicts():
        steps = store.read(_STEPS, host=row["host"])
        own = steps.unique("task_id", maintain_order=True).sort("task_id")
        solved = own.filter("is_published")
        yield DatasetSource(
            row["environment"], row["content_digest"],
            frame(Task, [_task(each) for each in own.iter_rows(named=True)]),
            frame(Turn, [turn for of_task in steps.partition_by("task_id", maintain_order=True) for turn in _turns(of_task)]),
            empty(Outcome), frame(Tool, list(_tools(settings.environments / row["environment"], row["host"], steps))),
            grades=solved.select("session_id", reward=pl.lit(1.0)), privacy_policy=policy,
            marks=steps.select(turn_id=pl.concat_str("session_id", pl.lit(" "), pl.col("position") + 1), tier="tier"),
            page_steps=steps.select(list(SiteStepRow.model_fields)))


def _task(step: dict[str, object]) -> Task:
    return Task.model_validate({
        "task_id": step["task_id"], "service": step["host"], "family": f"work-{step['kind']}", "slots": "{}",
        "goal": step["goal"], "session_ids": [step["session_id"]], "segment_of": None, "derived_from": None, "starts_at": None,
        "succeeded_session_ids": [step["session_id"]], "split": step["split"], "difficulty": None})


def _turns(steps: pl.DataFrame) -> Iterator[Turn]:
    """Yield the turns of an episode: what was asked, then the calls."""
    first = steps.row(0, named=True)
    about = dict.fromkeys(Turn.model_fields) | {"session_id": first["session_id"], "service": first["host"]}
    yield Turn.model_validate({**about, "turn_id": f"{first['session_id']} 0", "position": 0, "kind": "message", "role": "user",
                               "content": first["goal"]})
    for row in steps.iter_rows(named=True):
        place = row["position"] + 1
        yield Turn.model_validate({
            **about, "turn_id": f"{row['session_id']} {place}", "position": place, "kind": "call", "role": "assistant",
            "happened_at": row["happened_at"], "content": row["content"], "call_id": f"call {place}", "tool": row["tool"],
            "arguments": row["arguments"], "arguments_raw": row["arguments"], "is_error": row["is_error"],
            "requestor": "assistant"})


def _tools(environment: Path, host: str, steps: pl.DataFrame) -> Iterator[Tool]:
    """Yield the tools of the environment."""
    counts = dict(steps.group_by("tool").len().iter_rows())
    for row in rows_of(environment / "tools.jsonl"):
        yield Tool(service=host, tool=row["name"], description=row.get("description"), declared=True,
                   input_schema=canonical(row["inputSchema"]), n_calls=counts.get(row["name"], 0),
                   annotations=json.dumps(row["annotations"]) if row.get("annotations") else None)
