"""Sessions whose ids a client chose before they began, to enter them later: the server makes its own, each time another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall
from tests.attacks.report import Report
from tests.attacks.servers import HELLO

CHOSEN = ("a" * 32, "0" * 32, "", "../x", "known", "\x7f", "00000000-0000-0000-0000-000000000000")


def attack(folder: Path, share: float) -> Report:
    """Begin sessions under chosen ids, in every place an id may stand, and twice at once."""
    problems, ids = [], set()
    with hall().client() as client:
        for name in filter(str.isprintable, CHOSEN):
            for path, headers in (("/mcp", {"Mcp-Session-Id": name}), (f"/mcp?session={name}", {}), ("/mcp",
                {"Cookie": f"mcp-session-id={name}"}), ("/mcp", {"X-Session-Id": name})):
                answer = client.send("POST", path, json.dumps(HELLO) if name.isprintable()
                    else json.dumps({**HELLO, "id": name}), **{
                    header: value for header, value in headers.items() if value.isprintable()})
                given = answer.headers.get("mcp-session-id")
                problems += [f"{headers}: {answer.status}"] if answer.status not in (200, 400, 404) else []
                problems += [f"{name!r} becomes a session"] if given is not None and given == name else []
                problems += [f"{given} is given twice"] if given in ids else []
                ids |= {given} if given else set()
                if given:
                    client.send("DELETE", "/mcp", **{"Mcp-Session-Id": given})
        for name in ids - {None}:
            answer = client.send("POST", "/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}',
                **{"Mcp-Session-Id": str(name)})
            problems += [f"the ended session {name} answers"] if answer.status == 200 else []
    weak = [name for name in ids if name is not None and (len(name) < 32 or len(set(name)) < 6)]
    return Report(4 * len(CHOSEN), (*problems, *(f"{name} can be guessed" for name in weak), *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_a_server_makes_its_own_sessions(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
