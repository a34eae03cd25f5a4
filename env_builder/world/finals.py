"""States that nothing leaves: values of a field in which things were never seen to change any more.

In: looks of a world that all sessions share, and row changes where there are any. Out: by class and field the values into
which at least `MINIMUM` things came and in which none of them changed in any way, whoever acted on them.
Sees: fields that take few values; with looks alone, things that were looked at again. Does not see: what nobody tried.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

from env_builder.runtime.answers import parsed
from env_builder.world.changes import Feed
from env_builder.world.drift import FEW_VALUES
from env_builder.world.replay import Step

MINIMUM = 20
"""Things that must have stayed as they were: were one in seven to change, twenty would all stay in 5 % of cases."""
Finals = dict[str, dict[str, list[Any]]]
"""Class -> field -> values, sorted."""


def find(steps: list[Step], feeds: dict[str, Feed]) -> Finals:
    """The states of all classes of one service that nothing leaves. `feeds`: row changes, by class."""
    kinds = sorted({step.shown[0] for step in steps if step.shown}.union(feeds))
    found = {kind: _of_class(_versions(feeds[kind]) if kind in feeds else _looks(steps, kind)) for kind in kinds}
    return {kind: finals for kind, finals in found.items() if finals}


def _versions(feed: Feed) -> list[list[str | None]]:
    """Of each thing the texts that followed each other; the last one stands until the feed ends."""
    return [[*texts, texts[-1]] for versions in feed.versions.values() if len(texts := [text for _, text, _ in versions]) > 1]


def _looks(steps: list[Step], kind: str) -> list[list[str | None]]:
    """Of each thing its looks in order of time."""
    seen: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for step in steps:
        if step.shown and step.shown[0] == kind and step.call.called_at:
            seen[step.shown[1]].append((step.call.called_at, step.shown[2]))
    return [[text for _, text in sorted(looks)] for looks in seen.values()]


def _of_class(things: list[list[str | None]]) -> dict[str, list[Any]]:
    stayed: dict[tuple[str, Any], set[int]] = defaultdict(set)
    left: set[tuple[str, Any]] = set()
    values: dict[str, set[Any]] = defaultdict(set)
    for number, texts in enumerate(things):
        for text, following in pairwise(texts):
            document = parsed(text) if text is not None else None
            for place in document.items() if isinstance(document, dict) else ():
                if isinstance(place[1], str):
                    values[place[0]].add(place[1])
                    if text == following:
                        stayed[place].add(number)
                    else:
                        left.add(place)
    found: dict[str, list[Any]] = defaultdict(list)
    for (field, value), numbers in sorted(stayed.items()):
        if (field, value) not in left and len(numbers) >= MINIMUM and len(values[field]) <= FEW_VALUES:
            found[field].append(value)
    return dict(found)
