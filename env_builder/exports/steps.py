"""The one table of steps that every dataset is made from: one row a step, in batches of whole episodes; and as Parquet.

In: `DatasetSource`. Out: frames with the columns of `COLUMNS`, by task_id, episode_id and step_idx; the exporter `trajectories`
writes them, one file a split. A call is two steps: the action (role assistant, or who called) and the observation (role tool).
Text that the policy read is `observation`; what it, or a user who acted, did is `action_text` or `action_name` and
`action_arguments` (JSON text as logged). `reward` stands on the last step: the grade where there is one, else the outcome's
probability, else null; 0 before. Memory is bounded by a batch, whatever the source's size.
Sees: what the tables say. Does not see: tokens and log-probabilities that no log holds; they are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from env_builder.exports.exporter import DatasetSource, Exported, Exporter, members
from env_builder.runtime.canonical import digest
from warehouse.records import SPLITS, Decision, empty

COLUMNS: dict[str, pl.DataType] = {
    "episode_id": pl.String(), "task_id": pl.String(), "family_id": pl.String(), "split": pl.String(),
    "environment_digest": pl.String(), "turn_idx": pl.Int32(), "step_idx": pl.Int32(),
    "happened_at": pl.Datetime("us", "UTC"), "role": pl.String(), "kind": pl.String(),
    "observation": pl.String(), "action_text": pl.String(), "action_name": pl.String(), "action_arguments": pl.String(),
    "tool_schema_hash": pl.String(), "is_error": pl.Boolean(), "tier": pl.String(), "state_hash": pl.String(),
    "loss_mask": pl.Boolean(), "reward": pl.Float64(), "reward_parts": pl.String(), "shaped_reward": pl.Float64(),
    "return_to_go": pl.Float64(), "terminated": pl.Boolean(), "truncated": pl.Boolean(), "label_prob": pl.Float64(),
    "label_source": pl.String(), "weight": pl.Float64(), "policy_id": pl.String(), "sampling": pl.String(),
    "prompt_token_ids": pl.List(pl.Int64()), "completion_token_ids": pl.List(pl.Int64()),
    "behaviour_logprobs": pl.List(pl.Float64()), "source_event_ids": pl.List(pl.String()), "privacy_policy": pl.String(),
}
MARKS: dict[str, pl.DataType] = {
    "turn_id": pl.String(), "tier": pl.String(), "state_hash": pl.String(), "shaped_reward": pl.Float64(),
    "sampling": pl.String(), "prompt_token_ids": pl.List(pl.Int64()), "completion_token_ids": pl.List(pl.Int64()),
    "behaviour_logprobs": pl.List(pl.Float64()),
}
"""What `Source.marks` may say of a turn."""
TURNS_AT_ONCE = 40_000
FOREIGN = 2
"""Turns read at once for each that is wanted: beyond that the others are left while reading."""
_READ = ("turn_id", "session_id", "position", "kind", "role", "content", "tool", "arguments", "arguments_raw", "is_error",
         "requestor", "result_id", "model", "happened_at", "answered_at")
_OF_ACTION = ("sampling", "prompt_token_ids", "completion_token_ids", "behaviour_logprobs")
_OF_ANSWER = ("tier", "state_hash")


def batches(source: DatasetSource, splits: Sequence[str] = SPLITS,
            planned: pl.DataFrame | None = None) -> Iterator[pl.DataFrame]:
    """Yield the rows of the splits' episodes, whole episodes at a time. `planned`: the source's `plan`, if made before."""
    planned = plan(source) if planned is None else planned
    marks = None if source.marks is None or source.marks.is_empty() else source.marks
    tools = source.tools.unique("tool", keep="first").select("tool", "input_schema")
    schemas = pl.DataFrame([(tool, digest(schema)[:16]) for tool, schema in tools.iter_rows()],
                           schema={"tool": pl.String, "tool_schema_hash": pl.String}, orient="row")
    for part, turns in _parts(planned.filter(pl.col("split").is_in(list(splits))), source.turns):
        own = part.with_columns(pl.int_range(pl.len()).cast(pl.Int64).alias("rank"))
        own_turns = _halves(turns, own)
        if marks is not None:
            own_turns = own_turns.join(marks, on="turn_id", how="left", maintain_order="left")
        own_turns = own_turns.with_columns(
            pl.lit(None, kind).alias(name) for name, kind in MARKS.items() if name not in own_turns.columns
        ).join(schemas, on="tool", how="left", maintain_order="left")
        about = own[own_turns["rank"]].drop("session_id", "rank", "service", "goal", "good")
        yield _with_columns(pl.concat([own_turns, about], how="horizontal"), source)


def plan(source: DatasetSource) -> pl.DataFrame:
    """`episodes`, each with how many turns it has (`n`) and where they lie in the table of turns (`first`, `last`)."""
    places = (
        source.turns.lazy().select("session_id").with_row_index("row").group_by("session_id")
        .agg(pl.len().alias("n"), pl.col("row").min().alias("first"), pl.col("row").max().alias("last")).collect())
    return episodes(source).join(places, on="session_id", how="inner").sort("rank")


def episodes(source: DatasetSource) -> pl.DataFrame:
    """One row an episode, by task and session: what its steps have in common, with its label."""
    judged = source.outcomes.select("session_id", pl.col("probability").alias("label_prob"), pl.col("signals").alias("parts"))
    grades = source.grades
    if grades is None:
        grades = pl.DataFrame(schema={"session_id": pl.String(), "reward": pl.Float64()})
    for name, kind in (("parts", pl.String()), ("cut_off", pl.Boolean())):
        if name not in grades.columns:
            grades = grades.with_columns(pl.lit(None, kind).alias(name))
    graded = pl.col("reward").is_not_null()
    return (
        members(source.tasks)
        .join(judged, on="session_id", how="left")
        .join(grades.select("session_id", "reward", "cut_off", graded_parts="parts"), on="session_id", how="left")
        .with_columns(
            pl.coalesce("reward", "label_prob").alias("final"),
            pl.when(graded).then("graded_parts").when(pl.col("label_prob").is_not_null()).then("parts").alias("reward_parts"),
            pl.when(graded).then(pl.lit("rubric")).when(pl.col("label_prob").is_not_null()).then(pl.lit("outcome"))
            .alias("label_source"),
            pl.when(graded).then(1.0).when("good").then("label_prob").otherwise(1 - pl.col("label_prob")).alias("weight"))
        .rename({"family": "family_id"})
        .sort("task_id", "session_id")
        .with_columns(pl.int_range(pl.len()).cast(pl.Int32).alias("rank"))
        .drop("reward", "graded_parts", "parts")
    )


def _parts(placed: pl.DataFrame, turns: pl.DataFrame | pl.LazyFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Episodes and their turns, about `TURNS_AT_ONCE` at a time; reads little twice where tasks' sessions lie together."""
    lazy = turns.lazy().select(_READ)
    cut = (placed["n"].cast(pl.Int64).cum_sum() - 1) // TURNS_AT_ONCE
    for part in placed.with_columns(cut.alias("cut")).partition_by("cut", maintain_order=True, include_key=False):
        first, last = part.select(pl.min("first"), pl.max("last")).row(0)
        selected = lazy.slice(first, last - first + 1)
        if last - first + 1 > FOREIGN * part.select(pl.col("n").sum()).item():
            selected = selected.filter(pl.col("session_id").is_in(part["session_id"].unique().implode()))
        yield part.drop("n", "first", "last"), selected.collect().rechunk()   # gathering from several chunks is slow


def _halves(turns: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """Return the turns of episodes in order, each with its `rank`, a call with an answer twice: first it acts, then (`half`) it
    is answered. Which rows these are is worked out of four columns, so that the texts are moved once.
    """
    n_halves = 1 + ((pl.col("kind") == "call") & pl.col("content").is_not_null()).cast(pl.Int64)
    rows = (
        turns.select("session_id", "position", pl.int_range(pl.len()).alias("row"), n_halves.alias("n_halves"))
        .join(own.select("session_id", "rank"), on="session_id").sort("rank", "position")
        .select("row", "rank", pl.int_ranges("n_halves").alias("half")).explode("half"))
    return turns[rows["row"]].with_columns(rows["rank"], (rows["half"] == 1).alias("half"))


def _with_columns(halves: pl.DataFrame, source: DatasetSource) -> pl.DataFrame:
    """Return the columns of `COLUMNS` from halves of turns with what is known of their episodes."""
    half, is_call = pl.col("half"), pl.col("kind") == "call"
    caller = pl.coalesce("requestor", pl.lit("assistant"))
    role = pl.when(half).then(pl.lit("tool")).when(is_call).then(caller).otherwise("role")
    row, first, last = pl.int_range(pl.len()), *(
        (pl.col("rank") != pl.col("rank").shift(by)).fill_null(True) for by in (1, -1))
    halves = halves.with_columns(role.alias("role"), last.alias("last")).with_columns(
        (pl.col("role") == "assistant").fill_null(False).alias("loss_mask"), (is_call & ~half).alias("acts"))
    to_come = pl.col("loss_mask").cast(pl.Int64)  # acts of the policy, this one among them
    later = (to_come.cum_sum(reverse=True) - to_come).over("rank")
    worth = pl.col("final") if source.discount == 1 else pl.col("final") * pl.lit(source.discount).pow(later)
    acts, mask, ends = pl.col("acts"), pl.col("loss_mask"), pl.col("last")
    cut_off = ends & (acts | pl.col("cut_off").fill_null(False))
    return halves.select(
        pl.col("session_id").alias("episode_id"), "task_id", "family_id", "split",
        pl.lit(source.content_digest, pl.String()).alias("environment_digest"),
        pl.col("position").cast(pl.Int32).alias("turn_idx"),
        (row - pl.when(first).then(row).forward_fill()).cast(pl.Int32).alias("step_idx"),
        pl.when(half).then("answered_at").otherwise("happened_at").alias("happened_at"), "role",
        pl.when(half).then(pl.lit("result")).otherwise("kind").alias("kind"),
        pl.when(half | ~(acts | mask)).then("content").alias("observation"),
        pl.when(mask & ~is_call).then("content").alias("action_text"),
        pl.col("tool").alias("action_name"),
        pl.when(acts).then(pl.coalesce("arguments_raw", "arguments")).alias("action_arguments"),
        "tool_schema_hash", pl.when(half).then("is_error").alias("is_error"),
        *(pl.when(~acts).then(name).alias(name) for name in _OF_ANSWER), "loss_mask",
        pl.when(ends).then("final").otherwise(0.0).alias("reward"), pl.when(ends).then("reward_parts").alias("reward_parts"),
        pl.when(~acts).then("shaped_reward").alias("shaped_reward"), worth.alias("return_to_go"),
        (ends & ~cut_off).alias("terminated"), cut_off.alias("truncated"), "label_prob", "label_source", "weight",
        pl.col("model").alias("policy_id"), *(pl.when(mask).then(name).alias(name) for name in _OF_ACTION),
        pl.when(half).then(pl.coalesce("result_id", "turn_id")).otherwise("turn_id").reshape((-1, 1)).arr.to_list()
        .alias("source_event_ids"),
        pl.lit(source.privacy_policy, pl.String()).alias("privacy_policy"),
    ).select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


NAME = "trajectories"
ROW_GROUP = 50_000
"""Rows of a row group: what a reader has to hold."""


def file(out: Path, split: str) -> Path:
    """Return the file of a side in the folder `out`."""
    return out / f"{NAME}.{split}.parquet"


def _write(out: Path, source: DatasetSource) -> Exported:
    planned = plan(source)
    for split in SPLITS:
        def read_batches(columns: list[str] | None, *_: Any, split: str = split) -> Iterator[pl.DataFrame]:
            for rows in batches(source, (split,), planned):
                yield rows if columns is None else rows.select(columns)

        register_io_source(read_batches, schema=dict(COLUMNS)).sink_parquet(
            file(out, split), compression="zstd", compression_level=1, row_group_size=ROW_GROUP, engine="streaming")
    return Exported(sorted(file(out, split) for split in SPLITS), empty(Decision))


EXPORTER = Exporter(NAME, _write)
