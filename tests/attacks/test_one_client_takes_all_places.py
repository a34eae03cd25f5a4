"""One client opens sessions until it is refused: others still get places, by their token, and by what it does not use."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pipelines.serving.sessions import UNUSED_S
from tests.attacks.report import Report, counted
from tests.attacks.servers import HELLO, HttpClient, command
from tests.rooms import TASK, write_room

GREEDY, HONEST = "greedy-token-of-one-client", "honest-token-of-another"
PLACES = 2048


def opened(client: HttpClient, n: int) -> list[int]:
    """Return the statuses of `n` openings of sessions."""
    return [client.send("POST", "/mcp", json.dumps(HELLO)).status for _ in range(n)]


def attack(folder: Path, share: float) -> Report:
    """Take places by one token, then by one address, and let another client ask."""
    places, problems = counted(PLACES, share, 8), []
    room = write_room(folder / "hall")
    options = ("serve", room, "--task", TASK, "--episodes", str(places))
    with command(*options, TRACEROOM_SERVE_TOKENS=f"{GREEDY},{HONEST}") as server, \
            HttpClient(server, Authorization=f"Bearer {GREEDY}") as greedy, \
            HttpClient(server, Authorization=f"Bearer {HONEST}") as other, HttpClient(server) as nobody:
        taken = opened(greedy, places)
        problems += [f"one token has {taken.count(200)} of {places} places"] if taken.count(200) != places // 2 else []
        refused = greedy.send("POST", "/mcp", json.dumps(HELLO))
        problems += ["no Retry-After"] if (refused.status, refused.headers.get("retry-after")) != (503, "1") else []
        problems += ["another token has no place"] if opened(other, places // 2) != [200] * (places // 2) else []
        problems += ["somebody without a token has one"] if opened(nobody, 1) != [401] else []
        session = other.open_session() if not problems and places < 8 else None
        problems += ["a session belongs to whoever names it"] if session and greedy.send(
            "DELETE", "/mcp", **{"Mcp-Session-Id": session}).status != 404 else []
    with command(*options) as server, HttpClient(server) as greedy, HttpClient(server, source="127.0.0.2") as other:
        opened(greedy, places)
        time.sleep(UNUSED_S + 1)
        problems += ["sessions that nobody uses keep others out"] if opened(other, 1) != [200] else []
    return Report(2 * places, tuple(problems))


@pytest.mark.slow
def test_one_client_does_not_take_all_places(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
