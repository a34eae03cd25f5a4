"""Rewards: for every task a rubric mined from what good and bad sessions did, with its own evidence.

In: tasks, turns, outcomes and what each session changed. Out: a `Rubric` a task, or a verdict that says why not.
Sees: what `witness.py` and `checks.py` see. Does not see: whether a rubric can be fooled; `verify.py` plays against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from env_builder.rewards.checks import CERTAIN, agreed, checks_of, fooled_by, nothing_to_reward
from env_builder.rewards.corrections import Corrections, corrected, gates
from env_builder.rewards.families import Case, habit_checks, habits
from env_builder.rewards.judging import first_that_passes, merged
from env_builder.rewards.loose import FreeText, free_text
from env_builder.rewards.persons import Said
from env_builder.rewards.policies import Ask, Proposed, read_policies
from env_builder.rewards.witness import Witness, witnesses
from env_builder.runtime.canonical import canonical, digest
from env_builder.users import solutions
from warehouse.records import Check, Remember, Rubric, Verdict, anew, frame

BAD_BELOW = 0.5
"""Probability of success below which a session speaks against a check."""
NO_FREE_TEXT = FreeText({}, [])
MOST_FAMILIES = 20
"""Families that a verdict names."""
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
    differences: pl.DataFrame, effects: pl.DataFrame, said: Iterable[Said] = (), ask: Ask | None = None,
    corrections: Corrections | None = None, remember: Remember = anew,
) -> Rewards:
    """A rubric for every task of `tasks` that has a good session whose end state is known.

    `differences`: (session_id, difference: canonical JSON of {"documents", "acts"}, null where the room cannot tell);
    `effects`: (service, tool, effect); `said`: what persons add, by the family's id; `ask`: a model that reads policies;
    `corrections`: what persons say of the checks that come of it.
    Rows in = rubrics + verdicts that are not kept (verdicts on policies and persons' families are beside these).
    """
    named = tasks.select(pl.concat_list("session_ids", "good_session_ids").alias("session_id")).explode("session_id")
    known = sessions.join(named.unique(), on="session_id", how="semi")["session_id"]
    seen = witnesses(known, turns, outcomes, differences, effects, remember)
    free, decided = free_text(turns, tasks, effects), _decided(sessions, outcomes)
    cases, verdicts = [], []
    for task_id, service, family, *sides in tasks.select(
        "task_id", "service", "family", "session_ids", "good_session_ids"
    ).iter_rows():
        free_here = free.get(service, NO_FREE_TEXT)
        case, verdict = _case(task_id, service, family, sides[0], sides[1], seen, free_here, service in decided)
        cases.append(case)
        verdicts.append(verdict)
    writes = _tools(effects.filter(pl.col("effect") != "read"))
    policies = read_policies(cases, turns, writes, ask) if ask else Proposed([], [])
    spoken = _spoken([*said, *policies.said])
    acts = _tools(effects.filter(pl.col("effect") == "write"))
    mined = _rubrics(cases, free, spoken, writes, acts, tasks, turns, corrections or {})
    others = [*policies.verdicts, *_unheard(said, cases)]
    return Rewards(frame(Rubric, mined).sort("task_id"), frame(Verdict, [*verdicts, *others]).sort("subject"))


def _case(
    task_id: str, service: str, family: str, session_ids: list[str], good_ids: list[str], seen: dict[str, Witness],
    free: FreeText, decided: bool,
) -> tuple[Case, Verdict]:
    clear = [seen[name] for name in good_ids if name in seen and seen[name].difference is not None]
    good = agreed(clear, free)
    verdict = _why(task_id, good_ids, clear, good, free, decided)
    good = good if verdict.kept else []
    return Case(task_id, service, family, good, _bad(session_ids, [one.session_id for one in good], seen)), verdict


def _rubrics(
    cases: list[Case], free: dict[str, FreeText], spoken: dict[str, list[Said]], writes: dict[str, frozenset[str]],
    acts: dict[str, frozenset[str]], tasks: pl.DataFrame, turns: pl.DataFrame, corrections: Corrections,
) -> list[Rubric]:
    known, found, best = habits(cases), {}, {}
    for case in cases:
        text, acting = free.get(case.service, NO_FREE_TEXT), writes.get(case.service, frozenset())
        own = [each for each in (*spoken.get(case.family, ()), *spoken.get(case.service, ()))
               if case.task_id in (each.check.tasks or (case.task_id,))]
        checks: list[Check] = []
        if case.good:
            fooled = fooled_by(case.good, case.bad, text)
            checks = [*checks_of(case.good, case.bad, fooled, text, acts.get(case.service, ())), *habit_checks(case, known)]
            checks = corrected(case.task_id, merged(checks, own, case.good, case.bad, acting), corrections)
            found[case.task_id] = case.service, checks
        held = [*own, *gates(case.task_id, checks, corrections)]
        best[case.task_id] = [one.session_id for one in first_that_passes(case.good, held, acting)]
    agreeing = pl.Series("good_session_ids", [best[name] for name in tasks["task_id"]], dtype=pl.List(pl.String()))
    steps = dict(solutions(tasks.with_columns(agreeing), turns).iter_rows())
    return [_rubric(task_id, service, checks, steps[task_id]) for task_id, (service, checks) in found.items()]


def _spoken(said: Iterable[Said]) -> dict[str, list[Said]]:
    """What is said, by the family or the service that it is said of."""
    found: dict[str, list[Said]] = {}
    for each in said:
        found.setdefault(each.family, []).append(each)
    return found


def _unheard(said: Iterable[Said], cases: list[Case]) -> list[Verdict]:
    """Files of persons that speak of no family that there is."""
    families = sorted({case.family for case in cases})
    gone = {each.by["file"]: each.family for each in said if each.family not in families}
    return [Verdict(stage="rewards", subject=name, kept=False, reason="no_such_family",
                    detail=f"There is no family {family!r}; there are: {', '.join(families[:MOST_FAMILIES])}.")
            for name, family in sorted(gone.items())]


def _tools(effects: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Service -> its tools."""
    found: dict[str, set[str]] = {}
    for service, tool in effects.select("service", "tool").iter_rows():
        found.setdefault(service, set()).add(tool)
    return {service: frozenset(tools) for service, tools in found.items()}


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
