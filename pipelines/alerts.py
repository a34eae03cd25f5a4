"""The sensor that tells people: runs that failed, checks that do not hold, tables that are older than they may be.

It looks at Dagster's instance twice a minute and hands what is new to the hooks (pipelines/hooks.py). What a hook could not
deliver waits in the sensor's cursor and is tried again at the next look, by itself: the other hooks are not sent it twice.
It sees what the instance was told. A daemon that is dead tells nobody (docs/production.md, *Is it alive?*).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunsFilter,
    SensorEvaluationContext,
    SensorResult,
    sensor,
)
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord, AssetCheckExecutionRecordStatus
from dagster._core.storage.tags import WILL_RETRY_TAG

from pipelines.hooks import Alert, Hook, configured
from warehouse.errors import Unavailable

OVERLAP = timedelta(minutes=2)
"""How far back runs are looked at again: clocks differ, and what ended late may be written late."""
FIRST_LOOK = timedelta(days=1)
MOST_TRIES, MOST_WAITING = 2880, 200
"""A day of tries, and how many alerts may wait for hooks."""
_SHOWN = 8


@sensor(
    minimum_interval_seconds=30, default_status=DefaultSensorStatus.RUNNING,
    description="Tells people by log, webhook and e-mail what failed and what is late (docs/production.md).")
def alerts(context: SensorEvaluationContext) -> SensorResult:
    """Hands every new alert to every hook; keeps for the next look what could not be delivered."""
    hooks = configured()
    state: dict[str, Any] = json.loads(context.cursor) if context.cursor else {}
    graph = context.repository_def.asset_graph if context.repository_def else None
    found = [
        *failed_runs(context.instance, state),
        *broken_checks(context.instance, state, sorted(graph.asset_check_keys) if graph else ()),
        *late_tables(context.instance, state, sorted(graph.materializable_asset_keys) if graph else ())]
    sent = _delivered(hooks, state, found, context)
    waiting = len(state["waiting"])
    return SensorResult(
        skip_reason=f"{len(found)} new alerts; {sent} deliveries, {waiting} wait to be tried again",
        cursor=json.dumps(state, sort_keys=True))


def _delivered(hooks: list[Hook], state: dict[str, Any], found: list[Alert], context: SensorEvaluationContext) -> int:
    """How many deliveries came through. What did not, and may yet, is in `state["waiting"]`."""
    named = {hook.name: hook for hook in hooks}
    due = [(name, alert, 0) for alert in found for name in named]
    due = [(name, Alert(*_tuples(told)), tries) for name, told, tries in state.get("waiting", []) if name in named] + due
    waiting: list[tuple[str, Alert, int]] = []
    silent: set[str] = set()
    for name, alert, tries in due:
        if name in silent:
            waiting.append((name, alert, tries))
            continue
        if refusal := _refusal(named[name], alert):
            silent.add(name)   # the next look is soon, and each try may take twenty seconds
            context.log.error(f"the hook {name} did not take the alert {alert.alert_id}: {refusal}")
            if tries < MOST_TRIES:
                waiting.append((name, alert, tries + 1))
    for name, alert, _ in waiting[:-MOST_WAITING]:
        context.log.error(f"too many alerts wait for the hook {name}: {alert.alert_id} was let go")
    state["waiting"] = waiting[-MOST_WAITING:]
    return len(due) - len(waiting)


def _refusal(hook: Hook, alert: Alert) -> str:
    """Why it was not delivered, empty where it was."""
    try:
        hook.send(alert)
    except Unavailable as error:
        return str(error)
    return ""


def _tuples(told: list[Any]) -> list[Any]:
    return [tuple(each) if isinstance(each, list) else each for each in told]


def failed_runs(instance: DagsterInstance, state: dict[str, Any]) -> Iterator[Alert]:
    """One alert for each run that failed and is not started again by itself."""
    now = datetime.now(UTC)
    since = datetime.fromisoformat(state["runs_since"]) if "runs_since" in state else now - FIRST_LOOK
    told: dict[str, str] = state.get("runs_told", {})
    records = instance.get_run_records(RunsFilter(statuses=[DagsterRunStatus.FAILURE], updated_after=since - OVERLAP))
    for record in sorted(records, key=lambda record: (record.update_timestamp, record.storage_id)):
        run, ended = record.dagster_run, record.update_timestamp.replace(tzinfo=UTC)
        since = max(since, ended)
        if run.run_id in told or run.tags.get(WILL_RETRY_TAG) == "true":
            continue
        told[run.run_id] = ended.isoformat()
        steps = _failed_steps(instance, run.run_id)
        where = f"in {_listed(steps)}" if steps else "outside of its steps: its process ended or never began"
        yield Alert("run_failed", "error", f"The run {run.run_id[:8]} of {run.job_name} failed {where}.", tuple(steps),
                    run.run_id, ended.isoformat(timespec="seconds"))
    state["runs_since"] = since.isoformat()
    state["runs_told"] = {run_id: at for run_id, at in told.items() if datetime.fromisoformat(at) > since - 2 * OVERLAP}


def _failed_steps(instance: DagsterInstance, run_id: str) -> list[str]:
    """Steps that failed, each with the name of its error: never its text, which may hold what a log says."""
    found = set()
    for entry in instance.all_logs(run_id, of_type=DagsterEventType.STEP_FAILURE):
        if entry.dagster_event and (error := entry.dagster_event.step_failure_data.error):
            while error.cause and error.cls_name in ("Failure", "RetryRequested", "DagsterExecutionStepExecutionError"):
                error = error.cause
            found.add(f"{entry.step_key} ({error.cls_name})")
    return sorted(found)


def broken_checks(
    instance: DagsterInstance, state: dict[str, Any], keys: Iterable[AssetCheckKey]
) -> Iterator[Alert]:
    """One alert for each run in which checks did not hold, with how many rows break each; a check is told once a run."""
    told: dict[str, str] = state.get("checks_told", {})
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))
    broken = {key: record for key, record in latest.items() if record.status is AssetCheckExecutionRecordStatus.FAILED}
    by_run: dict[str, list[AssetCheckKey]] = {}
    for key, record in sorted(broken.items()):
        if told.get(key.to_user_string()) != record.run_id:
            by_run.setdefault(record.run_id, []).append(key)
    for run_id, names in by_run.items():
        errors = [key for key in names if _severity(broken[key]) is AssetCheckSeverity.ERROR]
        listed = [f"{key.name} on {key.asset_key.to_user_string()} ({_offenders(broken[key])} rows)" for key in names]
        at = datetime.fromtimestamp(max(broken[key].create_timestamp for key in names), UTC).isoformat(timespec="seconds")
        says = f"{_n(len(names), 'check')} of the run {run_id[:8]} did not hold: {_listed(listed)}."
        yield Alert("checks_failed", "error" if errors else "warning", says, tuple(listed), run_id, at)
    state["checks_told"] = {key.to_user_string(): record.run_id for key, record in broken.items()}


def _severity(record: AssetCheckExecutionRecord) -> AssetCheckSeverity | None:
    evaluation = record.evaluation
    return evaluation.severity if evaluation else None


def _offenders(record: AssetCheckExecutionRecord) -> str:
    evaluation = record.evaluation
    value = evaluation.metadata["offenders"].value if evaluation and "offenders" in evaluation.metadata else None
    return str(value) if isinstance(value, int) else "?"


def late_tables(instance: DagsterInstance, state: dict[str, Any], keys: Iterable[AssetKey]) -> Iterator[Alert]:
    """An alert when tables become older than their freshness policy lets them be, and one when all are fresh again."""
    records = instance.get_freshness_state_records(list(keys))
    late = {key.to_user_string(): record for key, record in records.items() if record.freshness_state is FreshnessState.FAIL}
    before = set(state.get("late", []))
    if new := sorted(late.keys() - before):
        at = max(late[key].updated_at for key in new).isoformat(timespec="seconds")
        stages = Counter(name.split("/")[0] for name in new)
        of = ", ".join(f"{n} of {schema}" for schema, n in sorted(stages.items()))
        says = f"{_n(len(new), 'table')} ({of}) missed the hour by which they are made."
        yield Alert("stale", "error", says, tuple(new), "", at)
    elif before and not late:
        at = max(record.updated_at for record in records.values()).isoformat(timespec="seconds")
        says = f"All tables are fresh again; {len(before)} were late."
        yield Alert("fresh_again", "info", says, tuple(sorted(before)), "", at)
    state["late"] = sorted(late)


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _n(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
