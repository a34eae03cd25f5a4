"""A server that others can reach: it demands names and a token, and refuses other hosts, pages of other sites, and guesses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.serving.access import ServerAccess
from pipelines.serving.tokens import ClientTokens
from tests.attacks.report import Report
from tests.attacks.servers import HELLO, HttpClient, command
from tests.command_line import environ
from tests.rooms import TASK, write_room
from warehouse.errors import InputError

TOKEN = "a-token-of-sixteen-or-more"
NAMES = ("elsewhere.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "[::1", "rooms.example@evil.example", "0.0.0.0",
         "room.example", "rooms.example.evil.example")

WRONG = ("", "Bearer", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xff")


def attack(folder: Path, share: float) -> Report:
    """Ask an exposed server and one of this machine by other names, from other pages, and with other tokens."""
    room, problems, n_tried, hello = write_room(folder / "hall"), [], 0, json.dumps(HELLO)
    refused = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "serve", str(room), "--host", "0.0.0.0", "--port", "0"], cwd="/",
        env=environ(), capture_output=True, text=True, check=False, timeout=120)
    if refused.returncode != 2 or "--allow-host" not in refused.stderr:
        problems.append(f"it serves without names: {refused.returncode}, {refused.stderr}")
    exposed = ("serve", room, "--task", TASK, "--host", "127.0.0.1", "--allow-host", "rooms.example")
    for options, token in ((exposed, ""), ((*exposed[:4], "--host", "0.0.0.0", *exposed[6:]), TOKEN)):
        variables = {"TRACEROOM_SERVE_TOKENS": token} if token else {}
        with command(*options, **variables) as server, HttpClient(server._replace(host="127.0.0.1")) as client:
            authorized = {"Authorization": f"Bearer {token}"} if token else {}
            for name in NAMES:
                n_tried += 2
                by_name = client.send("POST", "/mcp", hello, Host=name, **authorized).status
                by_page = client.send(
                    "POST", "/mcp", hello, Host="rooms.example", Origin=f"https://{name}", **authorized).status
                problems += [f"Host {name!r} gives {by_name}"] if by_name == 200 else []
                problems += [f"Origin {name!r} gives {by_page}"] if by_page == 200 else []
            for wrong in WRONG if token else ():
                n_tried += 1
                status = client.send("POST", "/mcp", hello, Host="rooms.example", Authorization=wrong).status
                problems += [f"Authorization {wrong!r} gives {status}"] if status != 401 else []
            right = client.send("POST", "/mcp", hello, Host="rooms.example:443", Origin="https://rooms.example", **authorized)
            problems += [f"an honest client gets {right.status}"] if right.status != 200 else []
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_other_hosts_pages_and_tokens_are_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


def test_an_exposed_server_needs_names_and_has_a_token() -> None:
    with pytest.raises(InputError, match="--allow-host"):
        ServerAccess.of("0.0.0.0", (), ClientTokens())
    access = ServerAccess.of("192.0.2.1", ["Rooms.Example."], ClientTokens())
    assert access.exposed and access.hosts == ("rooms.example",) and len(access.tokens.values[0]) > 30
    with pytest.raises(InputError, match="16 ASCII characters"):
        ServerAccess.of("127.0.0.1", (), ClientTokens(["short"]))
    assert len(ServerAccess.of("::1", (), ClientTokens()).tokens) == 0
