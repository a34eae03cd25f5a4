"""Alerts to people: always in the log, by webhook and e-mail where they are configured.

    TRACEROOM_ALERT_WEBHOOK   address that takes a JSON document by POST (its `text` is what chat services show)
    TRACEROOM_ALERT_EMAIL     addresses, with commas between
    TRACEROOM_ALERT_SMTP      smtp://[user:password@]host[:port], or smtps://
    TRACEROOM_ALERT_FROM      who the mail is from (default traceroom@ this machine)
    TRACEROOM_PAGES           address of Dagster's pages, for the link in an alert

An alert holds names of ours (runs, steps, checks, tables) and counts. No error's text, no row and no path goes out: they may
hold what a log says. Addresses with tokens or passwords are in no message of this module.

The sensor reads Dagster's instance twice a minute: failed runs, checks with offending rows, and tables past their freshness
policy. A delivery that fails waits in the sensor's cursor and is retried at the next tick; the other hooks are not sent it
twice. A dead daemon sends nothing (docs/production.md, *Is it alive?*).
"""

from __future__ import annotations

import hashlib
import json
import os
import smtplib
import socket
import ssl
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

import dagster as dg

from extractors.sources.http_api import NoRedirect
from pipelines.screen import many
from warehouse.errors import InputError, Unavailable

FORMAT = "traceroom-alert/1"
_TIMEOUT_S = 20.0


class Alert(NamedTuple):
    """Something that a person should know."""

    kind: str
    """run_failed, checks_failed, stale or fresh_again."""
    level: str
    """error, warning or info."""
    sentence: str
    """One sentence of names and counts."""
    names: tuple[str, ...]
    """Steps, checks or tables that it is about, sorted."""
    run_id: str = ""
    at: str = ""
    """When it came about, in UTC."""

    @property
    def alert_id(self) -> str:
        """The same for the same alert sent twice."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]

    def document(self) -> dict[str, Any]:
        """Give what a webhook is sent."""
        pages = os.environ.get("TRACEROOM_PAGES", "").rstrip("/")
        link = f"{pages}/runs/{self.run_id}" if pages and self.run_id else pages
        return {"format": FORMAT, "alert_id": self.alert_id, "kind": self.kind, "level": self.level, "text": self.sentence,
                "names": list(self.names), "at": self.at or None, "run_id": self.run_id or None, "url": link or None}


Hook = Callable[[Alert], None]
"""Sends an alert. Raises Unavailable where it could not be delivered."""


def configured_hooks() -> dict[str, Hook]:
    """Hooks of this process by name. Raises InputError where one is configured by half, or its address is invalid."""
    hooks: dict[str, Hook] = {"log": _to_log}
    if webhook := os.environ.get("TRACEROOM_ALERT_WEBHOOK"):
        _address("TRACEROOM_ALERT_WEBHOOK", webhook, ("http", "https"))
        hooks["webhook"] = partial(_to_webhook, webhook)
    to, server = os.environ.get("TRACEROOM_ALERT_EMAIL"), os.environ.get("TRACEROOM_ALERT_SMTP")
    if bool(to) != bool(server):
        absent = "TRACEROOM_ALERT_SMTP" if to else "TRACEROOM_ALERT_EMAIL"
        raise InputError("alerts by e-mail are configured by half", absent, f"set {absent} too, or neither")
    if to and server:
        address = _address("TRACEROOM_ALERT_SMTP", server, ("smtp", "smtps"))
        hooks["email"] = partial(_to_mail, address, to)
    return hooks


def _address(variable: str, value: str, schemes: tuple[str, ...]) -> SplitResult:
    """Parse an address; an error names the variable and never what is in it."""
    try:
        address = urlsplit(value)
        is_valid = address.scheme in schemes and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InputError("this is no address", variable, f"begin with {schemes[0]}:// and name a host")
    return address


def _to_log(alert: Alert) -> None:
    """Print a line on stderr, which is a container's log: Dagster's logging drops lines of other loggers."""
    print(f"ALERT {json.dumps(alert.document(), ensure_ascii=False)}", file=sys.stderr, flush=True)


def _to_webhook(url: str, alert: Alert) -> None:
    request = urllib.request.Request(url, json.dumps(alert.document(), ensure_ascii=False).encode(), method="POST", headers={
        "Content-Type": "application/json; charset=utf-8", "User-Agent": "traceroom", "Idempotency-Key": alert.alert_id})
    host = urlsplit(url).hostname or ""
    try:
        urllib.request.build_opener(NoRedirect).open(request, timeout=_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"the webhook answers {error.code}", host, "see TRACEROOM_ALERT_WEBHOOK") from None
    except (OSError, ValueError) as error:
        what = f"the webhook does not answer ({type(error).__name__})"
        raise Unavailable(what, host, "see TRACEROOM_ALERT_WEBHOOK") from None


def _to_mail(server: SplitResult, to: str, alert: Alert) -> None:
    message = EmailMessage()
    message["Subject"] = f"Traceroom: {alert.sentence}"[:200]
    message["From"] = os.environ.get("TRACEROOM_ALERT_FROM") or f"traceroom@{socket.gethostname()}"
    message["To"] = to
    message["Message-ID"] = f"<{alert.alert_id}@traceroom>"
    document = alert.document()
    facts = [str(document[name]) for name in ("at", "run_id", "url") if document[name]]
    message.set_content("\n".join([alert.sentence, "", *(f"- {name}" for name in alert.names), "", *facts]))
    try:
        with _connection(server) as connection:
            if server.username:
                connection.login(unquote(server.username), unquote(server.password or ""))
            connection.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        what = f"the mail server does not take it ({type(error).__name__})"
        raise Unavailable(what, server.hostname or "", "see TRACEROOM_ALERT_SMTP") from None


def _connection(server: SplitResult) -> smtplib.SMTP:
    """Connect with TLS where the server has it; a password is sent with TLS only."""
    host, context = server.hostname or "", ssl.create_default_context()
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(host, server.port or 465, timeout=_TIMEOUT_S, context=context)
    connection = smtplib.SMTP(host, server.port or 25, timeout=_TIMEOUT_S)
    connection.ehlo()
    if connection.has_extn("starttls"):
        connection.starttls(context=context)
    elif server.username:
        connection.close()
        raise Unavailable(
            "the mail server offers no TLS, and no password goes without", host, "use smtps://, or another server")
    return connection


OVERLAP = timedelta(minutes=2)
"""How far back runs are read again: clocks differ, and what ended late may be written late."""
FIRST_LOOK = timedelta(days=1)
MOST_TRIES, MOST_WAITING = 2880, 200
"""A day of tries, and how many alerts may wait for hooks."""
_SHOWN = 8


@dg.sensor(
    minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells people by log, webhook and e-mail what failed and what is late (docs/production.md).")
def alerts(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Hands every new alert to every hook; keeps for the next tick what could not be delivered."""
    hooks = configured_hooks()
    state: dict[str, Any] = json.loads(context.cursor) if context.cursor else {}
    graph = context.repository_def.asset_graph if context.repository_def else None
    new_alerts = [
        *failed_runs(context.instance, state),
        *broken_checks(context.instance, state, sorted(graph.asset_check_keys) if graph else ()),
        *late_tables(context.instance, state, sorted(graph.materializable_asset_keys) if graph else ())]
    sent = _deliver(hooks, state, new_alerts, context)
    return dg.SensorResult(
        skip_reason=f"{len(new_alerts)} new alerts; {sent} deliveries, {len(state['waiting'])} wait to be tried again",
        cursor=json.dumps(state, sort_keys=True))


def _deliver(
    hooks: dict[str, Hook], state: dict[str, Any], new_alerts: list[Alert], context: dg.SensorEvaluationContext
) -> int:
    """Send alerts; gives how many deliveries succeeded. Those to be retried are in `state["waiting"]`."""
    due = [(name, Alert(kind, level, sentence, tuple(names), *rest), tries)
           for name, (kind, level, sentence, names, *rest), tries in state.get("waiting", []) if name in hooks]
    due += [(name, alert, 0) for alert in new_alerts for name in hooks]
    waiting: list[tuple[str, Alert, int]] = []
    silent: set[str] = set()
    for name, alert, tries in due:
        if name in silent:
            waiting.append((name, alert, tries))
            continue
        try:
            hooks[name](alert)
        except Unavailable as error:
            silent.add(name)   # the next tick is soon, and each try may take twenty seconds
            context.log.error(f"the hook {name} did not take the alert {alert.alert_id}: {error}")
            if tries < MOST_TRIES:
                waiting.append((name, alert, tries + 1))
    for name, alert, _ in waiting[:-MOST_WAITING]:
        context.log.error(f"too many alerts wait for the hook {name}: {alert.alert_id} was let go")
    state["waiting"] = waiting[-MOST_WAITING:]
    return len(due) - len(waiting)


def failed_runs(instance: dg.DagsterInstance, state: dict[str, Any]) -> Iterator[Alert]:
    """One alert for each run that failed and is not started again by itself."""
    now = datetime.now(UTC)
    since = datetime.fromisoformat(state["runs_since"]) if "runs_since" in state else now - FIRST_LOOK
    reported: dict[str, str] = state.get("reported_runs", {})
    records = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since - OVERLAP))
    for record in sorted(records, key=lambda record: (record.update_timestamp, record.storage_id)):
        run, ended = record.dagster_run, record.update_timestamp.replace(tzinfo=UTC)
        since = max(since, ended)
        if run.run_id in reported or run.tags.get("dagster/will_retry") == "true":
            continue
        reported[run.run_id] = ended.isoformat()
        failed = set()   # each with the name of its error: never its text, which may hold what a log says
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
            if entry.dagster_event and (error := entry.dagster_event.step_failure_data.error):
                while error.cause and error.cls_name in ("Failure", "RetryRequested", "DagsterExecutionStepExecutionError"):
                    error = error.cause
                failed.add(f"{entry.step_key} ({error.cls_name})")
        steps = sorted(failed)
        where = f"in {_listed(steps)}" if steps else "outside of its steps: its process ended or never began"
        yield Alert("run_failed", "error", f"The run {run.run_id[:8]} of {run.job_name} failed {where}.", tuple(steps),
                    run.run_id, ended.isoformat(timespec="seconds"))
    state["runs_since"] = since.isoformat()
    state["reported_runs"] = {run_id: at for run_id, at in reported.items() if datetime.fromisoformat(at) > since - 2 * OVERLAP}


def broken_checks(instance: dg.DagsterInstance, state: dict[str, Any], keys: Iterable[dg.AssetCheckKey]) -> Iterator[Alert]:
    """One alert for each run in which checks did not hold, with how many rows break each; a check is reported once a run."""
    reported: dict[str, str] = state.get("reported_checks", {})
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))
    broken = {key: record for key, record in latest.items() if record.status.value == "FAILED"}
    by_run: dict[str, list[dg.AssetCheckKey]] = {}
    for key, record in sorted(broken.items()):
        if reported.get(key.to_user_string()) != record.run_id:
            by_run.setdefault(record.run_id, []).append(key)
    for run_id, names in by_run.items():
        evaluations = [broken[key].evaluation for key in names]
        is_error = any(each and each.severity is dg.AssetCheckSeverity.ERROR for each in evaluations)
        listed = [f"{key.name} on {key.asset_key.to_user_string()} ({_offenders(each)} rows)"
                  for key, each in zip(names, evaluations, strict=True)]
        at = datetime.fromtimestamp(max(broken[key].create_timestamp for key in names), UTC).isoformat(timespec="seconds")
        sentence = f"{many(len(names), 'check')} of the run {run_id[:8]} did not hold: {_listed(listed)}."
        yield Alert("checks_failed", "error" if is_error else "warning", sentence, tuple(listed), run_id, at)
    state["reported_checks"] = {key.to_user_string(): record.run_id for key, record in broken.items()}


def _offenders(evaluation: Any) -> str:
    value = evaluation.metadata["offenders"].value if evaluation and "offenders" in evaluation.metadata else None
    return str(value) if isinstance(value, int) else "?"


def late_tables(instance: dg.DagsterInstance, state: dict[str, Any], keys: Iterable[dg.AssetKey]) -> Iterator[Alert]:
    """Yield an alert when tables become older than their freshness policy lets them be, and one when all are fresh again."""
    records = instance.get_freshness_state_records(list(keys))
    late = {key.to_user_string(): record for key, record in records.items() if record.freshness_state.value == "FAIL"}
    before = set(state.get("late", []))
    if new := sorted(late.keys() - before):
        at = max(late[key].updated_at for key in new).isoformat(timespec="seconds")
        of = ", ".join(f"{n} of {schema}" for schema, n in sorted(Counter(name.split("/")[0] for name in new).items()))
        sentence = f"{many(len(new), 'table')} ({of}) missed the hour by which they are made."
        yield Alert("stale", "error", sentence, tuple(new), "", at)
    elif before and not late:
        at = max(record.updated_at for record in records.values()).isoformat(timespec="seconds")
        sentence = f"All tables are fresh again; {len(before)} were late."
        yield Alert("fresh_again", "info", sentence, tuple(sorted(before)), "", at)
    state["late"] = sorted(late)


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
