"""Records that a piece of work treats alike, and those that its texts name: both should be the same ones.

In: the acts of an item, the ids of all records. Out: the records that were changed and are not named, and those that are named
and were not changed, where several of one class were changed in the same fields.
Sees: ids as words. Does not see: records that a text only describes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from warehouse.records import CREATED, WorkEvent

_WORD = re.compile(r"\w(?:[\w#/@.:-]*\w)?")
_SEVERAL = 2


class ListedRecords(NamedTuple):
    """Where the changed records and the named ones differ."""

    unnamed: frozenset[str]
    untreated: frozenset[str]


def ids_by_class(events: Iterable[WorkEvent]) -> dict[str, set[str]]:
    """Return the ids of the records of each class."""
    ids: dict[str, set[str]] = defaultdict(set)
    for event in events:
        ids[event.record[0]].add(event.record[1])
    return ids


def listed_records(acts: Sequence[WorkEvent], ids: Mapping[str, set[str]]) -> ListedRecords | None:
    """Return how the records that an item treats alike differ from those that it names; None: it names or treats no two."""
    changed: dict[str, set[str]] = defaultdict(set)
    for act in acts:
        if not act.verb.endswith(f" {CREATED}"):
            changed[act.verb].add(act.record[1])
    verb = max(sorted(changed), key=lambda name: len(changed[name]), default="")
    treated = changed.get(verb, set())
    if len(treated) < _SEVERAL:
        return None
    of_class = ids[next(act.record[0] for act in acts if act.verb == verb)]
    named = {word for act in acts for text in act.texts for word in _WORD.findall(text)} & of_class
    if len(named) < _SEVERAL:
        return None
    return ListedRecords(frozenset(treated - named), frozenset(named - treated))
