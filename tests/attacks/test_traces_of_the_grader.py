"""What an agent of a server can see of rewards: answers, errors, headers, health and time hold no word of rubrics, solutions
or grades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, SOLVED, hall, rpc
from tests.attacks.report import Report

WORDS = (b"rubric", b"reward", b"grade", b"check_id", b"accepted", b"solution", b"gate", b"score", b"traceroom/tier", b"audit")


def attack(folder: Path, share: float) -> Report:
    """Read all that a server says, before, while and after a task is solved, graded and failed."""
    problems, seen = [], []
    with hall().agent() as agent:
        session = agent.headers["Mcp-Session-Id"]
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping", "initialize",
            "nothing", "logging/setLevel", "roots/list"):
            seen.append(agent.send("POST", "/mcp", rpc(method, {})))
        seen += [agent.send(method, path, "{}" if method == "POST" else None) for path in ("/", "/health", "/episode",
            "/nowhere", "/rewards", "/episode/say", "/episode/reward")
                 for method in ("GET", "POST", "PUT")]
        for tool, arguments in (("read_sign", '{"at": "roof"}'), ("read_sign", '{"at": "gate"}'), *SOLVED, ("open_door",
            '{"door": "9"}'), ("grade", "{}"), ("open_door", "5")):
            seen.append(agent.call(tool, arguments))
            hall().grade(session)
        seen += [agent.send("POST", "/episode/finish", "{}"), agent.call(*SOLVED[0]), agent.send("DELETE", "/mcp")]
    for answer in seen:
        text = answer.body.lower() + json.dumps(answer.headers).lower().encode()
        problems += [f"{word.decode()} in {answer.body[:120]!r}" for word in WORDS if word in text.replace(b'"at": "gate"',
            b"").replace(b"tool 'grade'", b"")]
    return Report(len(seen), (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_an_agent_sees_nothing_of_its_grader(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
