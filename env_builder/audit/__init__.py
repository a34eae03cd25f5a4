"""The audit of one task: its known solution, its recorded sessions, attackers and mutants, each played and graded.

In: the environment, a task, its rubric, its solution, its recorded sessions. Out: every play with its reward and with what a
right reward does with it, and the first reason not to publish the task; and the audit as it ships with the rewards: rows of
audit.jsonl ({"task_id", "rubric_id", "reason", "plays": [{"player", "kind", "reward", "should", "description"}]}) and
audit.json: how often what should fail got through (`false_accept`), and how often what should pass did not (`false_reject`), of
all tasks that were tried and of those that hold, with Wilson's 95 % interval.
Sees: what each player of `attackers.py` and `battery.py` gets; sessions whose probability of success is as good as certain.
Does not see: whether a session really went well: a probability is no proof, so what lies between `bad_below` and
`good_from` is shown and does not decide, but all that get through together must be likelier good than bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from env_builder.audit.attackers import Attackers, Maker
from env_builder.audit.battery import Battery
from env_builder.audit.plays import PASSES, GradedPlay, Journal, Replayed, Row, journal_of, play_through
from env_builder.audit.targets import Targets
from env_builder.audit.values import Plausible
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.checks import CheckKind, EpisodeView, kind_of
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode, Grade, Task
from env_builder.runtime.rubrics import ParsedCheck, ParsedRubric

ODDS = 0.001
"""Probabilities nearer to 0 or 1 than this count as this near."""
REFUSAL = "changing nothing is right here, and looking and telling is all that there is to it"
"""Why telling everything is shown and does not decide where the rubric asks for a refusal (docs/rewards.md)."""


PERMITTED = "it ends as the solution does, but for what the rubric permits besides"


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


class RecordedSession(NamedTuple):
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
    plays: list[GradedPlay]


class Subject(NamedTuple):
    """One task with all that is tried on it."""

    environment: Environment
    task: Task
    rubric: ParsedRubric
    solution: list[dict[str, Any]]
    sessions: Sequence[RecordedSession]
    targets: Targets = Targets()


def audit(subject: Subject, values: Plausible, depth: Depth) -> Audited:
    """Play against one task. `values`: what stands on record in its room, gathered once for all tasks."""
    plays, solved = _solved(subject)
    if isinstance(solved, Failure):
        return Audited(solved, plays)
    plays += _sessions(subject, solved, depth)
    maker = Maker(solved, values)
    plays += _attackers(subject, Attackers(solved, values, maker), solved, depth)
    plays += _battery(subject, Battery(solved, values, subject.targets), solved, depth)
    plays += _mutants(subject, maker, solved, depth)
    return Audited(judged(plays, subject.sessions), plays)


def _solved(subject: Subject) -> tuple[list[GradedPlay], Replayed | Failure]:
    """Play the known solution: its play, and its replay or why nothing more is played."""
    environment = subject.environment
    play_through(environment, subject.task.task_id, subject.solution)
    journal, got = (list(environment.journal), grade(subject.rubric, environment.episode()))
    plays = [GradedPlay("solution", "solution", got.reward, "pass")]
    solved = Replayed(subject.environment, subject.task, journal, subject.targets.presumed_reads,
                      lambda episode: _essential(subject.rubric, episode))
    again = grade(subject.rubric, solved.episode)
    differs = _differs(journal, solved.journal, got, again)
    if differs:
        return plays, Failure("not_deterministic", differs)
    return plays, solved if got.reward == 1.0 else Failure("solution_fails", _why(journal, got))


def _permissive(rubric: ParsedRubric) -> list[ParsedCheck]:
    """Return the gates that permit something besides the right end."""
    return [check for check in rubric.checks
            if check.role == "gate" and type(check.rule).essential is not CheckKind.essential]


def _essential(rubric: ParsedRubric, episode: Episode) -> dict[str, Any]:
    """Return an episode's difference without what the rubric's gates permit besides the right end."""
    for check in _permissive(rubric):
        difference = check.rule.essential(check.parameters, EpisodeView(episode))
        episode = episode._replace(difference=difference)
    return episode.difference


def _is_right(subject: Subject, solved: Replayed, episode: Episode) -> bool:
    """Return whether an altered solution ends as the solution does, and with no less of what is permitted besides: who leaves
    out what the rubric merely permits, such as a message, must not get through."""
    def n_permitted(played: Episode) -> int:
        return len(played.difference["documents"]) - len(_essential(subject.rubric, played)["documents"])

    return solved.is_right(episode) and n_permitted(episode) >= n_permitted(solved.episode)


def _excuse(subject: Subject, solved: Replayed, excuse: str, episode: Episode) -> str:
    """Return why an attack may be right: as it says, or since it leaves what the solution leaves but for what is permitted."""
    return excuse or (PERMITTED if _permissive(subject.rubric) and _is_right(subject, solved, episode) else "")


def in_order(sessions: Iterable[RecordedSession]) -> list[RecordedSession]:
    """Return the sessions as they are played: the likeliest to have gone well first."""
    return sorted(sessions, key=lambda each: (-(each.probability or 0.0), each.session_id))


def chance_text(chance: float | None) -> str:
    """Return what the play of a session says of it."""
    return "" if chance is None else f"{chance:.3f}"


def side_of(chance: float | None, depth: Depth) -> str:
    """Say whether a session is known to be `good` or `bad`, or is `open`, or has no probability (empty)."""
    if chance is None:
        return ""
    return "good" if chance >= depth.good_from else "bad" if chance < depth.bad_below else "open"


def judged(plays: list[GradedPlay], sessions: Sequence[RecordedSession]) -> Failure | None:
    """Return the first reason not to publish a task against which all of this was played, None where there is none."""
    chances = {one.session_id: one.probability for one in sessions}
    through = (chances.get(play.player) for play in plays if play.kind == "session" and play.passed)
    near = (min(1 - ODDS, max(ODDS, chance)) for chance in through if chance is not None)
    odds = sum(math.log(chance / (1 - chance)) for chance in near)
    silent = next(play for play in plays if play.player == "silent")
    if silent.reward != 0.0:
        return Failure("nothing_passes", f"Doing nothing is worth {_worth(silent.reward)}; the rubric asks for too little.")
    wrong = [play for play in plays if play.should == "fail" and play.passed]
    for kind, reason, what in (("attacker", "attacker_passes", "The attacker {!r}"),
                               ("session", "bad_session_passes", "The failed session {!r}"),
                               ("mutant", "mutant_survives", "A solution with a write call {}")):
        first = next((play for play in wrong if play.kind == kind), None)
        if first:
            description = f" ({first.description})" if first.description else ""
            return Failure(reason, f"{what.format(first.player)}{description} is worth {_worth(first.reward)}.")
    if odds < 0:
        return Failure("bad_session_passes", "The sessions that get through are together likelier failed than successful.")
    for play in plays:
        if play.kind == "session" and play.should == "pass" and play.reward is not None and not play.passed:
            return Failure("succeeded_session_fails", f"The successful session {play.player!r} is worth {_worth(play.reward)}.")
    return None


def _sessions(subject: Subject, solved: Replayed, depth: Depth) -> Iterator[GradedPlay]:
    """Every recorded session of the task, the good ones first: what they reached is as right as the solution's end."""
    for one in in_order(subject.sessions):
        episode = solved.whole(journal_of(one.steps))
        side = side_of(one.probability, depth)
        if side == "good":
            solved.accept(episode)
        yield GradedPlay(one.session_id, "session", grade(subject.rubric, episode).reward,
                         "pass" if side == "good" else "fail" if side == "bad" else None, chance_text(one.probability))


def _attackers(subject: Subject, attackers: Attackers, solved: Replayed, depth: Depth) -> Iterator[GradedPlay]:
    """Each attacker; those who change nothing are not asked again where doing nothing is stopped for its end."""
    stopped = refuses = False
    for attack in attackers.idle():
        got = grade(subject.rubric, solved.play(attack.rows))
        if attack.name == "silent":
            stopped = _is_stopped(got)
            refuses = any(check.role == "gate" and kind_of(check.kind).demands_no_change for check in got.checks)
        yield GradedPlay(attack.name, "attacker", got.reward, "fail")
    if depth.every or not stopped:
        for attack in attackers.looking(depth.looks):
            excepted = attack.name == "list_everything" and refuses
            reward = _graded(subject, solved, attack.rows)[1].reward
            yield GradedPlay(attack.name, "attacker", reward, *((None, REFUSAL) if excepted else ("fail",)))
    for attack in attackers.acting() if depth.every else ():
        episode, got = _graded(subject, solved, attack.rows)
        yield GradedPlay(attack.name, "attacker", got.reward, None if solved.is_right(episode) else "fail")
    if any(check.rule.stops == "path" and check.role == "gate" for check in subject.rubric.checks):
        for attack in attackers.otherwise():
            got = grade(subject.rubric, solved.whole(attack.rows))
            against = any(check.role == "gate" and check.passed is False and kind_of(check.kind).stops == "path"
                          for check in got.checks)
            yield GradedPlay(attack.name, "attacker", got.reward, "fail" if against else None)


def _battery(subject: Subject, battery: Battery, solved: Replayed, depth: Depth) -> Iterator[GradedPlay]:
    """Each attack that decides; unless each is wanted, those without a write call only if doing nothing gets to the end."""
    stopped = _is_stopped(grade(subject.rubric, solved.play([])))
    for attack in battery.attacks():
        is_idle = not any(row["kind"] == "call" and row["tool"] in solved.writes for row in attack.rows)
        if depth.every or not (attack.excuse or (stopped and is_idle)):
            episode, got = _graded(subject, solved, attack.rows)
            excuse = _excuse(subject, solved, attack.excuse, episode)
            description = attack.description + (f": {excuse}" if excuse else "")
            yield GradedPlay(attack.name, "attacker", got.reward, None if excuse else "fail", description)


class GradedAttack(NamedTuple):
    """What one attack of the battery came to."""

    attack: str
    description: str
    excuse: str
    """Why it may be right; empty: it is wrong."""
    reward: float | None
    stopped_by: list[str]
    """Kinds of the checks that it fails; `unknown`: the environment cannot tell."""

    @property
    def passes(self) -> bool:
        """Does it earn a reward that it must not earn?"""
        return not self.excuse and self.reward is not None and self.reward > PASSES


def play_battery(subject: Subject, values: Plausible, depth: Depth = DEEP) -> list[GradedAttack] | Failure:
    """Play the whole battery against one task; why there is nothing to play if its solution fails."""
    _, solved = _solved(subject)
    if isinstance(solved, Failure):
        return solved
    list(_sessions(subject, solved, depth))  # those that are known to be good excuse attacks
    graded = []
    for each in Battery(solved, values, subject.targets).attacks():
        episode, got = _graded(subject, solved, each.rows)
        excuse = _excuse(subject, solved, each.excuse, episode)
        failed = sorted({check.kind for check in got.checks if check.role in ("gate", "penalty", "score") and not check.passed})
        is_stopped = got.reward is None or got.reward <= PASSES
        graded.append(GradedAttack(each.name, each.description, excuse, got.reward,
                                   ["unknown"] if got.reward is None else failed if is_stopped else []))
    return graded


def _is_stopped(got: Grade) -> bool:
    """Return whether a gate on the end state fails."""
    return any(check.passed is False for check in got.checks if check.role == "gate" and kind_of(check.kind).stops == "end")


def _mutants(subject: Subject, maker: Maker, solved: Replayed, depth: Depth) -> Iterator[GradedPlay]:
    for mutant in maker.mutants(depth.mutants):
        episode, got = _graded(subject, solved, mutant.rows)
        description = f"{mutant.place}: {mutant.description}".removesuffix(": ")
        should: Literal["fail"] | None = None if _is_right(subject, solved, episode) else "fail"
        yield GradedPlay(mutant.operator, "mutant", got.reward, should, description)


def _graded(subject: Subject, solved: Replayed, rows: Journal) -> tuple[Episode, Grade]:
    """Episode and grade; who gets through is played once more, every step of it."""
    episode = solved.play(rows)
    got = grade(subject.rubric, episode)
    if got.reward is not None and got.reward > PASSES:
        episode = solved.whole(rows)
        got = grade(subject.rubric, episode)
    return episode, got


def _why(journal: list[Row], got: Grade) -> str:
    """Return the first failure of a known solution."""
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


FORMAT = "traceroom-audit/1"


class AuditReport(NamedTuple):
    """What ships."""

    rows: list[dict[str, Any]]
    """Rows of audit.jsonl, sorted by task_id; their plays as `GradedPlay`."""
    totals: dict[str, Any]
    """audit.json."""


def report(audits: Mapping[str, Audited], rubric_ids: Mapping[str, str | None], depth: Depth) -> AuditReport:
    """Report on the audited tasks that have a rubric."""
    rows = [{
        "task_id": task_id, "rubric_id": rubric_ids[task_id],
        "reason": audited.failure.reason if audited.failure else "verified",
        "plays": audited.plays,
    } for task_id, audited in sorted(audits.items()) if task_id in rubric_ids]
    holding = [audited for audited in audits.values() if audited.failure is None]
    tried = {"n_tasks": len(rows), **totals(play for audited in audits.values() for play in audited.plays)}
    holding_totals = {"n_tasks": len(holding), **totals(play for audited in holding for play in audited.plays)}
    return AuditReport(rows, {
        "format": FORMAT, "passes_above": PASSES, "depth": depth._asdict(), "tried": tried, "published": holding_totals})


def totals(plays: Iterable[GradedPlay]) -> dict[str, Any]:
    """Rates by kind of player, and a table of what each attacker and operator came to."""
    played = list(plays)
    right = [play for play in played if play.should == "pass" and play.reward is not None]
    accepts = {}
    for kind in ("session", "attacker", "mutant"):
        wrong = [play for play in played if play.kind == kind and play.should == "fail" and play.reward is not None]
        accepts[kind] = rate(sum(play.passed for play in wrong), len(wrong))
    by_player: dict[str, list[GradedPlay]] = {}
    for play in played:
        if play.kind != "session":
            by_player.setdefault(play.player, []).append(play)
    return {
        "false_accept": accepts, "false_reject": rate(sum(not play.passed for play in right), len(right)),
        "players": {name: _counts(own) for name, own in sorted(by_player.items())}}


def _counts(plays: list[GradedPlay]) -> dict[str, int]:
    """How many were played, were the solution in other words, could not be scored, and got through though they should not."""
    return {"n": len(plays), "alike": sum(play.should is None for play in plays),
            "unscored": sum(play.should is not None and play.reward is None for play in plays),
            "passed": sum(play.should == "fail" and play.passed for play in plays)}


Z = 1.959964
"""Standard normal quantile of 95 %."""


def wilson(k: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of which k of n were seen; (0, 1) where nothing was.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    if n == 0:
        return 0.0, 1.0
    share, square = k / n, Z * Z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = Z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(k: int, n: int) -> dict[str, float]:
    """{"n", "k", "rate", "low", "high"}: k of n, to six decimals; a rate of nothing is 0 within (0, 1)."""
    low, high = wilson(k, n)
    return {"n": n, "k": k, "rate": round(k / n, 6) if n else 0.0, "low": round(low, 6), "high": round(high, 6)}
