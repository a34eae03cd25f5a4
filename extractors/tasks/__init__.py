"""Tasks: what was asked for, at an instant, in a service.

In: sessions and their turns, outcomes, the effects of tools, and how each service's sessions begin. Out: a frame of
`Task`, decisions for the sessions that are no task, and the leakage report of the split.

In a service whose sessions all start from the same state, sessions that ask for the same thing are one task; where all
share one living world every session is a task of its own. Each part says in its own text what it sees and does not see:
`requests`, `goals`, `goal_slots`, `provenance`, `details`, `splits`, `sealed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from extractors.tasks.arguments import calls_of, fill_slots, values_of
from extractors.tasks.branches import id_of, part_branches
from extractors.tasks.details import details, family_table, rated, signatures
from extractors.tasks.goal_slots import goal_slots
from extractors.tasks.goals import continued, find_goals, kinds_of
from extractors.tasks.names import asked_by
from extractors.tasks.provenance import trace
from extractors.tasks.requests import find_requests, same_request, stated_requests
from extractors.tasks.sealed import TIED, named_tasks, sealed_sides, with_ledger
from extractors.tasks.splits import choose_sides, near_duplicates, report
from extractors.tasks.written import filed, written
from warehouse.records import (
    Decision,
    Family,
    Goal,
    Memoize,
    SealedSide,
    Task,
    WordGroup,
    empty,
    frame,
    frame_schema,
    recompute,
)
from warehouse.vocabulary import SUCCEEDED_FROM

_RECKONS = ("pure", "constant")
"""Effects of tools that only reckon."""
GATE = SUCCEEDED_FROM
"""Probability of success from which on a session counts as known-good."""


class Tasks(NamedTuple):
    """What `find` gives."""

    tasks: pl.DataFrame
    """Frame of `Task`, by task_id."""
    decisions: pl.DataFrame
    """Frame of `Decision`, stage `tasks`: sessions that are in no task."""
    goals: pl.DataFrame
    """Frame of `Goal`, by session and place."""
    families: pl.DataFrame
    """Frame of `Family`, by family."""
    sides: pl.DataFrame
    """Frame of `SealedSide`, by session_id: what the ledger says of each session from now on, if it is sealed."""


class MinedGoals(NamedTuple):
    """What `mine_goals` gives."""

    goals: pl.DataFrame
    """Frame of `Goal`, by session and place."""
    groups: pl.DataFrame
    """Frame of `WordGroup`: which sessions taught which kind by their words alone."""


def goals_of(sessions: pl.DataFrame, turns: pl.DataFrame, effects: pl.DataFrame, starts_from: Mapping[str, str] | None = None,
             memoize: Memoize = recompute, ledger: pl.DataFrame | None = None) -> pl.DataFrame:
    """Find the goals of each session: a frame of `Goal`, by session and place. `starts_from`, `ledger`: as in `find`."""
    return mine_goals(sessions, turns, effects, starts_from, memoize, ledger).goals


def mine_goals(sessions: pl.DataFrame, turns: pl.DataFrame, effects: pl.DataFrame,
               starts_from: Mapping[str, str] | None = None, memoize: Memoize = recompute,
               ledger: pl.DataFrame | None = None) -> MinedGoals:
    """Find the goals of each session, as `goals_of` does, and what the ledger says of them from now on."""
    requests = stated_requests(sessions, turns)
    if requests.is_empty():
        return MinedGoals(empty(Goal), empty(WordGroup))
    calls = calls_of(turns, effects)
    goals, groups = find_goals(with_ledger(requests, ledger), turns, calls)
    ids = pl.struct("service", "session_id", "place").map_elements(lambda row: id_of(*row.values()), return_dtype=pl.String)
    kinds = pl.struct("service", "label").map_elements(
        lambda row: id_of(row["service"], [row["label"]]), return_dtype=pl.String)
    named = goals.with_columns(goal_id=ids, kind=kinds, goal="words", asks="label")
    slots = goal_slots(goals, turns, calls, values_of(calls), memoize)
    families = part_branches(kinds_of(goals), turns, effects)
    filled = named.join(families, on="session_id").join(slots, on=["session_id", "place"])
    later = continued(filled.filter(~_is_reset(starts_from or {})), sessions)
    linked = filled.join(later, on="goal_id", how="left")
    return MinedGoals(linked.select(list(frame_schema(Goal))).sort("session_id", "place"), groups)


def find(sessions: pl.DataFrame, turns: pl.DataFrame, outcomes: pl.DataFrame, effects: pl.DataFrame,
         starts_from: Mapping[str, str], gate: float = GATE, goals: pl.DataFrame | None = None,
         memoize: Memoize = recompute, ledger: pl.DataFrame | None = None) -> Tasks:
    """Find the tasks in sessions: every session is in exactly one task, or in a decision with the reason.

    `effects`: frame of service, tool, effect. `starts_from`: service -> `reset` or `shared` (default: each session is a
    task of its own). `goals`: of `goals_of`. `sessions` may have the column `side` (`choose_sides`). `ledger`: what was
    decided before (`sealed.LEDGER`). Does not depend on the order of rows."""
    requests, decisions = find_requests(sessions, turns)
    if goals is None:
        goals = goals_of(sessions, turns, effects, starts_from, memoize)
    if requests.is_empty():
        return Tasks(empty(Task), decisions, goals, empty(Family), empty(SealedSide))
    calls = calls_of(turns, effects)
    values = values_of(calls)
    for texts in (filed(turns), written(turns, effects)):
        requests = requests.join(texts, on="session_id", how="left")
    requests = with_ledger(requests, ledger)
    members = _members(requests, goals.select("session_id", "family").unique(), outcomes, starts_from, gate)
    chosen = choose_sides(_with_hints(members, sessions), calls, values).tasks
    sealed, apart = sealed_sides(members, chosen), chosen.filter(pl.col("split") == TIED)
    decisions = pl.concat([decisions, _reject_tied(members.join(apart, on="task", how="semi"))])
    members = members.join(apart, on="task", how="anti", maintain_order="left")
    if members.is_empty():
        return Tasks(empty(Task), decisions, goals, empty(Family), sealed)
    slots = fill_slots(requests, members, calls, values)
    reckoners = frozenset(effects.filter(pl.col("effect").is_in(_RECKONS)).select("service", "tool").iter_rows())
    traced = trace(members, turns, calls, values, reckoners, memoize)
    of_families, of_tasks = rated(members)
    task_details = (
        details(members, calls, traced, reckoners).join(of_tasks.rename({"name": "task"}), on="task", how="left")
        .join(signatures(_best(members, "task"), calls, effects, traced).rename({"group": "task"}), on="task", how="left"))
    tasks = _tasks(members, chosen, slots.join(task_details, on="task", how="full", coalesce=True), starts_from)
    kinds = kinds_of(goals.rename({"asks": "label"})).drop("family").join(
        goals.select("session_id", "family").unique(), on="session_id")
    signed = signatures(_best(members, "family"), calls, effects, traced)
    return Tasks(tasks, decisions, goals, family_table(members, kinds, of_families, signed), sealed)


def _reject_tied(members: pl.DataFrame) -> pl.DataFrame:
    """Decisions on the sessions of tasks that would tie sides together."""
    return frame(Decision, [
        Decision(stage="tasks", subject=session, kept=False, reason=TIED,
                 detail=f"What session {session} names is on several sides of the split already: on any of them it would give "
                        "the others away; no action needed.")
        for session in members["session_id"].sort()])


def _is_reset(starts_from: Mapping[str, str]) -> pl.Expr:
    return pl.col("service").is_in([service for service, start in starts_from.items() if start == "reset"])


def _best(members: pl.DataFrame, by: str) -> pl.DataFrame:
    best = members.filter(pl.col("good") == pl.col("good").any().over(by))
    return best.select(pl.col(by).alias("group"), "session_id")


def leakage(tasks: pl.DataFrame, sessions: pl.DataFrame, turns: pl.DataFrame,
            effects: pl.DataFrame, ledger: pl.DataFrame | None = None,
            decided: pl.DataFrame | None = None) -> dict[str, dict[str, Any]]:
    """Return what the sides of the tasks' split still share, per service, as JSON values (`splits.report` lists them).
    `ledger`: as it was for `find`; `decided`: the sides that `find` gave. Sessions on no side name things too: what many name
    ties nothing."""
    if tasks.is_empty():
        return {}
    requests, _ = find_requests(sessions, turns)
    of_task = tasks.select(pl.col("task_id").alias("task"), "family", "session_ids").explode("session_ids")
    of_task = of_task.rename({"session_ids": "session_id"})
    alike = near_duplicates(with_ledger(requests.join(of_task, on="session_id", how="semi"), ledger))
    apart = (empty(SealedSide) if decided is None else decided.filter(pl.col("split") == TIED)).select(
        pl.lit(TIED + "\0").add(pl.col("first_session_id")).alias("task"), pl.lit("").alias("family"), "session_id")
    members = with_ledger(pl.concat([of_task, apart]).join(requests, on="session_id"), ledger).with_columns(
        pl.when(pl.col("task").str.starts_with(TIED)).then(pl.lit(TIED)).otherwise("sealed_split").alias("sealed_split"))
    members = members.join(alike, on="session_id", how="left").sort("task", "session_id")
    calls = calls_of(turns, effects)
    ties = choose_sides(_with_hints(members, sessions), calls, values_of(calls))
    split = tasks.select(pl.col("task_id").alias("task"), "split")   # of those on a side
    sides = ties._replace(tasks=ties.tasks.drop("split").join(split, on="task"))
    n_sessions = pl.col("session_ids").list.len().cast(pl.Int64).alias("n_sessions")
    words = members.group_by("task").agg(pl.col("words").min())
    return report(sides, tasks.select(pl.col("task_id").alias("task"), "goal", n_sessions).join(words, on="task"))


def _with_hints(members: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Add what the sessions have for the split: which may be one conversation, and which side each has elsewhere."""
    hints = [name for name in ("alike", "side") if name in sessions.columns]
    return members.join(sessions.select("session_id", *hints), on="session_id", how="left", maintain_order="left") \
        if hints else members


def _members(requests: pl.DataFrame, kinds: pl.DataFrame, outcomes: pl.DataFrame, starts_from: Mapping[str, str],
             gate: float) -> pl.DataFrame:
    """One row a session: its task, the task's family, and how well it went."""
    reset = _is_reset(starts_from)
    joined = (
        requests.join(same_request(requests.filter(reset)), on="session_id", how="left")
        .join(kinds.select("session_id", "family"), on="session_id")
        .join(outcomes.select("session_id", "probability"), on="session_id", how="left")
        .with_columns(pl.when(reset).then("request").otherwise("session_id").alias("group"))
        .with_columns(pl.when("worded").then("group").otherwise(pl.concat_str("group", "written", ignore_nulls=True))))
    named = named_tasks(joined)
    families = (
        named.group_by("task", "family").agg(pl.len().alias("n")).sort("task", "n", "family", descending=[False, True, False])
        .group_by("task", maintain_order=True).agg(pl.col("family").first()))
    return (
        named.drop("family").join(families, on="task")
        .with_columns((pl.col("probability") >= gate).fill_null(False).alias("good"))
        .join(near_duplicates(requests), on="session_id").sort("task", "session_id"))


def _stated_goal() -> pl.Expr:
    """Return the goal in words: the user's; what the user filed; of work that nobody asked for in words, what it changes."""
    named = pl.col("goal").map_elements(asked_by, return_dtype=pl.String)
    own = pl.when("worded").then("goal")
    work = pl.when(pl.col("filed").is_null()).then("written")
    return pl.when("spoken").then(named).otherwise(
        pl.coalesce(pl.concat_str(own, pl.coalesce("filed", work), separator="\n", ignore_nulls=True).replace("", None), named))


def _tasks(members: pl.DataFrame, sides: pl.DataFrame, slots: pl.DataFrame, starts_from: Mapping[str, str]) -> pl.DataFrame:
    best_first = members.sort("task", "probability", "session_id", descending=[False, True, False], nulls_last=True)
    rows = best_first.group_by("task", maintain_order=True).agg(
        pl.col("service", "family", "goal", "spoken", "worded", "filed", "written").first(),
        pl.col("session_id").sort().alias("session_ids"),
        pl.col("session_id").filter(pl.col("good")).alias("succeeded_session_ids"), pl.col("started_at").min(),
        (1.0 - pl.col("probability").mean()).round(9).alias("difficulty"))
    return (
        rows.with_columns(_stated_goal().alias("goal"))
        .join(sides.select("task", "split"), on="task").join(slots, on="task", how="left").with_columns(
            pl.col("slots").fill_null("{}"), pl.col("signature").fill_null("[]"),
            pl.when(_is_reset(starts_from)).then(None).otherwise("started_at").alias("starts_at"),
            pl.lit(None, dtype=pl.String).alias("segment_of"), pl.lit(None, dtype=pl.String).alias("derived_from"))
        .rename({"task": "task_id"}).select(list(frame_schema(Task))).cast(pl.Schema(frame_schema(Task))).sort("task_id"))
