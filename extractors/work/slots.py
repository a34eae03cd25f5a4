"""Slots of a kind of work: the values in which its items differ, such as an amount, a person, a day.

In: the items of one kind and their acts. Out: the kind's slots by name, and the values of each item.
A slot is a value that an item has at two positions or more (a number of the request, a cell of a table, a field of a record),
or at one and inside a text of another act, such as the request.
Positions belong to one slot if they hold the same value in nearly all items of the kind that have both.
Sees: whole values of cells and short fields, numbers in texts. Does not see: words that stand in texts alone, and values that
occur once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from extractors.work.events import WorkEvent
from extractors.work.items import WorkItem
from extractors.work.shapes import ActShapes, Position

_LEAST = 3
"""Items that have a position, and values that it takes."""
_OFTEN = 0.5
"""Share of a kind's items that have a position."""
_SAME = 0.8
"""Share of the items with both positions in which two positions of a slot are equal."""
_MOST_POSITIONS = 120


class WorkSlot(NamedTuple):
    """A value in which the items of a kind differ."""

    name: str
    positions: tuple[Position, ...]
    """The most frequent first."""


def find_slots(items: Sequence[WorkItem], events: Sequence[WorkEvent], shapes: ActShapes) -> dict[str, list[WorkSlot]]:
    """Return the slots of each kind."""
    of_kind = _by_kind(items, events, shapes)
    return {kind: _slots([each.values for each in courses], shapes, _written(courses)) for kind, courses in of_kind.items()}


def slot_values(items: Sequence[WorkItem], events: Sequence[WorkEvent], shapes: ActShapes,
                slots: Mapping[str, Sequence[WorkSlot]]) -> dict[str, dict[str, str]]:
    """Return the slots of each item, by id: the last value at the first position that the item has."""
    acts = {event.ref: event for event in events}
    values_of: dict[str, dict[str, str]] = {}
    for item in items:
        values = {position: value for ref in item.refs for position, value in shapes.values(acts[ref]).items()}
        values_of[item.item_id] = {slot.name: next(values[position] for position in slot.positions if position in values)
                               for slot in slots.get(item.kind, ()) if any(position in values for position in slot.positions)}
    return values_of


class _ItemValues(NamedTuple):
    """The values of an item, and which of them a text of another act holds."""

    values: dict[Position, str]
    written: set[Position]


def _by_kind(items: Sequence[WorkItem], events: Sequence[WorkEvent], shapes: ActShapes) -> dict[str, list[_ItemValues]]:
    acts = {event.ref: event for event in events}
    of_kind: dict[str, list[_ItemValues]] = defaultdict(list)
    for item in items:
        if item.kind:
            of_kind[item.kind].append(_values_of([acts[ref] for ref in item.refs], shapes))
    return of_kind


def _values_of(acts: Sequence[WorkEvent], shapes: ActShapes) -> _ItemValues:
    texts = [" ; ".join(act.texts).casefold() for act in acts]
    values: dict[Position, str] = {}
    written: set[Position] = set()
    for number, act in enumerate(acts):
        for position, value in shapes.values(act).items():
            values[position] = value
            if not position.part.startswith("#") and any(
                    value in text for other, text in enumerate(texts) if other != number and acts[other].record != act.record):
                written.add(position)
    return _ItemValues(values, written)


def _written(courses: Sequence[_ItemValues]) -> set[Position]:
    """Return the positions whose value nearly always stands in a text of another act."""
    often = Counter(position for each in courses for position in each.values)
    within = Counter(position for each in courses for position in each.written)
    return {position for position in often if within[position] >= _SAME * often[position]}


def _slots(values: Sequence[Mapping[Position, str]], shapes: ActShapes, written: set[Position]) -> list[WorkSlot]:
    often = Counter(position for each in values for position in each)
    differ = {position: len({each[position] for each in values if position in each}) for position in often}
    common = [position for position, n in sorted(often.items(), key=lambda item: (-item[1], item[0]))
              if n >= max(_LEAST, _OFTEN * len(values)) and differ[position] >= _LEAST][:_MOST_POSITIONS]
    groups = {position: {position} for position in common}
    for one, other in combinations(common, 2):
        both = [each[one] == each[other] for each in values if one in each and other in each]
        if groups[one] is not groups[other] and len(both) >= _LEAST and sum(both) >= _SAME * len(both):
            groups[one] |= groups[other]
            for position in groups[other]:
                groups[position] = groups[one]
    slots: list[WorkSlot] = []
    taken: Counter[str] = Counter()
    for position in common:
        group = [each for each in common if each in groups[position]]
        if position == group[0] and (len(group) > 1 or position in written):
            name = _name(group, shapes)
            taken[name] += 1
            slots.append(WorkSlot(name if taken[name] == 1 else f"{name} {taken[name]}", tuple(group)))
    return slots


def _name(group: Sequence[Position], shapes: ActShapes) -> str:
    """Return the heading of a column, else the name of a field, else what kind of value it is."""
    labels = [shapes.label(position.container, position.part) for position in group]
    columns = [label for label, position in zip(labels, group, strict=True) if label != position.part and label != "number"]
    fields = [label for label, position in zip(labels, group, strict=True) if label == position.part and "[" not in label]
    return next(iter([*columns, *fields]), "number").casefold()
