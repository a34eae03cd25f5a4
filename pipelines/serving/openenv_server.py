"""The OpenEnv server as a process of its own: the package wants an older MCP SDK than ours, so it has another interpreter.

In: an environment, what its episodes begin with. The room is started here; the server inherits its connection and the socket
that it listens at. Which interpreter: the one that TRACEROOM_OPENENV_PYTHON names; else this one, where it has `openenv`; else
one that is made once, in the user's cache, with pip.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from env_builder.room import Room
from pipelines.serving.listening import listen
from pipelines.serving.rollouts import Rollout
from pipelines.serving.rooms import beginner
from warehouse.errors import InputError, Unavailable

PACKAGE = "openenv==0.10.0"
APP = Path(__file__).with_name("openenv_app.py")


def interpreter(say: Callable[[str], None]) -> Path:
    """Python with the package; Unavailable where it cannot be had. `say` is told before anything is installed."""
    named = os.environ.get("TRACEROOM_OPENENV_PYTHON")
    if named:
        return Path(named)
    if importlib.util.find_spec("openenv") is not None:
        return Path(sys.executable)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "traceroom" / f"{PACKAGE.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    home.mkdir(parents=True, exist_ok=True)
    python, ready = home / "bin" / "python", home / "ready"
    with FileLock(home / "lock"):
        if not ready.exists():
            say(f"installing {PACKAGE} into {home}, once")
            venv.create(home, with_pip=True, clear=False)
            done = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE],
                capture_output=True, text=True, check=False)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or [""])[-1]
                mend = "install it elsewhere and name its Python in TRACEROOM_OPENENV_PYTHON"
                raise Unavailable(f"{PACKAGE} cannot be installed ({said})", str(home), mend)
            ready.touch()
    return python


def serve(
    environment: Path, rollout: Rollout, host: str, port: int, *, container: bool = False, journals: Path | None = None,
    limit: int, idle_s: float, ready: Callable[[str], None], say: Callable[[str], None],
) -> None:
    """Serve until interrupted or terminated; `ready` is told the address. TraceroomError where it cannot begin."""
    if rollout.ask is not None:
        raise InputError("a model does not answer here", "--ask", "serve over MCP, without --openenv")
    python = interpreter(say)
    with listen(host, port) as listening, beginner(environment, container, rollout.bindings)() as room:
        room.reset(rollout.task_id, rollout.seed, rollout.conditions)  # what cannot be is refused now
        settings = _settings(environment, rollout, room, listening) | {
            "framed": container, "journals": str(journals.resolve()) if journals else None, "episodes": limit, "idle_s": idle_s}
        fds = (settings["listen_fd"], settings["room_fd"])
        process = subprocess.Popen(  # what this process is told at a terminal, it passes on: once
            [python, str(APP), json.dumps(settings)], stdout=subprocess.PIPE, pass_fds=fds, text=True, start_new_session=True)
        with _passing_on(process):
            assert process.stdout is not None
            if process.stdout.readline() == "ready\n":
                ready(f"http://{host}:{listening.getsockname()[1]}")
            process.wait()
    if process.returncode not in (0, -signal.SIGINT, -signal.SIGTERM):
        raise Unavailable(f"the server ended with {process.returncode}", str(environment), f"see above; {python} runs it")


def _settings(environment: Path, rollout: Rollout, room: Room, listening: socket.socket) -> dict[str, Any]:
    rewards = environment.absolute().parent.parent / "rewards" / environment.name
    return {
        "name": environment.name, "environment": str(environment.absolute()), "graded": rewards.is_dir(),
        "task_id": rollout.task_id, "seed": rollout.seed,
        "conditions": list(rollout.conditions), "bindings": dict(rollout.bindings), "listen_fd": listening.fileno(),
        "room_fd": room.carrier.socket.fileno()}


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[str]) -> Iterator[None]:
    """Pass on what this process is told, and end the other with it."""
    def tell(number: int, frame: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
