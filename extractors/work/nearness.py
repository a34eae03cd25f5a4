"""Nearness: which acts may belong to one piece of work, and what speaks for it.

In: acts in the order of time, their words and types; how far the clock of the later act is moved. Out: pairs of acts that share
something and are near in time, with what they share.
A moved clock makes the control: with every later act moved by whole weeks, what remains near in time is so by chance.
Sees: rare words, threads, small places, the same person, people who were told. Does not see: meaning.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from extractors.work.act_types import ActType
from extractors.work.words import ActWords
from warehouse.records import WorkEvent

Ints = np.ndarray[Any, np.dtype[np.int64]]

SECOND = 1_000_000
DAY = 86_400 * SECOND
WEEK = 7 * DAY
_LAGS = np.array([0.5, 10, 30, 90, 600, 1800, 7200, 28800, 86400, 172800, 345600]) * SECOND
"""Borders of the levels of time between two acts."""
FAR = len(_LAGS) + 1
"""The level of a pair that does not have what the others of its kind are ordered by in time."""
_RARE = 60
"""A word in more acts leads to no pair by itself."""
_SMALL = 60
"""A place with more acts leads to no pair by itself."""
_FEW_PEOPLE = 4
_REACH = {"word": 6 * DAY, "thread": 6 * DAY, "place": DAY, "actor": DAY // 2, "told": 2 * DAY, "nobody": 60 * SECOND}
"""How near in time acts are that share a word, a thread, ..."""


class ActPairs(NamedTuple):
    """Pairs of acts, each with what it shares (arrays of one length)."""

    earlier: Ints
    later: Ints
    gap: Ints
    """Microseconds between them."""
    lag: Ints
    """Level of the time between them."""
    burst: Ints
    """The same where one person did nothing between them; else `FAR`."""
    told_burst: Ints
    """The same where the later one's person was told by the earlier and did at most one thing between; else `FAR`."""
    same_actor: Ints
    addressed: Ints
    """1: the first told the second's person; 2: the second told the first's; 3: both."""
    thread: Ints
    """0: not the same; else 1 + the number of the record's class."""
    place: Ints
    """0: not the same; else larger for places with more acts."""


class Nearness:
    """Finds pairs of acts."""

    def __init__(self, events: Sequence[WorkEvent], words: Sequence[ActWords], types: Sequence[ActType]) -> None:
        """Take acts in the order of time."""
        self.events, self.words = events, words
        self.at = np.array([event.at for event in events], dtype=np.int64)
        self.audience = _audiences(events)
        self.threads = numbered([event.thread for event in events])
        self.classes = numbered([event.record[0] for event in events])
        self.actors = numbered([event.actor or event.ref for event in events])
        self.places = numbered([event.place or event.ref for event in events])
        self.place_sizes = np.bincount(self.places)[self.places]
        self.coarse = numbered([kind.coarse for kind in types])
        self.fine = numbered([kind.fine for kind in types])
        self.information = _information(words, types)
        counts = Counter(word for each in words for word in each.own | each.earlier)
        self._rare = [[word for word in sorted(each.own | each.earlier) if counts[word] <= _RARE] for each in words]
        self._times: dict[str, list[int]] = defaultdict(list)
        for event in events:
            self._times[event.actor].append(event.at)

    def moved(self, weeks: int) -> Ints:
        """Return the acts' instants moved by weeks; those that leave the log at its end come in at its beginning."""
        begin = self.at[0]
        length = max(1, int(self.at[-1] - begin) // WEEK) * WEEK
        moved: Ints = begin + (self.at - begin + weeks * WEEK) % length if weeks else self.at
        return moved

    def pairs(self, weeks: int = 0) -> ActPairs:
        """Return the pairs with the later acts' clocks moved by weeks."""
        later_at = self.moved(weeks)
        events = self.events
        pairs: set[int] = set()
        person = [[event.actor] if event.actor else [] for event in events]
        small = [[event.place] if event.place and size <= _SMALL else []
                 for event, size in zip(events, self.place_sizes.tolist(), strict=True)]
        addressees = [sorted(people) if len(people) <= _FEW_PEOPLE else [] for people in self.audience]
        threads = [[event.thread] for event in events]
        nobody = [[] if event.actor else [""] for event in events]
        every = [[""]] * len(events)
        for name, keys, later_keys in (("word", self._rare, self._rare), ("thread", threads, threads), ("place", small, small),
                                  ("actor", person, person), ("told", addressees, person), ("nobody", every, nobody),
                                  ("nobody", nobody, every)):
            self._meet(keys, later_keys, later_at, _REACH[name], pairs)
        both = np.fromiter(sorted(pairs), dtype=np.int64, count=len(pairs))
        earlier, later = both // len(events), both % len(events)
        if not weeks:
            keep = (earlier < later) | (self.at[earlier] < self.at[later])
            earlier, later = earlier[keep], later[keep]
        return self._described(earlier, later, later_at)

    def _meet(self, first_keys: Sequence[Sequence[str]], second_keys: Sequence[Sequence[str]], later_at: Ints, reach: int,
              pairs: set[int]) -> None:
        """Add the pairs that share a key and of which the second is at most `reach` later."""
        count = len(first_keys)
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, keys in enumerate(first_keys):
            for key in keys:
                numbers[key].append(number)
        times = {key: [int(self.at[number]) for number in own] for key, own in numbers.items()}
        for number, keys in enumerate(second_keys):
            at = int(later_at[number])
            for key in keys:
                if key in times:
                    for other in numbers[key][bisect_left(times[key], at - reach):bisect_right(times[key], at)]:
                        if other != number:
                            pairs.add(other * count + number)

    def _described(self, earlier: Ints, later: Ints, later_at: Ints) -> ActPairs:
        events = self.events
        gap = later_at[later] - self.at[earlier]
        lag = np.searchsorted(_LAGS, gap)
        same = (self.actors[earlier] == self.actors[later]).astype(np.int64)
        first_told = _each(lambda one, two: events[two].actor in self.audience[one], earlier, later)
        second_told = _each(lambda one, two: events[one].actor in self.audience[two], earlier, later)
        few = np.array([len(people) < _FEW_PEOPLE for people in self.audience], dtype=np.int64)[earlier]
        between = np.array([
            bisect_left(self._times[events[two].actor], int(later_at[two]))
            - bisect_right(self._times[events[two].actor], int(self.at[one]))
            for one, two in zip(earlier.tolist(), later.tolist(), strict=True)], dtype=np.int64)
        sizes = self.place_sizes[earlier]
        return ActPairs(
            earlier, later, gap, lag,
            np.where((same == 1) & (between <= 0), lag, FAR), np.where((first_told == 1) & (between <= 1), lag, FAR),
            same, first_told * few + 2 * second_told,
            np.where(self.threads[earlier] == self.threads[later], 1 + self.classes[earlier], 0),
            np.where(self.places[earlier] == self.places[later], 1 + (sizes > 30) + (sizes > 100), 0))


def numbered(names: Sequence[str]) -> Ints:
    """Return names as numbers, in the order of their first place."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def _each(test: Callable[[int, int], bool], earlier: Ints, later: Ints) -> Ints:
    return np.array([test(one, two) for one, two in zip(earlier.tolist(), later.tolist(), strict=True)], dtype=np.int64)


def _audiences(events: Sequence[WorkEvent]) -> list[frozenset[str]]:
    """Return for each act whom it is for: who is named, and the few people whom its place is for."""
    places = {event.place for event in events}
    members: dict[str, frozenset[str]] = {}
    audiences = []
    for event in events:
        audiences.append(frozenset(event.addressees) | members.get(event.place, frozenset()))
        own = f"{event.record[0]}:{event.record[1]}"
        if own in places:
            few = 0 < len(event.addressees) <= _FEW_PEOPLE
            members[own] = frozenset(event.addressees) if few else frozenset()
    return audiences


def _information(words: Sequence[ActWords], types: Sequence[ActType]) -> list[dict[str, float]]:
    """Return how much it tells that an act has a word: little where acts of its type mostly have it."""
    acts: Counter[str] = Counter()
    of_type: Counter[tuple[str, str]] = Counter()
    sizes: Counter[str] = Counter()
    for each, kind in zip(words, types, strict=True):
        acts.update(each.own | each.earlier)
        for name in set(kind):
            sizes[name] += 1
            of_type.update((name, word) for word in each.own | each.earlier)
    smooth = 10 / len(words) if words else 0.0
    return [{word: -math.log(max((of_type[name, word] + smooth * acts[word]) / (sizes[name] + 10) for name in kind))
             for word in sorted(each.own | each.earlier)} for each, kind in zip(words, types, strict=True)]
