"""Withhold tasks that stopped being true, and name the change that each rests on.

In: what was verified of a service, its environment and known solutions, its latest calls, and changes in its logs. Out: the
same without the tasks whose solution is answered otherwise today (`env_builder.audit.outdated`), each with a decision of stage
`verify`; and a kept decision of stage `drift` for each change for which tasks are withheld: the tool, since when, how many.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from env_builder.audit.outdated import OutdatedCall, outdated
from env_builder.audit.reinstructed import BY_CHANCE, Reinstructed, ServedTask, last_beyond_chance, reinstructed
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
_GONE = ("select tool, max(happened_at) from core.turns where kind = 'call' and service = $service and tool in (select "
         "split_part(subject, '/tools of call/', 2) from mart.decisions where stage = 'drift' and reason = 'renamed' and "
         "split_part(subject, '/tools of call/', 1) in (select distinct source || '/' || format from core.sessions "
         "where service = $service)) group by tool")
_LATEST = ("select tool, content, is_error, happened_at from core.turns where kind = 'call' and service = $service and content "
           "is not null and happened_at is not null qualify row_number() over (partition by tool order by happened_at desc, "
           "turn_id) <= $latest order by tool, happened_at, turn_id desc")


_SENTENCES = ("select split_part(subject, '/sentences of instructions/', 2) as sentence from mart.decisions where "
              "stage = 'drift' and contains(subject, '/sentences of instructions/') and "
              "split_part(subject, '/sentences of instructions/', 1) in (select distinct source || '/' || format "
              "from core.sessions where service = $service) order by all")
_SERVED = """
    with served as (
        select task_id, family, starts_at, succeeded_session_ids[1] as session_id from mart.tasks
        where service = $service and segment_of is null and starts_at is not null and len(succeeded_session_ids) > 0)
    select family, starts_at, coalesce(list_sort(list(distinct tool) filter (kind = 'call' and tool is not null)), []) as tools,
        arg_min(content, position) filter (kind = 'message' and role in ('system', 'developer')) as instructions,
        string_agg(content, chr(10) order by position) filter (kind = 'message' and role = 'user') as request
    from served join core.turns using (session_id) group by task_id, family, starts_at order by starts_at, task_id
"""


class EndedAnswers(NamedTuple):
    """What tools of a service answer no more, each with the instant of the last call that was answered so."""

    tools: Mapping[str, str]
    """Tools that have another name now, or refuse every call while others of the service work."""
    refusals: Mapping[tuple[str, str], str]
    """(tool, words) of refusals."""


def ended_answers(store: Store, service: str) -> EndedAnswers:
    """Return the tools of a service that work no more, and the refusals in whose place there are others now."""
    tools: dict[str, datetime] = dict(store.read(_GONE, service=service).iter_rows())
    refusals: dict[tuple[str, str], datetime] = {}
    refusing: list[tuple[str, datetime, datetime]] = []
    """Tools that refuse every call since one, with its instant and that of the first refusals since."""
    worked = datetime.min.replace(tzinfo=UTC)
    for (tool,), rows in store.read(_LATEST, service=service, latest=LATEST).group_by("tool", maintain_order=True):
        contents, times = rows["content"].to_list(), rows["happened_at"].to_list()
        refused = [failed(content, parse(content), flag) for content, flag in zip(contents, rows["is_error"], strict=True)]
        last = last_beyond_chance(list(map(operator.not_, refused)), FEWEST, BY_CHANCE)
        worked = max([worked, *(at for at, is_refused in zip(times, refused, strict=True) if not is_refused)])
        if last is not None:
            refusing.append((str(tool), times[last], times[last + FEWEST]))
        words = list(compress(contents, refused))
        for text in dict.fromkeys(words):
            last = last_beyond_chance([other == text for other in words], 1, BY_CHANCE)
            if last is not None and not set(words[last + 1:]) <= set(words[:last]):
                refusals[str(tool), text] = list(compress(times, refused))[last]
    tools |= {tool: at for tool, at, since in refusing if since < worked}   # where no tool works since, the service is down
    return EndedAnswers({tool: str(instant(at)) for tool, at in tools.items()},
                        {refusal: str(instant(at)) for refusal, at in refusals.items()})


def instructed_otherwise(store: Store, service: str) -> dict[str, list[Reinstructed]]:
    """Return what good sessions of a service do otherwise since a sentence of the instructions changed, by family."""
    sentences = store.read(_SENTENCES, service=service)["sentence"].to_list()
    served = store.read(_SERVED, service=service).iter_rows() if sentences else ()
    return reinstructed((ServedTask(family, str(instant(at)), frozenset(tools), " ".join((text or "").split()), request or "")
                         for family, at, tools, text, request in served), sentences)


def without_outdated(
    verification: Verified, room: AuditedRoom, service: str, ended: EndedAnswers,
    instructed: Mapping[str, Sequence[Reinstructed]] = MappingProxyType({}),
) -> Verified:
    """Reject the verified tasks whose solution is answered otherwise today, or whose family is served otherwise since the
    instructions changed (`instructed`), and name the changes."""
    verified, solutions = frozenset(verification.task_ids), room.side.solutions
    tasks = [task for task in room.environment.tasks if task.task_id in verified]
    calls: dict[str, OutdatedCall | Reinstructed] = {
        task.task_id: change for task in tasks for change in instructed.get(task.family, ())
        if change.tool in room.environment.writes and change.speaks_against(task, solutions.get(task.task_id, ()))}
    calls |= outdated(room.environment, tasks, solutions, *ended)
    kept = verification.decisions.filter(~pl.col("subject").is_in(list(calls)))
    rejected = [Decision(stage="verify", subject=name, kept=False, reason=RULE_CHANGED, detail=_detail(call))
                for name, call in calls.items()]
    return verification._replace(
        task_ids=[name for name in verification.task_ids if name not in calls],
        decisions=pl.concat([kept, frame(Decision, rejected)]).sort("subject").extend(
            frame(Decision, _changes(calls.values(), service))))


def _detail(call: OutdatedCall | Reinstructed) -> str:
    if isinstance(call, Reinstructed):
        return f"It passed the audit; {_what(call)}: the task has the instructions of its own session; no action needed."
    return (f"It passed the audit; its solution calls {call.tool}, which {_what(call)}: the task shows the service as it was; "
            "no action needed.")


def _what(call: OutdatedCall | Reinstructed) -> str:
    if isinstance(call, Reinstructed):
        of = "a family" if call.part is None else f"a family's {call.part}"
        calls = f"all good sessions of {of} call" if call.is_called else f"no good session of {of} calls"
        return (f'{calls} {call.tool} since {call.since}, and their instructions {"say" if call.is_said else "do not say"} '
                f'"{call.sentence}" since')
    return f"answers by other rules since {call.since}" if call.now else (
        f"refused in these words last at {call.since}" if call.then else f"worked last at {call.since}")


def _changes(calls: Iterable[OutdatedCall | Reinstructed], service: str) -> list[Decision]:
    """Return a decision for each change for which tasks are withheld."""
    n_tasks = Counter(
        (call.tool, call.since, _what(call), "instructions on") if isinstance(call, Reinstructed) else
        (call.tool, call.since, f"{call.tool} {_what(call)}", "rules of") for call in calls)
    return [
        Decision(stage="drift", subject=f"{service}/{kind} {tool}/{since}", kept=True, reason=RULE_CHANGED,
                 detail=f"service {service}: {what}; tasks withheld for it: {n}.")
        for (tool, since, what, kind), n in sorted(n_tasks.items())]
