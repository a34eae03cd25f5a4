"""Rewards: for every task a rubric mined from what good and bad sessions did, with its own evidence.

In: tasks, turns, outcomes and what each session changed. Out: a `Rubric` a task, or a verdict that says why not.
Sees: what `witness.py` and `checks.py` see. Does not see: whether a rubric can be fooled; `verify.py` plays against it.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from env_builder.rewards.checks import checks_of
from env_builder.rewards.witness import FreeText, Witness, free_text, witnesses
from env_builder.runtime.canonical import canonical, digest
from env_builder.users import solutions
from warehouse.records import Rubric, Verdict, frame

BAD_BELOW = 0.5
"""Probability of success below which a session speaks against a check."""
NO_FREE_TEXT = FreeText({}, [])


class Rewards(NamedTuple):
    """What `mine` gives."""

    rubrics: pl.DataFrame
    """Frame of `Rubric`, sorted by task_id."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, one row a task: `rubric_mined`, `no_known_success` or `no_known_end_state`."""


def mine(
    tasks: pl.DataFrame, sessions: pl.DataFrame, turns: pl.DataFrame, outcomes: pl.DataFrame,
    differences: pl.DataFrame, effects: pl.DataFrame,
) -> Rewards:
    """A rubric for every task of `tasks` that has a good session whose end state is known.

    `differences`: (session_id, difference: canonical JSON of {"documents", "acts"}, null where the room cannot tell);
    `effects`: (service, tool, effect). Rows in = rubrics + verdicts that are not kept.
    """
    named = tasks.select(pl.concat_list("session_ids", "good_session_ids").alias("session_id")).explode("session_id")
    known = sessions.join(named.unique(), on="session_id", how="semi")["session_id"]
    seen = witnesses(known, turns, outcomes, differences, effects)
    free = free_text(turns)
    told = differences.filter(pl.col("difference").is_not_null())["session_id"].implode()
    usable = pl.col("good_session_ids").list.eval(pl.element().filter(pl.element().is_in(told)))
    solution = dict(solutions(tasks.with_columns(usable), turns).iter_rows())
    rubrics, verdicts = [], []
    columns = tasks.select("task_id", "service", "session_ids", "good_session_ids").sort("task_id")
    for task_id, service, session_ids, good_ids in columns.iter_rows():
        good = [seen[name] for name in good_ids if name in seen and seen[name].difference is not None]
        if not good:
            verdicts.append(_without(task_id, good_ids))
            continue
        bad = [seen[name] for name in sorted(session_ids) if name in seen and _is_bad(seen[name], good_ids)]
        rubrics.append(_rubric(task_id, service, good, bad, free.get(service, NO_FREE_TEXT), solution[task_id]))
        detail = f"{len(good)} good sessions propose, {len(bad)} bad ones dispose."
        verdicts.append(_verdict(task_id, True, "rubric_mined", detail))
    return Rewards(frame(Rubric, rubrics), frame(Verdict, verdicts))


def _is_bad(one: Witness, good_ids: list[str]) -> bool:
    return one.session_id not in good_ids and one.probability is not None and one.probability < BAD_BELOW


def _rubric(
    task_id: str, service: str, good: list[Witness], bad: list[Witness], free: FreeText, solution: str
) -> Rubric:
    checks = canonical([check.model_dump(mode="json") for check in checks_of(good, bad, free)])
    rubric_id = digest(canonical([task_id, checks, solution]))
    return Rubric(rubric_id=rubric_id, task_id=task_id, service=service, checks=checks, solution=solution)


def _without(task_id: str, good_ids: list[str]) -> Verdict:
    if good_ids:
        detail = f"The room cannot tell what {good_ids[0]} changed; log what its tools answered."
        return _verdict(task_id, False, "no_known_end_state", detail)
    detail = "No session of the task is known to have gone well; add feedback or an expert's word."
    return _verdict(task_id, False, "no_known_success", detail)


def _verdict(task_id: str, kept: bool, reason: str, detail: str) -> Verdict:
    return Verdict(stage="rewards", subject=task_id, kept=kept, reason=reason, detail=detail)
