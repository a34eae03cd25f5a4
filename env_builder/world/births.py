"""From when records are known to exist, in a world that all sessions share and in which new ones appear.

In: the reads of each record in order of time. Out: for records of classes that grow, the instant before which nobody can say
whether the record was there. Growth shows in lists: a record that names others of a class names one more in a later read. A
list in which records appear that had been read before (a loan, an assignment) tells of links, not of births. A record is taken
to be as old as the share of new names within such a gap allows (`spans.carried`), and younger than the last read of its owner
that does not name it. Does not see: growth that no list shows; records that went away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.world.spans import LONGEST_S, DocumentRead, Event, carried

Name = tuple[str, str]
"""(class, key) of a record."""
Relation = tuple[str, tuple[str, ...], str]
"""(class of the owner, path of a list in it, class of the records that the list names)."""
MINIMUM_BIRTHS = 3
"""Records that a list must have gained between two reads before its class counts as growing."""
MOVED = 0.05
"""Share of the gained records that may have been read before; with more, the list tells of links."""


class NamedKeys(NamedTuple):
    """What a list named at one read of its owner."""

    at: datetime
    keys: frozenset[str]


def existing_since(shown: Mapping[Name, list[Event]]) -> dict[Name, datetime]:
    """Return from when each record of a growing class is known to exist. `shown`: record -> its reads, in order of time."""
    reads = {name: [event for event in events if isinstance(event, DocumentRead)] for name, events in sorted(shown.items())}
    first = {name: own[0].at for name, own in reads.items() if own}
    listings = _listings(reads, first)
    growing: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    absent: dict[Name, datetime] = {}
    for relation, by_owner in sorted(listings.items()):
        outcomes, n_new, n_moved = _outcomes(relation[2], by_owner, first)
        if n_new < MINIMUM_BIRTHS or n_moved > MOVED * n_new:
            continue
        growing[relation[2]] += outcomes
        for own in by_owner.values():
            _note_mentions(relation[2], own, first, absent)
    limits = {kind: carried(sorted(outcomes)) for kind, outcomes in growing.items()}
    since: dict[Name, datetime] = {}
    for name, at in first.items():
        if name[0] in limits:
            earliest = [at - timedelta(seconds=limits[name[0]])] if limits[name[0]] < LONGEST_S else []
            earliest += [absent[name]] if name in absent and absent[name] < at else []
            since |= {name: max(earliest)} if earliest else {}
    return since


def _listings(
    reads: dict[Name, list[DocumentRead]], first: dict[Name, datetime]
) -> dict[Relation, dict[Name, list[NamedKeys]]]:
    """Return the lists that name records of a class, by relation and owner, each as of all reads of the owner."""
    classes: dict[str, list[str]] = defaultdict(list)
    for kind, key in first:
        classes[key].append(kind)
    listings: dict[Relation, dict[Name, list[NamedKeys]]] = defaultdict(lambda: defaultdict(list))
    for owner, own in reads.items():
        for read in own:
            for path, keys in _lists(parsed(read.text), ()):
                for kind in sorted({kind for key in keys for kind in classes.get(key, ())}):
                    named = frozenset(key for key in keys if (kind, key) in first)
                    listings[owner[0], path, kind][owner].append(NamedKeys(read.at, named))
    for (_, path, _), by_owner in listings.items():  # a list that named nothing at a read was there all the same
        for owner, listed in by_owner.items():
            shown = {listing.at for listing in listed}
            listed += [NamedKeys(read.at, frozenset()) for read in reads[owner]
                    if read.at not in shown and any(there == path for there, _ in _lists(parsed(read.text), ()))]
            listed.sort(key=lambda listing: listing.at)
    return listings


def _lists(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield (path, texts) of all lists of texts in objects."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lists(inner, (*path, name))
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        yield path, value


def _outcomes(
    kind: str, by_owner: dict[Name, list[NamedKeys]], first: dict[Name, datetime]
) -> tuple[list[tuple[float, bool]], int, int]:
    """((gap, was the record new) of each record named after a gap; how many were new; how many of these had been read)."""
    outcomes: list[tuple[float, bool]] = []
    n_new = n_moved = 0
    for own in by_owner.values():
        for before, after in pairwise(own):
            gap = (after.at - before.at).total_seconds()
            outcomes += [(gap, key not in before.keys) for key in sorted(after.keys)]
            new = after.keys - before.keys
            n_new += len(new)
            n_moved += sum(first[kind, key] <= before.at for key in new)
    return outcomes, n_new, n_moved


def _note_mentions(kind: str, own: list[NamedKeys], first: dict[Name, datetime], absent: dict[Name, datetime]) -> None:
    """Note in `first` when a record was named first, and in `absent` when its owner was last read without it before."""
    for place, listing in enumerate(own):
        for key in listing.keys:
            name = kind, key
            if listing.at <= first[name]:
                first[name] = listing.at
                without = next((each.at for each in reversed(own[:place]) if key not in each.keys), None)
                if without is not None:
                    absent[name] = without
