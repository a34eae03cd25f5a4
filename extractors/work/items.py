"""Work items: which acts belong to one piece of work.

In: the acts of all apps (`extractors.work.events`). Out: `WorkItem`s; every act is in one at most.
Sees so far: acts of one thread, and threads that name each other's records. Does not see yet: work whose apps name no ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from warehouse.records import WorkEvent, WorkItem

_WORD = re.compile(r"[\w-]*\d[\w-]*")


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
