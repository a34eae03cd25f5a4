"""The room over stdio: the official SDK's client against a real process, and bytes that no client would send."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from env_builder.process import runtime_command, start_process
from env_builder.runtime import Environment, briefing, mcp
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import InputError, Unavailable


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def parameters(room: Path) -> StdioServerParameters:
    program, *arguments = runtime_command(room)
    return StdioServerParameters(command=program, args=[*arguments, "--task", TASK])


def run(work: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        with anyio.fail_after(300):
            await work

    anyio.run(timed)


def test_the_official_client_plays_an_episode(room: Path) -> None:
    async def play() -> None:
        async with stdio_client(parameters(room)) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            assert hello.protocol_version == HANDSHAKE_PROTOCOL_VERSIONS[-1]
            await session.send_ping()
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["open_door", "read_sign", "say", "finish"]
            assert tools[0].description == "open_door, in words: äöü \u2028 😀"
            read = await session.call_tool("read_sign", {"at": "gate"})
            assert (read.content[0].text, read.is_error) == ("Mind the gap\n — 雨", False)
            assert read.meta == {"traceroom/ended": None}
            opened = await session.call_tool("open_door", {"door": "7"})
            assert opened.content[0].text == OPEN
            unknown = await session.call_tool("open_door", {"door": "8"})
            assert unknown.is_error and unknown.meta == {"traceroom/ended": None}, "no tier tells an agent the log's way"
            with pytest.raises(MCPError, match="no tool 'fly'; there are: open_door, read_sign, say, finish"):
                await session.call_tool("fly", {})

    run(play())


@pytest.mark.parametrize("mode", ["auto", "legacy", *MODERN_PROTOCOL_VERSIONS])
def test_both_eras_of_the_protocol_are_spoken(room: Path, mode: str) -> None:
    async def play() -> None:
        async with Client(parameters(room), mode=mode) as client:
            newest = HANDSHAKE_PROTOCOL_VERSIONS[-1] if mode == "legacy" else MODERN_PROTOCOL_VERSIONS[-1]
            assert client.session.protocol_version == newest
            assert len((await client.list_tools()).tools) == 4
            read = await client.call_tool("read_sign", {"at": "gate"})
            assert read.content[0].text == "Mind the gap\n — 雨"
            assert read.meta and "traceroom/tier" not in read.meta

    run(play())


def test_a_client_that_has_nothing_else_gets_the_task_and_talks(room: Path) -> None:
    async def play() -> None:
        async with stdio_client(parameters(room)) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            wanted = "The user says:\nOpen the door.\n\nReply to the user with the tool `say`, and end with the tool `finish`."
            assert hello.instructions == wanted
            assert [each.name for each in (await session.list_prompts()).prompts] == ["task"]
            assert (await session.get_prompt("task")).messages[0].content.text == wanted
            uris = [str(each.uri) for each in (await session.list_resources()).resources]
            assert uris == ["traceroom://episode/task", "traceroom://episode/user"]
            said = await session.call_tool("say", {"text": "Which one?"})
            assert (said.content[0].text, said.is_error) == ("The seventh, please.", False)
            assert (await session.call_tool("say", {"text": "And then?"})).content[0].text == "The user says nothing more."
            spoken = json.loads((await session.read_resource(uris[1])).contents[0].text)
            assert [message["content"] for message in spoken] == [
                "Open the door.", "Which one?", "The seventh, please.", "And then?"]
            with pytest.raises(MCPError, match="say takes text"):
                await session.call_tool("say", {})
            with pytest.raises(MCPError, match="there are: task"):
                await session.get_prompt("policy")
            with pytest.raises(MCPError, match="no resource"):
                await session.read_resource("traceroom://episode/policy")
            ended = await session.call_tool("finish", {})
            assert ended.meta == {"traceroom/ended": "terminated"}
            assert (await session.call_tool("say", {"text": "Hello?"})).is_error

    run(play())


def test_without_talk_an_agent_has_the_service_s_tools_alone(room: Path) -> None:
    server = mcp.McpServer(Environment.load(room))
    server.begin(TASK)
    listed = server.reply({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["open_door", "read_sign"]


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": st.text()})),
       st.lists(st.sampled_from(["say", "finish", "task_say", "look"]), unique=True))
def test_every_offer_that_is_listed_can_be_read(messages: list[dict[str, str]], taken: list[str]) -> None:
    talk = briefing.talk_tools(taken)
    assert len(talk) == 2 and talk.keys().isdisjoint(taken)
    for offered in briefing.listed_prompts(messages):
        assert briefing.prompt(offered["name"], messages, talk)
    for listed in briefing.listed_resources(messages):
        shown = briefing.resource(listed["uri"], messages, [], talk)
        assert shown and all(message["content"] in shown["contents"][0]["text"] or listed["mimeType"] == "application/json"
                             for message in messages if listed["name"] == "task")


def test_a_host_runs_the_episode_over_the_control_channel(room: Path) -> None:
    with start_process(room, TASK) as host:
        assert host.call("read_sign", {"at": "gate"}).tier is None, "what runs before a reset may be an agent's"
        beginning = host.reset(TASK)
        assert host.call("read_sign", {"at": "gate"}).tier == "recorded"
        params = {"name": "read_sign", "arguments": {"at": "gate"}}
        forwarded = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        host.request("traceroom/reset", host.reset_params(TASK))
        assert host.forward(forwarded)["result"]["_meta"] == {"traceroom/ended": None}
        host.reset(TASK)
        assert beginning["messages"] == [{"role": "user", "content": "Open the door."}]
        assert beginning["limits"] == {"steps": 5, "seconds": 600}
        assert host.say("Which one?") == "The seventh, please."
        assert host.say("And then?") is None
        assert host.call("open_door", {"door": "7"}).content == OPEN
        assert host.finish() == "terminated"
        over = host.call("read_sign", {"at": "gate"})
        assert (over.is_error, over.tier, over.ended) == (True, None, "terminated")
        journal = host.journal()
    assert [row["kind"] for row in journal] == ["say", "say", "call", "finish"]
    twin = Environment.load(room)
    twin.reset(TASK)
    twin.say("Which one?")
    twin.say("And then?")
    twin.call("open_door", {"door": "7"})
    twin.finish()
    assert journal == list(twin.journal)


def test_limits_truncate_and_are_told(room: Path) -> None:
    with start_process(room, TASK) as host:
        answers = [host.call("read_sign", {"at": "gate"}) for _ in range(6)]
        assert [answer.is_error for answer in answers] == [False] * 5 + [True]
        assert answers[-1].ended == "truncated"
        assert len(host.journal()) == 5


def test_a_room_apart_never_looks_for_the_graders_side(tmp_path: Path) -> None:
    """What lies at OUT/rewards would stop it, if it did."""
    hall = write_room(tmp_path / "environments" / "hall")
    grader = tmp_path / "rewards" / "hall"
    grader.mkdir(parents=True)
    (grader / "rubrics.jsonl").write_text("no rubric\n")
    with start_process(hall, TASK) as room:
        assert room.call("open_door", {"door": "7"}).content == OPEN
    with pytest.raises(ValueError, match="Expecting value"):
        Environment.load(hall)


def test_the_control_channel_is_closed_to_an_agent(room: Path) -> None:
    server = mcp.McpServer(Environment.load(room))
    server.begin(TASK)
    for method in ("reset", "say", "learn", "finish", "state", "journal", "tasks"):
        reply = server.answer(json.dumps({"jsonrpc": "2.0", "id": 1, "method": f"traceroom/{method}"}).encode())
        assert reply["error"]["code"] == mcp.METHOD_NOT_FOUND
        assert "traceroom/" not in reply["error"]["message"].partition("; there are: ")[2]


def test_an_open_room_learns(room: Path) -> None:
    with start_process(room) as host:
        assert host.call("read_sign", {"at": "roof"}).is_error
        host.request("traceroom/learn", {"name": "read_sign", "arguments": {"at": "roof"}, "content": "No entry"})
        assert host.call("read_sign", {"at": "roof"}).content == "No entry"
        host.reset(TASK)
        with pytest.raises(InputError, match="does not learn"):
            host.request("traceroom/learn", {"name": "read_sign", "arguments": {"at": "roof"}, "content": "No entry"})


@pytest.mark.parametrize(("line", "code"), [
    (b"{", -32700), (b"\xff\xfe", -32700), (b"[" * 200_000, -32700), (b"[]", -32600), (b"3", -32600), (b"null", -32600),
    (b'{"id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"nothing/like/it"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_sign","arguments":"at"}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["read_sign"]}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_sign","arguments":{"at":NaN}}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"traceroom/reset","params":{"task_id":"none of ours"}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"traceroom/say","params":{"text":null}}', -32602),
])  # fmt: skip
def test_what_is_no_request_gets_a_proper_error(room: Path, line: bytes, code: int) -> None:
    server = mcp.McpServer(Environment.load(room), control=True)
    server.begin(TASK)
    assert server.answer(line)["error"]["code"] == code
    assert server.answer(b'{"jsonrpc":"2.0","id":"after","method":"ping"}') == {"jsonrpc": "2.0", "id": "after", "result": {}}


@pytest.mark.parametrize("depth", [10, 900, 50_000])
def test_deep_arguments_do_not_end_the_room(room: Path, depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_sign","arguments":' + deep + b"}}"
    server = mcp.McpServer(Environment.load(room))
    server.begin(TASK)
    reply = server.answer(call)
    assert "error" in reply or reply["result"]["isError"]
    assert server.answer(b'{"jsonrpc":"2.0","id":"after","method":"ping"}')["result"] == {}


@pytest.mark.parametrize("line", [
    b"", b"  ", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b'{"jsonrpc":"2.0","method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}', b'[{"jsonrpc":"2.0","method":"x"}]',
])  # fmt: skip
def test_what_asks_for_nothing_is_not_answered(room: Path, line: bytes) -> None:
    assert mcp.McpServer(Environment.load(room)).answer(line) is None


def test_a_batch_is_answered_in_order(room: Path) -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},7]'
    replies = mcp.McpServer(Environment.load(room)).answer(batch)
    assert [reply["id"] for reply in replies] == [1, None]


@given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b" ")), max_size=8))
def test_no_bytes_end_the_room(lines: list[bytes]) -> None:
    server = mcp.McpServer(_HALL)
    sink = io.BytesIO()
    server.serve(io.BytesIO(b"\n".join([*lines, b'{"jsonrpc":"2.0","id":"end","method":"ping"}\n'])), sink)
    replies = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert replies[-1] == {"jsonrpc": "2.0", "id": "end", "result": {}}


@pytest.fixture(scope="module", autouse=True)
def _load(room: Path) -> None:
    global _HALL
    _HALL = Environment.load(room)


_HALL: Environment


def test_a_huge_line_is_skipped_and_said(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "MAX_LINE", 1000)
    sink = io.BytesIO()
    lines = b"x" * 5001 + b'\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n' + b"y" * 1000
    mcp.McpServer(Environment.load(room)).serve(io.BytesIO(lines), sink)
    replies = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert replies[0]["error"]["message"] == "a line is longer than 1000 bytes"
    assert replies[1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert replies[2]["error"]["code"] == mcp.INVALID_REQUEST
    assert len(replies) == 3


def test_eras_do_not_mix(room: Path) -> None:
    envelope = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    server = mcp.McpServer(Environment.load(room))

    def ask(method: str, params: dict[str, Any]) -> Any:
        return server.answer(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())

    assert ask("server/discover", envelope)["result"]["supportedVersions"] == ["2026-07-28"]
    refused = ask("initialize", {"protocolVersion": "2025-11-25"})["error"]
    assert (refused["code"], refused["data"]["supported"]) == (mcp.UNSUPPORTED_VERSION, ["2026-07-28"])
    assert ask("tools/list", envelope)["result"]["resultType"] == "complete"


@pytest.mark.parametrize(("requested", "spoken"), [
    ("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
    ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25"),
])  # fmt: skip
def test_the_handshake_agrees_on_a_revision(room: Path, requested: str, spoken: str) -> None:
    line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": requested}}
    reply = mcp.McpServer(Environment.load(room)).answer(json.dumps(line).encode())
    assert reply["result"]["protocolVersion"] == spoken


def test_a_room_that_cannot_begin_says_why(room: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no task 'none' in this environment"):
        start_process(room, "none")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", str(room / "runtime"), "--environment", str(tmp_path)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("environment: ") and "manifest.json" in done.stderr


def test_started_as_a_module_and_by_environment_variables(room: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-m", "runtime"], cwd=room, env={"TRACEROOM_TASK": TASK, "TRACEROOM_TALK": "off"},
        capture_output=True,
        input=b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]] == ["open_door", "read_sign"]


def test_the_former_variable_of_perturbations_works_where_the_present_one_is_not_set(room: Path) -> None:
    code = "from runtime.__main__ import _options; print(_options([]).perturbations)"
    for variables, value in (({"TRACEROOM_CONDITIONS": "fresh"}, "fresh"), ({}, ""), (
            {"TRACEROOM_CONDITIONS": "fresh", "TRACEROOM_PERTURBATIONS": "faults"}, "faults")):
        done = subprocess.run([sys.executable, "-S", "-B", "-c", code], cwd=room, env=variables, capture_output=True,
                              text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"{value}\n"), done.stderr
