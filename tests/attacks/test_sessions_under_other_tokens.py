"""Sessions of one token under another, and more places than one client may have: neither is entered, and others keep their
places."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attacks.report import Report
from tests.attacks.servers import HELLO, HttpClient, command
from tests.rooms import TASK, write_room

TOKENS = ("the-token-of-the-first-client", "the-token-of-the-second-client")


def attack(folder: Path, share: float) -> Report:
    """Open sessions under one token; call, speak, end and count under the other and under none."""
    room, problems, n_tried = write_room(folder / "hall"), [], 0
    with command(
        "serve", room, "--task", TASK, "--episodes", "8", "--per-client", "4", TRACEROOM_SERVE_TOKENS=",".join(TOKENS)
    ) as server:
        first, second = (HttpClient(server, Authorization=f"Bearer {token}") for token in TOKENS)
        session = first.open_session()
        ping, call = (
            '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}',
            json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "open_door", "arguments": {"door": "7"}}}
            ),
        )
        for authorization in (f"Bearer {TOKENS[1]}", "", f"Bearer {TOKENS[0]}x", f"Bearer {TOKENS[1]}, Bearer {TOKENS[0]}"):
            for method, path, body in (
                ("POST", "/mcp", ping),
                ("POST", "/mcp", call),
                ("GET", "/episode", None),
                ("POST", "/episode/say", '{"text": "x"}'),
                ("DELETE", "/mcp", None),
            ):
                n_tried += 1
                with HttpClient(server, **{"Mcp-Session-Id": session, "Authorization": authorization}) as stranger:
                    answer = stranger.send(method, path, body)
                problems += (
                    [f"{method} {path} under {authorization[:40]!r}: {answer.status} {answer.body[:80]!r}"]
                    if answer.status == 200
                    else []
                )
        opened = sum(second.send("POST", "/mcp", json.dumps(HELLO)).status == 200 for _ in range(12))
        problems += [f"one client has {opened} places of 4"] if opened != 4 else []
        problems += [] if first.send("POST", "/mcp", json.dumps(HELLO)).status == 200 else ["the other has no place left"]
        problems += [] if first.call("read_sign", '{"at": "gate"}').status == 200 else ["the first session is gone"]
        first.__exit__()
        second.__exit__()
    return Report(n_tried + 14, tuple(problems))


def test_a_session_is_its_tokens_own(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
