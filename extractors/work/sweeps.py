"""Sweeps: one person does the same to several records, one after another, such as a release that labels six finished bugs.

In: acts in the order of time. Out: groups of acts. What makes them one is a value that hardly any other act gives: each of the
records would have got it for a reason of its own otherwise.
Sees: short values of fields and new members of lists. Does not see: what machines do over and over; the same words in texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from extractors.work.nearness import SECOND
from extractors.work.words import table_of
from warehouse.records import CREATED, WorkEvent

_ONE_AFTER_ANOTHER = 1800 * SECOND
"""Acts of a sweep follow each other so soon."""
_HARDLY_ELSE = 0.6
"""Share of the acts that give a value which a sweep has."""
_SHORT = 60
"""Longer values are texts."""


def find_sweeps(acts: Sequence[WorkEvent]) -> list[list[int]]:
    """Return the numbers of the acts of each sweep. `acts`: in the order of time."""
    at: dict[tuple[tuple[str, str], str, str], list[int]] = defaultdict(list)
    for number, event in enumerate(acts):
        for field, value in sorted(_given(event)):
            at[table_of(event.record), field, value].append(number)
    sweeps = []
    for numbers in at.values():
        runs: dict[str, list[list[int]]] = defaultdict(list)
        for number in numbers:
            own = runs[acts[number].actor]
            if own and acts[number].at - acts[own[-1][-1]].at < _ONE_AFTER_ANOTHER:
                own[-1].append(number)
            else:
                own.append([number])
        sweeps += [run for actor, own in runs.items() for run in own if "@" in actor and len(run) >= _HARDLY_ELSE * len(numbers)
                   and len({acts[number].record for number in run}) > 1]
    return sweeps


def _given(event: WorkEvent) -> set[tuple[str, str]]:
    """Return (field, value) of what an act gave to a record that was there: short values, new members of lists."""
    given = set()
    for change in event.changes if not event.verb.endswith(CREATED) else ():
        was = change.before if isinstance(change.before, list) else []
        members = [each for each in change.after if each not in was] if isinstance(change.after, list) else [change.after]
        given |= {(change.field, str(each)) for each in members if isinstance(each, str | int | float)
                  and not isinstance(each, bool) and 0 < len(str(each)) <= _SHORT}
    return given
