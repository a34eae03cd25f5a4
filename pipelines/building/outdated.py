"""Withhold tasks that stopped being true, and name the change that each rests on.

In: what was verified of a service, its environment and known solutions. Out: the same without the tasks whose solution is
answered otherwise today (`env_builder.audit.outdated`), each with a decision of stage `verify`; and a kept decision of stage
`drift` for each change for which tasks are withheld: the tool, since when, and how many tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import polars as pl

from env_builder.audit.outdated import OutdatedCall, outdated
from env_builder.verify import AuditedRoom, Verified
from pipelines.building.decisions import RULE_CHANGED
from warehouse.records import Decision, frame


def without_outdated(verification: Verified, room: AuditedRoom, service: str) -> Verified:
    """Reject the verified tasks whose solution is answered otherwise today, and name the changes."""
    verified = frozenset(verification.task_ids)
    calls = outdated(room.environment, (task for task in room.environment.tasks if task.task_id in verified),
                     room.side.solutions)
    kept = verification.decisions.filter(~pl.col("subject").is_in(list(calls)))
    rejected = [Decision(stage="verify", subject=name, kept=False, reason=RULE_CHANGED, detail=_detail(call))
                for name, call in calls.items()]
    return verification._replace(
        task_ids=[name for name in verification.task_ids if name not in calls],
        decisions=pl.concat([kept, frame(Decision, rejected)]).sort("subject").extend(
            frame(Decision, _changes(calls.values(), service))))


def _detail(call: OutdatedCall) -> str:
    return (f"It passed the audit; its solution calls {call.tool}, which answers otherwise since {call.since}: the task shows "
            "the service as it was; no action needed.")


def _changes(calls: Iterable[OutdatedCall], service: str) -> list[Decision]:
    """Return a decision for each change for which tasks are withheld."""
    n_tasks = Counter((call.tool, call.since) for call in calls)
    return [
        Decision(stage="drift", subject=f"{service}/rules of {tool}/{since}", kept=True, reason=RULE_CHANGED,
                 detail=f"service {service}: {tool} answers by other rules since {since}; tasks withheld for it: {n}.")
        for (tool, since), n in sorted(n_tasks.items())]
