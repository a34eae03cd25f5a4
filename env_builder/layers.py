"""Layers of images and the archives of images, written byte by byte: the same bytes for the same content.

In: an environment's directory. Out: the runtime's layer (the same for all environments), the world's (the same wherever the
world is), the behaviour's (tools, programs, perturbations, and its name), the layer of an agent's container; and an archive of
a base image with layers on top, with the sha256 of the image's configuration, which is the image's id. Nothing here speaks to
an engine. The archive is both an OCI image layout (https://github.com/opencontainers/image-spec) and what `docker save` writes
(https://github.com/moby/docker-image-spec). Layers are not compressed, times are the epoch, owners and modes set, entries
sorted; facts and answers on record are stored packed (`runtime/files.py`). Tasks are in no layer: the host hands an environment
its task when an episode begins (docs/containers.md). Nor are rewards.
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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import NAMED_BY, PACKED, TASKS, pack
from env_builder.runtime.shards import FOLDER, NAMES, VALUES, Shards, index_of
from warehouse.errors import EnvironmentBroken, InputError

ROOM_USER = 10001
"""The only user that may read what is in an environment."""
AGENT_USER = 10002
"""The user of an agent's programs."""
OUTSIDE = ("manifest.json", "Dockerfile", TASKS)
"""Files of an environment that are in no layer."""
AGENT_SIDE = Path(__file__).parent / "agents" / "tools.py"
"""What an agent's container has of ours."""
CACHE = "cache"
"""Folder of the compiled modules in an environment."""
Compiled = Callable[[Mapping[str, str]], Mapping[str, bytes]]
"""Path -> source to path below the cache's folder -> bytes."""


class Layers(NamedTuple):
    """What an image holds beside its base, from the bottom up: what changes least lies lowest, so that most is shared."""

    runtime: bytes
    world: bytes
    behaviour: bytes


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return an environment's manifest; EnvironmentBroken if there is none."""
    path = directory / "manifest.json"
    if not path.is_file():
        what = "no manifest.json: not an environment, or one that was not written to its end"
        raise EnvironmentBroken(what, str(directory), "build it again")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def files_digest(files: Mapping[str, str], excluded: Collection[str] = ()) -> str:
    """Return sha256 over the sorted `path\\0sha256\\n` of files."""
    return digest("".join(f"{path}\0{file_digest}\n" for path, file_digest in sorted(files.items()) if path not in excluded))


def room_digest(files: Mapping[str, str]) -> str:
    """Return the digest of an environment without its tasks."""
    return files_digest(files, OUTSIDE)


def layers_of(directory: Path, compiled: Compiled | None = None) -> Layers:
    """Return the layers of an environment; EnvironmentBroken if a file is not what the manifest says.

    `compiled` compiles the runtime (path -> source) for the base's Python; without it every start does.
    """
    manifest = read_manifest(directory)
    contents = {path: _whole(directory / path, expected) for path, expected in manifest["files"].items() if path not in OUTSIDE}
    inside = {
        "format": manifest["format"], "apps": manifest["apps"], "room_digest": room_digest(manifest["files"]),
        "starts_from": manifest.get("starts_from"), "seeded": True, "privacy": manifest.get("privacy")}
    world = {Path(path).stem + PACKED: pack(_lines_of(directory / path, by).decode(), by) for path, by in NAMED_BY.items()
             if path in contents or index_of(Path(path)).as_posix() in contents}
    world |= {path: data for path, data in contents.items()
              if Path(path).match("apps/*/versions.jsonl") or path in (f"{FOLDER}/{NAMES}", f"{FOLDER}/{VALUES}")}
    rest = {path: data for path, data in contents.items()
            if path not in NAMED_BY and path not in world and not path.startswith(("runtime/", f"{FOLDER}/"))}
    rest["manifest.json"] = canonical(inside).encode() + b"\n"
    runtime = {path: data for path, data in contents.items() if path.startswith("runtime/")}
    if compiled is not None:
        made = compiled({path: data.decode() for path, data in runtime.items() if path.endswith(".py")})
        runtime |= {f"{CACHE}/{path}": data for path, data in made.items()}
    return Layers(*(_room(files) for files in (runtime, world, rest)))


def _lines_of(path: Path, by: tuple[str, str]) -> bytes:
    """Return the bytes of a file, also where it is split."""
    if path.is_file():
        return path.read_bytes()
    shards = Shards(path, by)
    return b"".join(map(shards.text, shards.places))


def agent_layer() -> bytes:
    """Return the layer of an agent's container: the client of the tools, and an empty folder to work in."""
    return _layer({"tools": None, "tools/tools.py": AGENT_SIDE.read_bytes(), "work": None}, 0, 0o755, 0o644)


def _whole(path: Path, expected: str) -> bytes:
    data = path.read_bytes() if path.is_file() else b""
    if digest(data) != expected:
        raise EnvironmentBroken("the file is not what the manifest says", str(path), "build the environment again")
    return data


def _room(files: dict[str, bytes]) -> bytes:
    """Return a layer of files in /room and their folders, sorted, owned by the environment's user and readable by it alone."""
    contents = {f"room/{path}": data for path, data in files.items()}
    folders = {str(parent) for path in contents for parent in Path(path).parents} - {"."} | {"room"}
    return _layer(dict.fromkeys(folders) | contents, ROOM_USER, 0o500, 0o400)


def _layer(entries: Mapping[str, bytes | None], owner: int, folder_mode: int, file_mode: int) -> bytes:
    """Return a layer of files, and of folders (None), sorted."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, data in sorted(entries.items()):
            size, mode = (None, folder_mode) if data is None else (len(data), file_mode)
            add(out, name, io.BytesIO(data or b""), size, owner, mode)
    return buffer.getvalue()


def add(out: tarfile.TarFile, name: str, stream: IO[bytes], size: int | None, owner: int = 0, mode: int = 0o644) -> None:
    """Add a file of `size` bytes, or with None a folder, to a tar: nothing but what is given here decides its bytes."""
    entry = tarfile.TarInfo(name)
    entry.uid = entry.gid = owner
    entry.mode = mode
    if size is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = size
    out.addfile(entry, stream)


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
"""A room: its runtime, compiled already, from a folder that no other user may read."""
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
    """Yield a layer of the base without the compression that some engines keep it in: its bytes are those that `difference`
    names, whichever engine gave them."""
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    if not packed:
        yield Blob(difference.removeprefix("sha256:"), stream.seek(0, io.SEEK_END), stream)
        return
    with tempfile.TemporaryFile() as plain, gzip.open(stream) as unpacked:
        shutil.copyfileobj(unpacked, plain)
        yield Blob(difference.removeprefix("sha256:"), plain.tell(), plain)
