"""Up to which epoch the attackers of a task draw the calls that they make, so that a night's calls change no audit of before.

In: the ledger of epochs, a service's tasks and turns. Out: `Arrivals`, none of one epoch. A task draws from the calls up to the
epoch of its first session, or up to the last epoch at which the service's log had grown by half, if that is later: then
all audits are played again, against a log that is so much larger. Does not see: a task without sessions of its own that is made
of no other task; it draws from all calls.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from env_builder.audit.values import Arrivals
from warehouse.store import Store

GROWN = 1.5
"""How much larger a log must be for the pools to be drawn again."""


def arrivals_of(store: Store, service: str, tasks: pl.DataFrame) -> Arrivals | None:
    """Return when the calls of a service arrived, and the reach of its tasks (frame of `Task`, variants among them)."""
    sizes = store.read("select epoch, count(*) from raw.epochs join core.sessions using (session_id) "
                       "where service = $service group by epoch order by epoch", service=service).rows()
    if len(sizes) < 2:
        return None
    least = last_growth(sizes)
    epochs = dict(store.read("select session_id, epoch from raw.epochs").iter_rows())
    columns = tasks.select("task_id", "session_ids", "derived_from").rows()
    several = {task_id: [epochs[session] for session in sessions or () if session in epochs]
               for task_id, sessions, _ in columns}
    own = {task_id: min(each) for task_id, each in several.items() if each}
    origins = {task_id: own.get(task_id, own.get(origin)) for task_id, _, origin in columns}
    calls = store.read(
        "select tool, arguments, min(epoch) from core.turns join raw.epochs using (session_id) "
        "where service = $service and kind = 'call' and arguments is not null group by all", service=service)
    return Arrivals({(tool, arguments): epoch for tool, arguments, epoch in calls.iter_rows()},
                    {task_id: max(epoch, least) for task_id, epoch in origins.items() if epoch is not None})


def last_growth(sizes: Iterable[tuple[int, int]]) -> int:
    """Return the last epoch at which a log had grown by half. `sizes`: (epoch, its sessions), in order."""
    last = total = before = 0
    for epoch, n in sizes:
        total += n
        if total >= GROWN * before:
            last, before = epoch, total
    return last
