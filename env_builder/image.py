"""The environment as a container image, and a room running from it: the one door to Docker.

In: an environment's directory and a base image with Python 3.11 or newer. Out: an image in the engine, whose id depends
on the base's digest and the environment's content alone: the archive that the engine loads is written here (`archive`),
so the same environment gives the same id in any folder, on any day. Layout: docs/containers.md.

A running room: user 10001, read-only root, no network, no capabilities, no new privileges, memory and process limits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from env_builder.archive import ENTRYPOINT, ROOM_USER, read_manifest, room_layer, write_base, write_on_top
from env_builder.room import Room, arguments, begun
from env_builder.runtime.canonical import digest
from warehouse.errors import InputError, Unavailable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

DEFAULT_BASE = (
    "docker.io/library/python:3.11-slim-bookworm"
    "@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b"
)
"""Python 3.11.16 on Debian 12, the registry's index of all platforms."""
LOCAL_BASE = "traceroom-base:bookworm"
"""Name of the base that `traceroom base-image` makes."""
_BASE_EPOCH = "1767225600"
_BASE_PACKAGES = "python3-minimal,libpython3-stdlib,busybox-static"
_BASE_HOOK = 'chroot "$1" /bin/busybox --install -s /bin'
_NO_ENGINE_MEND = "start one (Debian: apt-get install docker.io), or go on without images"


class ImageResult(NamedTuple):
    """What became of an environment's image."""

    image_id: str | None
    """`sha256:…` in the engine; None: none was made."""
    base: str | None
    """Base with its digest."""
    left: str | None
    """Why there is none, in one sentence."""


class Limits(NamedTuple):
    """What a running room may use."""

    memory_mb: int = 512
    n_processes: int = 32
    network: bool = False


DEFAULT_LIMITS = Limits()


def engine() -> DockerClient:
    """A client of the engine at DOCKER_HOST (or the usual socket); Unavailable within seconds where none answers."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        client.ping()
    except (DockerException, OSError) as error:
        raise Unavailable("no Docker engine answers", os.environ.get("DOCKER_HOST", ""), _NO_ENGINE_MEND) from error
    client.api.timeout = 600
    return client


def has(name: str) -> bool:
    """Whether the engine has the image; Unavailable where no engine answers."""
    from docker.errors import ImageNotFound

    with contextlib.closing(engine()) as client:
        try:
            client.images.get(name)
        except ImageNotFound:
            return False
    return True


def build(directory: Path, base: str | None = None) -> ImageResult:
    """Image of the environment in `directory`; where no engine or no base is there, why it was left.

    `base` names the base image; without it the engine's own DEFAULT_BASE, else LOCAL_BASE, else DEFAULT_BASE pulled.
    """
    try:
        client = engine()
        below, name = _base(client, base)
    except Unavailable as error:
        return ImageResult(None, None, str(error))
    layer = room_layer(directory)
    tag = f"traceroom/{read_manifest(directory)['content_digest'][:32]}:{digest(name)[:12]}"
    standing = _standing(client, tag, below, layer)
    if standing is not None:
        return ImageResult(standing, name, None)
    with tempfile.TemporaryDirectory() as scratch:
        saved, archive = Path(scratch, "base.tar"), Path(scratch, "image.tar")
        with saved.open("wb") as stream:
            stream.writelines(below.save())
        write_on_top(archive, saved, layer, tag)
        return ImageResult(_load(client, archive), name, None)


def start(image_id: str, task_id: str | None = None, seed: int = 0, limits: Limits = DEFAULT_LIMITS) -> Room:
    """A room with control, in a container that goes when the room is closed; Unavailable where it does not begin."""
    return begun(Room(ContainerCarrier(engine(), image_id, arguments(task_id, seed), limits), image_id[:19]))


def make_base(name: str = LOCAL_BASE, suite: str = "bookworm") -> str:
    """Make a small base image from Debian packages with mmdebstrap and load it as `name`; returns its id.

    62 MB, some seconds, needs root and a Debian mirror. The same packages give the same id.
    """
    if shutil.which("mmdebstrap") is None:
        raise Unavailable("mmdebstrap is not installed", mend="apt-get install mmdebstrap, or name another base image")
    client = engine()
    with tempfile.TemporaryDirectory() as scratch:
        layer = Path(scratch, "layer.tar")
        made = subprocess.run(
            [
                "mmdebstrap", "--quiet", "--variant=extract", f"--include={_BASE_PACKAGES}",
                f"--extract-hook={_BASE_HOOK}", suite, str(layer),
            ],
            env={**os.environ, "SOURCE_DATE_EPOCH": _BASE_EPOCH}, capture_output=True, text=True, check=False,
        )
        if made.returncode:
            said = (made.stderr.strip().splitlines() or [""])[-1]
            raise Unavailable(f"mmdebstrap failed ({said})", suite, "it needs root and a Debian mirror that answers")
        archive = Path(scratch, "image.tar")
        write_base(archive, layer, name)
        return _load(client, archive)


class ContainerCarrier:
    """Carries bytes to and from a room in a container."""

    def __init__(self, client: DockerClient, image_id: str, options: list[str], limits: Limits) -> None:
        from docker.errors import DockerException, NotFound

        self._client = client
        self._errors: tuple[type[BaseException], ...] = (DockerException, OSError)
        self._said = b""
        try:
            self._container = _create(client, image_id, options, limits)
        except NotFound as error:
            raise Unavailable("no such image in the engine", image_id, "build the environment's image again") from error
        self.container_id = str(self._container.id)
        try:
            self._stream = self._container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            self._socket: socket.socket = cast(socket.socket, vars(self._stream).get("_sock", self._stream))
            self._container.start()
        except self._errors as error:
            self._container.remove(force=True)
            raise Unavailable(f"the container does not start ({error})", image_id) from error

    def send(self, data: bytes) -> None:
        """Write all of it."""
        self._socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Some bytes of the room's stdout; what it says on stderr is kept aside."""
        ends = time.monotonic() + timeout_s
        while header := self._exactly(8, ends):
            data = self._exactly(int.from_bytes(header[4:], "big"), ends)
            if header[0] == 1:
                return data
            self._said = (self._said + data)[-4096:]
        return b""

    def last_words(self) -> str:
        """Last line on stderr."""
        with contextlib.suppress(*self._errors):
            while self.receive(1.0):
                pass
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Kill and remove the container."""
        with contextlib.suppress(*self._errors):
            self._socket.close()
        with contextlib.suppress(*self._errors):
            self._container.remove(force=True)
        self._client.close()

    def _exactly(self, size: int, ends: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._socket.settimeout(max(0.001, ends - time.monotonic()))
            data = self._socket.recv(size - len(parts))
            if not data:
                return b""
            parts += data
        return bytes(parts)


def _create(client: DockerClient, image_id: str, options: list[str], limits: Limits) -> Container:
    return client.containers.create(
        image_id, command=options, stdin_open=True, tty=False, detach=True, labels={"traceroom": "room"},
        user=f"{ROOM_USER}:{ROOM_USER}", read_only=True, tmpfs={"/tmp": "size=16m,noexec,nosuid,nodev"},
        network_mode="bridge" if limits.network else "none", cap_drop=["ALL"], security_opt=["no-new-privileges"],
        mem_limit=f"{limits.memory_mb}m", memswap_limit=f"{limits.memory_mb}m", pids_limit=limits.n_processes,
    )  # fmt: skip


def _base(client: DockerClient, name: str | None) -> tuple[Image, str]:
    """The base image, pulled where it is not here, and its name with its digest."""
    from docker.errors import DockerException, ImageNotFound

    for candidate in [name] if name else [DEFAULT_BASE, LOCAL_BASE]:
        with contextlib.suppress(ImageNotFound):
            image = client.images.get(candidate)
            return image, candidate if "@sha256:" in candidate else f"{candidate}@{image.id}"
    wanted = name or DEFAULT_BASE
    try:
        image = client.images.pull(wanted)
    except (DockerException, OSError) as error:
        mend = "run `traceroom base-image` to make one from Debian packages, or name one that is here"
        what = f"the base image {wanted.partition('@')[0]} is not here and cannot be pulled"
        raise Unavailable(what, mend=mend) from error
    if "@sha256:" not in wanted:
        digests = image.attrs.get("RepoDigests") or [f"{wanted}@{image.id}"]
        wanted = str(digests[0])
    return image, wanted


def _standing(client: DockerClient, tag: str, below: Image, layer: bytes) -> str | None:
    """Id of the image of this name where the engine has it already, of just these layers and this way to run; else None."""
    from docker.errors import ImageNotFound

    try:
        image = client.images.get(tag)
    except ImageNotFound:
        return None
    about, base = image.attrs, below.attrs
    layers = [*(base["RootFS"].get("Layers") or []), f"sha256:{digest(layer)}"]
    runs = (about["Config"].get("User"), about["Config"].get("Entrypoint"))
    same = about["RootFS"].get("Layers") == layers and runs == (f"{ROOM_USER}:{ROOM_USER}", ENTRYPOINT)
    return str(image.id) if same else None


def _load(client: DockerClient, archive: Path) -> str:
    with archive.open("rb") as stream:
        images = client.images.load(stream)
    if not images:
        raise InputError("the engine took the image and named none", str(archive))
    return str(images[0].id)


