"""Trajectories as Parquet: one row a step, of every session of every task.

A call is two steps: the action (role assistant, or who called) and the observation (role tool). `reward` stands on
the last step: the grade where there is one, else the outcome's probability, else null; 0 before. `loss_mask` is true
on what the policy itself wrote (messages of the assistant, and its calls). `behaviour_logprobs` is null: logs of text
hold none, and none are invented. Arguments are JSON text.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from env_builder.exports.exporter import Exported, Exporter, Source, members
from warehouse.records import Verdict, empty

FILE = "trajectories.parquet"

COLUMNS: dict[str, pl.DataType] = {
    "episode_id": pl.String(),
    "task_id": pl.String(),
    "family": pl.String(),
    "split": pl.String(),
    "step_idx": pl.Int64(),
    "role": pl.String(),
    "kind": pl.String(),
    "content": pl.String(),
    "tool": pl.String(),
    "arguments": pl.String(),
    "is_error": pl.Boolean(),
    "reward": pl.Float64(),
    "terminated": pl.Boolean(),
    "truncated": pl.Boolean(),
    "loss_mask": pl.Boolean(),
    "behaviour_logprobs": pl.List(pl.Float64()),
    "label_prob": pl.Float64(),
    "label_source": pl.String(),
    "policy_id": pl.String(),
    "environment_digest": pl.String(),
}


def steps(source: Source) -> pl.DataFrame:
    """The rows, columns as in `COLUMNS`, by episode_id and step_idx."""
    of_task = members(source.tasks).select("session_id", "task_id", "family", "split")
    played = pl.concat([_messages(source.turns), _actions(source.turns), _observations(source.turns)])
    labelled = (
        played.join(of_task, on="session_id")
        .join(_labels(source), on="session_id", how="left")
        .sort("session_id", "task_id", "position", "half")
    )
    episode = ["session_id", "task_id"]
    last = pl.int_range(pl.len()).over(episode) == pl.len().over(episode) - 1
    unanswered = (pl.col("kind") == "call") & last
    return (
        labelled.with_columns(
            pl.col("session_id").alias("episode_id"),
            pl.int_range(pl.len()).over(episode).cast(pl.Int64).alias("step_idx"),
            pl.when(last).then(pl.coalesce("reward", "label_prob")).otherwise(0.0).alias("reward"),
            (last & ~unanswered).alias("terminated"),
            unanswered.alias("truncated"),
            (pl.col("role") == "assistant").fill_null(False).alias("loss_mask"),
            pl.lit(None, dtype=pl.List(pl.Float64)).alias("behaviour_logprobs"),
            pl.lit(source.content_digest, dtype=pl.String).alias("environment_digest"),
        )
        .select(list(COLUMNS))
        .cast(pl.Schema(COLUMNS))
    )


def _messages(turns: pl.DataFrame) -> pl.DataFrame:
    return _half(turns.filter(pl.col("kind") == "message"), "message", pl.col("role"), 0).with_columns(
        pl.lit(None, dtype=pl.String).alias("tool"),
        pl.lit(None, dtype=pl.String).alias("arguments"),
        pl.lit(None, dtype=pl.Boolean).alias("is_error"),
    )


def _actions(turns: pl.DataFrame) -> pl.DataFrame:
    caller = pl.coalesce("requestor", pl.lit("assistant"))
    return _half(turns.filter(pl.col("kind") == "call"), "call", caller, 0).with_columns(
        pl.lit(None, dtype=pl.String).alias("content"), pl.lit(None, dtype=pl.Boolean).alias("is_error")
    )


def _observations(turns: pl.DataFrame) -> pl.DataFrame:
    answered = turns.filter((pl.col("kind") == "call") & pl.col("content").is_not_null())
    return _half(answered, "result", pl.lit("tool"), 1).with_columns(pl.lit(None, dtype=pl.String).alias("arguments"))


def _half(turns: pl.DataFrame, kind: str, role: pl.Expr, half: int) -> pl.DataFrame:
    return turns.select(
        "session_id",
        "position",
        pl.lit(half).alias("half"),
        role.alias("role"),
        pl.lit(kind).alias("kind"),
        "content",
        "tool",
        pl.coalesce("arguments_raw", "arguments").alias("arguments"),
        "is_error",
        pl.col("model").alias("policy_id"),
    )


def _labels(source: Source) -> pl.DataFrame:
    judged = source.outcomes.select("session_id", pl.col("probability").alias("label_prob"))
    grades = source.grades
    if grades is None:
        grades = pl.DataFrame(schema={"session_id": pl.String, "reward": pl.Float64})
    both = judged.join(grades.select("session_id", "reward"), on="session_id", how="full", coalesce=True)
    return both.with_columns(
        pl.when(pl.col("reward").is_not_null())
        .then(pl.lit("rubric"))
        .when(pl.col("label_prob").is_not_null())
        .then(pl.lit("outcome"))
        .alias("label_source")
    )


def _write(out: Path, source: Source) -> Exported:
    path = out / FILE
    steps(source).write_parquet(path, compression="zstd", statistics=True, row_group_size=100_000)
    return Exported([path], empty(Verdict))


EXPORTER = Exporter("trajectories", _write)
