"""The command that serves pages to look at: `ui`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.building import Json, Out
from pipelines.screen import data, say
from warehouse.errors import InputError

TOKEN = "TRACEROOM_UI_TOKEN"


def ui(
    out: Out = "out",
    host: Annotated[str, typer.Option(help="Where to listen; elsewhere than on this machine, everything needs the token.")]
    = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 7410,
    json: Json = False,
) -> None:
    """Look into what a run published: families, sessions, tasks, rubrics, replays; and correct what is wrong.

    The token that writing needs is made anew each time and printed, or is that of TRACEROOM_UI_TOKEN.
    """
    import uvicorn

    from pipelines.browser.app import application
    from pipelines.browser.guard import LEAST_TOKEN, Guard, is_of_this_machine
    from pipelines.serving.listening import listen
    from warehouse.store import Store

    with Store.published(Path(out) / "warehouse.duckdb"):
        pass   # a folder without one is told at once
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    if len(token) < LEAST_TOKEN:
        raise InputError(f"the token has {len(token)} characters", TOKEN, f"choose one of {LEAST_TOKEN} or more, or none")
    exposed = not is_of_this_machine(host)
    listening = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listening.getsockname()[1]}"
    opens = url if os.environ.get(TOKEN) else f"{url}/enter?token={token}"
    say(f"[bold]{escape(opens)}[/]\n" + (
        "Whoever has the token reads and corrects; put TLS before it." if exposed else
        "Reading needs nothing from this machine; correcting needs the token" + (
            f" of {TOKEN}" if os.environ.get(TOKEN) else ", which this address gives") + ". Ctrl-C ends."))
    if json:
        data({"url": url, "token": None if os.environ.get(TOKEN) else token, "exposed": exposed})
    config = uvicorn.Config(
        application(Path(out), Guard(token, exposed)), log_level="warning", access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listening])
