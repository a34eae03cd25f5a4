"""Whether a piece of work did what it was asked: values that are taken from requests, and those that are not.

In: the replayed tasks of a company's work. Out: for each task, the values that by the rule of their kind come from the request
and here do not. A column of a table, a field of records of one place, the numbers in the lines of a page: where most work takes
the value from the request, work that sets another one did something else, and cannot be an example. Nor can work whose choice
(one of a few values, such as a degree) neither its request nor a word that tells it in others' requests accounts for.
Sees: words, numbers, days and instants letter by letter; of a number that changed, by how much. Does not see: values that are
computed from the request, or that two words call the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from env_builder.runtime.company.parts import difference_of, is_long, is_table, words_of
from env_builder.work.intended import placing_fields
from env_builder.work.replaying import ReplayedActs
from env_builder.work.stretches import WorkHabits, WorkTask
from warehouse.records import RecordKind

_EACH, _SHARE = 6, 0.8
"""A slot takes its value from the request if so many tasks and this share of them do."""
_FEW, _MANY = 8, 5
"""A slot with so many values at most, each that often on average, takes one of a choice."""
_NEARLY_ALL = 0.9
_INSTANT = 1e9
_DAY = 10


class FilledSlot(NamedTuple):
    """A value that a task set, and where."""

    name: tuple[str, ...]
    value: str
    """In small letters."""
    is_asked: bool
    """Whether the words of those who asked have it."""
    is_choice: bool = False
    """Whether it is a field of a new record that nobody usually changes later, and no person."""


class AskedValues:
    """Which slots take their values from requests."""

    def __init__(self, slots: Iterable[Iterable[FilledSlot]]) -> None:
        """`slots`: of each task."""
        counts: Counter[tuple[str, ...]] = Counter()
        n_asked: Counter[tuple[str, ...]] = Counter()
        for filled in slots:
            of_task: dict[tuple[str, ...], bool] = {}
            for slot in filled:
                of_task[slot.name] = of_task.get(slot.name, True) and slot.is_asked
            counts.update(of_task)
            n_asked.update(name for name, all_asked in of_task.items() if all_asked)
        self._ruled = {name for name, count in counts.items() if count >= _EACH and n_asked[name] >= _SHARE * count}

    def not_asked(self, slots: Iterable[FilledSlot]) -> list[FilledSlot]:
        """Return the values of a task that should come from its request and do not."""
        return [slot for slot in slots if slot.name in self._ruled and not slot.is_asked]


class UsualSlots:
    """Which values tasks of a kind usually set where a word is in their request."""

    def __init__(self, tasks: Iterable[tuple[Iterable[FilledSlot], frozenset[str]]]) -> None:
        """`tasks`: the slots of each, and the words of its request."""
        self._values: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._by_word: dict[tuple[tuple[str, ...], str], Counter[str]] = defaultdict(Counter)
        for filled, words in tasks:
            for name, value in {(slot.name, slot.value) for slot in filled if slot.is_choice}:
                self._values[name][value] += 1
                for word in words:
                    self._by_word[name, word][value] += 1

    def unusual(self, slots: Iterable[FilledSlot], words: frozenset[str]) -> list[FilledSlot]:
        """Return the values of a task that others with a telling word in their request do not have."""
        return [slot for slot in slots if self._is_contested(slot) and self._meant(slot, words) not in (None, slot.value)]

    def untold(self, slots: Iterable[FilledSlot], words: frozenset[str]) -> list[FilledSlot]:
        """Return the choices of a task that neither its request nor a telling word in it accounts for."""
        return [slot for slot in slots if self._is_contested(slot) and not slot.is_asked and self._meant(slot, words) is None]

    def _is_contested(self, slot: FilledSlot) -> bool:
        """Return whether a slot takes one of a few values, none of which nearly all tasks of the kind have."""
        values = self._values[slot.name]
        return (slot.is_choice and 1 < len(values) <= _FEW and values.total() >= _MANY * len(values)
                and values.most_common(1)[0][1] < _NEARLY_ALL * values.total())

    def _meant(self, slot: FilledSlot, words: frozenset[str]) -> str | None:
        """Return the value that the most telling word of a request stands for, this task left out."""
        values = self._values[slot.name]
        best: tuple[float, int, str] | None = None
        for word in words:
            counts = self._by_word[slot.name, word] - Counter([slot.value])
            if counts.total() >= _EACH - 1 and counts.total() < values.total() / 2:
                value, count = counts.most_common(1)[0]
                best = max(best or (0.0, 0, ""), (count / counts.total(), count, value))
        return best[2] if best is not None and best[0] >= _SHARE else None


def filled_slots(task: WorkTask, replayed: ReplayedActs, habits: WorkHabits) -> list[FilledSlot]:
    """Return the values that a task set, with whether its request has them."""
    text = " ".join([*task.request.texts, *task.earlier_words]).casefold()
    words = set(words_of(text))
    return [FilledSlot((task.kind, *name), value, _is_in(value, words, text), is_choice)
            for name, value, is_choice in _values(task, replayed, habits)]


def _is_in(value: str, words: set[str], text: str) -> bool:
    return value in text or all(word in words or _is_moment(word, words, text) for word in words_of(value))


def _is_moment(word: str, words: set[str], text: str) -> bool:
    """Return whether a text has the day and the time of an instant."""
    day, mark, hour = word[:_DAY], word[_DAY:_DAY + 1], word[_DAY + 1:]
    return day in words and mark == "t" and hour in text


def _values(task: WorkTask, replayed: ReplayedActs, habits: WorkHabits) -> Iterator[tuple[tuple[str, ...], str, bool]]:
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
                            yield (name[0], name[1], field, str(column)), cell.casefold(), False
            elif is_long(now) and before is not None:
                for part in difference_of(was, now)[1]:
                    numbers = [word for word in words_of(part[0]) if word.replace(".", "").isdigit()]
                    if numbers:
                        yield (name[0], field, "numbers"), " ".join(numbers), False
            elif _is_plain(now) and name[0] not in habits.messages and field not in (*kind.texts, *placing_fields(kind)):
                is_choice = (before is None and field not in (*kind.people, habits.author_field(name[0]))
                             and not habits.has_steps(name[0], field))
                begun = ("from nothing",) if before is not None and not was else ()   # a total may never have been counted
                yield (name[0], *place, field, *begun), _shown(now if before is None else _moved_by(was, now)), is_choice


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
