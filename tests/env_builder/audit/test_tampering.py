"""A program inside a room's container: what it can change, what it can find, and what a room that lies is worth.

The program runs as the room's own user in a second process of the container, which is more than an agent ever gets: an agent
speaks MCP and starts nothing there. It tries to write the world, the runtime and anything that looks like a rubric, to set the
clock, to attach a debugger to the room and to open a connection; it searches every readable file for the grader's texts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from env_builder import image, layers
from env_builder.process import start_process
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from tests.rooms import OPEN, TASK, write_room

SECRET = "the-sentence-of-a-check"
PROGRAM = r'''
import ctypes, json, os, socket, sys, time
secrets = json.loads(sys.argv[1])
def tried(what):
    try:
        what()
        return "allowed"
    except OSError as error:
        return type(error).__name__
def put(path):
    with open(path, "a") as file:
        file.write("{}\n")
def remove(path):
    os.chmod(path, 0o600)
    os.unlink(path)
def clock():
    time.clock_settime(time.CLOCK_REALTIME, 0)
def grip():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, 1, 0, 0):  # PTRACE_ATTACH to the room
        raise OSError(ctypes.get_errno(), "ptrace")
def reach():
    with socket.create_connection(("192.0.2.1", 80), timeout=1):
        pass
def search():
    found = []
    for folder, names, files in os.walk("/"):
        if folder in ("/proc", "/sys", "/dev"):
            names[:] = []
            continue
        for name in files:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    data = file.read(64 << 20)
            except OSError:
                continue
            called = name.lower()
            if "rubric" in called and not path.endswith((".py", ".pyc")) or "solution" in called and "/room" in path:
                found.append(path)
            found += [path + ": " + one[:40] for one in secrets if one.encode() in data]
    return sorted(set(found))
print(json.dumps({
    "world": tried(lambda: put("/room/world.packed")), "record": tried(lambda: remove("/room/recorded.packed")),
    "runtime": tried(lambda: put("/room/runtime/grading.py")), "rubric": tried(lambda: put("/room/rubrics.jsonl")),
    "beside": tried(lambda: os.makedirs("/rewards")), "clock": tried(clock), "room": tried(grip), "outside": tried(reach),
    "found": search()}))
'''
"""Tries everything, and says what came of it as JSON."""
TIME_S = 300.0
"""Seconds that the tries may take."""
TRIES = ("world", "record", "runtime", "rubric", "beside", "clock", "room", "outside")
"""What nobody in the container may do, by its name in `Tampered.tries`."""


class Tampered(NamedTuple):
    """What a program inside the container could do."""

    tries: dict[str, str]
    """What was tried -> `allowed`, or the error that stopped it."""
    findings: list[str]
    """Files that hold a secret, or are called like the grader's."""


def tamper(directory: Path, image_id: str) -> Tampered:
    """Try everything in a container that plays the task."""
    with image.start(directory, TASK, image_id=image_id) as room:
        assert isinstance(room.transport, image.ContainerTransport)
        done = room.transport.run(["python3", "-I", "-S", "-c", PROGRAM, json.dumps([SECRET])], b"", TIME_S)
        assert done.exit_code == 0, done.stderr[-200:].decode(errors="replace")
        tries: dict[str, Any] = json.loads(done.stdout)
        return Tampered({name: str(value) for name, value in tries.items() if name != "found"}, list(tries["found"]))


@pytest.fixture(scope="module")
def tampered(tmp_path_factory: pytest.TempPathFactory, base_image: str) -> Tampered:
    room = write_room(tmp_path_factory.mktemp("tampering") / "hall")
    made = image.build(room, base_image)
    assert made.image_id, made.skip_reason
    return tamper(room, made.image_id)


@pytest.mark.docker
@pytest.mark.parametrize("name", TRIES)
def test_a_program_inside_the_container_cannot(tampered: Tampered, name: str) -> None:
    assert tampered.tries[name] in ("PermissionError", "OSError"), f"{name}: {tampered.tries[name]}"


@pytest.mark.docker
def test_the_container_holds_nothing_of_the_grader(tampered: Tampered) -> None:
    assert tampered.findings == []


@pytest.mark.docker
def test_a_secret_that_is_there_is_found(tmp_path: Path, base_image: str) -> None:
    room = write_room(tmp_path / "hall")
    tools = room / "tools.jsonl"
    tools.write_text(tools.read_text("utf-8").replace("in words", SECRET), "utf-8")
    manifest = json.loads((room / "manifest.json").read_text("utf-8"))
    manifest["files"]["tools.jsonl"] = layers.digest(tools.read_bytes())
    (room / "manifest.json").write_text(json.dumps(manifest | {"content_digest": "0" * 64}), "utf-8")
    made = image.build(room, base_image)
    assert made.image_id, made.skip_reason
    found = tamper(room, made.image_id)
    assert found.findings == [f"/room/tools.jsonl: {SECRET}"]


def test_what_a_room_claims_is_worth_nothing(tmp_path: Path) -> None:
    room = write_room(tmp_path / "environments" / "hall")
    end = {"documents": {"door/7": OPEN}, "write_calls": []}
    checks = [{"check_id": "a", "kind": "state", "role": "gate", "weight": 1.0, "description": "",
               "parameters": {"accepted": [end]}}]
    grader = tmp_path / "rewards" / "hall"
    grader.mkdir(parents=True)
    rubric = {"rubric_id": "r", "task_id": TASK, "checks": checks}
    (grader / "rubrics.jsonl").write_text(canonical(rubric) + "\n", "utf-8")
    environment = Environment.load(room)
    looked = {"kind": "call", "tool": "read_sign", "arguments": {"at": "gate"}}
    lies = [looked | {"content": OPEN, "is_error": False, "tier": "recorded", "difference": end, "reward": 1.0},
            {"kind": "grade", "reward": 1.0, "checks": []}, {"kind": "finish", "reward": 1.0}]
    assert environment.grade_journal(TASK, lies).reward == 0.0
    done = {"kind": "call", "tool": "open_door", "arguments": {"door": "7"}, "content": "nothing happened", "is_error": True}
    assert environment.grade_journal(TASK, [done]).reward == 1.0, "nor can a room that lies take a reward away"


def test_a_room_of_its_own_serves_no_answer(tmp_path: Path) -> None:
    room = write_room(tmp_path / "environments" / "hall")
    with start_process(room, TASK) as served:
        told = [served.call(tool["name"], {"?": "?"}).content for tool in served.tools()]
        assert told and not any("gate" in text or '"7"' in text for text in told), "what others asked is told to nobody"
        assert "rubric" not in json.dumps(served.tools())
