"""Which changes of a task waited for which answers, and which of these orders tasks of its kind usually have.

In: tasks of a company's work. Out: (answer, record) pairs of a task; whether a kind's tasks usually wait so.
A comment that a passer-by happened to leave before a change is an order, too, but no rule of the work.
Does not see: what an answer says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from env_builder.work.replaying import RecordName
from env_builder.work.stretches import WorkHabits, WorkTask
from warehouse.records import WorkEvent

_USUAL = 0.25
"""Share of a kind's tasks from which on an order is the kind's."""


def waited_for(task: WorkTask, habits: WorkHabits) -> list[tuple[WorkEvent, RecordName]]:
    """Return what others said to the person's own words, with each record that the person changed only after it."""
    requests: list[WorkEvent] = []
    waited: list[tuple[WorkEvent, RecordName]] = []
    own = {act.ref for act in task.own}
    for act in task.acts:
        if act.ref in own:
            requests.append(act)
        elif habits.is_message(act) and any(_answers(act, request) for request in requests):
            later = {each.record for each in task.own if each.at > act.at and not habits.is_message(each)}
            earlier = {each.record for each in task.own if each.at <= act.at}
            waited += [(act, name) for name in sorted(later - earlier)]
    return waited


def _answers(reply: WorkEvent, own: WorkEvent) -> bool:
    return reply.thread == own.thread or reply.actor in own.addressees


class UsualOrders:
    """Which orders the tasks of each kind usually have."""

    def __init__(self, tasks: Iterable[WorkTask], habits: WorkHabits) -> None:
        self._tasks: Counter[str] = Counter()
        self._orders: Counter[tuple[str, str, str]] = Counter()
        for task in tasks:
            self._tasks[task.kind] += 1
            self._orders.update({(task.kind, reply.record[0], name[0]) for reply, name in waited_for(task, habits)})

    def is_usual(self, task: WorkTask, reply: WorkEvent, name: RecordName) -> bool:
        """Return whether tasks of the kind usually change such a record after such an answer; of an unknown kind: they do."""
        return self._orders[task.kind, reply.record[0], name[0]] >= _USUAL * self._tasks[task.kind]
