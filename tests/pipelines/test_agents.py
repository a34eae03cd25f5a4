"""Agents of somebody's own play episodes as the plain loop does, and whatever they do, an episode ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime.trajectory import OWN, journal
from pipelines.rollouts.agents import adapters, launching
from pipelines.rollouts.agents.talks import own_names
from pipelines.rollouts.orders import AgentCommand, Job
from pipelines.rollouts.scheduling import Episode, Failed
from tests.endpoint import chatting
from tests.pipelines.conftest import Traceroom
from tests.pipelines.test_rollouts import played, script, timeless
from tests.rooms import OPEN, TASK, write_rewards, write_room
from warehouse.errors import InputError

LOOP = Path(__file__).parent / "agents" / "loop.py"
CALLS = [{"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
         for place, (name, arguments) in enumerate([("open_door", {"door": "7"}), ("read_sign", {"at": "gate"})])]


@pytest.mark.parametrize(("offered", "tools", "own"), [
    (["get_order", "order"], {"order", "get_order"}, {"get_order": "get_order", "order": "order"}),
    (["shop_get_order", "shop_order"], {"order", "get_order"}, {"shop_get_order": "get_order", "shop_order": "order"}),
    (["mcp__shop__order"], {"order"}, {"mcp__shop__order": "order"}),
    (["get_order"], {"order", "get_order"}, {"get_order": "get_order"}),
    (["order", "reorder_order"], {"order"}, {"order": "order"}),
    (["search_web"], {"order"}, {})])
def test_a_tool_is_known_behind_the_name_that_an_agent_offers(offered: list[str], tools: set[str], own: dict[str, str]) -> None:
    assert own_names(offered, tools) == own


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "out" / "environments" / "house")
    write_rewards(made)
    return made


def converse(asked: dict[str, Any]) -> dict[str, Any]:
    """Ask which door, open it and read a sign at once, then say so."""
    n_said = sum(message["role"] == "assistant" for message in asked["messages"])
    return [{"content": "Which door?"}, {"content": "I open it.", "tool_calls": CALLS}, {"content": "It is open."}][n_said]


def job(room: Path, agent: AgentCommand, policy: str = "none") -> Job:
    return Job(str(room), None, policy, agent=agent)


def python(folder: Path, text: str) -> str:
    """Return the command of an agent with this program."""
    path = folder / "agent.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def anonymous(row: dict[str, Any]) -> Any:
    """Return a trajectory without what the clock says, and who played it."""
    about = {name: value for name, value in row["extra"][OWN].items() if name not in ("episode_id", "policy", "attempt")}
    return timeless({"agent": row["agent"]["tool_definitions"], "steps": row["steps"], "metrics": row["final_metrics"],
                     "about": about})


def test_an_agent_plays_as_the_plain_loop_whatever_protocol_it_speaks(room: Path, tmp_path: Path) -> None:
    asked, made = [], []
    for agent, n in ((None, 1), (AgentCommand(f"{sys.executable} {LOOP} {{attempt}}"), 6)):
        with chatting(converse) as endpoint:
            ended = played(Job(str(room), None, f"openai:m@{endpoint.url}", agent=agent), tmp_path / str(n), group=n, n_seats=1)
            assert [type(each).__name__ for each in ended] == ["Episode"] * n + ["Group"], ended
            asked.append([request["messages"] for request in endpoint.asked])
            made += [each.trajectory for each in ended[:-1]]
    plain, *ours = made
    assert [row["kind"] for row in journal(plain)] == ["say", "say", "call", "call", "say"]
    assert plain["extra"][OWN]["reward"] == 1.0
    assert [json.dumps(journal(row)) for row in ours] == [json.dumps(journal(plain))] * 6
    assert [anonymous(row) for row in ours] == [anonymous(plain)] * 6
    assert asked[1] == asked[0] * 6, "the model hears the user where the plain loop lets it"


def test_an_agent_that_speaks_mcp_alone_speaks_and_ends_by_tools(room: Path, tmp_path: Path) -> None:
    agent = python(tmp_path, """
import json, os, urllib.request
def rpc(method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = urllib.request.Request(os.environ["TRACEROOM_MCP_URL"], json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))["result"]
assert "Open the door." in rpc("initialize", protocolVersion="2025-06-18")["instructions"]
assert [tool["name"] for tool in rpc("tools/list")["tools"]] == ["open_door", "read_sign", "say", "finish"]
reply = rpc("tools/call", name="say", arguments={"text": "Which door?"})["content"][0]["text"]
assert reply == "The seventh, please.", reply
rpc("tools/call", name="open_door", arguments={"door": "7"})
rpc("tools/call", name="finish", arguments={})
raise SystemExit(9)
""")
    (ended, _) = played(job(room, AgentCommand(agent)), tmp_path / "rolled")
    assert isinstance(ended, Episode), "once the episode has ended it does not matter how the agent ends"
    assert ended.trajectory["extra"][OWN]["reward"] == 1.0
    assert [row["kind"] for row in journal(ended.trajectory)] == ["say", "call", "finish"]


@pytest.mark.parametrize(("text", "seconds", "reason"), [
    ("print('no luck'); raise SystemExit(3)", 60, "exit code 3: no luck"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 60, "killed by signal 9"),
    ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", 0.3, "did not end within 0.3 s"),
    ("import sys\nfor _ in range(400): sys.stdout.write('x' * 99999 + '\\n')\nsys.exit('done writing')", 60, "done writing"),
    ("import subprocess, sys; subprocess.Popen(['sleep', '60']); sys.exit('with a child')", 60, "with a child"),
    ("import os, urllib.request; urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/chat/completions', "
     "b'{\"messages\": []}')", 60, "the agent asked for a model, and there is none"),
], ids=["exit code", "killed", "hangs", "much output", "child", "no model"])
def test_a_bad_episode_is_one_failed_episode_with_its_reason(
    room: Path, tmp_path: Path, text: str, seconds: float, reason: str
) -> None:
    agent = python(tmp_path, f"import sys\nif sys.argv[1] == '1':\n    exec({text!r})\n") + " {seed}"
    ended = played(job(room, AgentCommand(agent, seconds=seconds)), tmp_path / "rolled", n_groups=3)
    (failed,) = [each for each in ended if isinstance(each, Failed)]
    assert reason in str(failed.error) and failed.order.seed == 1
    others = [each.trajectory for each in ended if isinstance(each, Episode)]
    assert [(row["extra"][OWN]["ended"], row["extra"][OWN]["reward"], journal(row)) for row in others] == [
        ("terminated", 0.0, [{"kind": "finish"}])] * 2, "doing nothing ends the episode, and earns nothing"


def test_an_agent_that_runs_on_after_its_episode_is_ended(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "GRACE_S", 0.2)
    agent = python(tmp_path, """
import json, os, time, urllib.request
for method, params in (("initialize", {"protocolVersion": "2025-06-18"}), ("tools/call", {"name": "finish"})):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    urllib.request.urlopen(os.environ["TRACEROOM_MCP_URL"], json.dumps(body).encode())
time.sleep(60)
""")
    (ended, _) = played(job(room, AgentCommand(agent)), tmp_path / "rolled")
    assert isinstance(ended, Episode) and ended.trajectory["extra"][OWN]["ended"] == "terminated"


@contextmanager
def service(act: Callable[[dict[str, Any]], int]) -> Iterator[str]:
    """Serve an agent: it gets an episode, acts, and answers with a status."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = act(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"the oven is cold")

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/run"
    finally:
        server.shutdown()
        server.server_close()


def posted(url: str, body: dict[str, Any], **headers: str) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_a_service_gets_each_episode_and_its_answer_ends_it(room: Path, tmp_path: Path) -> None:
    urls = []

    def act(episode: dict[str, Any]) -> int:
        urls.append(episode["episode_url"])
        if episode["seed"] == 1:
            return 500
        assert episode["prompt"] == "Open the door."
        assert [tool["name"] for tool in episode["tools"]] == ["open_door", "read_sign"]
        answer = posted(f"{episode['episode_url']}/tools/call", {"tool": "open_door", "arguments": {"door": "7"}})
        assert answer == {"content": OPEN, "is_error": False}
        return 200

    with service(act) as url:
        ended = played(job(room, AgentCommand(url)), tmp_path / "rolled", n_groups=2)
    (good,) = [each.trajectory for each in ended if isinstance(each, Episode)]
    (bad,) = [each for each in ended if isinstance(each, Failed)]
    assert good["extra"][OWN]["reward"] == 1.0
    assert "status 500: the oven is cold" in str(bad.error) and len(set(urls)) == 2
    assert len(urls[0].rpartition("/")[2]) >= 32, "a secret that cannot be guessed"


def test_a_path_is_of_one_episode_and_dies_with_it(room: Path, tmp_path: Path) -> None:
    codes = []

    def code(url: str) -> int:
        try:
            posted(url, {"tool": "open_door", "arguments": {}})
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def act(episode: dict[str, Any]) -> int:
        root = episode["episode_url"].rpartition("/")[0]
        codes.extend(code(f"{place}/tools/call") for place in (root, f"{root}/{'x' * 32}", episode["episode_url"]))
        codes.extend(code(f"{earlier}/tools/call") for earlier in urls)
        urls.append(episode["episode_url"])
        return 200

    urls: list[str] = []
    with service(act) as url:
        played(job(room, AgentCommand(url)), tmp_path / "rolled", n_groups=2, n_seats=1)
    assert codes == [404, 404, 200, 404, 404, 200, 404]


def test_calls_that_the_agent_answers_itself_or_never_makes_are_recorded(room: Path, tmp_path: Path) -> None:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        own = {"id": "mine", "type": "function", "function": {"name": "remember", "arguments": "{}"}}
        return {"tool_calls": [own, CALLS[1]]} if len(asked["messages"]) == 1 else {"tool_calls": CALLS[:1]}

    def act(episode: dict[str, Any]) -> int:
        url, messages = f"{episode['openai_base_url']}/chat/completions", list(episode["messages"])
        tools = [{"type": "function", "function": {"name": "remember"}}]
        first = posted(url, {"messages": messages, "tools": tools})["choices"][0]["message"]
        messages += [first, {"role": "tool", "tool_call_id": "mine", "content": "noted"},
                     {"role": "tool", "tool_call_id": "c1", "content": "I need no sign"}]
        posted(url, {"messages": messages, "tools": tools})
        repeated = posted(url, {"messages": messages, "tools": tools}, **{"x-stainless-retry-count": "1"})
        assert repeated["choices"][0]["message"]["tool_calls"] == CALLS[:1]
        posted(url, {"messages": [{"role": "user", "content": "Name this chat."}]})
        return 200

    with chatting(answer) as endpoint, service(act) as url:
        (ended, _) = played(job(room, AgentCommand(url), f"openai:m@{endpoint.url}"), tmp_path / "rolled")
        assert len(endpoint.asked) == 3, "a repeated request is answered as before"
    results = [(call["function_name"], result["content"], result["extra"].get("refused"))
               for step in ended.trajectory["steps"] for call, result in zip(
                   step.get("tool_calls", ()), (step.get("observation") or {}).get("results", ()), strict=True)]
    assert results == [("remember", "noted", True), ("read_sign", "I need no sign", True),
                       ("open_door", "the agent did not make this call", True)]
    about = ended.trajectory["extra"][OWN]
    assert about["n_refused"] == 2 and [row["kind"] for row in journal(ended.trajectory)] == ["finish"]
    assert about["aside"] == [{"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}]


def test_a_model_that_refuses_truncates_the_episode_and_one_that_is_gone_fails_it(room: Path, tmp_path: Path) -> None:
    agent = AgentCommand(f"{sys.executable} {LOOP} chat")
    with chatting(converse) as endpoint:
        endpoint.failures += [200, 200, 400]
        (ended, _) = played(job(room, agent, f"openai:m@{endpoint.url}"), tmp_path / "rolled")
        assert ended.trajectory["extra"][OWN]["ended"] == "truncated" and "refuses" in ended.trajectory["extra"][OWN]["note"]
        endpoint.failures += [401]
        (failed,) = played(job(room, agent, f"openai:m@{endpoint.url}"), tmp_path / "rolled", seed=1)
    assert "does not answer" in str(failed.error)


def test_token_ids_and_log_probabilities_are_recorded_where_the_endpoint_gives_them(room: Path, tmp_path: Path) -> None:
    agent = AgentCommand(f"{sys.executable} {LOOP} chat")
    with chatting(lambda asked: {"content": "Bye."}) as endpoint:
        endpoint.further = {"prompt_token_ids": [1, 2]}
        endpoint.of_choice = {"token_ids": [7, 8], "logprobs": {"content": [
            {"token": "B", "logprob": -0.5}, {"token": "ye.", "logprob": -0.25}]}}
        made = job(room, agent, f"openai:m@{endpoint.url}")._replace(tokens=True)
        (ended, _) = played(made, tmp_path / "rolled")
        assert endpoint.asked[0]["logprobs"] is True and endpoint.asked[0]["return_token_ids"] is True
    (step,) = [step for step in ended.trajectory["steps"] if "metrics" in step][:1]
    assert step["metrics"]["prompt_token_ids"] == [1, 2] and step["metrics"]["completion_token_ids"] == [7, 8]
    assert step["metrics"]["logprobs"] == [-0.5, -0.25]


def test_an_agent_gets_no_key_of_ours(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACEROOM_MODEL_KEY", "TRACEROOM_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "0ur-5ecret")
    agent = python(tmp_path, "import os, sys; sys.exit(str([n for n, v in os.environ.items() if '5ecret' in v]))")
    (failed,) = played(job(room, AgentCommand(agent)), tmp_path / "rolled")
    assert "exit code 1: []" in str(failed.error)
    assert os.environ["TRACEROOM_KEY"] == "0ur-5ecret"


def test_many_agents_play_at_once_each_in_its_own_episode(room: Path, tmp_path: Path) -> None:
    with chatting(converse) as endpoint:
        ended = played(job(room, AgentCommand(f"{sys.executable} -S {LOOP} chat"), f"openai:m@{endpoint.url}"),
                       tmp_path / "rolled", n_groups=2, group=4, n_seats=8)
    rewards = [each.trajectory["extra"][OWN]["reward"] for each in ended if isinstance(each, Episode)]
    assert rewards == [1.0] * 8


def test_a_preloaded_adapter_hides_no_sitecustomize_and_touches_nothing_without_an_episode(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('their own')")
    given = adapters.preloaded(["auto"], {"PYTHONPATH": str(tmp_path), "NODE_OPTIONS": "--no-warnings"})
    assert given["NODE_OPTIONS"].startswith("--no-warnings --import file:///")
    text = ("import traceroom_tools as tools, sys; "
            "print(tools.owns('open_door'), sorted(set(sys.modules) & {'asyncio', 'agents'}))")
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **given}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["their own", "False ['asyncio']"]


def test_the_command_line_plays_an_agent_and_names_what_is_wrong(
    traceroom: Traceroom, room: Path, tmp_path: Path
) -> None:
    moves = {"task_id": TASK, "steps": [{"tool": "open_door", "arguments": {"door": "7"}}]}
    policy = script(tmp_path, json.dumps(moves) + "\n", "way.jsonl")
    done = traceroom("rollout", room, "--policy", policy, "--agent", f"{sys.executable} {LOOP} chat", "--out", tmp_path / "r",
                     "--json")
    assert json.loads(done.stdout)["results"][0]["mean_reward"] == 1.0, done.stderr
    tested = traceroom("test", room, "--policy", policy, "--agent", f"{sys.executable} {LOOP} responses", "--least", "1",
                       "--out", tmp_path / "t")
    assert tested.returncode == 0, tested.stderr
    for words, wrong in ((("--agent", "x", "--adapter", "abacus"), "no adapter 'abacus'"),
                         (("--adapter", "crewai"), "there is no agent to adapt"),
                         ((), "nobody is named to play"), (("--agent", "'"), "cannot be read")):
        given = ("--policy", "oracle") if "--adapter" in words and "--agent" not in words else ()
        refused = traceroom("rollout", room, *words, *given, "--out", tmp_path / "r")
        assert refused.returncode == 2 and wrong in refused.stderr
    with pytest.raises(InputError):
        launching.check(AgentCommand("http://127.0.0.1:1", ("crewai",)))
