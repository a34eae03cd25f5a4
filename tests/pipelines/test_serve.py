"""Serving over streamable HTTP: a real server on loopback, the official SDK's client, one room a session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from env_builder import image
from env_builder.runtime import Environment
from pipelines.serving import mcp_server
from pipelines.serving.sessions import Rollout
from tests.conftest import ROOT
from tests.endpoint import answering
from tests.rooms import OPEN, TASK, write_rewards, write_room
from warehouse.errors import InputError, Unavailable

PATIENCE_S = 200.0   # of a machine that is busy


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def started(room: Path, *options: str, **variables: str) -> tuple[subprocess.Popen[str], str]:
    """`traceroom serve` as a process, and the URL that it says it answers at."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines", "serve", str(room), "--port", "0", *options], cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **variables}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr
    for line in process.stderr:
        if match := re.search(r"http://\S+/mcp", line):
            return process, match.group()
    raise AssertionError(f"it ended with {process.wait()} and never answered")


def stopped(process: subprocess.Popen[str], by: signal.Signals = signal.SIGINT) -> None:
    process.send_signal(by)
    try:
        process.wait(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals") / "journals.jsonl"


@pytest.fixture(scope="module")
def url(room: Path, journals: Path) -> Iterator[str]:
    process, url = started(room, "--task", TASK, "--journals", str(journals))
    yield url
    stopped(process)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        with anyio.fail_after(PATIENCE_S):
            await work

    anyio.run(timed)


def pids_of(environment: Path) -> list[int]:
    """Return the processes that are rooms of this environment."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("processes are looked up in /proc, which this system lacks")
    pids = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{environment}/runtime\0".encode() in process.read_bytes():
                pids.append(int(process.parent.name))
    return pids


def test_the_official_client_plays_an_episode_a_session(url: str, journals: Path) -> None:
    async def play() -> None:
        async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            assert hello.instructions and hello.instructions.startswith("The user says:\nOpen the door.")
            assert [tool.name for tool in (await session.list_tools()).tools] == ["open_door", "read_sign", "say", "finish"]
            read = await session.call_tool("read_sign", {"at": "gate"})
            assert (read.content[0].text, read.is_error) == ("Mind the gap\n — 雨", False)
            assert read.meta == {"traceroom/ended": None}
            opened = await session.call_tool("open_door", {"door": "7"})
            assert opened.content[0].text == OPEN
            assert opened.structured_content == json.loads(OPEN) and read.structured_content is None
            async with streamable_http_client(url) as others, ClientSession(*others) as other:
                await other.initialize()  # another session is another episode: there, the door is still closed
                again = await other.call_tool("open_door", {"door": "7"})
                assert (again.content[0].text, again.is_error) == (OPEN, False)
            with pytest.raises(MCPError, match="no tool 'fly'"):
                await session.call_tool("fly", {})

    run(play())
    rows = [json.loads(line) for line in journals.read_text().splitlines()]
    assert {row["task_id"] for row in rows} == {TASK}
    played = [[step.get("tool") for step in row["journal"]] for row in rows]
    assert ["read_sign", "open_door"] in played and ["open_door"] in played


def test_a_second_client_grades_what_the_first_one_plays_over_mcp_alone(tmp_path: Path) -> None:
    own = write_room(tmp_path / "environments" / "hall")
    write_rewards(own)
    process, url = started(own, "--task", TASK, "--grade", TRACEROOM_GRADE_TOKEN="a-token")
    grade_url = url.removesuffix("mcp") + "grade"

    async def play() -> None:
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer a-token"}, timeout=PATIENCE_S) as http, \
                streamable_http_client(grade_url, http_client=http) as streams, ClientSession(*streams) as grader:
            await grader.initialize()
            assert [tool.name for tool in (await grader.list_tools()).tools] == ["episodes", "grade"]
            assert (await grader.call_tool("episodes", {})).structured_content == {"episodes": []}
            async with streamable_http_client(url) as others, ClientSession(*others) as agent:
                await agent.initialize()
                await agent.call_tool("say", {"text": "Which one?"})
                (episode,) = (await grader.call_tool("episodes", {})).structured_content["episodes"]
                assert (episode["task_id"], episode["steps"], episode["ended"]) == (TASK, 1, None)
                before = await grader.call_tool("grade", {"episode": episode["episode"]})
                await agent.call_tool("open_door", {"door": "7"})
                await agent.call_tool("finish", {})
            after = await grader.call_tool("grade", {"episode": episode["episode"]})
            assert before.structured_content["reward"] == 0 and before.structured_content["failed"]
            assert after.structured_content == {"episode": episode["episode"], "task_id": TASK, "reward": 1.0, "failed": []}
            (ended,) = (await grader.call_tool("episodes", {})).structured_content["episodes"]
            assert (ended["steps"], ended["ended"]) == (3, "terminated")
            with pytest.raises(MCPError, match="no episode 'none' here"):
                await grader.call_tool("grade", {"episode": "none"})
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            for headers in ({}, {"Authorization": "Bearer another"}):
                assert (await http.post(grade_url, json=hello, headers=headers)).status_code == 401

    try:
        run(play())
    finally:
        stopped(process)


def test_a_server_without_rewards_or_with_real_tools_does_not_grade(tmp_path: Path) -> None:
    own = write_room(tmp_path / "environments" / "hall")
    with pytest.raises(InputError, match="no rewards to grade with"):
        mcp_server.application(own, Rollout(TASK), grader_token="a-token")
    write_rewards(own)
    with pytest.raises(InputError, match="cannot be graded while they are served"):
        mcp_server.application(own, Rollout(TASK, bindings={"open_door": "http:x"}), grader_token="a-token")


def test_the_newest_client_falls_back_to_a_revision_with_sessions(url: str) -> None:
    async def play() -> None:
        async with Client(url) as client:
            assert client.session.protocol_version == "2025-11-25"
            assert (await client.call_tool("read_sign", {"at": "gate"})).content[0].text == "Mind the gap\n — 雨"

    run(play())


def test_calls_of_one_session_at_once_are_taken_in_turn(url: str) -> None:
    async def play() -> None:
        async with streamable_http_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            answers: list[str] = []

            async def ask() -> None:
                answers.append((await session.call_tool("read_sign", {"at": "gate"})).content[0].text)

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(ask)
            assert answers == ["Mind the gap\n — 雨"] * 5

    run(play())


def test_words_to_the_user_go_beside_the_tools_and_the_journal_is_graded_by_replay(
    url: str, room: Path, journals: Path,
) -> None:
    episode = url.removesuffix("mcp") + "episode"
    accept = {"Accept": "application/json, text/event-stream"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
    with httpx2.Client(timeout=PATIENCE_S) as http:
        session = {"Mcp-Session-Id": http.post(url, json=hello, headers=accept).headers["mcp-session-id"]}
        beginning = http.get(episode, headers=session).json()
        assert beginning["messages"] == [{"role": "user", "content": "Open the door."}]
        assert beginning["ended"] is None
        spoken = http.post(f"{episode}/say", json={"text": "Which one, said nobody else?"}, headers=session).json()
        assert spoken == {"reply": "The seventh, please.", "ended": None, "user_left": False}
        assert http.post(f"{episode}/say", json={"text": 7}, headers=session).status_code == 400
        assert http.post(f"{episode}/say", content=b"{", headers=session).status_code == 400
        assert http.post(f"{episode}/finish", headers=session).json() == {"ended": "terminated"}
        assert http.get(episode, headers={"Mcp-Session-Id": "somebody else's"}).status_code == 400
        assert http.get(f"{episode}/journal", headers=session).status_code == 404
        assert http.delete(url, headers={**accept, **session}).status_code == 200
        assert http.get(episode, headers=session).status_code == 400
    rows = [json.loads(line) for line in journals.read_text().splitlines()]
    mine = [row["journal"] for row in rows if any("said nobody else" in str(step) for step in row["journal"])]
    assert [[step["kind"] for step in journal] for journal in mine] == [["say", "finish"]]
    assert Environment.load(room).replay(TASK, mine[0]).journal[0]["reply"] == "The seventh, please."


def test_another_site_in_a_browser_may_not_ask(url: str) -> None:
    with httpx2.Client(timeout=PATIENCE_S) as http:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        accept = {"Accept": "application/json, text/event-stream"}
        assert http.post(url, json=hello, headers={**accept, "Origin": "https://elsewhere.example"}).status_code == 403
        assert http.post(url, json=hello, headers={**accept, "Host": "elsewhere.example"}).status_code == 421


def test_rooms_end_with_the_server(tmp_path: Path) -> None:
    own = write_room(tmp_path / "own_hall")
    kept = tmp_path / "kept.jsonl"
    process, url = started(own, "--task", TASK, "--journals", str(kept))

    async def leave_it_open() -> None:
        async with streamable_http_client(url, terminate_on_close=False) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool("read_sign", {"at": "gate"})
            assert len(pids_of(own)) == 1

    run(leave_it_open())
    stopped(process, signal.SIGTERM)
    assert not pids_of(own)
    assert len(json.loads(kept.read_text())["journal"]) == 1


class Raw:
    """A client that says just what it is told to say."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.url, self.http = url, http
        self.n_asked = 0

    async def post(self, session: str, method: str, params: dict[str, Any], url: str = "") -> httpx2.Response:
        named = {"Mcp-Session-Id": session} if session else {}
        self.n_asked += 1
        message = {"jsonrpc": "2.0", "id": self.n_asked, "method": method, "params": params}
        accept = {"Accept": "application/json, text/event-stream"}
        return await self.http.post(url or self.url, json=message, headers={**accept, **named})

    async def open(self, query: str = "") -> httpx2.Response:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        return await self.post("", "initialize", hello, self.url + query)

    async def read(self, session: str) -> httpx2.Response:
        return await self.post(session, "tools/call", {"name": "read_sign", "arguments": {"at": "gate"}})


async def health(url: str, http: httpx2.AsyncClient) -> Any:
    return (await http.get(url.removesuffix("mcp") + "health")).json()


def test_sessions_choose_tasks_and_wait_their_turn(tmp_path: Path, url: str) -> None:
    own = write_room(tmp_path / "hall")
    kept = tmp_path / "kept.jsonl"
    process, open_url = started(own, "--journals", str(kept), "--episodes", "3")

    async def play() -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            raw = Raw(open_url, http)
            refused = await raw.open("?task=none")
            assert refused.status_code == 400 and "no task 'none'" in refused.json()["error"]["message"]
            assert (await raw.open("?seed=x")).status_code == 400
            fixed = await Raw(url, http).open(f"?task={TASK}")
            assert fixed.status_code == 400 and "plays one task" in fixed.json()["error"]["message"]
            opened = await asyncio.gather(*(raw.open(f"?task={TASK[:8]}&seed=3&perturbations=latency") for _ in range(8)))
            sessions = [one.headers["mcp-session-id"] for one in opened if one.status_code == 200]
            assert len(sessions) == 3
            beyond = [one for one in opened if one.status_code != 200]
            assert {(one.status_code, one.headers["retry-after"]) for one in beyond} == {(503, "1")}
            assert "3 episodes run already" in beyond[0].json()["error"]["message"]
            assert "result" in (await raw.read(sessions[0])).json()
            assert await health(open_url, http) == {"status": "ok", "episodes": 3, "limit": 3, "lost": 0, "unstored": 0}

    try:
        run(play())
    finally:
        stopped(process)
    row = json.loads(kept.read_text())
    assert (row["task_id"], row["seed"], row["perturbations"], len(row["journal"])) == (TASK, 3, ["latency"], 1)


def test_a_session_that_nobody_touches_expires(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    process, url = started(write_room(tmp_path / "hall"), "--journals", str(kept), "--episodes", "1", "--idle", "1")

    async def play() -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            raw, read = Raw(url, http), None
            while read is None or read.status_code != 200:   # on a machine that pauses, it may have expired before
                session = (await raw.open()).headers["mcp-session-id"]
                read = await raw.read(session)
            while (await health(url, http))["episodes"]:
                await anyio.sleep(0.1)
            assert (await raw.read(session)).status_code == 404
            assert (await raw.open()).status_code == 200, "there is room again"

    try:
        run(play())
    finally:
        stopped(process)
    assert len(json.loads(kept.read_text())["journal"]) == 1


def test_a_session_that_asks_faster_than_it_is_answered_is_told_to_wait(url: str) -> None:
    async def play() -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S, limits=httpx2.Limits(max_connections=200)) as http:
            raw = Raw(url, http)
            session = (await raw.open()).headers["mcp-session-id"]
            replies = await asyncio.gather(*(raw.read(session) for _ in range(120)))
            states = {one.status_code for one in replies}
            assert states <= {200, 429} and 200 in states
            assert all(one.headers["retry-after"] == "1" for one in replies if one.status_code == 429)
            assert (await raw.read(session)).status_code == 200

    run(play())


@pytest.mark.slow
def test_a_room_that_is_killed_is_told_and_the_next_session_has_another(tmp_path: Path) -> None:
    own = write_room(tmp_path / "hall")
    process, url = started(own, "--task", TASK)

    async def play() -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            raw = Raw(url, http)
            session = (await raw.open()).headers["mcp-session-id"]
            await raw.read(session)
            for pid in pids_of(own):
                os.kill(pid, signal.SIGKILL)
            error = (await raw.read(session)).json()["error"]["message"]
            assert "the environment process is gone" in error and "begin another episode" in error
            another = (await raw.open()).headers["mcp-session-id"]
            assert "result" in (await raw.read(another)).json()

    try:
        run(play())
    finally:
        stopped(process)


def test_the_real_thing_perturbations_and_a_model_answer(tmp_path: Path) -> None:
    own = write_room(tmp_path / "hall")
    (own / "perturbations.jsonl").write_text(json.dumps({
        "tool": "read_sign", "n_calls": 9, "n_timed": 9, "latency_ms": [10.0, 40.0], "fault_rate": 0, "faults": []}) + "\n")
    (tmp_path / "signs.py").write_text("def read(at):\n    return 'wet paint on the ' + at\n")
    (tmp_path / "rooms.toml").write_text(f'[bindings]\nread_sign = "python:{tmp_path}/signs.py:read"\nfly = "http:elsewhere"\n')
    kept = tmp_path / "kept.jsonl"

    def model(prompt: str) -> str:
        return '{"content": "it creaks", "is_error": false}' if 'open_door {"door":"9"}\n\nReply' in prompt else "I cannot say"

    async def play(url: str) -> None:
        async with Client(url, mode="legacy") as client:
            read = await client.call_tool("read_sign", {"at": "roof"})
            assert read.content[0].text == "wet paint on the roof"
            assert read.meta and "traceroom/tier" not in read.meta and 10 <= read.meta["traceroom/latency_ms"] <= 40
            opened = await client.call_tool("open_door", {"door": "9"})
            assert opened.content[0].text == "it creaks"
            other = await client.call_tool("open_door", {"door": "8"})
            assert other.is_error and opened.meta and "traceroom/tier" not in {**opened.meta, **(other.meta or {})}

    with answering(model) as endpoint:
        process, url = started(
            own, "--task", TASK, "--journals", str(kept), "--config", str(tmp_path / "rooms.toml"), "--perturbation", "latency",
            "--ask", TRACEROOM_MODEL="small", TRACEROOM_MODEL_URL=endpoint.url)
        try:
            run(play(url))
        finally:
            stopped(process)
        assert len(endpoint.asked) == 2
    row = json.loads(kept.read_text())
    assert [step["tier"] for step in row["journal"]] == ["bound", "model", "unknown"]
    assert (row["perturbations"], list(row["bindings"]), row["ask"]) == (["latency"], ["read_sign"], True)


def test_what_cannot_be_served_is_refused_at_once(room: Path) -> None:
    with pytest.raises(InputError, match="no task 'none' in this environment"):
        mcp_server.application(room, Rollout("none"))
    with pytest.raises(InputError, match="no perturbation 'weather'"):
        mcp_server.application(room, Rollout(TASK, perturbations=("weather",)))
    with pytest.raises(InputError, match=r"cannot reach bound tools.*; serve without --container"):
        mcp_server.application(room, Rollout(TASK, bindings={"read_sign": "python:json:dumps"}), container=True)
    with pytest.raises(InputError, match=r"the environment has no image .*not asked for in"):
        mcp_server.application(room, Rollout(TASK), container=True)
    with pytest.raises(InputError, match=r"cannot listen there .*choose another --port"):
        mcp_server.serve(room, Rollout(TASK), ("192.0.2.1", 0))


@pytest.mark.docker
def test_rooms_in_containers(room: Path, base_image: str, tmp_path: Path) -> None:
    own = write_room(tmp_path / "boxed_hall")
    result = image.build(own, base_image)
    manifest = json.loads((own / "manifest.json").read_text())
    (own / "manifest.json").write_text(json.dumps(manifest | {"image": {"base": result.base, "image_id": result.image_id}}))
    process, url = started(own, "--task", TASK, "--container")

    async def play() -> None:
        async with Client(url, mode="legacy") as client:
            assert (await client.call_tool("open_door", {"door": "7"})).content[0].text == OPEN
            assert not pids_of(own)

    try:
        run(play())
    finally:
        stopped(process)


@pytest.mark.docker
def test_an_image_that_is_gone_is_refused(room: Path, docker_engine: None, tmp_path: Path) -> None:
    own = write_room(tmp_path / "hall")
    manifest = json.loads((own / "manifest.json").read_text())
    (own / "manifest.json").write_text(json.dumps(manifest | {"image": {"base": "b", "image_id": "sha256:" + "0" * 64}}))
    with pytest.raises(Unavailable, match="no such image in the engine"):
        mcp_server.application(own, Rollout(TASK), container=True)
