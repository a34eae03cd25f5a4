"""Threads by how they begin and end, so that a history is compared with those alone that it may belong to.

In: threads as they grow. Out: for a history, the threads that it may extend, repeat, or answer otherwise. One session id can
stand for thousands of conversations (a default, a test), and each of its histories would be compared with each of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from extractors.formats.overlap import Print, is_telling

_MOST_LIKELY = 64
"""How many threads that share but an end with a history are looked at, the latest first."""


@dataclass(slots=True, eq=False)
class Thread:
    """A conversation: its rows in order, each part once."""

    rows: list[int] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """Of each part, a hash of the parts up to it; as far as the shelf has seen."""
    keys: tuple[Hashable, ...] = ()
    """Where it stands on the shelf beside its marks."""


def marks(prints: Sequence[Print], before: int = 0) -> list[int]:
    """A hash of all parts up to each part; `before`: that of the parts before the first."""
    found = []
    for each in prints:
        before = hash((before, each))
        found.append(before)
    return found


class Shelf:
    """The threads of a session in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[Thread, int] = {}
        self._places: dict[Hashable, dict[Thread, None]] = {}

    def put(self, thread: Thread) -> None:
        """Take in a thread, or what became of it."""
        self._numbers.setdefault(thread, len(self._numbers))
        new = marks(thread.prints[len(thread.marks):], thread.marks[-1] if thread.marks else 0)
        for mark in new:
            self._stand(thread, ("begins", mark))
        thread.marks += new
        for key in thread.keys:
            self._leave(thread, key)
        thread.keys = self._keys(thread)
        for key in thread.keys:
            self._stand(thread, key)

    def cut(self, thread: Thread, length: int) -> None:
        """Take the parts after the first `length` off a thread."""
        for mark in thread.marks[length:]:
            self._leave(thread, ("begins", mark))
        del thread.rows[length:], thread.prints[length:], thread.marks[length:]

    def shares(self, prints: Sequence[Print]) -> list[Thread]:
        """Threads that may have parts of this history: it extends or repeats them, or it holds their end."""
        made = marks(prints)
        sure = [("whole", mark) for mark in made] + [("begins", made[-1])] if made else []
        likely: list[Hashable] = [("ends", one, two) for one, two in pairwise(prints)]
        likely += [("end", each) for each in prints if is_telling(each)]
        return list(dict.fromkeys(self._found(sure, None) + self._found(dict.fromkeys(likely), _MOST_LIKELY)))

    def answered(self, prints: Sequence[Print]) -> list[Thread]:
        """Threads whose last answer may be another one in this history: it begins with all that stands before the answer."""
        return self._found([("stem", mark) for mark in marks(prints)], None)

    def _found(self, keys: Iterable[Hashable], most: int | None) -> list[Thread]:
        found: dict[Thread, None] = {}
        for key in keys:
            for thread in reversed(self._places.get(key, {})):
                found[thread] = None
                if most is not None and len(found) >= most:
                    return sorted(found, key=self._numbers.__getitem__)
        return sorted(found, key=self._numbers.__getitem__)

    def _keys(self, thread: Thread) -> tuple[Hashable, ...]:
        if not thread.prints:
            return ()
        stem = len(thread.prints)
        while stem and is_answer(thread.prints[stem - 1]):
            stem -= 1
        keys: list[Hashable] = [("whole", thread.marks[-1]), ("end", thread.prints[-1])]
        keys += [("ends", *thread.prints[-2:])] if len(thread.prints) > 1 else []
        return (*keys, ("stem", thread.marks[max(stem - 1, 0)])) if stem < len(thread.prints) else tuple(keys)

    def _stand(self, thread: Thread, key: Hashable) -> None:
        self._places.setdefault(key, {})[thread] = None

    def _leave(self, thread: Thread, key: Hashable) -> None:
        self._places[key].pop(thread, None)


def is_answer(part: Print) -> bool:
    """Whether a part is what a model says or calls."""
    return part[0] == "call" or part[:2] == ("message", "assistant")
