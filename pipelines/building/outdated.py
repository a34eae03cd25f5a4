"""Withhold tasks that stopped being true, and name the change that each rests on.

In: what was verified of a service, its environment and known solutions, its latest calls, and changes in its logs. Out: the
same without the tasks whose solution is answered otherwise today (`env_builder.audit.outdated`), each with a decision of stage
`verify`; and a kept decision of stage `drift` for each change for which tasks are withheld: the tool, since when, how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import polars as pl

from env_builder.audit.outdated import OutdatedCall, outdated
from env_builder.runtime.answers import failed, parse
from env_builder.verify import AuditedRoom, Verified
from env_builder.world.history import instant
from pipelines.building.decisions import RULE_CHANGED
from warehouse.records import Decision, frame
from warehouse.store import Store

LATEST = 200
"""Calls of each tool that tell whether it works no more."""
FEWEST = 10
"""Refused calls after the last one that worked, at least, of a tool that works no more."""
BY_CHANCE = 1e-7
_GONE = ("select tool, max(happened_at) from core.turns where kind = 'call' and service = $service and tool in (select "
         "split_part(subject, '/tools of call/', 2) from mart.decisions where stage = 'drift' and reason = 'renamed' and "
         "split_part(subject, '/tools of call/', 1) in (select distinct source || '/' || format from core.sessions "
         "where service = $service)) group by tool")
_LATEST = ("select tool, content, is_error, happened_at from core.turns where kind = 'call' and service = $service and content "
           "is not null and happened_at is not null qualify row_number() over (partition by tool order by happened_at desc, "
           "turn_id) <= $latest order by tool, happened_at, turn_id desc")


def gone_tools(store: Store, service: str) -> dict[str, str]:
    """Return tool -> instant of its last call that worked, of tools that have another name now, or refuse every call since."""
    gone = dict(store.read(_GONE, service=service).iter_rows())
    latest = store.read(_LATEST, service=service, latest=LATEST)
    for (tool,), rows in latest.group_by("tool", maintain_order=True):
        refused = [failed(content, parse(content), flagged) for content, flagged in rows.select("content", "is_error").rows()]
        if False in refused and refused[-FEWEST:] == [True] * FEWEST:
            last = len(refused) - 1 - refused[::-1].index(False)
            chance = (sum(refused[:last]) + 1) / (last + 2)
            if chance ** (len(refused) - 1 - last) < BY_CHANCE:
                gone[tool] = rows["happened_at"][last]
    return {tool: str(instant(at)) for tool, at in gone.items()}


def without_outdated(verification: Verified, room: AuditedRoom, service: str, gone: Mapping[str, str]) -> Verified:
    """Reject the verified tasks whose solution is answered otherwise today, and name the changes. `gone`: tools that work no
    more, with the instant of the last call that worked."""
    verified = frozenset(verification.task_ids)
    calls = outdated(room.environment, (task for task in room.environment.tasks if task.task_id in verified),
                     room.side.solutions, gone)
    kept = verification.decisions.filter(~pl.col("subject").is_in(list(calls)))
    rejected = [Decision(stage="verify", subject=name, kept=False, reason=RULE_CHANGED, detail=_detail(call))
                for name, call in calls.items()]
    return verification._replace(
        task_ids=[name for name in verification.task_ids if name not in calls],
        decisions=pl.concat([kept, frame(Decision, rejected)]).sort("subject").extend(
            frame(Decision, _changes(calls.values(), service))))


def _detail(call: OutdatedCall) -> str:
    return (f"It passed the audit; its solution calls {call.tool}, which {_what(call)}: the task shows the service as it was; "
            "no action needed.")


def _what(call: OutdatedCall) -> str:
    return f"answers by other rules since {call.since}" if call.now else f"worked last at {call.since}"


def _changes(calls: Iterable[OutdatedCall], service: str) -> list[Decision]:
    """Return a decision for each change for which tasks are withheld."""
    n_tasks = Counter((call.tool, call.since, _what(call)) for call in calls)
    return [
        Decision(stage="drift", subject=f"{service}/rules of {tool}/{since}", kept=True, reason=RULE_CHANGED,
                 detail=f"service {service}: {tool} {what}; tasks withheld for it: {n}.")
        for (tool, since, what), n in sorted(n_tasks.items())]
