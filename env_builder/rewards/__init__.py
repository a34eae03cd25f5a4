"""Rewards: for every task a rubric mined from what good and bad sessions did, with its own evidence.

In: tasks, turns, outcomes and what each session changed. Out: a `Rubric` a task, or a decision that says why not.
Sees: what `witness.py` and `checks.py` see. Does not see: whether a rubric can be fooled; `verify.py` plays against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import polars as pl

from env_builder.rewards.checks import CERTAIN, agreed, checks_of, fooled_by, nothing_to_reward
from env_builder.rewards.conduct import RewardCase, habit_checks, habits
from env_builder.rewards.corrections import Corrections, Sides, added, corrected, gates
from env_builder.rewards.goals import Due, SessionGoal, goals_by_session, whole_sessions
from env_builder.rewards.loose import FreeText, free_text, takes_no_change, tools_by_service
from env_builder.rewards.obstacles import Obstacles, with_origins
from env_builder.rewards.persons import StatedCheck, first_that_passes, merged
from env_builder.rewards.policies import Ask, Proposed, read_policies
from env_builder.rewards.preparation import Preparation, preparation_checks, preparations, usual_tools
from env_builder.rewards.questions import Questions
from env_builder.rewards.reasons import Reasons, reasons_of
from env_builder.rewards.witness import Witness, id_of_rubric, witnesses
from env_builder.runtime.canonical import canonical
from env_builder.runtime.words import Fact
from env_builder.users import solutions
from env_builder.world.calls import ReadCalls, read_call
from warehouse.records import Check, Decision, Memoize, Rubric, frame, recompute

BAD_BELOW = 0.5
"""Probability of success below which a session speaks against a check."""
NO_FREE_TEXT = FreeText({}, [])
MOST_FAMILIES = 20
"""Families that a decision names."""
MOST = 0.5
"""Share of a service's sessions that are as good as certain, from which one that is not, and is contested, is in doubt."""


class Rewards(NamedTuple):
    """What `mine` gives."""

    rubrics: pl.DataFrame
    """Frame of `Rubric`, sorted by task_id."""
    decisions: pl.DataFrame
    """Frame of `Decision`, one row a task: `rubric_mined`, or `no_known_success`, `no_known_end_state`,
    `no_agreed_end_state`, `doubtful_success`, `nothing_to_reward`, `goal_left_open`, `step_skipped`, and those of
    `obstacles.py`."""


def mine(
    tasks: pl.DataFrame, sessions: pl.DataFrame, turns: pl.DataFrame, outcomes: pl.DataFrame,
    differences: pl.DataFrame, effects: pl.DataFrame, stated: Iterable[StatedCheck] = (), ask: Ask | None = None,
    corrections: Corrections | None = None, memoize: Memoize = recompute, goals: pl.DataFrame | None = None,
    conditions: pl.DataFrame | None = None, read: ReadCalls | None = None,
) -> Rewards:
    """Return a rubric for every task of `tasks` that has a good session whose end state is known.

    `differences`: (session_id, difference: canonical JSON of {"documents", "write_calls"}, null where the room cannot tell);
    `effects`: (service, tool, effect, counted); `stated`: what persons add, by the family's id; `ask`: a model that reads
    policies; `corrections`: what persons say of the checks that come of it; `goals`: frame of `Goal`;
    `conditions`: frame of `ConditionRow`, the reasons that checks name; `read`: as `calls_of`.
    Rows in = rubrics + decisions that are not kept (decisions on policies and persons' families are beside these).
    """
    named = tasks.select(pl.concat_list("session_ids", "succeeded_session_ids").alias("session_id")).explode("session_id")
    session_ids = sessions.join(named.unique(), on="session_id", how="semi")["session_id"]
    read = read or cache(read_call)   # calls of all turns are read for witnesses and for free text, and equal ones once
    by_session = witnesses(session_ids, turns, outcomes, differences, effects, memoize, read)
    free = free_text(turns, tasks, effects, read)
    families = _families(tasks, by_session)
    mining = CaseMining(by_session, free, Questions(families), goals_by_session(goals), _in_doubt(sessions, outcomes),
                        tools_by_service(effects.filter(pl.col("counted") != "read")))
    columns = ("task_id", "service", "family", "session_ids", "succeeded_session_ids")
    mined_cases = [mining.case(*row) for row in tasks.select(columns).iter_rows()]
    cases, decisions = [case for case, _ in mined_cases], [decision for _, decision in mined_cases]
    writes = tools_by_service(effects.filter(pl.col("effect") != "read"))
    policies = read_policies(cases, turns, writes, ask) if ask else Proposed([], [])
    everybody: dict[str, list[Witness]] = {}
    for session_id, service in sessions.sort("session_id").select("session_id", "service").iter_rows():
        everybody.setdefault(service, []).extend([by_session[session_id]] if session_id in by_session else [])
    prepared = _preparations(cases, effects, everybody)
    cases, skipping = _without_skipping(cases, prepared)
    obstacles = Obstacles(tasks, by_session, turns, free, tools_by_service(effects.filter(pl.col("counted") == "read")))
    cases, blocked = obstacles.removed(cases)
    skipping |= {name: _decision(name, False, *why) for name, why in blocked.items()}
    decisions = [skipping.get(each.subject, each) for each in decisions]
    usual = {family: usual_tools(who) for family, who in families.items()}
    changing = tools_by_service(effects.filter(pl.col("effect") == "write"))
    tools = ServiceTools(free, writes, changing, usual, prepared, obstacles, reasons_of(conditions))
    mined = _rubrics(cases, tools, [*stated, *policies.stated], tasks, turns, corrections or {})
    names = sorted({case.family for case in cases})
    gone = {each.by["file"]: each.family for each in stated if each.family not in names}
    named_families = ", ".join(names[:MOST_FAMILIES])
    unheard = [_decision(name, False, "no_such_family", f"There is no family {family!r}; there are: {named_families}.")
               for name, family in sorted(gone.items())]
    every = frame(Decision, [*decisions, *policies.decisions, *unheard])
    return Rewards(frame(Rubric, mined).sort("task_id"), every.sort("subject"))


def _with_answer(due: Due, answer: list[Fact], one: Witness) -> Due:
    """Return what is due with the answer to the question of the whole family, unless several goals ended in a change."""
    acts = due.is_several and any(step.acts for step in one.steps)
    return due if acts else due._replace(answer=tuple(sorted({*due.answer, *answer})))


def _left_open(task_id: str, one: Witness) -> Decision:
    detail = f"{one.session_id} did, answered and declined fewer goals than it was asked for."
    return _decision(task_id, False, "goal_left_open", detail)


class CaseMining(NamedTuple):
    """What is known of all sessions, from which the case of each task is made."""

    by_session: dict[str, Witness]
    free: dict[str, FreeText]
    questions: Questions
    goals: dict[str, list[SessionGoal]]
    in_doubt: set[str]
    """Sessions that something speaks against."""
    may_write: dict[str, frozenset[str]]

    def case(
        self, task_id: str, service: str, family: str, task_sessions: list[str], good_ids: list[str]
    ) -> tuple[RewardCase, Decision]:
        """Return the good and bad sessions of a task, and whether a rubric comes of them."""
        by_session, text = self.by_session, self.free.get(service, NO_FREE_TEXT)
        in_vain = {name for name in good_ids if name in by_session and by_session[name].claimed
                   and takes_no_change(by_session[name].calls, text)}
        good_ids = [name for name in good_ids if name not in in_vain]
        clear = [by_session[name] for name in good_ids if name in by_session and by_session[name].difference is not None]
        acting = self.may_write.get(service, frozenset()) - text.looks - text.presumed
        agreeing = agreed(clear, text)
        good, due = whole_sessions(agreeing, self.goals, self.questions, acting)
        due = _with_answer(due, self.questions.answer(family, good[0]), good[0]) if good else due
        is_idle = bool(good) and nothing_to_reward(good, text, due.answer)
        decision = _left_open(task_id, agreeing[0]) if agreeing and not good else _why(
            task_id, good_ids, clear, good, is_idle, self.in_doubt)
        good = good if decision.kept else []
        others = (by_session[name] for name in sorted(task_sessions) if name in by_session)
        bad = [one for one in others if one not in good and one.probability is not None and one.probability < BAD_BELOW]
        return RewardCase(task_id, service, family, good, bad, due), decision


def _in_doubt(sessions: pl.DataFrame, outcomes: pl.DataFrame) -> set[str]:
    """Return the sessions that are not as good as certain since something speaks against them, not since little speaks, of
    services of which most sessions are certain: where none is, one has to begin with what there is."""
    probability = pl.col("probability")
    certain = ((probability >= CERTAIN) | (probability <= 1 - CERTAIN)).fill_null(False)
    rated = sessions.select("session_id", "service").join(outcomes, on="session_id")
    doubtful = ~certain & pl.col("is_contested") & (certain.mean().over("service") > MOST)
    return set(rated.filter(doubtful)["session_id"])


def _families(tasks: pl.DataFrame, by_session: dict[str, Witness]) -> dict[str, list[Witness]]:
    """Return the sessions of each family that are not known to be bad."""
    by_family: dict[str, list[Witness]] = {}
    for family, names in tasks.select("family", "session_ids").iter_rows():
        own = (by_session[name] for name in names if name in by_session)
        by_family.setdefault(family, []).extend(
            one for one in own if one.probability is None or one.probability >= BAD_BELOW)
    return by_family


def _without_skipping(
    cases: list[RewardCase], prepared: dict[str, list[Preparation]]
) -> tuple[list[RewardCase], dict[str, Decision]]:
    """Drop good sessions that act without a step that nearly all take first; decisions for tasks that have no other."""
    kept, decisions = [], {}
    for case in cases:
        skipped = {one.session_id: each for one in case.good for each in prepared.get(case.service, ())
                   if each.kept_by(one) is False}
        good = [one for one in case.good if one.session_id not in skipped]
        if case.good and not good:
            session_id, step = next(iter(skipped.items()))
            detail = f"{session_id} calls {step.tool} without {step.names} first, as nearly all successful sessions do."
            decisions[case.task_id] = _decision(case.task_id, False, "step_skipped", detail)
        kept.append(case._replace(good=good))
    return kept, decisions


def _preparations(
    cases: list[RewardCase], effects: pl.DataFrame, everybody: dict[str, list[Witness]]
) -> dict[str, list[Preparation]]:
    """Return by service what sessions do before they act. A log-in may come first, or a look that nobody proved to be one."""
    reading = tools_by_service(effects.filter(pl.col("counted") == "read"))
    unproven = tools_by_service(effects.filter(pl.col("effect") == "unknown"))
    good: dict[str, dict[str, Witness]] = {}
    for case in cases:
        good.setdefault(case.service, {}).update((one.session_id, one) for one in case.good)
    by_service = {}
    for service, by_id in good.items():
        reads = reading.get(service, frozenset())
        acting = frozenset(step.tool for one in by_id.values() for step in one.steps if step.acts) - reads
        first = reads | unproven.get(service, frozenset())
        by_service[service] = preparations([one for _, one in sorted(by_id.items())], acting, first, everybody.get(service, ()))
    return by_service


class ServiceTools(NamedTuple):
    """What is known of the tools of each service, by service."""

    free: dict[str, FreeText]
    writes: dict[str, frozenset[str]]
    """Tools that may change something."""
    acting: dict[str, frozenset[str]]
    """Those that are known to."""
    usual: dict[str, frozenset[str]]
    """Tools that the sessions of a family usually call, by family."""
    preparations: dict[str, list[Preparation]]
    obstacles: Obstacles
    reasons: Reasons


def _rubrics(
    cases: list[RewardCase], tools: ServiceTools, stated: list[StatedCheck], tasks: pl.DataFrame, turns: pl.DataFrame,
    corrections: Corrections,
) -> list[Rubric]:
    family_habits, by_task, best = habits(cases), {}, {}
    spoken: dict[str, list[StatedCheck]] = {}  # by the family, the service or the task
    for each in (*stated, *added(corrections)):
        spoken.setdefault(each.family, []).append(each)
    for case in cases:
        text, acting = tools.free.get(case.service, NO_FREE_TEXT), tools.writes.get(case.service, frozenset())
        own = [each for name in (case.family, case.service, case.task_id) for each in spoken.get(name, ())
               if case.task_id in (each.check.tasks or (case.task_id,))]
        checks: list[Check] = []
        if case.good:
            fooled = fooled_by(case.good, case.bad, text)
            checks = [*_own_checks(case, fooled, tools), *habit_checks(case, family_habits)]
            checks = with_origins(checks, tools.obstacles.origins(case.task_id, case.good[0]))
            sides = Sides(case.good, case.bad, acting)
            checks = corrected(case.task_id, merged(checks, own, *sides), corrections, sides)
            by_task[case.task_id] = case.service, checks
        required = [*own, *gates(case.task_id, checks, corrections)]
        best[case.task_id] = [one.session_id for one in first_that_passes(case.good, required, acting)]
    agreeing = pl.Series("succeeded_session_ids", [best[name] for name in tasks["task_id"]], dtype=pl.List(pl.String()))
    steps = dict(solutions(tasks.with_columns(agreeing), turns).iter_rows())
    rubrics = []
    for task_id, (service, checks) in by_task.items():
        rows = [check.model_dump(mode="json") for check in checks]
        rubrics.append(Rubric(rubric_id=id_of_rubric(task_id, rows, steps[task_id]), task_id=task_id, service=service,
                              checks=canonical(rows), solution=steps[task_id]))
    return rubrics


def _own_checks(case: RewardCase, fooled: list[Witness], tools: ServiceTools) -> list[Check]:
    """Return the checks of a case by its own sessions, and by what comes before its service's tools act."""
    service = case.service
    free = tools.free.get(service, NO_FREE_TEXT)
    usual = tools.usual.get(case.family, frozenset()) & free.looks
    own = checks_of(case.good, case.bad, fooled, free, tools.acting.get(service, ()), case.due, usual)
    own += preparation_checks(case.good, tools.preparations.get(service, ()))
    return tools.reasons.checks(service, own, case.good)


def _why(
    task_id: str, good_ids: list[str], clear: list[Witness], good: list[Witness], is_idle: bool, in_doubt: set[str]
) -> Decision:
    """Return what became of a task: `clear` are its good sessions whose end is known, `good` those that agree, `is_idle`: these
    give nothing to reward; `in_doubt`: sessions whose signals contradict each other."""
    if len(good) == 1 and good[0].session_id in in_doubt:
        detail = (f"{good[0].session_id} alone says what is right, and something speaks against its success "
                  f"({good[0].probability or 0.0:.2f}); review it.")
        return _decision(task_id, False, "doubtful_success", detail)
    if is_idle:
        detail = f"{good[0].session_id} has no known change, refusal or answer to reward: any read call would earn as much."
        return _decision(task_id, False, "nothing_to_reward", detail)
    if good:
        return _decision(task_id, True, "rubric_mined", f"{len(good)} of {len(good_ids)} successful sessions propose.")
    if clear:
        reason = "no_agreed_end_state"
        detail = (f"Its {len(clear)} successful sessions ended differently and none is certain; "
                  "add feedback or an expert's word.")
    elif good_ids:
        reason, detail = "no_known_end_state", f"The room cannot tell what {good_ids[0]} changed; log what its tools answered."
    else:
        reason = "no_known_success"
        detail = "No session of the task is known to have succeeded; add feedback or an expert's word."
    return _decision(task_id, False, reason, detail)


def _decision(subject: str, kept: bool, reason: str, detail: str) -> Decision:
    return Decision(stage="rewards", subject=subject, kept=kept, reason=reason, detail=detail)
