"""Tampering: what a program inside a room's container can change, and what it can find.

In: an environment with its image, and secrets that must not be there (ids and texts of the grader's side). Out: `Tampered`, one
finding a try. The program runs as the room's own user in a second process of the container, which is more than an agent ever
gets: an agent speaks MCP and starts nothing there.
Sees: writing the world, the runtime, anything that looks like a rubric; setting the clock; a debugger's grip on the room;
reaching out; every readable file searched for the secrets. Does not see: flaws of the engine and of the kernel.
What a room that has been taken over claims does not matter to a reward: the grader replays the journal on a world of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import image
from warehouse.errors import Unavailable

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

    @property
    def holds(self) -> bool:
        """Did nothing get through, and was nothing found?"""
        return not self.findings and all(self.tries[name] != "allowed" for name in TRIES)


def tamper(directory: Path, task_id: str, secrets: Iterable[str], image_id: str | None = None) -> Tampered:
    """Try everything in a container that plays the task, of the environment's image or the one that is named.

    Unavailable where no engine answers or the program does not run.
    """
    with image.start(directory, task_id, image_id=image_id) as room:
        if not isinstance(room.transport, image.ContainerTransport):
            raise Unavailable("the room is in no container", str(directory))
        done = room.transport.run(["python3", "-I", "-S", "-c", PROGRAM, json.dumps(sorted(secrets))], b"", TIME_S)
        if done.exit_code != 0:
            raise Unavailable(f"the program does not run ({done.stderr[-200:].decode(errors='replace')})", str(directory))
        tries: dict[str, Any] = json.loads(done.stdout)
        return Tampered({name: str(value) for name, value in tries.items() if name != "found"}, list(tries["found"]))
