"""Decisions that stages write, and rows of earlier stages that several of them read."""

from __future__ import annotations

import polars as pl

from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import PART_OPENS, Decision, frame_schema
from warehouse.store import Store

RULE_CHANGED = "rule_changed"
"""Reason of a task that held, and that today's rules of a tool answer otherwise; and of the change, in stage `drift`."""


def all_of(subjects: pl.Series, rejected: pl.DataFrame, stage: str, reason: str, detail: str) -> pl.DataFrame:
    """Complete a stage's decisions: the `rejected` ones (frame of `Decision`, each once), and a kept one for each of the other
    `subjects`."""
    stopped = rejected.filter(~pl.col("kept"))["subject"]
    kept = pl.DataFrame({"subject": subjects.drop_nulls().unique().sort()}, schema={"subject": pl.String()}).filter(
        ~pl.col("subject").is_in(stopped.implode())).with_columns(
        stage=pl.lit(stage), kept=pl.lit(True), reason=pl.lit(reason), detail=pl.lit(detail),
        file_id=pl.lit(None, pl.String()), line=pl.lit(None, pl.Int64()))
    return pl.concat([rejected, kept.select(list(frame_schema(Decision)))]).unique(
        ["stage", "subject", "reason"], maintain_order=True)


def replace_decisions(store: Store, stage: str, decisions: pl.DataFrame) -> None:
    """Replace the decisions of a stage."""
    store.replace("mart.decisions", decisions.unique(["stage", "subject", "reason"]), "stage = $stage", stage=stage)


def effects_of(store: Store) -> pl.DataFrame:
    """Read service, tool and effect of every behaviour; `presumed`: the effect by which a tool without proof is simulated,
    `counted`: the one by which rewards count its calls."""
    return store.read("""
        select service, tool, effect, coalesce(json_extract_string(program, '$.presumed'), effect) as presumed,
            if(json_extract_string(program, '$.harmless') = 'true', presumed, effect) as counted
        from mart.behaviours order by all""")


def acts_of(store: Store) -> pl.DataFrame:
    """Read the same to judge what sessions did: a part of a tool that rewards count as a read is one.

    A part has fewer calls to prove it than a whole tool. For whole tools, `counted` would take unproven writes for reads."""
    is_part = pl.col("tool").str.contains(PART_OPENS, literal=True)
    return effects_of(store).with_columns(pl.when(is_part).then("counted").otherwise("effect").alias("effect"))


def starts_of(store: Store) -> dict[str, str]:
    """Read what the sessions of each service start from."""
    return dict(store.read("select service, starts_from from mart.services order by all").iter_rows())


def corrections_of_kind(store: Store, kind: str) -> pl.DataFrame:
    """Read the rows of `core.corrections` on outcomes, families or checks that were not taken back."""
    return store.read(
        "select * from core.corrections where stands and kind = $kind and value != 'null' order by correction_id", kind=kind)


def funnel(store: Store, settings: Settings) -> Counts:
    """Count all decisions; after this stage the warehouse is published."""
    return {"n_decisions": store.count("mart.decisions")}
