"""A changed rubric before it is kept: the audit played with the rubric as built and as changed, and what differs.

In: a task with all that is tried on it, and the two rubrics. Out: whether the task verifies under each, and every play whose
reward differs: attacks that now earn the reward or no longer do, recorded sessions whose reward changes. If the known
solution breaks a gate of the changed rubric, the likeliest good session that earns 1 takes its place, as in a run.
Does not see: what a run computes anew from logs (outcomes, mined checks, other tasks); which good session a run prefers of
several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.audit import (
    EARLY,
    Audited,
    Depth,
    Failure,
    RecordedSession,
    Subject,
    audit,
    chance_text,
    in_order,
    side_of,
)
from env_builder.audit.plays import GradedPlay, journal_of
from env_builder.audit.targets import ServiceTargets
from env_builder.audit.values import Plausible
from env_builder.runtime import Environment
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Task
from env_builder.runtime.rubrics import ParsedRubric

VERIFIED = Failure("verified", "")
Document = Mapping[str, Any]


class PlayChange(NamedTuple):
    """A play whose reward differs between the rubrics."""

    player: str
    kind: str
    description: str
    """What it did; of a session: its probability of success."""
    should: str | None
    """What a right reward does with it: pass, fail, or null: it does not decide."""
    before: float | None
    after: float | None
    """Null: unscored, or not played."""
    was_played: bool
    is_played: bool

    @property
    def is_worse(self) -> bool:
        """Does the changed rubric treat it more wrongly than the rubric as built?"""
        wanted = {"pass": 1.0, "fail": 0.0}.get(self.should or "")
        return wanted is not None and self.is_played and abs((self.after or 0.0) - wanted) > abs((self.before or 0.0) - wanted)


class RubricStanding(NamedTuple):
    """What the audit says of a task under one rubric."""

    reason: str
    """`verified`, or the reason not to publish it."""
    detail: str
    solution: str
    """Session whose steps are the known solution; empty: the one of the build."""
    solution_reward: float | None


class Trial(NamedTuple):
    """What a changed rubric does to one task."""

    task_id: str
    before: RubricStanding
    after: RubricStanding
    changes: list[PlayChange]
    n_plays: int
    """Plays under the changed rubric."""

    @property
    def verified_before(self) -> bool:
        """Does the task hold in the audit under the rubric as built?"""
        return self.before.reason == VERIFIED.reason

    @property
    def verified_after(self) -> bool:
        """Does it under the changed rubric?"""
        return self.after.reason == VERIFIED.reason


class TrialSubject(NamedTuple):
    """A task with what is tried on it, whatever its rubric."""

    environment: Environment
    task: Task
    solution: list[dict[str, Any]]
    solution_session: RecordedSession | None
    """The session that gives the solution, if one does."""
    sessions: Sequence[RecordedSession]
    """The task's other recorded sessions."""
    succeeded_session_ids: frozenset[str]
    targets: ServiceTargets

    def under(self, document: Document) -> Subject:
        """Return what the audit plays under a rubric."""
        targets = self.targets.of(self.task.task_id, document)
        return Subject(self.environment, self.task, ParsedRubric.read(dict(document)), self.solution, self.sessions, targets)


def try_rubric(
    subject: TrialSubject, before: Document, after: Document, values: Plausible, depth: Depth, is_deep: bool,
) -> Trial:
    """Play the audit under both rubrics. `is_deep`: the plays that are compared include those that a run skips."""
    plays, standings, subjects = [], [], []
    for document in (before, after):
        own, audited, session_id = _audited(subject, document, values, depth)
        failure = audited.failure or VERIFIED
        reward = next((play.reward for play in audited.plays if play.kind == "solution"), None)
        standings.append(RubricStanding(failure.reason, failure.detail, session_id, reward))
        subjects.append(own)
        plays.append(audit(own, values, depth._replace(every=True)).plays if is_deep else audited.plays)
    if any(standing.reason in EARLY for standing in standings):  # such an audit stops after the solution
        plays = [[*(play for play in played if play.kind == "solution"), *_session_plays(own, depth)]
                 for own, played in zip(subjects, plays, strict=True)]
    return Trial(subject.task.task_id, standings[0], standings[1], changes_between(*plays), len(plays[1]))


def _session_plays(subject: Subject, depth: Depth) -> Iterator[GradedPlay]:
    """Grade the recorded sessions as the audit does, whether or not the solution passes."""
    for one in in_order(subject.sessions):
        episode = subject.environment.replay(subject.task.task_id, journal_of(one.steps))
        side = side_of(one.probability, depth)
        yield GradedPlay(one.session_id, "session", grade(subject.rubric, episode).reward,
                         "pass" if side == "good" else "fail" if side == "bad" else None, chance_text(one.probability))


def _audited(
    subject: TrialSubject, document: Document, values: Plausible, depth: Depth
) -> tuple[Subject, Audited, str]:
    """Audit under a rubric, with another good session as the solution if the solution breaks it; the session's id then."""
    own = subject.under(document)
    audited = audit(own, values, depth)
    if audited.failure is None or audited.failure.reason != "solution_fails":
        return own, audited, ""
    for one in in_order(each for each in subject.sessions if each.session_id in subject.succeeded_session_ids):
        episode = subject.environment.replay(subject.task.task_id, journal_of(one.steps))
        if grade(own.rubric, episode).reward == 1.0:
            former = [subject.solution_session] if subject.solution_session else []
            others = [*former, *(each for each in subject.sessions if each is not one)]
            replaced = own._replace(solution=one.steps, sessions=others)
            return replaced, audit(replaced, values, depth), one.session_id
    return own, audited, ""


def changes_between(before: Sequence[GradedPlay], after: Sequence[GradedPlay]) -> list[PlayChange]:
    """Return the plays whose rewards differ, in the order of the audit; those that only one of them plays if they earn any."""
    first, second = _by_name(before), _by_name(after)
    changes = []
    for key in dict.fromkeys([*first, *second]):
        one, other = first.get(key), second.get(key)
        play = other or one
        assert play is not None
        rewards = (one.reward if one else None, other.reward if other else None)
        differs = rewards[0] != rewards[1] if one and other else bool(rewards[0] or rewards[1])
        if differs:
            changes.append(PlayChange(play.player, play.kind, play.description, play.should, *rewards, one is not None,
                                      other is not None))
    return changes


def _by_name(plays: Sequence[GradedPlay]) -> dict[tuple[str, str, str, int], GradedPlay]:
    """Plays by kind, player, what they did, and their number among equal ones."""
    counts: Counter[tuple[str, str, str]] = Counter()
    named: dict[tuple[str, str, str, int], GradedPlay] = {}
    for play in plays:
        key = (play.kind, play.player, play.description)
        counts[key] += 1
        named[*key, counts[key]] = play
    return named
