"""Decide which conversations of several logs are one.

In: the conversations of all logs (`LoggedTalk`). Out: groups that are one, each with its evidence, and pairs that cannot be
decided. A log of one kind (a source in one format) tells no conversation twice, so pairs are looked for between logs: by ids
that are made by chance, under any name; else by what users write, in order. Two are one if all that both tell is the same, and

- they share an id, and neither log has another that does; or
- no other conversation of either log has these words, there are enough of them, and the clocks fit: at most two minutes apart,
  or by a time zone that other pairs or the rhythm confirm, or by day where a clock has no more; or
- the words are common (templates, retries), but such pairs show that the two logs tell the same conversations and by how much
  their clocks differ, and one counterpart is nearer in time than any other by far.

A log with a conversation per request (each with the history so far) is seen by chains in which every request is there. Forks
and resumed conversations share ids or words but go on differently or after a pause: they stay apart. Pairs are proposed by keys
and, where a key is common, by time, so the work grows with the number of conversations. Does not see: reworded texts; copies
within one log that are no chain; a copy of few words whose clock nobody confirms (reported as undecided).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from extractors.request_chains import chains
from extractors.tellings import LoggedTalk, compare, head, offset, offsets

_SECOND = 1_000_000
_NEAR = 120 * _SECOND
"""Clocks of two logs of one conversation differ by no more, time zones aside."""
_QUARTER, _FARTHEST_ZONE = 900 * _SECOND, 14 * 3600 * _SECOND
_DAY = 86_400 * _SECOND
_ENOUGH_PARTS, _ENOUGH_CHARACTERS = 3, 60
_CLOCKLESS_PARTS, _CLOCKLESS_CHARACTERS = 6, 200
_CONFIRMED = 5
"""So many pairs tell how far two clocks are apart."""
_CROWD = 2_500
"""A key with more pairs than this is common: its pairs are taken by time."""
_SHARED_BY = 8
"""An id that more conversations of a log have is not made by chance."""
_OVERLAP = 0.8


@dataclass(frozen=True, slots=True)
class LikePair:
    """Two conversations and what speaks for their being one."""

    one: LoggedTalk
    two: LoggedTalk
    evidence: str


@dataclass(slots=True)
class Sameness:
    """Groups of conversations that are one (two or more each), why, and pairs that cannot be decided."""

    groups: list[list[LoggedTalk]] = field(default_factory=list)
    joined: list[LikePair] = field(default_factory=list)
    undecided: list[LikePair] = field(default_factory=list)


def same_conversations(tellings: Iterable[LoggedTalk], gap_minutes: float, n_apart: int = 0) -> Sameness:
    """Group what is one conversation. Does not depend on the order of `tellings`. `n_apart`: conversations besides these that
    are no part of a chain (`may_be_same`), and no single request."""
    by_store: dict[tuple[str, str], list[LoggedTalk]] = defaultdict(list)
    for telling in sorted(tellings, key=lambda each: (each.store, each.name)):
        if telling.parts:
            by_store[telling.store].append(telling)
    gap = int(gap_minutes * 60 * _SECOND)
    groups = _Groups()
    wholes: dict[tuple[str, str], list[LoggedTalk]] = {}
    for store, of_store in by_store.items():
        covered: set[LoggedTalk] = set()
        for chain in chains(of_store, gap, n_apart):
            for part in chain[:-1]:
                groups.join(LikePair(chain[-1], part, "each request of it is a conversation with the history so far"))
            covered.update(chain[:-1])
        wholes[store] = [telling for telling in of_store if telling not in covered]
        groups.undecided += _copies(wholes[store])
    for one, two in combinations(wholes, 2):
        _Stores(wholes[one], wholes[two], gap, groups).decide()
    return groups.result()


class _Groups:
    """Conversations that are one so far; no group takes two of one log that are no chain."""

    def __init__(self) -> None:
        self._members: dict[LoggedTalk, list[LoggedTalk]] = {}
        self._stores: dict[int, set[tuple[str, str]]] = {}
        self._joined: list[LikePair] = []
        self.undecided: list[LikePair] = []

    def join(self, pair: LikePair) -> None:
        one = self._members.setdefault(pair.one, [pair.one])
        two = self._members.setdefault(pair.two, [pair.two])
        if one is two:
            return
        if pair.one.store != pair.two.store and {each.store for each in one} & {each.store for each in two}:
            self.undecided.append(LikePair(pair.one, pair.two, f"{pair.evidence}, but another of the same log is joined to it"))
            return
        one += two
        for member in two:
            self._members[member] = one
        self._joined.append(pair)

    def are_one(self, one: LoggedTalk, two: LoggedTalk) -> bool:
        return one in self._members and self._members[one] is self._members.get(two)

    def result(self) -> Sameness:
        groups = list({id(members): members for members in self._members.values() if len(members) > 1}.values())
        undecided = {(pair.one, pair.two): pair for pair in reversed(self.undecided) if not self.are_one(pair.one, pair.two)}
        return Sameness(groups, self._joined, list(undecided.values())[::-1])


def _copies(tellings: list[LoggedTalk]) -> list[LikePair]:
    """Pair conversations of one log that share an id: forks, resumed conversations, copies."""
    return [LikePair(one, two, "they share ids, in one log") for one, two in _by_key(tellings, tellings, lambda each: each.ids)
            if one.name < two.name and compare(one, two) != "other"]


class _Stores:
    """Decides on the conversations of two logs."""

    def __init__(self, first: list[LoggedTalk], second: list[LoggedTalk], gap: int, groups: _Groups) -> None:
        self._first, self._second, self._gap, self._groups = first, second, gap, groups
        self._firsts = set(first)
        self._taken: set[LoggedTalk] = set()
        self._equal: dict[LoggedTalk, list[LoggedTalk]] = defaultdict(list)
        self._crowded: set[LoggedTalk] = set()
        self._clock: tuple[float, float] | None = None
        """How far the second clock is behind the first, and how far pairs differ from that."""

    def decide(self) -> None:
        for one, two in self._candidates(head):
            if compare(one, two) == "equal":
                self._equal[one].append(two)
                self._equal[two].append(one)
        self._by_ids()
        self._by_words()
        self._by_time()
        self._cut_short()

    def _join(self, one: LoggedTalk, two: LoggedTalk, evidence: str) -> None:
        self._groups.join(LikePair(one, two, evidence))
        self._taken |= {one, two}

    def _open(self, tellings: Iterable[LoggedTalk]) -> list[LoggedTalk]:
        return [each for each in tellings if each not in self._taken]

    def _by_ids(self) -> None:
        by_one: dict[LoggedTalk, list[LoggedTalk]] = defaultdict(list)
        for one, two in _by_key(self._first, self._second, lambda each: each.ids):
            by_one[one].append(two)
            by_one[two].append(one)
        equal = {each: [other for other in others if compare(each, other) == "equal"] for each, others in by_one.items()}
        for one in self._first:
            if len(equal.get(one, ())) == 1 and equal[equal[one][0]] == [one]:
                self._join(one, equal[one][0], "they share ids, and tell the same")
        for one in self._open(self._first):
            for two in by_one.get(one, ()):
                relation, rivals = compare(one, two), (*by_one[one], *by_one[two])
                if relation == "prefix" and len(rivals) == 2 and two not in self._taken and self._goes_on(one, two):
                    self._join(one, two, "they share ids, and one ends earlier")
                elif relation != "other":
                    self._doubt(one, two, "they share ids, but not all that both tell is the same")

    def _by_words(self) -> None:
        """Join pairs of conversations whose words are unique in both logs."""
        unique = [(one, two) for one in self._open(self._first) if (two := self._only(one)) is not None
                  and self._only(two) is one and _tells_enough(one)]
        timed = {(one, two): gap for one, two in unique if (gap := offset(one, two)) is not None
                 and not one.has_days_alone and not two.has_days_alone}
        zones = Counter(zone for gap in timed.values() if (zone := _zone(gap)) is not None)
        main = max(zones, key=lambda zone: (zones[zone], -abs(zone)), default=0)
        is_usual = zones[main] >= _CONFIRMED and zones[main] * 2 > len(timed)
        fits = [gap for gap in timed.values() if _zone(gap) == main]
        middle = median(fits) if fits else 0.0
        spread = median(abs(gap - middle) for gap in fits) if fits else 0.0
        limit = min(_NEAR, max(10 * _SECOND, 10 * spread)) if len(fits) >= _CONFIRMED else _NEAR
        for one, two in unique:
            gap = timed.get((one, two))
            zone = None if gap is None else _zone(gap)
            if gap is None:
                self._without_clock(one, two)
            elif zone is None or (zone not in (0, main) and not _same_rhythm(one, two)):
                if zone is not None:
                    self._doubt(one, two, f"their words are the same and unique, but {_apart(gap)} apart")
            elif _same_rhythm(one, two) or ((zone == 0 or is_usual) and abs(gap - zone - (middle - main)) <= limit):
                self._join(one, two, f"their words are the same and unique, {_apart(gap)} apart")
            else:
                self._doubt(one, two, f"their words are the same and unique, but {_apart(gap)} apart")
        if len(fits) >= _CONFIRMED and (main == 0 or is_usual) and self._overlap():
            self._clock = middle, spread

    def _overlap(self) -> bool:
        """Whether nearly all conversations with words of their own, of one log, are in the other too."""
        for of_store in (self._first, self._second):
            words = {each: tuple(each.parts) for each in of_store}
            counts = Counter(words.values())
            own = [each for each in of_store if counts[words[each]] == 1 and _tells_enough(each)]
            if own and sum(each in self._taken for each in own) >= _OVERLAP * len(own):
                return True
        return False

    def _doubt(self, one: LoggedTalk, two: LoggedTalk, evidence: str) -> None:
        self._groups.undecided.append(LikePair(one, two, evidence))

    def _without_clock(self, one: LoggedTalk, two: LoggedTalk) -> None:
        by_day = one.begins is not None and two.begins is not None
        if by_day and abs((one.begins or 0) - (two.begins or 0)) > 2 * _DAY:
            return
        if by_day or (len(one.parts) >= _CLOCKLESS_PARTS and one.n_characters >= _CLOCKLESS_CHARACTERS):
            self._join(one, two, f"their words are the same and unique, {'on one day' if by_day else 'without a clock'}")
        else:
            self._doubt(one, two, "their words are the same, but a log has no times")

    def _by_time(self) -> None:
        """Join pairs with common words whose clocks fit by far best."""
        middle, spread = self._clock or (0.0, 0.0)
        limit = max(2 * _SECOND, 4 * spread)
        for one in self._open(self._first):
            if self._doubt_by_day(one):
                continue
            ranked = self._nearest(one, middle)
            if not ranked or ranked[0][0] > (limit if self._clock else _NEAR) or self._disagree(one, ranked[0][1]):
                continue
            distance, two = ranked[0]
            back = self._nearest(two, middle)
            rivals = [each for each, other in ranked[1:2] + back if other not in (one, two)]
            is_sure = all(rival >= 3 * distance + _SECOND / 2 for rival in rivals)
            if self._clock and is_sure:
                self._join(one, two, f"their words are the same, and their times fit to {distance / _SECOND:.1f} s")
            else:
                reason = "others have them too" if rivals else "they are few"
                self._doubt(one, two, f"their words and times are the same, but {reason}")

    def _doubt_by_day(self, one: LoggedTalk) -> bool:
        """Report what has the words of this one on its day, where one of the two logs has no more than days."""
        days = [two for two in self._open(self._equal[one]) if (one.has_days_alone or two.has_days_alone)
                and abs((one.begins or 0) - (two.begins or 0)) <= 2 * _DAY]
        for two in days[:_SHARED_BY]:
            self._doubt(one, two, "their words and days are the same, but others have them too")
        return bool(days)

    def _nearest(self, one: LoggedTalk, middle: float) -> list[tuple[float, LoggedTalk]]:
        begins = one in self._firsts
        gaps = [(offset(one, two) if begins else offset(two, one), two) for two in self._open(self._equal[one])]
        return sorted(((abs(gap - middle), two) for gap, two in gaps if gap is not None),
                      key=lambda each: (each[0], each[1].name))

    def _cut_short(self) -> None:
        """Join pairs of which one log ends earlier."""
        by_one: dict[LoggedTalk, list[LoggedTalk]] = defaultdict(list)
        for one, two in self._candidates(lambda each: head(each)[:1]):
            if one not in self._taken and two not in self._taken and compare(one, two) == "prefix":
                by_one[one].append(two)
                by_one[two].append(one)
        middle = self._clock[0] if self._clock else 0.0
        for one in self._first:
            if len(by_one[one]) == 1 and by_one[by_one[one][0]] == [one]:
                two = by_one[one][0]
                gap = offset(one, two)
                if gap is None or abs(gap - middle) > _NEAR or self._disagree(one, two):
                    continue
                if _tells_enough(min(one, two, key=lambda each: len(each.parts))) and self._goes_on(one, two):
                    self._join(one, two, f"their words are the same, {_apart(gap)} apart, and one ends earlier")
                else:
                    self._doubt(one, two, "they begin alike at one time, and one ends earlier")

    def _goes_on(self, one: LoggedTalk, two: LoggedTalk) -> bool:
        """Whether what one tells beyond the other follows without a pause."""
        short, long = sorted((one, two), key=lambda each: len(each.parts))
        times = [time for time in long.times[len(short.parts) - 1:][:2] if time is not None]
        return len(times) == 2 and times[1] - times[0] <= self._gap

    def _only(self, one: LoggedTalk) -> LoggedTalk | None:
        others = self._equal[one]
        return others[0] if len(others) == 1 and one not in self._crowded and others[0] not in self._taken else None

    @staticmethod
    def _disagree(one: LoggedTalk, two: LoggedTalk) -> bool:
        return bool(one.identities and two.identities) and not one.identities & two.identities

    def _candidates(self, key: Callable[[LoggedTalk], Hashable]) -> Iterator[tuple[LoggedTalk, LoggedTalk]]:
        blocks: dict[Hashable, tuple[list[LoggedTalk], list[LoggedTalk]]] = defaultdict(lambda: ([], []))
        for side, of_store in enumerate((self._first, self._second)):
            for telling in of_store:
                blocks[key(telling)][side].append(telling)
        for first, second in blocks.values():
            if len(first) * len(second) <= _CROWD:
                yield from ((one, two) for one in first for two in second)
            else:
                self._crowded.update(first, second)
                yield from self._near(first, second)

    def _near(self, first: list[LoggedTalk], second: list[LoggedTalk]) -> Iterator[tuple[LoggedTalk, LoggedTalk]]:
        timed = sorted(((begins, each.name, each) for each in second if (begins := each.begins) is not None),
                       key=lambda each: each[:2])
        instants = [each[0] for each in timed]
        shift = int(self._clock[0]) if self._clock else 0
        for one in first:
            if (begins := one.begins) is not None:
                place = bisect_left(instants, begins - shift)
                for at in range(max(place - 8, 0), min(place + 8, len(timed))):
                    if abs(instants[at] - begins + shift) <= _NEAR:
                        yield one, timed[at][2]


def _by_key(first: list[LoggedTalk], second: list[LoggedTalk], keys: Callable[[LoggedTalk], Iterable[Hashable]]
            ) -> list[tuple[LoggedTalk, LoggedTalk]]:
    """Pair conversations with a key in common, each pair once; a key that many of a log have pairs nothing."""
    places: dict[Hashable, list[LoggedTalk]] = defaultdict(list)
    for telling in second:
        for key in keys(telling):
            places[key].append(telling)
    counts = Counter(key for telling in first for key in keys(telling))
    pairs = {(one, two): None for one in first for key in sorted(keys(one), key=str)
             if counts[key] <= _SHARED_BY and len(places.get(key, ())) <= _SHARED_BY
             for two in places.get(key, ()) if one is not two}
    return list(pairs)


def _tells_enough(telling: LoggedTalk) -> bool:
    return len(telling.parts) >= _ENOUGH_PARTS and telling.n_characters >= _ENOUGH_CHARACTERS


def _zone(gap: float) -> int | None:
    """Return the time zone that explains a difference of clocks, to two minutes; None: none does."""
    zone = round(gap / _QUARTER) * _QUARTER
    return zone if abs(gap - zone) <= _NEAR and abs(zone) <= _FARTHEST_ZONE else None


def _same_rhythm(one: LoggedTalk, two: LoggedTalk) -> bool:
    """Whether the parts follow each other in the same seconds, over enough of them."""
    gaps = offsets(one, two)
    lasts = (one.ends or 0) - (one.begins or 0)
    return len(gaps) >= 4 and max(gaps) - min(gaps) <= 5 * _SECOND and lasts >= 20 * _SECOND


def _apart(gap: float) -> str:
    seconds = abs(gap) / _SECOND
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 3600:.2f} h"
