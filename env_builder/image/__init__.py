"""The environment as a container image, a room running from it, and an agent's container beside it: the one door to Docker.

In: an environment's directory and a base image with Python 3.11 or newer. Out: an image in the engine, whose id depends
on the base's digest and the room's content alone: the archive that the engine loads is written here (`archive`), so the same
room gives the same id in any folder, on any day. Tasks are handed to a running room by its host. Layout: docs/containers.md.

What a running container may do: `containers.py`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from env_builder.agents import AgentContainer, has_files
from env_builder.image.containers import AGENT_LIMITS, DEFAULT_LIMITS, ContainerLimits, ContainerTransport
from env_builder.layers import (
    AGENT_WAY,
    ROOM_WAY,
    Compiled,
    Way,
    agent_layer,
    layers_of,
    read_manifest,
    room_digest,
    write_base,
    write_on_top,
)
from env_builder.process import EnvironmentProcess, TaskLookup, episode_options
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import TASKS
from warehouse.errors import InputError, TraceroomError, Unavailable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

__all__ = [
    "AGENT_LIMITS", "DEFAULT_BASE", "DEFAULT_LIMITS", "LOCAL_BASE", "OFFICE_BASE", "ContainerLimits", "ContainerTransport",
    "ImageResult",
    "agent", "build", "engine", "image_of", "make_base", "save", "start", "task_lookup"]

DEFAULT_BASE = (
    "docker.io/library/python:3.11-slim-bookworm"
    "@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b"
)
"""Python 3.11.16 on Debian 12, the registry's index of all platforms."""
LOCAL_BASE = "traceroom-base:bookworm"
"""Name of the base that `traceroom base-image` makes."""
OFFICE_BASE = "traceroom-office:bookworm"
"""Name of the base with more Debian packages that `traceroom base-image --with PACKAGE` makes: that of agents who work on the
files of a drive, where an engine has it."""
COMPILE_S = 120.0
"""Seconds that compiling a runtime may take."""
_EPOCH = "1767225600"
_OFFICE_SETUP = ('registry="$1/usr/lib/libreoffice/share/.registry"; '
                 'if [ -d "$registry" ]; then cp -r "$registry/." "$1/etc/libreoffice/registry/"; fi')
"""What LibreOffice's package does when it is installed: these packages are only unpacked."""
_PACKAGES = "python3-minimal,libpython3-stdlib,busybox-static"
_NO_ENGINE_HINT = "start one (Debian: apt-get install docker.io), or go on without images"


class ImageResult(NamedTuple):
    """What became of an environment's image."""

    image_id: str | None
    """`sha256:…` in the engine; None: none was made."""
    base: str | None
    """Base with its digest."""
    skip_reason: str | None
    """Why there is none, in one sentence."""


def engine() -> DockerClient:
    """Connect to the engine at DOCKER_HOST (or the usual socket); Unavailable within seconds if none answers."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        client.ping()
    except (DockerException, OSError) as error:
        raise Unavailable("no Docker engine answers", os.environ.get("DOCKER_HOST", ""), _NO_ENGINE_HINT) from error
    client.api.timeout = 600
    return client


def build(directory: Path, base: str | None = None) -> ImageResult:
    """Build the image of the environment in `directory`; without an engine or a base, return why it was skipped.

    `base` names the base image; without it the engine's own DEFAULT_BASE, else LOCAL_BASE, else DEFAULT_BASE pulled.
    """
    try:
        with contextlib.closing(engine()) as client:
            below, name = _base(client, base)
            layers = layers_of(directory, _compiler(below))
            return ImageResult(_on_top(client, below, _tag(directory, name), layers, ROOM_WAY), name, None)
    except Unavailable as error:
        return ImageResult(None, None, str(error))


def save(directory: Path, archive: Path, base: str | None = None) -> str:
    """Write the image of the environment in `directory` to `archive`, for another engine or a registry; return its id.

    Both `docker load` and tools that copy OCI archives to registries read it. Unavailable if no engine has the base.
    """
    with contextlib.closing(engine()) as client, tempfile.TemporaryDirectory() as scratch:
        below, name = _base(client, base)
        layers = layers_of(directory, _compiler(below))
        return write_on_top(archive, _saved(below, Path(scratch)), layers, _tag(directory, name), ROOM_WAY)


def image_of(directory: Path) -> str:
    """Return the id of the image that an environment's manifest names; InputError if there is none."""
    made = read_manifest(directory).get("image") or {}
    if made.get("image_id") is None:
        what = f"the environment has no image ({made.get('skip_reason', 'none was made')})"
        raise InputError(what, str(directory), "run `traceroom run` with an engine, or do without containers")
    return str(made["image_id"])


def start(
    directory: Path, task_id: str | None = None, seed: int = 0, limits: ContainerLimits = DEFAULT_LIMITS,
    image_id: str | None = None, tasks: TaskLookup | None = None,
) -> EnvironmentProcess:
    """Start an environment process with control, in a container that ends when the process is closed; its tasks are those of
    `directory`, its image is `image_id` or the manifest's. Unavailable if it does not start, InputError if there is no such
    task. `tasks`: the result of `task_lookup(directory)`, for callers that start many."""
    image_id, tasks = image_id or image_of(directory), tasks or task_lookup(directory)
    if task_id is not None:
        tasks(task_id)
    transport = ContainerTransport(engine(), image_id, episode_options(None), limits)
    process = EnvironmentProcess(transport, image_id[:19], tasks).open()
    if task_id is not None:
        try:
            process.reset(task_id, seed)
        except TraceroomError:
            process.close()
            raise
    return process


def task_lookup(directory: Path) -> TaskLookup:
    """Return a lookup of the tasks for containers: lines are read once, a task's line is parsed when it is needed."""
    lines = (directory / TASKS).read_text("utf-8").split("\n")

    def task(task_id: str) -> dict[str, Any]:
        written = canonical(task_id)
        for line in lines:
            if written in line:
                row: dict[str, Any] = json.loads(line)
                if row["task_id"] == task_id:
                    return row
        raise InputError(f"no task {task_id!r} in this environment; it has {len(lines) - 1}", str(directory))

    return task


def agent(process: EnvironmentProcess, base: str | None = None, limits: ContainerLimits = AGENT_LIMITS) -> AgentContainer:
    """Start a container for an agent's own programs, from the image `base` with the client of the environment's tools on top.

    Only what its programs are given and what the environment answers reaches it. Without a `base`, an agent with files of apps
    in its working folder gets OFFICE_BASE if the engine has it. Unavailable if it does not start.
    """
    client = engine()
    if base is None and has_files(process) and client.images.list(OFFICE_BASE):
        base = OFFICE_BASE
    below, name = _base(client, base)
    image_id = _on_top(client, below, f"traceroom/agent:{digest(name)[:12]}", [agent_layer()], AGENT_WAY)
    transport = ContainerTransport(client, image_id, [], limits, AGENT_WAY)
    return AgentContainer(transport, transport.run, process).wait_until_ready()


def make_base(name: str = LOCAL_BASE, suite: str = "bookworm", packages: Sequence[str] = ()) -> str:
    """Make a small base image from Debian packages with mmdebstrap and load it as `name`; returns its id. `packages`: more of
    them, such as python3-openpyxl for agents that work on workbooks.

    62 MB, some seconds, needs root and a Debian mirror. The same packages give the same id.
    """
    with tempfile.TemporaryDirectory() as scratch:
        layer, archive = Path(scratch, "layer.tar"), Path(scratch, "image.tar")
        if shutil.which("mmdebstrap") is None:
            raise Unavailable("mmdebstrap is not installed", hint="apt-get install mmdebstrap, or name another base image")
        included = ",".join([_PACKAGES, *sorted(packages)])
        hook = 'chroot "$1" /bin/busybox --install -s /bin'
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=extract", f"--include={included}", f"--extract-hook={hook}",
             f"--extract-hook={_OFFICE_SETUP}", suite, str(layer)],
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [""])[-1]
            raise Unavailable(f"mmdebstrap failed ({reason})", suite, "it needs root and a Debian mirror that answers")
        write_base(archive, layer, name)
        with contextlib.closing(engine()) as client:
            return _load(client, archive)


def _base(client: DockerClient, name: str | None) -> tuple[Image, str]:
    """Return the base image, pulled if it is not here, and its name with its digest."""
    from docker.errors import DockerException, ImageNotFound

    for candidate in [name] if name else [DEFAULT_BASE, LOCAL_BASE]:
        with contextlib.suppress(ImageNotFound):
            image = client.images.get(candidate)
            return image, candidate if "@sha256:" in candidate else f"{candidate}@{image.id}"
    wanted = name or DEFAULT_BASE
    try:
        image = client.images.pull(wanted)
    except (DockerException, OSError) as error:
        hint = "run `traceroom base-image` to make one from Debian packages, or name one that is here"
        what = f"the base image {wanted.partition('@')[0]} is not here and cannot be pulled"
        raise Unavailable(what, hint=hint) from error
    if "@sha256:" not in wanted:
        digests = image.attrs.get("RepoDigests") or [f"{wanted}@{image.id}"]
        wanted = str(digests[0])
    return image, wanted


def _compiler(below: Image) -> Compiled:
    """Compiles sources with the Python of this image, in a container of it."""
    return lambda sources: _compile(str(below.id), canonical(dict(sources)))


@lru_cache(maxsize=4)
def _compile(image_id: str, sources: str) -> dict[str, bytes]:
    program = Path(__file__).with_name("compiling.py").read_text("utf-8")
    transport = ContainerTransport(engine(), image_id, ["python3", "-I", "-S", "-B", "-c", program])
    with contextlib.closing(transport):
        try:
            transport.send(sources.encode() + b"\n")
            output = b""
            while not output.endswith(b"\n") and (data := transport.receive(COMPILE_S)):
                output += data
            return {path: base64.b64decode(text) for path, text in json.loads(output).items()}
        except (OSError, ValueError) as error:
            what = f"the base image's Python does not compile the runtime ({transport.last_error_line() or error})"
            raise Unavailable(what, image_id, "name a base image with python3 3.11 or newer") from error


def _tag(directory: Path, base: str) -> str:
    """Return the image's name in an engine, by the environment's content and the base."""
    return f"traceroom/{room_digest(read_manifest(directory)['files'])[:32]}:{digest(base)[:12]}"


def _on_top(client: DockerClient, below: Image, tag: str, layers: Sequence[bytes], way: Way) -> str:
    """Id of the image with these layers on the base; loaded where the engine does not have it already."""
    standing = _standing(client, tag, below, layers, way)
    if standing is not None:
        return standing
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "image.tar")
        write_on_top(archive, _saved(below, Path(scratch)), layers, tag, way)
        return _load(client, archive)


def _standing(client: DockerClient, tag: str, below: Image, layers: Sequence[bytes], way: Way) -> str | None:
    """Id of the image of this name where the engine has it already, of just these layers and this way to run; else None."""
    from docker.errors import ImageNotFound

    try:
        image = client.images.get(tag)
    except ImageNotFound:
        return None
    about, base = image.attrs, below.attrs
    wanted = [*(base["RootFS"].get("Layers") or []), *(f"sha256:{digest(layer)}" for layer in layers)]
    runs = (about["Config"].get("User"), about["Config"].get("Entrypoint"))
    same = about["RootFS"].get("Layers") == wanted and runs == (f"{way.user}:{way.user}", list(way.entrypoint))
    return str(image.id) if same else None


def _saved(image: Image, folder: Path) -> Path:
    """Save the image's archive as the engine gives it."""
    archive = folder / "base.tar"
    with archive.open("wb") as stream:
        stream.writelines(image.save())
    return archive


def _load(client: DockerClient, archive: Path) -> str:
    with archive.open("rb") as stream:
        images = client.images.load(stream)
    if not images:
        raise InputError("the engine took the image and named none", str(archive))
    return str(images[0].id)
