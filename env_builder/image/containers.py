"""A running container: what it may do, and the transport to it.

In: a client of the engine, an image, limits. Out: a transport to its first process's stdio, which also runs other programs in
it. An environment's container has user 10001, an agent's 10002; both a read-only root, no network, no capabilities, no new
privileges, and limits for memory, processes, processor time, wall time and files. The engine stores no output, so none of it
fills the host's disk; the end of the host's connection is the end of its stdin.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from env_builder.agents import ProgramResult
from env_builder.layers import ROOM_WAY, Way
from env_builder.process import FrameDecoder
from warehouse.errors import Unavailable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

CHUNK = 64 * 1024
"""Bytes that are read at a time."""
MAX_OUTPUT = 1 << 20
"""Bytes of a program's stdout, and of its stderr, that are kept."""
REMOVED_S = 30
"""How long the removal of a container that the engine has begun is waited for."""


class ContainerLimits(NamedTuple):
    """What a running container may use."""

    memory_mb: int = 512
    """What is written to its temporary folders counts too."""
    n_processes: int = 32
    network: bool = False
    seconds: float = 7200.0
    """Wall time, after which the container is ended."""
    cpus: float = 1.0
    """Cores that it may keep busy."""
    scratch_mb: int = 16
    """What it may write to /tmp, and an agent to its folder as well."""


DEFAULT_LIMITS = ContainerLimits()
AGENT_LIMITS = ContainerLimits(n_processes=128, scratch_mb=64)


class ContainerTransport:
    """Moves bytes to and from the first process of a container, and runs other programs in it."""

    def __init__(
        self, client: DockerClient, image_id: str, options: list[str], limits: ContainerLimits = DEFAULT_LIMITS,
        way: Way = ROOM_WAY,
    ) -> None:
        from docker.errors import DockerException, NotFound

        self._client = client
        self._errors: tuple[type[BaseException], ...] = (DockerException, OSError)
        self._stderr = b""
        self._ended: str | None = None
        """Why it was killed."""
        self._frames = FrameDecoder()
        try:
            self._container = _create(client, image_id, options, limits, way)
        except NotFound as error:
            raise Unavailable("no such image in the engine", image_id, "build the environment's image again") from error
        except self._errors as error:
            raise Unavailable(f"the engine makes no container ({error})", image_id) from error
        self.container_id = str(self._container.id)
        self._over = threading.Timer(limits.seconds, self._end, [f"its {limits.seconds:g} s were over"])
        self._over.daemon = True
        try:
            params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = self._container.attach_socket(params=params)  # kept: without a reference the socket is closed
            self._container.start()
            self._over.start()
        except self._errors as error:
            self.close()
            raise Unavailable(f"the container does not start ({error})", image_id) from error

    def send(self, data: bytes) -> None:
        """Write all of it."""
        self.socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Return some bytes of the first process's stdout; its stderr is stored."""
        ends = time.monotonic() + timeout_s
        while data := _received(self.socket, ends):
            words = self.decode(data)
            if words:
                return words
        return b""

    @property
    def socket(self) -> socket.socket:
        """Return the socket of the first process's stdio, in the engine's frames."""
        return _socket_of(self._stream)

    def decode(self, data: bytes) -> bytes:
        """Return the first process's stdout among bytes that were read from the socket; its stderr is stored."""
        stdout, stderr = self._frames.split(data)
        self._stderr = (self._stderr + stderr)[-4096:]
        return stdout

    def run(self, program: Sequence[str], stdin: bytes, timeout_s: float) -> ProgramResult:
        """Run another program in the container, as its user; after `timeout_s` the whole container is ended."""
        if self._ended is not None:  # the engine may take a moment to notice
            raise Unavailable(f"the container is gone ({self._ended})")
        api = self._client.api
        try:
            made = api.exec_create(self.container_id, list(program), stdin=True)["Id"]
            stream = api.exec_start(made, socket=True)
            with contextlib.closing(_socket_of(stream)) as stdio:
                stdout, stderr = _communicate(stdio, stdin, time.monotonic() + timeout_s)
            code: int | None = None if self._ended is not None else api.exec_inspect(made)["ExitCode"]
        except TimeoutError:
            self._end(f"a program took more than {timeout_s:g} s")
            return ProgramResult(None, b"", b"")
        except self._errors as error:
            raise Unavailable(f"the container is gone ({self._stderr.decode(errors='replace') or error})") from error
        return ProgramResult(code, stdout, stderr)

    def last_error_line(self) -> str:
        """Return the last line on stderr."""
        with contextlib.suppress(*self._errors):
            while self.receive(1.0):
                pass
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Kill and remove the container."""
        self._over.cancel()
        with contextlib.suppress(*self._errors, AttributeError):
            self.socket.close()
        with contextlib.suppress(*self._errors):
            from docker.errors import APIError

            try:
                self._container.remove(force=True)
            except APIError as error:
                if error.status_code != HTTPStatus.CONFLICT:
                    raise
                self._container.wait(condition="removed", timeout=REMOVED_S)  # the engine removes it since its stdin ended
        self._client.close()

    def _end(self, why: str) -> None:
        """Kill the container for a reason, which becomes its last line on stderr."""
        self._ended = why
        self._stderr += f"\n{why}".encode()
        with contextlib.suppress(*self._errors):
            self._container.kill()


def _socket_of(stream: Any) -> socket.socket:
    """Return the socket beneath what the engine's client gives."""
    return cast(socket.socket, vars(stream).get("_sock", stream))


def _received(stream: socket.socket, ends: float) -> bytes:
    """Return some bytes, empty at the end; TimeoutError at `ends` of the monotonic clock."""
    stream.settimeout(None if ends == float("inf") else max(0.001, ends - time.monotonic()))
    return stream.recv(CHUNK)


def _communicate(stream: socket.socket, stdin: bytes, ends: float) -> tuple[bytes, bytes]:
    """Return a program's stdout and stderr after it ended, while writing its stdin; TimeoutError at `ends`."""
    frames, outputs, unsent = FrameDecoder(), (bytearray(), bytearray()), memoryview(stdin)
    stream.setblocking(False)
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while True:
            events = ready.select(max(0.001, ends - time.monotonic()))
            if not events or time.monotonic() > ends:
                raise TimeoutError
            mask = events[0][1]
            if mask & selectors.EVENT_WRITE:
                unsent = _write_some(stream, unsent)
                if not unsent:
                    ready.modify(stream, selectors.EVENT_READ)
            if mask & selectors.EVENT_READ:
                data = stream.recv(CHUNK)
                if not data:
                    return bytes(outputs[0]), bytes(outputs[1])
                for output, chunk in zip(outputs, frames.split(data), strict=True):
                    output += chunk[:max(0, MAX_OUTPUT - len(output))]


def _write_some(stream: socket.socket, unsent: memoryview) -> memoryview:
    """Return what is still to send; nothing if its reader has ended."""
    try:
        unsent = unsent[stream.send(unsent):]
        if not unsent:
            stream.shutdown(socket.SHUT_WR)
    except BlockingIOError:
        return unsent
    except OSError:
        return unsent[:0]
    return unsent


def _create(client: DockerClient, image_id: str, options: list[str], limits: ContainerLimits, way: Way) -> Container:
    from docker.errors import APIError
    from docker.types import LogConfig, Ulimit

    scratch = f"size={limits.scratch_mb}m,nosuid,nodev"
    own = {} if way is ROOM_WAY else {way.folder: f"{scratch},exec,mode=0700,uid={way.user},gid={way.user}"}
    settings: dict[str, Any] = {
        "command": options, "stdin_open": True, "tty": False, "auto_remove": True, "labels": {"traceroom": "room"},
        "user": f"{way.user}:{way.user}", "read_only": True, "tmpfs": {"/tmp": f"{scratch},noexec", **own}, "shm_size": "1m",
        "network_mode": "bridge" if limits.network else "none", "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"],
        "mem_limit": f"{limits.memory_mb}m", "memswap_limit": f"{limits.memory_mb}m", "pids_limit": limits.n_processes,
        "ulimits": [Ulimit(name="core", soft=0, hard=0)], "log_config": LogConfig(type="none")}
    try:
        return client.containers.create(image_id, **settings, nano_cpus=int(limits.cpus * 1e9))
    except APIError as error:
        if "NanoCPUs" not in str(error):
            raise
        return client.containers.create(image_id, **settings)  # a kernel that cannot limit processor time
