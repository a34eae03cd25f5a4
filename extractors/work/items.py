"""Work items: which acts belong to one piece of work.

In: the acts of all apps (`extractors.work.events`). Out: `WorkItem`s; every act is in one at most, and those that no item has
are no work that the log shows: what was there at the beginning, and what nobody did.
Method: acts of one instant and the messages of one thread are pieces; how surely two pieces belong together is learnt from the
log itself (`contrast`), and pieces become items while that is more likely than not (`grouping`).
Sees: objects that serve several items (a release labels six bugs), items over several apps, with and without ids.
Does not see: two items that one request began. An item that makes no task says why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from extractors.work.act_types import act_types
from extractors.work.contrast import learnt, piece_pairs
from extractors.work.grouping import grouped
from extractors.work.nearness import SECOND, Ints, Nearness
from extractors.work.rows import row_threads
from extractors.work.sweeps import find_sweeps
from extractors.work.words import act_words
from warehouse.records import CREATED, WorkEvent, WorkItem

_AT_ONCE = SECOND // 2
"""Acts so near in time, of one person or nobody, are one act and what follows from it."""
_ENOUGH = 1000
"""With fewer pairs of pieces nothing is learnt from the first groups."""
_LINK = 0.3
"""Groups become one while their acts belong together so surely on average; below one half, for an item's ends share little."""
PROBABLE = 0.5
"""Probability from which on acts count as one piece of work."""
ONE_ACT, TALK, NO_ACTOR, NOT_ONE_ITEM = "one_act_alone", "talk_without_effects", "no_actor", "not_one_item"
"""Reasons to reject an item."""


def find_items(events: Sequence[WorkEvent]) -> list[WorkItem]:
    """Return the pieces of work, by the time of their first act."""
    acts = sorted(events, key=lambda event: (event.at, event.ref))
    acts = acts[_beginning(acts):]
    if not acts:
        return []
    words = act_words(acts)
    company = frozenset(person for event in acts for person in event.addressees)
    sweeps = find_sweeps(acts)
    for number in (number for sweep in sweeps for number in sweep):
        words[number] = words[number]._replace(earlier=frozenset())   # what the records held does not speak for it either
    near = Nearness(_apart(acts, sweeps), words, act_types(acts, words, company))
    piece_of = _pieces(acts, sweeps)
    sizes = Counter(piece_of.tolist())
    candidates, probability = piece_pairs(near, piece_of)
    first = grouped(sizes, zip(candidates.one.tolist(), candidates.other.tolist(), probability.tolist(), strict=True))
    both = zip(candidates.one.tolist(), candidates.other.tolist(), strict=True)
    together = np.array([first[one] == first[other] for one, other in both], dtype=np.float64)
    if len(together) >= _ENOUGH:
        probability = learnt(candidates, together)
    pairs = list(zip(candidates.one.tolist(), candidates.other.tolist(), probability.tolist(), strict=True))
    group_of = grouped(sizes, pairs, _LINK)
    surely = _probabilities(sizes, pairs, group_of)
    items: dict[int, list[WorkEvent]] = defaultdict(list)
    for event, piece in zip(acts, piece_of.tolist(), strict=True):
        items[group_of[piece]].append(event)
    return [WorkItem(group[0].ref, tuple(event.ref for event in group), surely[number], reason=_reason(group, surely[number]))
            for number, group in items.items()]


def _beginning(acts: Sequence[WorkEvent]) -> int:
    """Return how many acts at the log's first instant show what was there before it."""
    first = sum(event.at == acts[0].at for event in acts) if acts else 0
    return first if first > len(acts) ** 0.5 else 0


def _apart(acts: Sequence[WorkEvent], sweeps: Sequence[Sequence[int]]) -> list[WorkEvent]:
    """Return the acts, those on a table in the threads of their rows, those of a sweep in a thread of its own.

    That the records of a sweep have threads does not speak for it."""
    apart = list(acts)
    for number, row in row_threads(acts).items():
        apart[number] = acts[number]._replace(thread=row)
    for sweep in sweeps:
        for number in sweep:
            apart[number] = acts[number]._replace(thread=acts[sweep[0]].ref)
    return apart


def _pieces(acts: Sequence[WorkEvent], sweeps: Sequence[Sequence[int]]) -> Ints:
    """Return for each act the number of the first act of its piece."""
    joined = list(range(len(acts)))

    def root(number: int) -> int:
        while joined[number] != number:
            number = joined[number]
        return number

    threads: dict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(acts):
        threads[event.thread].append(number)
    talks = [group for group in threads.values() if all(_says(acts[number]) for number in group)]
    at_once = [[number - 1, number] for number in range(1, len(acts)) if acts[number].at - acts[number - 1].at < _AT_ONCE
               and acts[number].actor in ("", acts[number - 1].actor)]
    for group in [*talks, *at_once, *sweeps]:
        for number in group[1:]:
            one, other = sorted((root(group[0]), root(number)))
            joined[other] = one
    return np.array([root(number) for number in range(len(acts))], dtype=np.int64)


def _says(event: WorkEvent) -> bool:
    return event.verb.endswith(f" {CREATED}")


def _probabilities(sizes: Mapping[int, int], pairs: Sequence[tuple[int, int, float]], group_of: Mapping[int, int]
                   ) -> dict[int, float]:
    """Return for each group how surely its pieces belong together, times how surely no other group belongs to it."""
    inside: dict[int, float] = defaultdict(float)
    outside: dict[tuple[int, int], float] = defaultdict(float)
    whole: Counter[int] = Counter()
    alone: Counter[int] = Counter()
    for piece, size in sizes.items():
        whole[group_of[piece]] += size
        alone[group_of[piece]] += size * size
    for one, other, probability in pairs:
        one_group, other_group = sorted((group_of[one], group_of[other]))
        weight = probability * sizes[one] * sizes[other]
        if one_group == other_group:
            inside[one_group] += 2 * weight
        else:
            outside[one_group, other_group] += weight
    nearest: dict[int, float] = defaultdict(float)
    for (one_group, other_group), weight in outside.items():
        mean = weight / (whole[one_group] * whole[other_group])
        nearest[one_group], nearest[other_group] = max(nearest[one_group], mean), max(nearest[other_group], mean)
    return {group: (inside[group] + alone[group]) / size ** 2 * (1 - nearest[group]) for group, size in whole.items()}


def _reason(group: Sequence[WorkEvent], probability: float) -> str:
    """Return why an item makes no task."""
    if len({event.thread for event in group}) == 1 and all(_says(event) for event in group):
        return TALK if len(group) > 1 else ONE_ACT
    if len(group) == 1:
        return ONE_ACT
    if not any(event.actor for event in group):
        return NO_ACTOR
    return NOT_ONE_ITEM if probability < PROBABLE else ""
