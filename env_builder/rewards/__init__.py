"""Rewards: for every task a rubric mined from what good and bad sessions did, with its own evidence.

In: tasks, turns, outcomes and what each session changed. Out: a `Rubric` a task, or a verdict that says why not.
Sees: what `witness.py` and `checks.py` see. Does not see: whether a rubric can be fooled; `verify.py` plays against it.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from env_builder.rewards.checks import CERTAIN, agreed, checks_of, nothing_to_reward
from env_builder.rewards.loose import FreeText, free_text
from env_builder.rewards.witness import Witness, witnesses
from env_builder.runtime.canonical import canonical, digest
from env_builder.users import solutions
from warehouse.records import Check, Rubric, Verdict, frame

BAD_BELOW = 0.5
"""Probability of success below which a session speaks against a check."""
NO_FREE_TEXT = FreeText({}, [])
MOST = 0.5
"""Share of a service's sessions that are as good as certain, from which one that is not is in doubt."""


class Rewards(NamedTuple):
    """What `mine` gives."""

    rubrics: pl.DataFrame
    """Frame of `Rubric`, sorted by task_id."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, one row a task: `rubric_mined`, or `no_known_success`, `no_known_end_state`,
    `no_agreed_end_state`, `doubtful_success`, `nothing_to_reward`."""


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
    free = free_text(turns, tasks, effects)
    decided = _decided(sessions, outcomes)
    good: dict[str, list[Witness]] = {}
    verdicts = []
    for task_id, service, good_ids in tasks.select("task_id", "service", "good_session_ids").iter_rows():
        clear = [seen[name] for name in good_ids if name in seen and seen[name].difference is not None]
        text = free.get(service, NO_FREE_TEXT)
        good[task_id] = agreed(clear, text)
        verdict = _why(task_id, good_ids, clear, good[task_id], text, service in decided)
        verdicts.append(verdict)
        if not verdict.kept:
            good[task_id] = []
    agreeing = [[one.session_id for one in good[name]] for name in tasks["task_id"]]
    solved = tasks.with_columns(pl.Series("good_session_ids", agreeing, dtype=pl.List(pl.String())))
    steps = dict(solutions(solved, turns).iter_rows())
    rubrics = []
    for task_id, service, session_ids, good_ids in tasks.select(
        "task_id", "service", "session_ids", "good_session_ids"
    ).iter_rows():
        if good[task_id]:
            bad = _bad(session_ids, good_ids, seen)
            checks = checks_of(good[task_id], bad, free.get(service, NO_FREE_TEXT))
            rubrics.append(_rubric(task_id, service, checks, steps[task_id]))
    return Rewards(frame(Rubric, rubrics).sort("task_id"), frame(Verdict, verdicts).sort("subject"))


def _bad(session_ids: list[str], good_ids: list[str], seen: dict[str, Witness]) -> list[Witness]:
    """The sessions of a task that speak against a check, by id."""
    others = (seen[name] for name in sorted(session_ids) if name in seen and name not in good_ids)
    return [one for one in others if one.probability is not None and one.probability < BAD_BELOW]


def _rubric(task_id: str, service: str, checks: list[Check], solution: str) -> Rubric:
    text = canonical([check.model_dump(mode="json") for check in checks])
    rubric_id = digest(canonical([task_id, text, solution]))
    return Rubric(rubric_id=rubric_id, task_id=task_id, service=service, checks=text, solution=solution)


def _decided(sessions: pl.DataFrame, outcomes: pl.DataFrame) -> set[str]:
    """Services of whose sessions most are as good as certain to have gone well, or not to have."""
    probability = pl.col("probability")
    certain = (probability >= CERTAIN) | (probability <= 1 - CERTAIN)
    rated = sessions.select("session_id", "service").join(outcomes, on="session_id")
    share = rated.group_by("service").agg(certain.fill_null(False).mean().alias("share"))
    return set(share.filter(pl.col("share") > MOST)["service"])


def _doubtful(good: list[Witness], decided: bool) -> bool:
    """A session alone that is left open where nearly all are decided: what speaks of it contradicts itself."""
    return decided and len(good) == 1 and (good[0].probability or 0.0) < CERTAIN


def _why(
    task_id: str, good_ids: list[str], clear: list[Witness], good: list[Witness], free: FreeText, decided: bool
) -> Verdict:
    """What became of a task: `clear` are its good sessions whose end is known, `good` those that agree."""
    if good and _doubtful(good, decided):
        detail = (f"{good[0].session_id} alone says what is right, and whether it went well is in doubt "
                  f"({good[0].probability or 0.0:.2f}) where most sessions are certain; add an expert's word.")
        return _verdict(task_id, False, "doubtful_success", detail)
    if good and nothing_to_reward(good, free):
        detail = f"{good[0].session_id} changed nothing and told nobody anything: any look around would be worth as much."
        return _verdict(task_id, False, "nothing_to_reward", detail)
    if good:
        detail = f"{len(good)} of {len(good_ids)} good sessions propose."
        return _verdict(task_id, True, "rubric_mined", detail)
    if clear:
        detail = f"Its {len(clear)} good sessions ended differently and none is certain; add feedback or an expert's word."
        return _verdict(task_id, False, "no_agreed_end_state", detail)
    if good_ids:
        detail = f"The room cannot tell what {good_ids[0]} changed; log what its tools answered."
        return _verdict(task_id, False, "no_known_end_state", detail)
    detail = "No session of the task is known to have gone well; add feedback or an expert's word."
    return _verdict(task_id, False, "no_known_success", detail)


def _verdict(task_id: str, kept: bool, reason: str, detail: str) -> Verdict:
    return Verdict(stage="rewards", subject=task_id, kept=kept, reason=reason, detail=detail)
