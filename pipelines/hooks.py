"""Where alerts go: a log always, a webhook and e-mail where they are configured.

    TRACEROOM_ALERT_WEBHOOK   address that takes a JSON document by POST (its `text` is what chat services show)
    TRACEROOM_ALERT_EMAIL     addresses, with commas between
    TRACEROOM_ALERT_SMTP      smtp://[user:password@]host[:port], or smtps://
    TRACEROOM_ALERT_FROM      who the mail is from (default traceroom@ this machine)
    TRACEROOM_PAGES           address of Dagster's pages, for the link in an alert

An alert holds names of ours (runs, steps, checks, tables) and counts. No error's text, no row and no path goes out: they may
hold what a log says. Addresses with tokens or passwords are in no sentence that this module says.
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
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from warehouse.errors import InputError, Unavailable

FORMAT = "traceroom-alert/1"
_TIMEOUT_S = 20.0


class Alert(NamedTuple):
    """Something that a person should know."""

    kind: str
    """run_failed, checks_failed, stale or fresh_again."""
    level: str
    """error, warning or info."""
    says: str
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
        """What a webhook is sent."""
        pages = os.environ.get("TRACEROOM_PAGES", "").rstrip("/")
        link = f"{pages}/runs/{self.run_id}" if pages and self.run_id else pages
        return {"format": FORMAT, "alert_id": self.alert_id, "kind": self.kind, "level": self.level, "text": self.says,
                "names": list(self.names), "at": self.at or None, "run_id": self.run_id or None, "url": link or None}


class Hook(NamedTuple):
    """A way that alerts go."""

    name: str
    send: Callable[[Alert], None]
    """Raises Unavailable where it could not be delivered."""


def configured() -> list[Hook]:
    """The hooks of this process. Raises InputError where one is configured by half, or its address is none."""
    hooks = [Hook("log", _to_log)]
    if webhook := os.environ.get("TRACEROOM_ALERT_WEBHOOK"):
        _address("TRACEROOM_ALERT_WEBHOOK", webhook, ("http", "https"))
        hooks.append(Hook("webhook", lambda alert: _to_webhook(webhook, alert)))
    to, server = os.environ.get("TRACEROOM_ALERT_EMAIL"), os.environ.get("TRACEROOM_ALERT_SMTP")
    if bool(to) != bool(server):
        absent = "TRACEROOM_ALERT_SMTP" if to else "TRACEROOM_ALERT_EMAIL"
        raise InputError("alerts by e-mail are configured by half", absent, f"set {absent} too, or neither")
    if to and server:
        address = _address("TRACEROOM_ALERT_SMTP", server, ("smtp", "smtps"))
        hooks.append(Hook("email", lambda alert: _to_mail(address, to, alert)))
    return hooks


def _address(variable: str, told: str, schemes: tuple[str, ...]) -> SplitResult:
    """The address, looked at; an error names the variable and never what is in it."""
    try:
        address = urlsplit(told)
        right = address.scheme in schemes and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        right = False
    if not right:
        raise InputError("this is no address", variable, f"begin with {schemes[0]}:// and name a host")
    return address


def _to_log(alert: Alert) -> None:
    """A line on stderr, which is a container's log: Python's logging is Dagster's here, and lets lines of others go."""
    print(f"ALERT {json.dumps(alert.document(), ensure_ascii=False)}", file=sys.stderr, flush=True)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the POST into a GET, and say the token to another host."""

    def redirect_request(self, *told: Any, **more: Any) -> None:
        return None


def _to_webhook(url: str, alert: Alert) -> None:
    request = urllib.request.Request(url, json.dumps(alert.document(), ensure_ascii=False).encode(), method="POST", headers={
        "Content-Type": "application/json; charset=utf-8", "User-Agent": "traceroom", "Idempotency-Key": alert.alert_id})
    host = urlsplit(url).hostname or ""
    try:
        urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise Unavailable(f"the webhook answers {error.code}", host, "see TRACEROOM_ALERT_WEBHOOK") from None
    except (OSError, ValueError) as error:
        what = f"the webhook does not answer ({type(error).__name__})"
        raise Unavailable(what, host, "see TRACEROOM_ALERT_WEBHOOK") from None


def _to_mail(server: SplitResult, to: str, alert: Alert) -> None:
    message = EmailMessage()
    message["Subject"] = f"Traceroom: {alert.says}"[:200]
    message["From"] = os.environ.get("TRACEROOM_ALERT_FROM") or f"traceroom@{socket.gethostname()}"
    message["To"] = to
    message["Message-ID"] = f"<{alert.alert_id}@traceroom>"
    document = alert.document()
    facts = [str(document[name]) for name in ("at", "run_id", "url") if document[name]]
    message.set_content("\n".join([alert.says, "", *(f"- {name}" for name in alert.names), "", *facts]))
    try:
        with _connection(server) as connection:
            if server.username:
                connection.login(unquote(server.username), unquote(server.password or ""))
            connection.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        what = f"the mail server does not take it ({type(error).__name__})"
        raise Unavailable(what, server.hostname or "", "see TRACEROOM_ALERT_SMTP") from None


def _connection(server: SplitResult) -> smtplib.SMTP:
    """A connection that is private where the server can do it, and where a password goes through it."""
    host, context = server.hostname or "", ssl.create_default_context()
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(host, server.port or 465, timeout=_TIMEOUT_S, context=context)
    connection = smtplib.SMTP(host, server.port or 25, timeout=_TIMEOUT_S)
    connection.ehlo()
    if connection.has_extn("starttls"):
        connection.starttls(context=context)
    elif server.username:
        connection.close()
        what = "the mail server offers no TLS, and no password goes without"
        raise Unavailable(what, host, "use smtps://, or another server")
    return connection
