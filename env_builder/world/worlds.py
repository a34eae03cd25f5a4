"""Split the sessions of one service into worlds: tenants, fixtures, versions of a serialiser that one log mixes.

Two first looks at one thing that differ, again and again, back and forth over time, are not one world that changed. Sessions
are split in two so that within each part such changes become few. A split counts only if the questions of a session agree with
each other on its part: where every session has a state of its own, or answers are drawn at random, they do not. Sees: fields
of first answers, before the session did what may have changed them. Does not see: worlds of which no two sessions were asked
the same, or that differ in one question alone; worlds that follow each other in time (those are changes). A session whose
world nothing tells belongs to none.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from env_builder.world import witnesses
from env_builder.world.calls import LoggedCall
from env_builder.world.looks import Question, first_looks, suspects_of

MINIMUM_RETURNS = 10.0
"""Returns to an earlier value, each question counting once, from which on worlds are looked for."""
MINIMUM_SESSIONS = 8
"""Sessions of each world."""
LEAST_SCORE = 0.22
"""Share of the changes from one first look to the next that must be between worlds, not within one, after `WEIGHT` times the
share of questions that may tell another world than their session's others is taken away. Where sessions change much, some split
always removes a few changes; where each has a state of its own, its questions disagree."""
WEIGHT = 4.0
DEVIATIONS = 1.645
"""Standard deviations up to which the share of disagreeing questions may be higher than it was seen (5 %, one-sided)."""
INTERLEAVED = 0.5
"""Share of the turns from one world to the other, of those that chance would give: worlds in blocks of time are changes."""
TRIES = 4
"""Fields to begin a split with, those that return most; the split that leaves the fewest changes is taken."""
GAP = 0.3
"""Changes by which one world must explain a session better than the others to get it."""
CLEAR = 0.6
"""Changes by which a question must tell a world to count for or against a split."""
MOST_PARTS = 4
"""Parts that are tried at once; each of them may be split further."""
ROUNDS = 8


class Split(NamedTuple):
    """How the sessions of a service are split."""

    of_session: dict[str, int]
    """Session -> its world, from 0, of those that can be told; worlds by their first session."""
    n_agreeing: int
    """Questions that tell the world of their session as its other questions do."""
    n_against: int
    """Those that tell another one."""


class Track(NamedTuple):
    """One field of the first answers to a question, by time."""

    question: Question
    path: tuple[str, ...]
    weight: float
    """All fields of a question weigh as much as one question."""
    sessions: list[str]
    values: list[str]

    @property
    def n_returns(self) -> float:
        """Return how often a value came back after another one, weighted."""
        return self.weight * (sum(one != other for one, other in pairwise(self.values)) - len(set(self.values)) + 1)


def find(calls: list[LoggedCall]) -> Split | None:
    """Split the sessions into worlds; None where one world, or a state of its own for each session, explains them as well.

    That sessions of one case are told the same does not make them a world: one of each must show the split too."""
    first = _representatives(witnesses.marked(calls))
    own = [call for call in calls if call.session_id in first]
    return None if len(own) < len(calls) and _find(own) is None else _find(calls)


def _representatives(calls: list[LoggedCall]) -> set[str]:
    """Return the sessions without those that were told what another one of their witness was, as far as both asked the same."""
    by_session = {session: list(own) for session, own in groupby(calls, key=lambda call: call.session_id)}
    suspects = suspects_of(list(by_session.values()))
    by_witness: dict[str, list[dict[Question, str]]] = defaultdict(list)
    first: set[str] = set()
    for session, own in sorted(by_session.items()):
        texts = {(call.tool, call.key): call.content for call in first_looks(own, suspects)}
        cases = by_witness[own[0].witness]
        if not any(all(theirs.get(question, text) == text for question, text in texts.items()) for theirs in cases):
            cases.append(texts)
            first.add(session)
    return first


def _find(calls: list[LoggedCall]) -> Split | None:
    sessions, tracks = _tracks(calls)
    if sum(track.n_returns for track in tracks) < MINIMUM_RETURNS:
        return None
    is_timed = any(call.called_at for call in calls)
    open_parts, done = [sessions], list[list[str]]()
    n_agreeing = n_against = 0
    while open_parts:
        part = open_parts.pop(0)
        parts = _parts(tracks, part, is_timed)
        if parts is None:
            done.append(part)
            continue
        open_parts += [[session for session in part if parts.label.get(session) == each] for each in set(parts.label.values())]
        agreeing, against = parts.support()
        n_agreeing, n_against = n_agreeing + agreeing, n_against + against
    if len(done) < 2:
        return None
    place = {session: at for at, session in enumerate(sessions)}
    done.sort(key=lambda part: min(place[session] for session in part))
    return Split({session: world for world, part in enumerate(done) for session in part}, n_agreeing, n_against)


def _parts(tracks: list[Track], sessions: list[str], is_timed: bool) -> _Parts | None:
    """Return the best split that counts; None if none does."""
    parts = _Parts(tracks, sessions)
    if sum(track.n_returns for track in parts.tracks) < MINIMUM_RETURNS:
        return None
    begins = sorted(range(len(parts.tracks)), key=lambda at: (-parts.tracks[at].n_returns, parts.tracks[at][:2]))[:TRIES]
    scores: list[tuple[float, int, int]] = []
    for n_parts in range(2, MOST_PARTS + 1):
        removed = [(parts.removed()[0], -number) for number in begins if parts.spread(number, n_parts)]
        if removed:
            parts.spread(-max(removed)[1], n_parts)
            scores.append((parts.score(is_timed), -n_parts, -max(removed)[1]))
    score, n_parts, begin = max(scores, default=(0.0, 0, 0))
    if score < LEAST_SCORE:
        return None
    parts.spread(begin, -n_parts)
    return parts


class _Parts:
    """Parts of some sessions, and those that are in none."""

    def __init__(self, tracks: list[Track], sessions: list[str]) -> None:
        self.sessions, inside = sessions, set(sessions)
        self.tracks: list[Track] = []
        self._at: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """Session -> (number of a track, its place there)."""
        self.label: dict[str, int] = {}
        self._n = 0
        self._places: list[list[list[int]]] = []
        """By track, then by part: places of its sessions, in order."""
        for track in tracks:
            kept = [place for place, session in enumerate(track.sessions) if session in inside]
            values = [track.values[place] for place in kept]
            if 1 < len(set(values)) < len(values):
                self.tracks.append(track._replace(sessions=[track.sessions[place] for place in kept], values=values))
                for place, at in enumerate(kept):
                    self._at[track.sessions[at]].append((len(self.tracks) - 1, place))

    def spread(self, number: int, n: int) -> bool:
        """Begin with the most usual values of one track, and give each other session to the part that explains it best.
        Return whether there are so many values."""
        track, self._n = self.tracks[number], n
        usual = sorted(Counter(track.values).items(), key=lambda counted: (-counted[1], counted[0]))[:n]
        begun = {value: part for part, (value, _) in enumerate(usual)}
        pairs = zip(track.sessions, track.values, strict=True)
        self.label, self._places = {}, [[[] for _ in range(n)] for _ in self.tracks]
        for session, value in pairs:
            if value in begun:
                self._put(session, begun[value])
        while choices := {session: choice for session in self.sessions
                          if session not in self.label and (choice := self._choice(session)).lead > GAP}:
            sure = max(choice.lead for choice in choices.values()) - GAP
            for session, choice in choices.items():
                if choice.lead >= sure:
                    self._put(session, choice.part)
        for _ in range(ROUNDS):
            before = dict(self.label)
            for session in self.sessions:  # one by one: each move changes what the next one is held against
                if (choice := self._choice(session)).lead and self.label.get(session) != choice.part:
                    self._put(session, choice.part)
            if self.label == before:
                break
        for session in [session for session in self.label if self._choice(session).lead <= GAP]:
            self._put(session, None)
        return len(usual) == n

    def score(self, is_timed: bool) -> float:
        """Return how much speaks for worlds (`LEAST_SCORE`)."""
        sizes = Counter(self.label.values())
        if len(sizes) < self._n or min(sizes.values()) < MINIMUM_SESSIONS or (is_timed and not self._is_interleaved(sizes)):
            return 0.0
        (n_removed, n_changes), (agreeing, against) = self.removed(), self.support()
        return n_removed / n_changes - WEIGHT * _upper(against, agreeing + against) if n_removed >= MINIMUM_RETURNS else 0.0

    def support(self) -> tuple[int, int]:
        """Return how many questions tell the part of their session as its other questions do, and how many another one."""
        agreeing = against = 0
        for session in self.sessions:
            questions = sorted({self.tracks[number].question for number, _ in self._at[session]})
            if len(questions) < 2 or session not in self.label:
                continue
            own = self.label[session]
            self._put(session, None)
            for question in questions:
                others, alone = self._choice(session, but=question), self._choice(session, only=question)
                if min(others.lead, alone.lead) > CLEAR:
                    agreeing += others.part == alone.part
                    against += others.part != alone.part
            self._put(session, own)
        return agreeing, against

    def _apart(self, track: Track) -> list[list[str]]:
        """Return the values of a track in each part that has some."""
        values: dict[int, list[str]] = defaultdict(list)
        for session, value in zip(track.sessions, track.values, strict=True):
            if session in self.label:
                values[self.label[session]].append(value)
        return [values[part] for part in sorted(values)]

    def _is_interleaved(self, sizes: Counter[int]) -> bool:
        labels = [self.label[session] for session in self.sessions if session in self.label]
        n_turns = sum(one != other for one, other in pairwise(labels))
        return n_turns >= INTERLEAVED * (len(labels) - sum(n * n for n in sizes.values()) / len(labels))

    def removed(self) -> tuple[float, float]:
        """Return how many changes there are less within the parts than among all their sessions, and how many these are."""
        n_removed, n_together = 0.0, 0.0
        for track in self.tracks:
            apart = self._apart(track)
            n = _n_changes(value for session, value in zip(track.sessions, track.values, strict=True) if session in self.label)
            n_removed += track.weight * (n - sum(map(_n_changes, apart)) - max(0, len(apart) - 1))
            n_together += track.weight * n
        return n_removed, n_together

    def _choice(self, session: str, but: Question | None = None, only: Question | None = None) -> _BestPart:
        """Return the part in which the session makes the fewest changes, and how many more it makes in the next one."""
        costs = [0.0] * self._n
        for number, place in self._at[session]:
            track = self.tracks[number]
            if track.question != but and (only is None or track.question == only):
                for part, places in enumerate(self._places[number]):
                    costs[part] += track.weight * _cost(track.values, place, places)
        least, next_least = sorted(costs)[:2]
        return _BestPart(costs.index(least), next_least - least)

    def _put(self, session: str, part: int | None) -> None:
        """Put a session into a part, or into none."""
        before = self.label.pop(session, None)
        for number, place in self._at[session]:
            if before is not None:
                self._places[number][before].remove(place)
            if part is not None:
                insort(self._places[number][part], place)
        if part is not None:
            self.label[session] = part


def _cost(values: list[str], place: int, places: list[int]) -> int:
    """Return how many changes more there are among the values at these places with the one at this place than without it."""
    at = bisect_left(places, place)
    following = at + (at < len(places) and places[at] == place)
    before = values[places[at - 1]] if at else None
    after = values[places[following]] if following < len(places) else None
    if before is None and after is None:
        return 1
    value = values[place]
    return ((before is not None and value != before) + (after is not None and value != after)
            - (before is not None and after is not None and before != after))


class _BestPart(NamedTuple):
    """The part of a session, and by how many changes it leads."""

    part: int
    lead: float


def _upper(n: int, of: int) -> float:
    """Return the upper bound of a share (Wilson 1927)."""
    square = DEVIATIONS ** 2
    share = n / of if of else 0.0
    spread = DEVIATIONS * math.sqrt(share * (1 - share) * of + square / 4)
    return (share * of + square / 2 + spread) / (of + square)


def _n_changes(values: Iterable[str]) -> int:
    return sum(one != other for one, other in pairwise(values))


def _tracks(calls: list[LoggedCall]) -> tuple[list[str], list[Track]]:
    """Return all sessions by time, and the tracks that differ and repeat. Without a clock the order is as good as random."""
    by_session = {session: list(own) for session, own in groupby(calls, key=lambda call: call.session_id)}
    order = sorted(by_session, key=lambda session: (_at(by_session[session][0]), sha256(session.encode()).hexdigest()))
    suspects = suspects_of([by_session[session] for session in order])
    looks: dict[Question, list[tuple[float, str, LoggedCall]]] = defaultdict(list)
    for session in order:
        for call in first_looks(by_session[session], suspects):
            looks[call.tool, call.key].append((_at(call), session, call))
    place = {session: at for at, session in enumerate(order)}
    tracks: list[Track] = []
    for question, own in sorted(looks.items()):
        if len({call.content for *_, call in own}) > 1:
            own.sort(key=lambda look: (look[0], place[look[1]]))
            tracks += _tracks_of(question, [session for _, session, _ in own], [_facts(call) for *_, call in own])
    return order, tracks


def _tracks_of(question: Question, sessions: list[str], facts: list[dict[tuple[str, ...], str]]) -> list[Track]:
    own: list[Track] = []
    for path in sorted({path for each in facts for path in each}):
        kept = [place for place, each in enumerate(facts) if path in each]
        values = [facts[place][path] for place in kept]
        if 1 < len(set(values)) < len(values):
            own.append(Track(question, path, 1.0, [sessions[place] for place in kept], values))
    return [track._replace(weight=1 / len(own)) for track in own]


def _at(call: LoggedCall) -> float:
    return call.called_at.timestamp() if call.called_at else 0.0


def _facts(call: LoggedCall) -> dict[tuple[str, ...], str]:
    """Return what an answer tells: its shape, and each field; of what is no object, its text."""
    shape = "failed" if call.failed else type(call.parsed).__name__
    if call.failed or not isinstance(call.parsed, dict):
        return {("shape",): shape, ("text",): call.content}
    return {("shape",): ",".join(sorted(map(str, call.parsed))), **dict(_leaves(call.parsed, ()))}


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _leaves(each, (*path, ".", str(name)))
    else:
        yield path, canonical(value)
