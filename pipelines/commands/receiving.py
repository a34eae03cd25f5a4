"""The command `receive`: a server that writes what exporters of OpenTelemetry send into the inbox."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.options import Json
from pipelines.screen import data, many, say
from warehouse.errors import InputError

TOKEN = "TRACEROOM_RECEIVE_TOKEN"
_MIB = 1 << 20


def receive(
    inbox: Annotated[Path, typer.Option("--inbox", help="Folder that logs arrive in; created if it does not exist.")],
    host: Annotated[str, typer.Option(
        help="Address to listen on; if it is not this machine's own, requests need the token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 4318,
    max_body: Annotated[int, typer.Option(min=1, help="MiB of a request at most, unpacked.")] = 20,
    file_size: Annotated[int, typer.Option(min=1, help="MiB after which a file is handed over before its time.")] = 64,
    file_seconds: Annotated[float, typer.Option(min=0, help="Seconds between files.")] = 60.0,
    quiet: Annotated[float, typer.Option(
        min=0, help="Seconds without a span of a trace after which it is complete and handed over.")] = 300.0,
    min_free: Annotated[int, typer.Option(min=0, help="MiB of the disk that stay free; below, requests get HTTP 503.")] = 256,
    json: Json = False,
) -> None:
    """Receive OpenTelemetry traces and logs over OTLP/HTTP, and write them into an inbox that `run` reads.

    The token is TRACEROOM_RECEIVE_TOKEN. Without it, requests from this machine need none, and for another address a new one is
    printed at each start.
    """
    from pipelines.browser.guard import LEAST_TOKEN
    from pipelines.receiving import receiver
    from pipelines.receiving.inbox_spool import DeliveryRule
    from pipelines.receiving.otlp_request import reads_protobuf
    from pipelines.serving.access import is_of_this_machine

    exposed, own_token = not is_of_this_machine(host), os.environ.get(TOKEN) or None
    if own_token is not None and len(own_token) < LEAST_TOKEN:
        raise InputError(f"the token has {len(own_token)} characters", TOKEN, f"choose one of {LEAST_TOKEN} or more, or none")
    token = own_token or (secrets.token_urlsafe(24) if exposed else None)
    has_protobuf = reads_protobuf()

    def ready(url: str, n_recovered: int) -> None:
        say(f"[bold]{escape(url)}[/] receives OTLP/HTTP into {escape(str(inbox))}; stop it with Ctrl-C")
        say(f"exporters: OTEL_EXPORTER_OTLP_ENDPOINT={escape(url)}")
        if token is not None:
            shown = f"${TOKEN}" if own_token else token
            say(f"           OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20{escape(shown)}'")
        if exposed:
            say("Anyone with the token can send; put TLS before it.")
        if n_recovered:
            say(f"{many(n_recovered, 'line')} of a receiver that was killed will be handed over.")
        if not has_protobuf:
            say("[yellow]![/] Protobuf is not read: pip install 'traceroom\\[otlp]', or send OTLP/JSON "
                "(OTEL_EXPORTER_OTLP_PROTOCOL=http/json).")
        if json:
            data({"url": url, "token": None if own_token else token, "protobuf": has_protobuf, "recovered": n_recovered})

    receiver.receive(
        inbox, receiver.ReceiverRules(token, exposed, max_body * _MIB),
        DeliveryRule(file_size * _MIB, file_seconds, quiet, min_free * _MIB), (host, port), ready=ready,
        warn=lambda text: say(f"[yellow]![/] {escape(text)}"))
