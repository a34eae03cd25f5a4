"""Whether a piece of work did what it was asked: values that are taken from requests, and those that are not.

In: the replayed tasks of a company's work. Out: for each task, the values that by the rule of their kind come from the request
and here do not. A column of a table, a field of records of one place, the numbers in the lines of a page: where most work takes
the value from the request, work that sets another one did something else, and cannot be an example.
Sees: words, numbers, days and instants letter by letter; of a number that changed, by how much. Does not see: values that are computed from the request, or that two
words call the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from env_builder.runtime.company.parts import difference_of, is_long, is_table, words_of
from env_builder.work.intended import placing_fields
from env_builder.work.replaying import ReplayedActs
from env_builder.work.stretches import WorkHabits, WorkTask
from extractors.apps.version import RecordKind

_EACH, _SHARE = 6, 0.75
"""A slot takes its value from the request if so many tasks and this share of them do."""
_INSTANT = 1e9
_DAY = 10


class FilledSlot(NamedTuple):
    """A value that a task set, and where."""

    name: tuple[str, ...]
    value: str
    """In small letters."""
    is_asked: bool
    """Whether the words of those who asked have it."""


class AskedValues:
    """Which slots take their values from requests."""

    def __init__(self, slots: Iterable[Iterable[FilledSlot]]) -> None:
        """`slots`: of each task."""
        counts: Counter[tuple[str, ...]] = Counter()
        asked: Counter[tuple[str, ...]] = Counter()
        for filled in slots:
            of_task: dict[tuple[str, ...], bool] = {}
            for slot in filled:
                of_task[slot.name] = of_task.get(slot.name, True) and slot.is_asked
            counts.update(of_task)
            asked.update(name for name, all_asked in of_task.items() if all_asked)
        self._ruled = {name for name, count in counts.items() if count >= _EACH and asked[name] >= _SHARE * count}

    def not_asked(self, slots: Iterable[FilledSlot]) -> list[FilledSlot]:
        """Return the values of a task that should come from its request and do not."""
        return [slot for slot in slots if slot.name in self._ruled and not slot.is_asked]


def filled_slots(task: WorkTask, replayed: ReplayedActs, habits: WorkHabits) -> list[FilledSlot]:
    """Return the values that a task set, with whether its request has them."""
    text = " ".join([task.opening, *task.asked]).casefold()
    words = set(words_of(text))
    return [FilledSlot((task.kind, *name), value, _is_in(value, words, text))
            for name, value in _values(task, replayed, habits)]


def _is_in(value: str, words: set[str], text: str) -> bool:
    own = words_of(value)
    return value in text or all(word in words or word[:_DAY] in words and word[_DAY:_DAY + 1] == "t" and word[_DAY + 1:] in text
                                for word in own)


def _values(task: WorkTask, replayed: ReplayedActs, habits: WorkHabits) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, before in replayed.before.items():
        kind = habits.kinds.get(name[0], RecordKind(name[0]))
        after = replayed.after[name] or {}
        place = [str(after.get(field)) for field in placing_fields(kind)[-1:]]
        for field, now in after.items():
            was = (before or {}).get(field)
            if now == was or (*name, field) not in replayed.touched:
                continue
            if is_table(now):
                for row in difference_of(was, now)[1]:
                    for column, cell in enumerate(row):
                        if cell:
                            yield (name[0], name[1], field, str(column)), cell.casefold()
            elif is_long(now) and before is not None:
                for part in difference_of(was, now)[1]:
                    numbers = [word for word in words_of(part[0]) if word.replace(".", "").isdigit()]
                    if numbers:
                        yield (name[0], field, "numbers"), " ".join(numbers)
            elif _is_plain(now) and name[0] not in habits.messages and field not in (*kind.texts, *placing_fields(kind)):
                yield (name[0], *place, field), _shown(now if before is None else _moved_by(was, now))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "" and not is_long(value)


def _moved_by(before: Any, after: Any) -> Any:
    """Return by how much a number changed, where it is no instant; any other value as it is."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (before, after))
    return abs(after - before) if numbers and before and after < _INSTANT else after


def _shown(value: Any) -> str:
    if isinstance(value, (int, float)) and value > _INSTANT:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dt%H:%M")
    return str(value).casefold()
