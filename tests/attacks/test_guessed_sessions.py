"""Sessions of others by guesses: near ids, other spellings, ids in queries, cookies and bodies; none is entered or ended."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, SOLVED, hall, is_refused, rpc
from tests.attacks.report import Report, counted

GUESSES = 5_000


def guesses(victim: str, n: int) -> list[str]:
    """Return ids near a victim's, and usual ones."""
    choose = random.Random(3)
    near = [victim.upper(), victim + " x", victim[:-1], victim + "0", f"{victim},{victim}", victim[::-1],
            f"{victim[:8]}-{victim[8:12]}-{victim[12:16]}-{victim[16:20]}-{victim[20:]}", "", "*", "null", "0", "undefined",
            "../" + victim, victim[:16], f'"{victim}"']
    return near + [f"{int(victim, 16) + choose.randrange(-10 ** 6, 10 ** 6) or 1:032x}" for _ in range(n)]


def attack(folder: Path, share: float) -> Report:
    """Call a tool and end the session under each guess, and with the right id where no server should look for one."""
    problems, attacker = [], hall().client()
    with hall().agent() as victim:
        victim.call(*SOLVED[0])
        session = victim.headers["Mcp-Session-Id"]
        names = guesses(session, counted(GUESSES, share))
        for name in names:
            for method, body in (("POST", rpc("tools/call", {"name": "read_sign", "arguments": {"at": "gate"}})), ("DELETE",
                None)):
                answer = attacker.send(method, "/mcp", body, **{"Mcp-Session-Id": name})
                problems += [] if is_refused(answer) else [f"{method} as {name!r} gives {answer.status}"]
        elsewhere = [
            attacker.send("POST", f"/mcp?session={session}&Mcp-Session-Id={session}", rpc("tools/list")),
            attacker.send("POST", "/mcp", rpc("tools/list"), Cookie=f"Mcp-Session-Id={session}"),
            attacker.send("POST", "/mcp", rpc("tools/list", {"_meta": {"Mcp-Session-Id": session, "sessionId": session}})),
            attacker.send("GET", f"/episode?session={session}"), attacker.send("POST", f"/episode/finish?s={session}", "{}")]
        problems += [f"the id is read elsewhere: {each}" for each in elsewhere if not is_refused(each)]
        problems += [] if hall().steps(session) == 1 else ["the victim's journal has other steps"]
        problems += [] if victim.call("read_sign", '{"at": "gate"}').status == 200 else ["the victim's session is gone"]
    attacker.__exit__()
    return Report(2 * len(names) + 5, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_no_session_is_guessed(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
