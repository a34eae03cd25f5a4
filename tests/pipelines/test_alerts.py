"""Alerts: real servers on loopback take them, from a real instance on which runs failed, and no log content goes out."""

from __future__ import annotations

import asyncio
import json
import smtplib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetKey,
    AssetSpec,
    DagsterInstance,
    Definitions,
    SensorResult,
    asset,
    asset_check,
    build_sensor_context,
    materialize,
    multi_asset,
)
from dagster._core.definitions.freshness import FreshnessState, FreshnessStateChange
from dagster._core.storage.tags import WILL_RETRY_TAG

from pipelines.dagster_assets import alerts
from pipelines.dagster_assets.alerts import Alert
from tests.pipelines.conftest import quiet
from warehouse.errors import InputError, Unavailable

SECRET, CONTENT = "t0ken-of-the-webhook", "4111 1111 1111 1111 is Ada's card"
ALERT = Alert("run_failed", "error", "The run 1234 of everything failed in extract (Busy).", ("extract (Busy)",), "1234")


class Webhook(ThreadingHTTPServer):
    """Keeps what it is sent, after failing as often as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taker)
        self.failures: list[int] = []
        self.taken: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/{SECRET}"


class Taker(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.failures.pop(0) if self.server.failures else 204
        if status < 300:
            assert self.path == f"/{SECRET}" and self.headers["Content-Type"].startswith("application/json")
            self.server.taken.append(json.loads(asked))
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        raise AssertionError("a redirect was followed")

    def log_message(self, *told: Any) -> None:
        pass


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    with Webhook() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("TRACEROOM_ALERT_WEBHOOK", server.url)
        yield server
        server.shutdown()


class Postbox:
    """Keeps the mails that it is handed."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.logins: list[bytes] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append((envelope.rcpt_tos, message_from_bytes(envelope.content)))
        return "250 taken"

    def authenticator(self, server: Any, session: Any, envelope: Any, mechanism: str, told: Any) -> AuthResult:
        self.logins.append(told.login + b":" + told.password)
        return AuthResult(success=told.password == b"p@ss")


@contextmanager
def posting(box: Postbox, **options: Any) -> Iterator[int]:
    """Yield a mail server on a port of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        async def begun() -> asyncio.Server:
            return await loop.create_server(lambda: SMTP(box, loop=loop, **options), "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(begun(), loop).result(60)
        yield server.sockets[0].getsockname()[1]
        loop.call_soon_threadsafe(server.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postbox]:
    box = Postbox()
    with posting(box) as port:
        monkeypatch.setenv("TRACEROOM_ALERT_SMTP", f"smtp://127.0.0.1:{port}")
        monkeypatch.setenv("TRACEROOM_ALERT_EMAIL", "ada@example.org, ben@example.org")
        yield box


@asset
def cargo() -> None:
    raise ValueError(CONTENT)


@multi_asset(specs=[AssetSpec("lamps")])
def lamps() -> None:
    pass


@asset_check(asset="lamps")
def all_are_lit() -> AssetCheckResult:
    return AssetCheckResult(passed=False, severity=AssetCheckSeverity.ERROR, metadata={"offenders": 3, "rows": CONTENT})


THINGS = Definitions(assets=[cargo, lamps], asset_checks=[all_are_lit], sensors=[alerts.alerts])


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    with DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as found:
        yield found


def looked(instance: DagsterInstance, cursor: str | None) -> tuple[str, str]:
    """Cursor after a look, and what was said of it."""
    context = build_sensor_context(instance=instance, cursor=cursor, repository_def=THINGS.get_repository_def())
    found = alerts.alerts(context)
    assert isinstance(found, SensorResult) and found.cursor
    return found.cursor, str(getattr(found.skip_reason, "skip_message", found.skip_reason))


def test_a_failed_run_is_sent_to_every_hook_without_what_the_log_said(
    instance: DagsterInstance, webhook: Webhook, postbox: Postbox, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACEROOM_PAGES", "https://pages.example.org/")
    materialize([cargo], instance=instance, raise_on_error=False, run_config=quiet(), tags={WILL_RETRY_TAG: "true"})
    failed = materialize([cargo], instance=instance, raise_on_error=False, run_config=quiet())
    cursor, said = looked(instance, None)
    assert said == "1 new alerts; 3 deliveries, 0 wait to be tried again"
    (taken,) = webhook.taken
    assert taken["names"] == ["cargo (ValueError)"] and taken["run_id"] == failed.run_id and taken["level"] == "error"
    assert taken["url"] == f"https://pages.example.org/runs/{failed.run_id}" and "failed in cargo (ValueError)" in taken["text"]
    ((to, mail),) = postbox.mails
    assert to == ["ada@example.org", "ben@example.org"] and taken["text"] in " ".join(mail["Subject"].split())
    (logged,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ALERT ")]
    assert json.loads(logged.removeprefix("ALERT ")) == taken
    everything = f"{webhook.taken} {mail} {logged} {cursor}"
    assert "4111 1111" not in everything and "Ada's" not in everything and SECRET not in logged + cursor
    _, said = looked(instance, cursor)
    assert said.startswith("0 new alerts") and len(webhook.taken) == len(postbox.mails) == 1


def test_what_a_hook_could_not_take_waits_and_the_others_are_not_sent_it_twice(
    instance: DagsterInstance, webhook: Webhook, postbox: Postbox
) -> None:
    materialize([cargo], instance=instance, raise_on_error=False, run_config=quiet())
    webhook.failures = [503, 301]
    cursor, said = looked(instance, None)
    assert said.endswith("1 wait to be tried again") and len(postbox.mails) == 1 and not webhook.taken
    cursor, said = looked(instance, cursor)
    assert said.endswith("1 wait to be tried again"), "a redirect is not followed: it would lose what is sent"
    cursor, said = looked(instance, cursor)
    assert said.endswith("0 wait to be tried again") and len(postbox.mails) == 1 and len(webhook.taken) == 1
    assert SECRET not in cursor


def test_a_check_that_does_not_hold_is_told_by_name_and_count(instance: DagsterInstance, webhook: Webhook) -> None:
    materialize([lamps, all_are_lit], instance=instance, run_config=quiet())
    cursor, _ = looked(instance, None)
    (taken,) = webhook.taken
    assert taken["kind"] == "checks_failed" and taken["names"] == ["all_are_lit on lamps (3 rows)"]
    assert "4111 1111" not in str(taken)
    cursor, said = looked(instance, cursor)
    assert said.startswith("0 new")
    materialize([lamps, all_are_lit], instance=instance, run_config=quiet())
    looked(instance, cursor)
    assert len(webhook.taken) == 2, "it is told again of the next night"


def test_tables_that_are_late_are_told_and_that_they_are_fresh_again(instance: DagsterInstance, webhook: Webhook) -> None:
    def became(state: FreshnessState, before: FreshnessState) -> None:
        now = datetime.now(UTC).timestamp()
        instance.report_runless_asset_event(FreshnessStateChange(
            key=AssetKey("lamps"), new_state=state, previous_state=before, state_change_timestamp=now))

    became(FreshnessState.PASS, FreshnessState.UNKNOWN)
    cursor, said = looked(instance, None)
    assert said.startswith("0 new")
    became(FreshnessState.FAIL, FreshnessState.PASS)
    cursor, _ = looked(instance, cursor)
    cursor, said = looked(instance, cursor)
    assert said.startswith("0 new")
    became(FreshnessState.PASS, FreshnessState.FAIL)
    looked(instance, cursor)
    assert [(taken["kind"], taken["level"], taken["names"]) for taken in webhook.taken] == [
        ("stale", "error", ["lamps"]), ("fresh_again", "info", ["lamps"])]


@pytest.mark.parametrize(("settings", "says"), [
    ({"TRACEROOM_ALERT_EMAIL": "a@example.org"}, "TRACEROOM_ALERT_SMTP: alerts by e-mail are configured by half"),
    ({"TRACEROOM_ALERT_WEBHOOK": f"ftp://host/{SECRET}"}, "TRACEROOM_ALERT_WEBHOOK: this is no address"),
    ({"TRACEROOM_ALERT_WEBHOOK": f"https://host:{SECRET}/"}, "TRACEROOM_ALERT_WEBHOOK: this is no address"),
])
def test_a_hook_that_is_configured_wrongly_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], says: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        alerts.configured_hooks()
    assert str(caught.value).startswith(says) and SECRET not in str(caught.value)


def test_a_password_goes_through_no_open_line(postbox: Postbox, monkeypatch: pytest.MonkeyPatch) -> None:
    port = alerts.urlsplit(alerts.os.environ["TRACEROOM_ALERT_SMTP"]).port
    monkeypatch.setenv("TRACEROOM_ALERT_SMTP", f"smtp://keeper:p%40ss@127.0.0.1:{port}")
    with pytest.raises(Unavailable, match="no password goes without") as caught:
        alerts.configured_hooks()["email"](ALERT)
    assert "p@ss" not in str(caught.value) and "p%40ss" not in str(caught.value) and not postbox.mails


def test_a_mail_server_with_tls_is_given_user_and_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box, certificate = Postbox(), a_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with posting(box, tls_context=context, require_starttls=True, auth_required=True, authenticator=box.authenticator) as port:
        monkeypatch.setenv("TRACEROOM_ALERT_EMAIL", "ada@example.org")
        monkeypatch.setenv("TRACEROOM_ALERT_SMTP", f"smtp://keeper:p%40ss@127.0.0.1:{port}")
        mail = alerts.configured_hooks()["email"]
        with pytest.raises(Unavailable, match="SSLCertVerificationError"):
            mail(ALERT)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        mail(ALERT)
    assert box.logins == [b"keeper:p@ss"] and len(box.mails) == 1


def a_certificate(folder: Path) -> Path:
    """Return a key and the certificate of 127.0.0.1 that it signed itself, in one file."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(key, hashes.SHA256()))
    file = folder / "certificate.pem"
    file.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM))
    return file


def test_a_mail_server_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_ALERT_EMAIL", "ada@example.org")
    monkeypatch.setenv("TRACEROOM_ALERT_SMTP", "smtp://127.0.0.1:9")
    mail = alerts.configured_hooks()["email"]
    with pytest.raises(Unavailable, match="the mail server does not take it"):
        mail(ALERT)
    assert issubclass(smtplib.SMTPException, OSError)
