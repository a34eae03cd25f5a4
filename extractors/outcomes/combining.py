"""Combine votes to probabilities; the worth of each signal is estimated from the others, without labels.

    log odds(success) = log odds(base rate) + sum over groups of what the group's vote is worth

Correlated signals are one group with one vote, its strongest. A vote is worth the log of how much more often good sessions get
it than bad ones, per service; a fixed weight counts where few sessions have it. Which sessions are good is estimated in turn:

- Where most sessions have an end state to compare, `end_state` is the anchor of every group. A part of the estimated worth
  counts, as groups repeat the anchor in part (feedback does not, and counts in full).
- Elsewhere by expectation-maximisation over all groups (Dawid and Skene 1979); silence of a group is a third answer. Settled
  groups that speak against sessions alone are silent together: were their silence worth nothing, work that is done right and
  leaves no trace of praise would count for less than a refusal, of which a settled vote says that it was right.

Graded votes are probabilities and count as such. The outcome of a reviewed session is known. A session without a vote has the
base rate, and `judge` abstains. Does not see: groups that err together (all agents of one model), so it may be too sure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol

import polars as pl

BASE_RATE = 0.6
"""Share of sessions taken to succeed before anything was seen."""
_ROUNDS = 12
_PRIOR = 20.0
"""Sessions that a fixed weight, and the base rate, count for."""
_SETTLED = 100.0
"""Sessions that the weight of a settled group counts for."""
_LEAST = 0.5
"""Part of its fixed weight that a settled group keeps at least."""
_UNSIGNED = 1.5
"""Log odds that a group without a sign of its own does not go beyond: one that errs alike may agree with itself."""
_SILENT = 0.5
"""Log odds that saying nothing does not go beyond: of one group, and of all that find faults together."""
_CLEAR = 0.5
"""Log odds that a group takes off a session that it clearly speaks against."""
_SELDOM = 0.1
"""Share of the praised sessions that a group speaks against, up to which it knows of faults that the praise does not see."""
_ECHO = 0.25
"""Part of a group's worth that counts beside an anchor."""
_MOST = 5.0
"""Log odds that no single vote goes beyond."""
_AGREED, _BEYOND = 2.0, 0.05
"""Log odds of graded votes beyond which only a part counts, where no settled vote bears them out: agents err alike, too."""
_BORNE_OUT = 3.0
"""Standard deviations by which settled votes must agree with the anchor more than by chance to bear it out."""
_EDGE = 0.98
"""A graded vote of 1 counts as this."""
_OWN = "feedback"
"""The group of what people say, not of what was done: it repeats no anchor, and is left out of the blind probability."""
_ANCHOR = "end_state"
"""The group that others are held against where most sessions have it, and whose probability holds the base rate."""
Key = tuple[str, int]
"""Group, and the side of its vote."""


class VoteMeaning(Protocol):
    """What a signal's votes are taken for (`extractors.outcomes.signals.Signal`)."""

    @property
    def group(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def graded(self) -> bool: ...
    @property
    def settled(self) -> bool: ...
    @property
    def of_faultless(self) -> bool: ...


class Worth(NamedTuple):
    """What one side of a group's vote was found to be worth in a service."""

    service: str
    group: str
    side: int
    n_votes: int
    log_odds: float
    agreement: float
    """Share of its votes that the other groups agree with."""


class Combined(NamedTuple):
    """What `combine` gives."""

    probabilities: pl.DataFrame
    """session_id, probability, blind (the same without feedback), is_contested (whether a group clearly speaks against it):
    every session of `services`."""
    worth: list[Worth]


class _VotedSession(NamedTuple):
    pattern: int
    """Sessions with the same votes have the same."""
    hard: dict[str, float]
    """Group -> vote."""
    graded: float
    """Log odds of the graded groups."""
    least: float
    """Those of the one that speaks most against the session."""
    anchored: bool
    """The anchor is among them, and the base rate with it."""


def combine(votes: pl.DataFrame, services: Mapping[str, str], signals: Mapping[str, VoteMeaning],
            reviews: Mapping[str, bool] | None = None) -> Combined:
    """Combine votes (session_id, name, vote) to probabilities of the sessions in `services` (session -> kind of service).

    `reviews`: sessions with a known outcome; it counts as known while worths are estimated."""
    hard: dict[str, dict[str, float]] = {name: {} for name in services}
    graded: dict[str, dict[str, float]] = {name: {} for name in services}
    for session_id, name, vote in votes.select("session_id", "name", "vote").sort("session_id", "name").iter_rows():
        if session_id not in services or not vote:
            continue
        signal = signals[name]
        of = (graded if signal.graded else hard)[session_id]
        if abs(vote) > abs(of.get(signal.group, 0.0)):  # of two as strong the first signal by name
            of[signal.group] = vote
    fixed = {signal.group: signal.weight for signal in signals.values()}
    settled = {signal.group for signal in signals.values() if signal.settled}
    praise = {signal.group for signal in signals.values() if signal.of_faultless}
    by_service: dict[str, list[str]] = defaultdict(list)
    for session in sorted(services):
        by_service[services[session]].append(session)
    for names in by_service.values():
        for group in sorted(praise):
            _drop_contested(group, [hard[name] for name in names], settled, {name for name, weight in fixed.items() if weight})
    patterns: dict[object, int] = {}
    sessions = {}
    for name in services:
        pattern = patterns.setdefault((*hard[name].items(), None, *graded[name].items()), len(patterns))
        each = [odds((1.0 + _EDGE * vote) / 2.0) for vote in graded[name].values()]
        sessions[name] = _VotedSession(pattern, hard[name], sum(each), min(each, default=0.0), _ANCHOR in graded[name])
    rows: list[tuple[str, float, float, bool]] = []
    worth: list[Worth] = []
    for service, names in sorted(by_service.items()):
        model = _Model({name: sessions[name] for name in names}, fixed, settled, praise, reviews or {})
        model.estimate()
        worth += model.worth(service)
        rows += [(name, model.chance(name), model.chance(name, _OWN), model.is_contested(name)) for name in names]
    schema = {"session_id": pl.String, "probability": pl.Float64, "blind": pl.Float64, "is_contested": pl.Boolean}
    return Combined(pl.DataFrame(rows, schema=schema, orient="row").sort("session_id"), worth)


def _drop_contested(praise: str, votes: list[dict[str, float]], settled: Set[str], signed: Set[str]) -> None:
    """Drop the votes of a group that looks at a part of the work alone, where another group finds a fault in the rest of it.

    A settled group's word is enough. Of the others with a sign, those count that seldom contradict the praise in this service:
    who often does misreads what was asked for, and the weights say which of the two is right.
    """
    for own in votes:
        if praise in own and any(own.get(group, 0.0) < 0.0 for group in settled):
            del own[praise]
    praised = [own for own in votes if own.get(praise, 0.0) > 0.0]
    against = Counter(group for own in praised for group, vote in own.items() if vote < 0.0 and group in signed)
    seldom = {group for group, n in against.items() if n <= _SELDOM * len(praised)}
    for own in praised:
        if any(own.get(group, 0.0) < 0.0 for group in seldom):
            del own[praise]


class _Model:
    """The sessions of one service, and what votes are worth there."""

    def __init__(self, sessions: dict[str, _VotedSession], fixed: Mapping[str, float], settled: Set[str], praise: Set[str],
                 reviews: Mapping[str, bool]) -> None:
        self.sessions = sessions
        self.fixed = fixed
        self.settled = settled
        self.anchored = 2 * sum(session.anchored for session in sessions.values()) > len(sessions)
        if self.anchored and self._agreement(settled - praise) < _BORNE_OUT:
            self.sessions = {name: session._replace(graded=_tempered(session.graded)) for name, session in sessions.items()}
        self.reviewed = {name: 1.0 if good else 0.0 for name, good in reviews.items() if name in sessions}
        self.base = odds(BASE_RATE)
        self.weight: dict[Key, float] = {}
        self.silence: dict[str, float] = defaultdict(float)
        self.faultless = 0.0
        """What it is worth that no group that finds faults has spoken."""
        self.groups = sorted({group for session in sessions.values() for group in session.hard})
        self._odds: dict[tuple[int, str | None], float] = {}
        """Of patterns of votes, without a group or with all, at the weights as they are."""
        self.quiet = {group: [name for name, session in sessions.items() if group not in session.hard] for group in self.groups}
        self.votes: dict[Key, list[tuple[str, float]]] = defaultdict(list)
        for name, session in sessions.items():
            for group, vote in session.hard.items():
                self.votes[group, 1 if vote > 0 else -1].append((name, abs(vote)))
        faults = {group for group in self.groups if group in settled and (group, 1) not in self.votes}
        self.spared = {name for name, session in sessions.items() if faults and faults.isdisjoint(session.hard)}
        """Sessions in which none of these groups has spoken."""
        self.clean = self.spared
        """Those of them that are not contested."""
        for group, side in self.votes:
            self.weight[group, side] = side * fixed[group] if not self.anchored or group == _OWN or group in settled else 0.0

    def _agreement(self, settled: Set[str]) -> float:
        """Return by how many standard deviations settled votes agree with the anchor more than by chance."""
        chance = {name: chance_of(session.graded) for name, session in self.sessions.items() if session.anchored}
        mean = sum(chance.values()) / len(chance)
        spread = sum((each - mean) ** 2 for each in chance.values()) / len(chance)
        sides = [(1.0 if vote > 0 else -1.0) * (chance[name] - mean) for name in chance
                 for group, vote in self.sessions[name].hard.items() if group in settled]
        return sum(sides) / math.sqrt(spread * len(sides)) if sides and spread else 0.0

    def odds(self, name: str, without: str | None = None) -> float:
        key = self.sessions[name].pattern, without
        if key not in self._odds:
            total, hard = self._begin(name) + (self.faultless if name in self.clean else 0.0), self.sessions[name].hard
            for group in self.groups:
                if group != without:
                    vote = hard.get(group, 0.0)
                    total += self.weight[group, 1 if vote > 0 else -1] * abs(vote) if vote else self.silence[group]
            self._odds[key] = total
        return self._odds[key]

    def chance(self, name: str, without: str | None = None) -> float:
        return round(chance_of(self.odds(name, without)), 6)

    def is_contested(self, name: str) -> bool:
        """Return whether a group clearly speaks against a session, as far as its votes are worth something."""
        session = self.sessions[name]
        spoken = (self.weight[group, 1 if vote > 0 else -1] * abs(vote) for group, vote in session.hard.items())
        return min(session.least, *spoken, 0.0) <= -_CLEAR

    def estimate(self) -> None:
        """Let weights and base rate find each other."""
        for _ in range(_ROUNDS):
            good = {name: self._good(name) for name in self.sessions}
            self.weight = {key: self._weight(key, good) for key in sorted(self.votes)}
            for group in self.groups:
                self.silence[group] = 0.0 if group in self.settled else self._silence(self.quiet[group], good)
            self.clean = {name for name in self.spared if not self._gets_no_credit(name)}
            self.faultless = max(self._silence(sorted(self.spared), good), 0.0)
            self._odds.clear()
            plain = [name for name, session in self.sessions.items() if not session.anchored]
            if plain:
                mean = (sum(self._good(name) for name in plain) + _PRIOR * BASE_RATE) / (len(plain) + _PRIOR)
                self.base = odds(mean)
                self._odds.clear()

    def _gets_no_credit(self, name: str) -> bool:
        """Return whether a vote without a sign of its own speaks clearly against a session, and no settled one for it.

        Such votes are bounded, so credit would outweigh them; what has a sign weighs as much as it is worth.
        """
        hard = self.sessions[name].hard
        weights = {group: self.weight[group, 1 if vote > 0 else -1] for group, vote in hard.items()}
        return any(weight < -_SILENT and not self.fixed[group] for group, weight in weights.items()) and not any(
            weights.get(group, 0.0) > 0.0 for group in self.settled)

    def worth(self, service: str) -> list[Worth]:
        rows = []
        for (group, side), votes in sorted(self.votes.items()):
            agreeing = sum(self._good(name, group) if side > 0 else 1.0 - self._good(name, group) for name, _ in votes)
            rows.append(Worth(service, group, side, len(votes), round(self.weight[group, side], 6),
                               round(agreeing / len(votes), 6)))
        return rows

    def _good(self, name: str, without: str | None = None) -> float:
        if name in self.reviewed:
            return self.reviewed[name]
        return chance_of(self._begin(name) if self.anchored else self.odds(name, without))

    def _begin(self, name: str) -> float:
        session = self.sessions[name]
        return session.graded + (0.0 if session.anchored else self.base)

    def _silence(self, names: list[str], good: dict[str, float]) -> float:
        """Log odds of sessions in which nothing is said, shrunk to none."""
        shrunk = _log_ratio(sum(good[name] for name in names), len(names), good) * len(names) / (len(names) + _PRIOR)
        return (_ECHO if self.anchored else 1.0) * min(max(shrunk, -_SILENT), _SILENT)

    def _weight(self, key: Key, good: dict[str, float]) -> float:
        """Log likelihood ratio of this side of the group's vote, held against what sessions are taken for (`good`: chance by
        session), shrunk to the fixed one."""
        group, side = key
        n = len(self.votes[key])
        ratio = _log_ratio(sum(good[name] for name, _ in self.votes[key]), n, good)
        strength = sum(vote for _, vote in self.votes[key]) / n
        fixed = side * self.fixed[group]
        if group in self.settled:
            shrunk = (n * ratio / strength + _SETTLED * fixed) / (n + _SETTLED)
            return side * min(max(side * shrunk, _LEAST * abs(fixed)), _MOST)
        if self.anchored and group != _OWN:
            shrunk = _ECHO * n * ratio / strength / (n + _PRIOR)
        else:
            shrunk = (n * ratio / strength + _PRIOR * fixed) / (n + _PRIOR)
        if fixed:
            return side * min(max(side * shrunk, 0.0), _MOST)   # what has a sign keeps it
        return min(max(shrunk, -_UNSIGNED), _UNSIGNED)


def _tempered(graded: float) -> float:
    """Let only a part of the log odds beyond `_AGREED` count, so that their order stays."""
    return graded if graded <= _AGREED else _AGREED + _BEYOND * (graded - _AGREED)


def _log_ratio(n_good: float, n: int, good: Mapping[str, float]) -> float:
    """Log of how much more often good sessions (`good`: chance by session) are among these n than bad ones."""
    n_all_good = sum(good.values())
    return math.log((n_good + 0.5) / (n_all_good + 1.0)) - math.log((n - n_good + 0.5) / (len(good) - n_all_good + 1.0))


def odds(chance: float) -> float:
    """Log odds of a probability."""
    return math.log(chance / (1.0 - chance))


def chance_of(odds: float) -> float:
    """Convert log odds to a probability."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
