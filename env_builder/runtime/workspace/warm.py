"""Sandboxes that have the runner of tests loaded, and fork for each run: the host's side.

In: runs as those of a sandbox (sandbox.py), of a command `python3 -m MODULE …`. Out: the same results, without the time that
starting Python and loading the module take. A fork has a tree, files, processes, users and a network of its own, and begins as
the server was before the first run: no code of a tree runs in the server, no run sees another.

Does not see: what a module does differently when it is loaded before its tree is there. A run that this machine or the version
of Python does not allow is not made here (`SandboxUnavailable`): an ordinary sandbox makes it. Standard library only.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from .sandbox import GRACE_S, HELP, Changes, CommandLimits, CommandResult, Sandbox, SandboxUnavailable, result_of
from .trees import folders

_TREES = "/trees"
_LOADING_S = 60.0


class Loaded(NamedTuple):
    """What servers are started with: those of the same do the same."""

    sandbox: Sandbox
    module: str
    env: tuple[tuple[str, str], ...]


class WarmSandboxes:
    """The servers of this process: as many as the machine has cores, each running one command at a time."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or os.cpu_count() or 1
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[_Server] = []
        self._n_servers = 0
        self._unable: dict[Loaded, str] = {}

    def run(
        self, loaded: Loaded, tree: Path, changes: Changes, arguments: Sequence[str], env: Mapping[str, str],
        limits: CommandLimits,
    ) -> CommandResult:
        """Run `python3 -m MODULE ARGUMENTS` over a tree of `trees.folders` and changes. Raises SandboxUnavailable."""
        if self._process != os.getpid():   # a fork of this process may not speak with its servers
            self._renew()
        if loaded in self._unable:
            raise SandboxUnavailable(self._unable[loaded])
        spec, payload = loaded.sandbox.request(tree, changes, ["python3", "-m", loaded.module, *arguments], env, limits)
        spec["tree"] = f"{_TREES}/{tree.name}"
        server = self._take(loaded)
        try:
            answer = server.answer(json.dumps(spec).encode() + b"\n" + payload, limits.seconds + GRACE_S)
            return result_of(answer, changes, tree, loaded.sandbox.way)
        except (OSError, ValueError, SandboxUnavailable) as error:
            server.end()
            raise SandboxUnavailable(f"the run was not made in advance's sandbox: {error}") from error
        finally:
            self._give(server)

    def end(self) -> None:
        """End all servers that are idle."""
        with self._changed:
            while self._idle:
                self._idle.pop().end()
                self._n_servers -= 1

    def _take(self, loaded: Loaded) -> _Server:
        """Return a server of this kind: one that is idle, else a new one, in the place of an idle one of another kind."""
        with self._changed:
            while True:
                own = [server for server in self._idle if server.loaded == loaded]
                if own:
                    self._idle.remove(own[-1])
                    return own[-1]
                if self._n_servers < self._most or self._idle:
                    break
                self._changed.wait()
            if self._n_servers >= self._most:
                self._idle.pop(0).end()
                self._n_servers -= 1
            self._n_servers += 1
        try:
            return _Server(loaded)
        except (OSError, SandboxUnavailable) as error:
            with self._changed:
                self._n_servers -= 1
                self._unable[loaded] = str(error)
                self._changed.notify()
            raise SandboxUnavailable(str(error)) from error

    def _give(self, server: _Server) -> None:
        with self._changed:
            if server.is_alive:
                self._idle.append(server)
            else:
                self._n_servers -= 1
            self._changed.notify()


class _Server:
    """A process in a sandbox that waits for requests."""

    def __init__(self, loaded: Loaded) -> None:
        """Start it and wait until it has loaded its module. Raises OSError, SandboxUnavailable."""
        self.loaded = loaded
        self.is_alive = True
        self._root = tempfile.mkdtemp(prefix="traceroom-")
        self._process = loaded.sandbox.started()
        command = ["python3", f"{HELP}/traceroom_warm.py", loaded.module]
        spec, _ = loaded.sandbox.request(
            folders.root, {}, command, dict(loaded.env), CommandLimits(), [(folders.root, _TREES)])
        spec |= {"layout": "server", "cwd": "/", "as_root": False, "root": self._root}
        first = self._exchange(json.dumps(spec).encode() + b"\n", _LOADING_S)
        if first != b"ready\n":
            self.end()
            raise SandboxUnavailable(f"{loaded.module} cannot be loaded in advance")

    def answer(self, request: bytes, seconds: float) -> bytes:
        """Return the answer to a request; ends the server after this time. OSError: it ended."""
        header = self._exchange(request, seconds)
        if not header.endswith(b"\n"):
            raise OSError("the server ended")
        n_bytes = sum(size for *_, size in json.loads(header)["changes"])
        return header + self._output.read(n_bytes)

    def end(self) -> None:
        """End it, and whatever it runs."""
        self.is_alive = False
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._root, ignore_errors=True)

    def _exchange(self, request: bytes, seconds: float) -> bytes:
        """Write a request and return the first line of what comes back."""
        watch = threading.Timer(seconds, self._process.kill)
        watch.daemon = True
        watch.start()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(request)
            self._process.stdin.flush()
            return self._output.readline()
        finally:
            watch.cancel()

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


warm_sandboxes = WarmSandboxes()
"""Those of this process."""
atexit.register(lambda: warm_sandboxes.end())
