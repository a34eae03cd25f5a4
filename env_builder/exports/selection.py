"""Which episodes a dataset is made of: by split, family, band, outcome, tier and policy, each once; and why others are not.

In: `DatasetSource` and what is wanted. Out: the source of the chosen episodes alone, and a decision on each that was left.
Every form that is written of it sees the same selection. Sees: whether two episodes are the same step for step.
Does not see: likeness.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from env_builder.exports.exporter import DatasetSource
from env_builder.exports.steps import batches, episodes
from warehouse.records import SPLITS, Decision, frame

_REASONS = {
    "other_split": "is in the split {}, which was not asked for",
    "other_family": "is of the family {}, which was not asked for",
    "other_band": "is of a task whose band of success is {}, which was not asked for",
    "outcome_outside": "has the reward or probability of success {}, outside of what was asked for",
    "other_policy": "was not acted by a policy that was asked for, but by {}",
    "other_tier": "holds answers of the tiers {}, of which some were not asked for",
    "duplicate": "is step for step the same as {}",
}
_SAME = ("role", "kind", "observation", "action_text", "action_name", "action_arguments")


class Selection(NamedTuple):
    """What is wanted; empty: whatever there is."""

    splits: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    """Ids of families."""
    bands: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    """Interval of the reward, or of the probability of success where nothing was graded; whatever has neither is outside."""
    tiers: tuple[str, ...] = ()
    """Tiers of answers that an episode may hold; answers of logs have none, and always may."""
    policies: tuple[str, ...] = ()
    duplicates: bool = False
    """Keep episodes that are step for step the same?"""


def select(source: DatasetSource, wanted: Selection) -> tuple[DatasetSource, pl.DataFrame]:
    """Return the source of the chosen episodes, and a frame of `Decision` on the others."""
    candidates = episodes(source).join(source.tasks.select("task_id", "difficulty_band"), on="task_id", how="left")
    reason = (
        pl.when(~pl.col("split").is_in(list(wanted.splits or SPLITS))).then(pl.struct(reason=pl.lit("other_split"), of="split"))
        .when(_not_in("family_id", wanted.families)).then(pl.struct(reason=pl.lit("other_family"), of="family_id"))
        .when(_not_in("difficulty_band", wanted.bands))
        .then(pl.struct(reason=pl.lit("other_band"), of=pl.col("difficulty_band").fill_null("not known")))
        .when(_outside(wanted)).then(
            pl.struct(reason=pl.lit("outcome_outside"), of=pl.col("final").cast(pl.String).fill_null("none"))))
    candidates = candidates.with_columns(reason.alias("why"))
    rejected = [candidates.filter(pl.col("why").is_not_null()).select("task_id", "session_id", "why")]
    candidates = candidates.filter(pl.col("why").is_null()).select("task_id", "session_id")
    if wanted.tiers or wanted.policies or not wanted.duplicates:
        judged = _by_steps(_only(source, candidates), wanted)
        rejected.append(judged.filter(pl.col("why").is_not_null()))
        candidates = judged.filter(pl.col("why").is_null()).select("task_id", "session_id")
    rows = pl.concat(rejected, how="vertical_relaxed").sort("task_id", "session_id").select("session_id", "why").iter_rows()
    return _only(source, candidates)._replace(published=_published(source, wanted)), frame(Decision, [
        {"stage": "datasets", "subject": session, "kept": False, "reason": why["reason"], "file_id": None, "line": None,
         "detail": f"session {session} {_REASONS[why['reason']].format(why['of'])}"} for session, why in rows])


def _by_steps(source: DatasetSource, wanted: Selection) -> pl.DataFrame:
    """task_id, session_id, and why its steps exclude it (else null), of each episode."""
    columns = [
        rows.with_columns(pl.struct(_SAME).hash(seed=7).alias("same"))
        .group_by("task_id", "episode_id", maintain_order=True).agg(
            (pl.col("same") * (2 * pl.col("step_idx").cast(pl.UInt64) + 1)).sum().alias("same"), pl.len().alias("n"),
            pl.col("policy_id").filter("loss_mask").drop_nulls().unique().sort().alias("policies"),
            pl.col("tier").drop_nulls().unique().sort().alias("tiers"))
        for rows in batches(source)]
    if not columns:
        return pl.DataFrame(schema={"task_id": pl.String, "session_id": pl.String, "why": pl.Null})
    every = pl.concat(columns).sort("task_id", "episode_id")
    twice = ~pl.struct("same", "n").is_first_distinct() if not wanted.duplicates else pl.lit(False)
    other_policy = ~pl.col("policies").list.set_intersection(list(wanted.policies)).list.len().cast(pl.Boolean)
    other_tier = pl.col("tiers").list.set_difference(list(wanted.tiers)).list.len() > 0
    why = (
        pl.when(other_policy if wanted.policies else pl.lit(False))
        .then(pl.struct(reason=pl.lit("other_policy"), of=pl.col("policies").list.join(", ")))
        .when(other_tier if wanted.tiers else pl.lit(False))
        .then(pl.struct(reason=pl.lit("other_tier"), of=pl.col("tiers").list.join(", ")))
        .when(twice).then(pl.struct(reason=pl.lit("duplicate"), of=pl.col("episode_id").first().over("same", "n"))))
    return every.with_columns(why.alias("why")).select("task_id", pl.col("episode_id").alias("session_id"), "why")


def _not_in(column: str, wanted: tuple[str, ...]) -> pl.Expr:
    return ~pl.col(column).is_in(list(wanted)).fill_null(False) if wanted else pl.lit(False)


def _outside(wanted: Selection) -> pl.Expr:
    if wanted.least is None and wanted.most is None:
        return pl.lit(False)
    low, high = (0.0 if wanted.least is None else wanted.least), (1.0 if wanted.most is None else wanted.most)
    return ~pl.col("final").is_between(low, high).fill_null(False)


def _only(source: DatasetSource, candidates: pl.DataFrame) -> DatasetSource:
    """Return the source with these sessions of these tasks alone."""
    kept = candidates.group_by("task_id").agg(pl.col("session_id").alias("kept"))
    tasks = source.tasks.join(kept, on="task_id", how="inner").with_columns(
        pl.col(name).list.set_intersection("kept").list.sort()
        for name in ("session_ids", "succeeded_session_ids")).drop("kept")
    return source._replace(tasks=tasks)


def _published(source: DatasetSource, wanted: Selection) -> pl.DataFrame | None:
    """Return the published tasks that are wanted, whether anybody tried them or not."""
    if source.published is None:
        return None
    bands = source.tasks.select("task_id", "difficulty_band")
    return source.published.join(bands, on="task_id", how="left").filter(
        pl.col("split").is_in(list(wanted.splits or SPLITS)), ~_not_in("family_id", wanted.families),
        ~_not_in("difficulty_band", wanted.bands)).drop("difficulty_band")
