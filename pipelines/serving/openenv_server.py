"""The OpenEnv server as a process of its own: the package wants an older MCP SDK than ours, so it has another interpreter.

In: an environment, what its episodes begin with. The environment process is started here; the server inherits its connection
and the listening socket. The interpreter is the one that TRACEROOM_OPENENV_PYTHON names; else this one, if it has `openenv`;
else one that is made once, in the user's cache, with pip.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from pipelines.serving.access import ServerAccess
from pipelines.serving.listening import listen
from pipelines.serving.sessions import Rollout, SessionLimits, process_starter
from warehouse.errors import InputError, Unavailable

PACKAGE = "openenv==0.10.0"
APP = Path(__file__).with_name("openenv_app.py")


def interpreter(say: Callable[[str], None]) -> Path:
    """Return a Python with the package; Unavailable if there is none. Calls `say` before it installs anything."""
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
                reason = (done.stderr.strip().splitlines() or [""])[-1]
                hint = "install it elsewhere and name its Python in TRACEROOM_OPENENV_PYTHON"
                raise Unavailable(f"cannot install {PACKAGE} ({reason})", str(home), hint)
            ready.touch()
    return python


def serve(
    environment: Path, rollout: Rollout, address: tuple[str, int], access: ServerAccess, *, container: bool = False,
    journals: Path | None = None, limits: SessionLimits, ready: Callable[[str], None], say: Callable[[str], None],
) -> None:
    """Serve until interrupted or terminated; calls `ready` with the address. TraceroomError if it cannot start."""
    if rollout.ask is not None:
        raise InputError("an OpenEnv server cannot let a model answer", "--ask", "serve over MCP, without --openenv")
    python, (host, port) = interpreter(say), address
    with listen(host, port) as listening, process_starter(environment, container, rollout.bindings)() as played:
        played.reset(rollout.task_id, rollout.seed, rollout.perturbations)  # an invalid rollout is rejected now
        rewards = environment.absolute().parent.parent / "rewards" / environment.name
        fds = listening.fileno(), played.transport.socket.fileno()
        settings = rollout.row() | {
            "name": environment.name, "environment": str(environment.absolute()), "graded": rewards.is_dir(),
            "listen_fd": fds[0], "process_fd": fds[1], "framed": container,
            "journals": str(journals.resolve()) if journals else None, "episodes": limits.most, "idle_s": limits.idle_s,
            "most_of_one": limits.most if limits.most_of_one is None else limits.most_of_one, **access.settings()}
        server = subprocess.Popen(  # in a session of its own: a terminal's signal reaches it once, through this process
            [python, str(APP)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=fds, text=True, start_new_session=True)
        with _forward_signals(server):
            assert server.stdin is not None and server.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                server.stdin.write(json.dumps(settings))
                server.stdin.close()
            if server.stdout.readline() == "ready\n":
                ready(f"http://{host}:{listening.getsockname()[1]}")
            server.wait()
    if server.returncode not in (0, -signal.SIGINT, -signal.SIGTERM):
        raise Unavailable(f"the server ended with {server.returncode}", str(environment), f"see above; {python} runs it")


@contextlib.contextmanager
def _forward_signals(process: subprocess.Popen[str]) -> Iterator[None]:
    """Forward SIGINT and SIGTERM to the process, and end it at last."""
    def forward(number: int, frame: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
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
