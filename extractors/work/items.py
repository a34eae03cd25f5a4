"""Work items: which acts belong to one piece of work.

In: the acts of all apps (`extractors.work.events`). Out: `WorkItem`s; every act is in one at most.
Sees so far: acts of one thread, and threads that name each other's records. Does not see yet: work whose apps name no ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from extractors.work.events import WorkEvent

_WORD = re.compile(r"[\w-]*\d[\w-]*")


class WorkItem(NamedTuple):
    """A piece of work."""

    item_id: str
    """The ref of its first act: stable while that one belongs to it."""
    refs: tuple[str, ...]
    """Of its acts, by time."""
    probability: float
    """That its acts, and only they, are one piece of work."""
    kind: str = ""
    """Of work, by what is done in it; empty: not told."""
    success: float | None = None
    """Probability that it ended well; None: nothing tells."""
    reason: str = ""
    """Why it makes no task; empty: it may."""


def find_items(events: Sequence[WorkEvent]) -> list[WorkItem]:
    """Return the pieces of work, by the time of their first act."""
    threads: dict[str, list[WorkEvent]] = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    names = {thread.split(":", 1)[1]: thread for thread in threads}
    joined = {thread: thread for thread in threads}

    def root(thread: str) -> str:
        while joined[thread] != thread:
            thread = joined[thread]
        return thread

    for thread, group in threads.items():
        for event in group:
            for word in {word for text in event.texts for word in _WORD.findall(text)}:
                if word in names:
                    joined[root(names[word])] = root(thread)
    items: dict[str, list[WorkEvent]] = defaultdict(list)
    for event in events:
        items[root(event.thread)].append(event)
    return [WorkItem(group[0].ref, tuple(event.ref for event in group), 0.5) for group in items.values()]
