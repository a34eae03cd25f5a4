"""Image archives, written byte by byte: what an engine loads and a registry takes, the same bytes for the same content.

In: the archive of a base image, layers, how the image runs. Out: an archive with these layers on top, and the sha256 of the
image's configuration, which is the image's id. Nothing here speaks to an engine. The archive is both an OCI image layout
(https://github.com/opencontainers/image-spec) and what `docker save` writes (https://github.com/moby/docker-image-spec);
layers are not compressed, times are the epoch, entries in one order.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from env_builder.layers import AGENT_USER, CACHE, ROOM_USER, add
from env_builder.runtime.canonical import canonical, digest
from warehouse.errors import InputError

_EPOCH = "1970-01-01T00:00:00Z"
_OCI = "application/vnd.oci.image"
_GZIP = b"\x1f\x8b"


class Way(NamedTuple):
    """How an image runs."""

    user: int
    folder: str
    entrypoint: tuple[str, ...]


ROOM_WAY = Way(
    ROOM_USER, "/room", ("python3", "-I", "-S", "-B", "-X", f"pycache_prefix=/room/{CACHE}", "/room/runtime"))
"""A room: its runtime, compiled already, from a folder that nobody else may read."""
AGENT_WAY = Way(AGENT_USER, "/work", ("python3", "-I", "-S", "-B", "/tools/tools.py", "serve"))
"""An agent's side: the way to the tools, and a folder of its own."""


class Blob(NamedTuple):
    """A part of an image."""

    name: str
    """sha256 of its bytes, 64 hex digits."""
    size: int
    stream: IO[bytes]


def write_base(archive: Path, layer: Path, name: str) -> str:
    """Write the archive of an image of one layer (an uncompressed tar), called `name`; gives the image's id."""
    machine = platform.machine()
    about = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["python3"]},
    }
    with layer.open("rb") as stream:
        blob = Blob(hashlib.file_digest(stream, "sha256").hexdigest(), layer.stat().st_size, stream)
        return _write(archive, about, [blob], name)


def write_on_top(archive: Path, below: Path, layers: Sequence[bytes], name: str, way: Way) -> str:
    """Write the archive of the image in the archive `below` with these layers on top, called `name`; gives its id."""
    with tarfile.open(below) as base, contextlib.ExitStack() as scratch:
        listed = json.loads(_member(base, "manifest.json").read())[0]
        about = json.loads(_member(base, listed["Config"]).read())
        blobs = [
            scratch.enter_context(_plain(_member(base, path), difference))
            for path, difference in zip(listed["Layers"], about["rootfs"]["diff_ids"], strict=True)]
        about["config"] = {
            "Env": (about.get("config") or {}).get("Env") or [],
            "User": f"{way.user}:{way.user}",
            "WorkingDir": way.folder,
            "Entrypoint": list(way.entrypoint),
            "Cmd": [],
        }
        return _write(archive, about, [*blobs, *(_blob(layer) for layer in layers)], name)


def _write(archive: Path, about: dict[str, Any], layers: list[Blob], name: str) -> str:
    """Write an archive; gives the image's id, `sha256:…` of its configuration."""
    kept = {key: about[key] for key in ("architecture", "os", "variant", "config") if key in about}
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{layer.name}" for layer in layers]}
    history = [{"created": _EPOCH, "created_by": "traceroom"} for _ in layers]
    config = _blob(canonical({**kept, "created": _EPOCH, "history": history, "rootfs": rootfs}).encode())
    manifest = _blob(canonical({
        "schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json", "config": _described(config, "config.v1+json"),
        "layers": [_described(layer, "layer.v1.tar") for layer in layers]}).encode())
    called = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = {"schemaVersion": 2, "manifests": [{**_described(manifest, "manifest.v1+json"), "annotations": called}]}
    listed = {"Config": _place(config), "RepoTags": [name], "Layers": [_place(layer) for layer in layers]}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
        heads = {"oci-layout": {"imageLayoutVersion": "1.0.0"}, "index.json": index, "manifest.json": [listed]}
        for path, document in heads.items():
            head = _blob(canonical(document).encode())
            add(out, path, head.stream, head.size)
        for blob in {blob.name: blob for blob in (manifest, config, *layers)}.values():
            blob.stream.seek(0)
            add(out, _place(blob), blob.stream, blob.size)
    return f"sha256:{config.name}"


def _described(blob: Blob, kind: str) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{blob.name}", "size": blob.size}


def _place(blob: Blob) -> str:
    return f"blobs/sha256/{blob.name}"


def _blob(data: bytes) -> Blob:
    return Blob(digest(data), len(data), io.BytesIO(data))


def _member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    stream = archive.extractfile(path)
    if stream is None:
        raise InputError(f"the base image's archive has no {path}", str(archive.name))
    return stream


@contextlib.contextmanager
def _plain(stream: IO[bytes], difference: str) -> Iterator[Blob]:
    """A layer of the base, without the compression that some engines keep it in: its bytes are those that `difference`
    names, whichever engine gave them."""
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    if not packed:
        yield Blob(difference.removeprefix("sha256:"), stream.seek(0, io.SEEK_END), stream)
        return
    with tempfile.TemporaryFile() as plain, gzip.open(stream) as unpacked:
        shutil.copyfileobj(unpacked, plain)
        yield Blob(difference.removeprefix("sha256:"), plain.tell(), plain)
