"""Prompts for GRPO, RLOO and their like: one row a published task, to be rolled out in its environment and graded by its
rubric.

A row is {"prompt": messages before the agent's first move, "tools", "task_id", "family_id", "rubric_id", "environment",
"environment_digest", "rate", "band"}: how often the task succeeds in the logs, null where nobody tried it, so that a
trainer can choose what is neither always nor never solved. `rubric_id` is the digest of the task's rubric as it is
published. Left out, with a verdict: tasks without a published rubric.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import polars as pl

from env_builder.exports.conversations import dumps, functions, spoken
from env_builder.exports.exporter import WAYS, Source
from env_builder.exports.lines import Left, Row, form


def _rows(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = dumps(functions(source.tools))
    rates = {task_id: (rate, band) for task_id, rate, band in source.tasks.select("task_id", "rate", "band").iter_rows()}
    ways = pl.DataFrame(schema=WAYS) if source.ways is None else source.ways
    own = ways.filter(pl.col("split") == side, pl.col("rubric_id").is_not_null()).sort("task_id")
    untold = set(source.tasks.filter(pl.col("split") == side)["task_id"]) - set(own["task_id"])
    missed += [(task_id, "no_rubric") for task_id in untold]
    for task in own.iter_rows(named=True):
        rate, band = rates.get(task["task_id"], (None, None))
        yield {"prompt": spoken(orjson.loads(task["opening"]), task["goal"]), "tools": tools, "task_id": task["task_id"],
               "family_id": task["family_id"], "rubric_id": task["rubric_id"], "environment": source.environment,
               "environment_digest": source.content_digest, "rate": rate, "band": band}


EXPORTER = form("grpo", _rows)
