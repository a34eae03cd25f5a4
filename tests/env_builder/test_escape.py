"""An agent that runs programs of its own and wants out: what it finds, what it breaks, and that it is graded all the same."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from env_builder import agents, image
from env_builder.agents import AgentContainer
from env_builder.image.containers import MAX_OUTPUT
from env_builder.process import EnvironmentProcess
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from tests.rooms import CLOSED, OPEN, TASK, write_room
from warehouse.errors import Unavailable

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SECRET = "what-only-the-grader-knows"
CHECKS = [
    {"check_id": "a", "kind": "state", "role": "gate", "weight": 1.0, "description": SECRET,
     "parameters": {"accepted": [{"documents": {"door/7": OPEN}, "write_calls": []}]}}]


class Scene(NamedTuple):
    """An episode of an agent with programs of its own."""

    environment: Path
    image_id: str
    room: EnvironmentProcess
    agent: AgentContainer

    def tried(self, program: str, *words: str) -> dict[str, Any]:
        """Return what a Python program in the agent's container prints as JSON."""
        done = self.agent.run(["python3", "-c", program, *words], timeout_s=200)
        assert done.exit_code == 0, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def reward(self) -> float | None:
        """Return what the grader says of the episode so far, after the agent has done its task."""
        done = self.agent.run(["python3", "/tools/tools.py", "call", "open_door", '{"door": "7"}'])
        assert (done.exit_code, done.stdout.decode().strip()) == (0, OPEN), done.stderr.decode()
        return Environment.load(self.environment).grade_journal(TASK, self.room.journal()).reward


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a room, and beside it its grader's side."""
    out = tmp_path_factory.mktemp("escape")
    room, grader = write_room(out / "environments" / "hall"), out / "rewards" / "hall"
    grader.mkdir(parents=True)
    rubric = {"rubric_id": "r", "task_id": TASK, "checks": CHECKS}
    (grader / "rubrics.jsonl").write_text(canonical(rubric) + "\n", "utf-8")
    return room


@pytest.fixture
def scene(environment: Path, base_image: str) -> Iterator[Scene]:
    made = image.build(environment, base_image)
    assert made.image_id, made.skip_reason
    with image.start(environment, TASK, image_id=made.image_id) as room, image.agent(room, base_image) as agent:
        yield Scene(environment, made.image_id, room, agent)


SEARCH = r'''
import json, os, sys
secrets, found, written = json.loads(sys.argv[1]), [], []
for folder, names, files in os.walk("/"):
    if folder in ("/proc", "/sys"):
        names[:] = []
        continue
    try:
        path = os.path.join(folder, "mine")
        open(path, "w").close()
        os.unlink(path)
        written.append(folder)
    except OSError:
        pass
    for name in files:
        path = os.path.join(folder, name)
        try:
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read(64 << 20)
        except OSError:
            continue
        found += [path + ": " + one for one in secrets if one.encode() in data]
commands = []
for process in filter(str.isdigit, os.listdir("/proc")):
    commands.append(open(f"/proc/{process}/cmdline").read().replace("\0", " "))
print(json.dumps({
    "found": found, "written": written, "commands": commands, "room": os.path.exists("/room"),
    "host": [path for path in json.loads(sys.argv[2]) if os.path.exists(path)],
    "devices": sorted(name for name in os.listdir("/dev"))}))
'''


def test_nothing_of_others_is_there_to_read(scene: Scene, environment: Path, base_image: str) -> None:
    """World, rubric, solution, another episode, the host: not a byte. What it may write is in memory, and its own."""
    host = [str(environment), str(Path(__file__)), "/var/run/docker.sock", "/run/docker.sock"]
    other = "a word of another episode"
    with image.start(environment, TASK, image_id=scene.image_id) as room, image.agent(room, base_image) as agent:
        agent.put("/work/notes", other.encode())
        assert room.say(other) == "The seventh, please."
        secrets = [CLOSED, OPEN, "Mind the gap", TASK, SECRET, "The seventh, please", other]
        result = scene.tried(SEARCH, json.dumps(secrets), json.dumps(host))
    assert result["found"] == [] and not result["room"] and result["host"] == []
    assert set(result["written"]) <= {"/tmp", "/work", "/dev/shm", "/dev/mqueue"}
    assert all("/tools/tools.py" in command or command.startswith("python3 -c") for command in result["commands"])
    assert not [name for name in result["devices"] if name.startswith(("sd", "vd", "nvme", "mem", "kmsg", "loop"))]
    assert [row["kind"] for row in scene.room.journal()] == [], "what another agent did is not in this journal"
    assert scene.reward() == 1.0


GRASP = r'''
import ctypes, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def called(name, *arguments):
    def what():
        if getattr(libc, name)(*arguments):
            raise OSError(ctypes.get_errno(), name)
    return what
def tried(what):
    try:
        what()
        return "allowed"
    except OSError as error:
        return type(error).__name__
def reach(where):
    return lambda: socket.create_connection(where, timeout=2).close()
def tell():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.sendto(b"x", ("192.0.2.1", 53))
print(json.dumps({
    "mount": tried(called("mount", b"none", b"/work", b"tmpfs", 0, None)), "root": tried(lambda: os.setuid(0)),
    "room's user": tried(lambda: os.setuid(10001)), "namespace": tried(called("unshare", 0x10000000 | 0x20000)),
    "chroot": tried(lambda: os.chroot("/work")), "device": tried(lambda: os.mknod("/work/disk", 0o60600, os.makedev(8, 0))),
    "clock": tried(lambda: __import__("time").clock_settime(0, 0)), "kernel": tried(lambda: open("/proc/sysrq-trigger", "w")),
    "limits": tried(lambda: open("/sys/fs/cgroup/pids/pids.max", "w")), "name": tried(lambda: socket.sethostname("x")),
    "network": tried(reach(("192.0.2.1", 80))), "host": tried(reach(("172.17.0.1", 22))),
    "datagram": tried(tell), "names": tried(reach(("example.org", 80))), "interfaces": os.listdir("/sys/class/net")}))
'''


def test_nothing_outside_can_be_grasped(scene: Scene) -> None:
    tries = scene.tried(GRASP)
    assert tries.pop("interfaces") == ["lo"]
    assert "allowed" not in tries.values(), tries
    assert scene.reward() == 1.0


ASK = r'''
import json, socket, sys
def lines(*texts):
    with socket.socket(socket.AF_UNIX) as way, way.makefile("rb") as answers:
        way.connect("/tmp/tools.sock")
        replies = []
        for text in texts:
            way.sendall(text.encode() + b"\n")
            replies.append(json.loads(answers.readline() or b'"closed"'))
        return replies
def asking(name):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "traceroom/" + name, "params": {"task_id": None}})
replies = lines(*map(asking, ["tasks", "journal", "reset", "learn", "state", "supply", "prompt"]))
garbage = lines("[" * 100000, "not json", "[" + asking("journal") + "]",
                '{"id": {}, "method": "ping"}', '{"id": 1, "method": []}')
with open("/proc/1/fd/1", "wb", buffering=0) as stdout:  # past the socket, straight to the host
    stdout.write(asking("reset").encode() + b"\n")
(acted,) = lines(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "open_door", "arguments": {"door": "7"}, "_meta": {"traceroom/episode": "another's"}}}))
codes = [[each["error"]["code"] for each in some] for some in (replies, garbage)]
print(json.dumps({"asked": codes[0], "garbage": codes[1], "acted": acted["result"]["content"][0]["text"]}))
'''


def test_the_way_to_the_tools_is_the_way_to_nothing_else(scene: Scene) -> None:
    assert scene.room.call("read_sign", {"at": "gate"}).tier == "recorded"
    about = {"_meta": {"traceroom/episode": "another's"}}
    scene.room.request("traceroom/reset", {**scene.room.reset_params(TASK), **about})
    result = scene.tried(ASK)
    assert result["acted"] == OPEN and scene.room.request("traceroom/journal", about)["journal"] == []
    assert set(result["asked"]) == {-32601}
    assert result["garbage"] == [-32700, -32700, -32600, -32600, -32600]
    assert [row["tool"] for row in scene.room.journal()] == ["read_sign", "open_door"], "nobody has begun another episode"


BOMB = r'''
import os, time
n = 0
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            for output in (1, 2):
                os.close(output)
            while True:
                try:
                    if os.fork() == 0:
                        continue
                except OSError:
                    time.sleep(0.1)
        n += 1
    except OSError:
        break
print(n)
'''


def test_a_fork_bomb_stays_in_its_container(scene: Scene) -> None:
    done = scene.agent.run(["python3", "-c", BOMB], timeout_s=120)
    assert 0 < int(done.stdout) < image.AGENT_LIMITS.n_processes, "the container has no process left"
    began = time.monotonic()
    assert scene.room.call("open_door", {"door": "7"}).content == OPEN
    assert time.monotonic() - began < 60
    assert Environment.load(scene.environment).grade_journal(TASK, scene.room.journal()).reward == 1.0
    began = time.monotonic()
    scene.agent.close()
    assert time.monotonic() - began < 120, "and ends with all its processes"


FILL = r'''
import json, os
def fill(folder):
    n = 0
    try:
        with open(folder + "/fill", "wb") as file:
            while n < 4 << 30:
                n += file.write(b"x" * (1 << 20))
                file.flush()
    except OSError as error:
        os.unlink(folder + "/fill")
        return [type(error).__name__, n >> 20]
    return ["allowed", n >> 20]
print(json.dumps({folder: fill(folder) for folder in ("/work", "/tmp", "/dev/shm")}))
'''


def test_no_disk_and_no_memory_fills_up(scene: Scene) -> None:
    filled = scene.tried(FILL)
    assert filled["/work"] == ["OSError", image.AGENT_LIMITS.scratch_mb] and filled["/tmp"] == filled["/work"]
    assert filled["/dev/shm"][0] == "OSError" and filled["/dev/shm"][1] <= 1
    done = scene.agent.run(["python3", "-c", "x = bytearray(4 << 30); print(len(x))"], timeout_s=200)
    assert done.exit_code not in (0, None) and done.stdout == b"", "memory is limited"
    flood = "import os\nfor _ in range(64): os.write(1, b'x' * (1 << 20))"
    done = scene.agent.run(["python3", "-c", flood], timeout_s=200)
    assert done.exit_code == 0 and len(done.stdout) == 1 << 20, "what a program says beyond that is dropped"
    assert scene.reward() == 1.0


def test_the_time_of_a_container_is_limited(environment: Path, scene: Scene, base_image: str) -> None:
    limits = image.AGENT_LIMITS._replace(seconds=6.0)
    with image.agent(scene.room, base_image, limits) as agent:
        began = time.monotonic()
        assert agent.run(["sleep", "900"]).exit_code is None
        assert time.monotonic() - began < 300
        with pytest.raises(Unavailable, match="its 6 s were over"):
            agent.run(["true"])
    assert scene.agent.run(["true"]).exit_code == 0, "of this container, not of the others"
    assert scene.reward() == 1.0


def test_a_room_that_goes_takes_the_agents_container_with_it(scene: Scene) -> None:
    scene.room.close()
    program = 'import json, socket; way = socket.socket(socket.AF_UNIX); way.connect("/tmp/tools.sock"); ' \
        'way.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\\n"); way.recv(1)'
    with pytest.raises(Unavailable, match="the environment process is gone"):
        scene.agent.run(["python3", "-c", program])
        scene.agent.run(["true"])


def test_more_is_told_than_a_program_reads(scene: Scene) -> None:
    data = bytes(5_000_000)
    assert scene.agent.run(["wc", "-c"], data).stdout.strip() == b"5000000"
    assert scene.agent.run(["true"], data).exit_code == 0
    assert len(scene.agent.run(["cat"], data).stdout) == MAX_OUTPUT
    assert scene.agent.run(["sleep", "60"], data, timeout_s=3.0).exit_code is None


def test_the_clients_in_the_container(scene: Scene) -> None:
    """A command line, a Python module, MCP over stdio: all reach the same episode."""
    listed = scene.agent.run(["python3", "/tools/tools.py", "list"])
    assert [json.loads(line)["name"] for line in listed.stdout.splitlines()] == ["open_door", "read_sign"]
    heard_words = scene.agent.run(["python3", "/tools/tools.py", "say", "Which door?"])
    assert heard_words.stdout == b"The seventh, please.\n"
    refused = scene.agent.run(["python3", "/tools/tools.py", "call", "fly", "{}"])
    assert refused.exit_code == 2 and b"no tool 'fly'; there are: open_door, read_sign" in refused.stderr
    shaken = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    lines = [{"id": 1, "method": "initialize", "params": shaken}, {"method": "notifications/initialized"},
             {"id": 2, "method": "tools/call", "params": {"name": "read_sign", "arguments": {"at": "gate"}}}]
    stdin = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines)
    spoken = scene.agent.run(["python3", "/tools/tools.py", "mcp"], stdin)
    replies = [json.loads(line) for line in spoken.stdout.splitlines()]
    assert replies[0]["result"]["protocolVersion"] == "2025-11-25"
    assert replies[1]["result"]["content"][0]["text"] == "Mind the gap\n — 雨"
    assert [row["kind"] for row in scene.room.journal()] == ["say", "call"]
    with pytest.raises(Unavailable, match=r"/usr/x: the file cannot be written .*Read-only file system"):
        scene.agent.put("/usr/x", b"")
    assert agents.METHODS.isdisjoint({"traceroom/journal", "traceroom/reset", "traceroom/tasks"})
