"""The audit of one task: its known solution, its recorded sessions, attackers and mutants, each played and graded.

In: the room, a task, its rubric, its solution, its recorded sessions. Out: every play with its reward and with what a right
reward does with it, and the first reason not to publish the task.
Sees: what each player of `attackers.py` and `mutants.py` gets; sessions whose probability of success is as good as certain.
Does not see: whether a session really went well: a probability is no proof, so what lies between `bad_below` and
`good_from` is shown and does not decide, but all that get through together must be likelier good than bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from env_builder.audit.attackers import Attack, Attackers
from env_builder.audit.mutants import Maker
from env_builder.audit.plays import PASSES, Journal, Play, Replayed, Row, journal_of
from env_builder.audit.values import Plausible
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode, Grade, Task
from env_builder.runtime.rubrics import Rubric

ODDS = 0.001
"""Probabilities nearer to 0 or 1 than this count as this near."""
REFUSES = "must_not_write"
"""Kind of gate by which a rubric says outright that the right answer is to change nothing."""
WAYS = ("order", "call", "not_said", "promised", "process", "honeypot")
"""Kinds of gates that forbid ways to the right end; who takes such a way must be stopped though it ends as it should."""
BY_END = ("state", REFUSES)
"""Kinds of gates that see the end state alone: who ends like one that they stop is stopped too."""

REFUSAL = "changing nothing is right here, and looking and telling is all that there is to it"
"""Why telling everything is shown and does not decide where the rubric asks for a refusal (docs/rewards.md)."""


class Depth(NamedTuple):
    """How much is tried, and what is known of sessions."""

    mutants: int = 1
    """Swapped, changed and added acts that are played, of each kind and act."""
    looks: int = 25
    """Calls of an attacker who looks at everything."""
    every: bool = False
    """Play also attackers that end where another one was stopped for its end."""
    bad_below: float = 0.1
    """Probability of success below which a session is known to be bad."""
    good_from: float = 0.9
    """Probability of success from which a session is known to be good."""


DEEP = Depth(mutants=8, looks=80, every=True)


class Session(NamedTuple):
    """A recorded session of a task."""

    session_id: str
    probability: float | None
    steps: list[dict[str, Any]]


class Failure(NamedTuple):
    """Why a task is not published."""

    reason: str
    detail: str


EARLY = ("not_deterministic", "solution_fails")
"""Reasons for which nothing more is played."""


class Audited(NamedTuple):
    """What came of one task."""

    failure: Failure | None
    plays: list[Play]


class Subject(NamedTuple):
    """One task with all that is tried on it."""

    environment: Environment
    task: Task
    rubric: Rubric
    solution: list[dict[str, Any]]
    sessions: Sequence[Session]


def audit(subject: Subject, values: Plausible, depth: Depth) -> Audited:
    """Play against one task. `values`: what stands on record in its room, gathered once for all tasks."""
    journal, got = _solve(subject)
    plays = [Play("solution", "solution", got.reward, "pass")]
    solved = Replayed(subject.environment, subject.task, journal)
    again = grade(subject.rubric, solved.episode)
    differs = _differs(journal, solved.journal, got, again)
    if differs:
        return Audited(Failure("not_deterministic", differs), plays)
    if got.reward != 1.0:
        return Audited(Failure("solution_fails", _why(journal, got)), plays)
    plays += _sessions(subject, solved, depth)
    maker = Maker(solved, values)
    plays += _attackers(subject, Attackers(solved, values, maker), solved, depth)
    plays += _mutants(subject, maker, solved, depth)
    return Audited(judged(plays, subject.sessions), plays)


def in_order(sessions: Iterable[Session]) -> list[Session]:
    """The sessions as they are played: the likeliest to have gone well first."""
    return sorted(sessions, key=lambda each: (-(each.probability or 0.0), each.session_id))


def said(chance: float | None) -> str:
    """What the play of a session says of it."""
    return "" if chance is None else f"{chance:.3f}"


def judged(plays: list[Play], sessions: Sequence[Session]) -> Failure | None:
    """The first reason not to publish a task against which all of this was played, None where there is none."""
    return _failure(plays, _odds(plays, sessions))


def _solve(subject: Subject) -> tuple[list[Row], Grade]:
    """Journal and grade of the known solution, played through the interface that a policy uses."""
    environment = subject.environment
    environment.reset(subject.task.task_id, seed=0)
    for row in journal_of(subject.solution):
        if row["kind"] == "say":
            environment.say(row["content"])
        else:
            environment.call(row["tool"], row["arguments"])
    environment.finish()
    return list(environment.journal), grade(subject.rubric, environment.episode())


def _sessions(subject: Subject, solved: Replayed, depth: Depth) -> Iterator[Play]:
    """Every recorded session of the task, the good ones first: what they reached is as right as the solution's end."""
    for one in in_order(subject.sessions):
        episode = solved.whole(journal_of(one.steps))
        chance = one.probability
        good = chance is not None and chance >= depth.good_from
        bad = chance is not None and chance < depth.bad_below
        if good:
            solved.accept(episode)
        yield Play(one.session_id, "session", grade(subject.rubric, episode).reward,
                   "pass" if good else "fail" if bad else None, said(chance))


def _attackers(subject: Subject, attackers: Attackers, solved: Replayed, depth: Depth) -> Iterator[Play]:
    """Each attacker; those who change nothing are not asked again where doing nothing is stopped for its end."""
    stopped = refuses = False
    for attack in attackers.idle():
        got = grade(subject.rubric, solved.play(attack.rows))
        if attack.name == "silent":
            ends = [check for check in got.checks if check.kind in BY_END and check.role == "gate"]
            stopped = any(check.passed is False for check in ends)
            refuses = any(check.kind == REFUSES for check in ends)
        yield Play(attack.name, "attacker", got.reward, "fail")
    if depth.every or not stopped:
        for attack in attackers.looking(depth.looks):
            excepted = attack.name == "list_everything" and refuses
            yield _attack(subject, solved, attack, "excepted" if excepted else "fail")
    for attack in attackers.acting() if depth.every else ():
        yield _attack(subject, solved, attack, None)
    if any(check.kind in WAYS and check.role == "gate" for check in subject.rubric.checks):
        for attack in attackers.otherwise():
            got = grade(subject.rubric, solved.whole(attack.rows))
            against = any(check.kind in WAYS and check.role == "gate" and check.passed is False for check in got.checks)
            yield Play(attack.name, "attacker", got.reward, "fail" if against else None)


def _attack(subject: Subject, solved: Replayed, attack: Attack, should: Literal["fail", "excepted"] | None) -> Play:
    """`should` None: fail, unless it ends where it should."""
    episode, reward = _graded(subject, solved, attack.rows)
    if should == "excepted":
        return Play(attack.name, "attacker", reward, None, REFUSAL)
    wrong = should == "fail" or not solved.is_right(episode)
    return Play(attack.name, "attacker", reward, "fail" if wrong else None)


def _mutants(subject: Subject, maker: Maker, solved: Replayed, depth: Depth) -> Iterator[Play]:
    for mutant in maker.mutants(depth.mutants):
        episode, reward = _graded(subject, solved, mutant.rows)
        wrong = not solved.is_right(episode)
        says = f"{mutant.place}: {mutant.says}".removesuffix(": ")
        yield Play(mutant.operator, "mutant", reward, "fail" if wrong else None, says)


def _graded(subject: Subject, solved: Replayed, rows: Journal) -> tuple[Episode, float | None]:
    """Episode and reward; who gets through is played once more, every step of it."""
    episode = solved.play(rows)
    reward = grade(subject.rubric, episode).reward
    if reward is not None and reward > PASSES:
        episode = solved.whole(rows)
        reward = grade(subject.rubric, episode).reward
    return episode, reward


def _odds(plays: Iterable[Play], sessions: Sequence[Session]) -> float:
    """Sum of the log odds of success of the sessions that get through: below 0, what they share is likelier wrong."""
    chances = {one.session_id: one.probability for one in sessions}
    through = (chances.get(play.player) for play in plays if play.kind == "session" and play.passed)
    near = (min(1 - ODDS, max(ODDS, chance)) for chance in through if chance is not None)
    return sum(math.log(chance / (1 - chance)) for chance in near)


def _failure(plays: list[Play], odds: float) -> Failure | None:
    """The first reason not to publish, None where there is none."""
    silent = next(play for play in plays if play.player == "silent")
    if silent.reward != 0.0:
        return Failure("nothing_passes", f"Doing nothing is worth {_worth(silent.reward)}; the rubric asks for too little.")
    wrong = [play for play in plays if play.should == "fail" and play.passed]
    for kind, reason, what in (("attacker", "attacker_passes", "The attacker {!r}"),
                               ("session", "bad_session_passes", "The bad session {!r}"),
                               ("mutant", "mutant_survives", "A solution with an act {}")):
        first = next((play for play in wrong if play.kind == kind), None)
        if first:
            says = f" ({first.says})" if first.says else ""
            return Failure(reason, f"{what.format(first.player)}{says} is worth {_worth(first.reward)}.")
    if odds < 0:
        return Failure("bad_session_passes", "The sessions that get through are together likelier bad than good.")
    for play in plays:
        if play.kind == "session" and play.should == "pass" and play.reward is not None and not play.passed:
            return Failure("good_session_fails", f"The good session {play.player!r} is worth {_worth(play.reward)}.")
    return None


def _why(journal: list[Row], got: Grade) -> str:
    """The first thing that went wrong on the way of a known solution."""
    worth = f"The known solution is worth {_worth(got.reward)}"
    unknown = next((row for row in journal if row["kind"] == "call" and row["tier"] == "unknown"), None)
    if unknown is not None:
        return f"{worth}; first answered unknown: {unknown['tool']} {canonical(unknown['arguments'])[:200]}."
    failed = [check.kind for check in got.checks if check.role == "gate" and not check.passed]
    if failed:
        return f"{worth}; gates that do not hold: {', '.join(failed)}."
    ended = "" if any(row["kind"] == "finish" for row in journal) else "; its limits truncate it"
    return f"{worth}{ended}."


def _differs(first: list[Row], second: list[Row], got: Grade, again: Grade) -> str | None:
    """Where the solution and the grader's replay of it are not the same, None where they are."""
    steps = [row for row in first if row["kind"] != "finish"]
    for index, (one, other) in enumerate(zip(steps, second, strict=False)):
        if one != other and canonical(one) != canonical(other):
            return f"Step {index} is not the same twice: {canonical(one)[:200]}"
    if len(steps) != len(second) or (got != again and canonical(got) != canonical(again)):
        return "The grade or the number of steps is not the same twice."
    return None


def _worth(reward: float | None) -> str:
    return "nothing (unscored)" if reward is None else f"{reward:g}"
