"""Image archives, written byte by byte: what an engine loads, with the same bytes for the same content.

In: an environment's directory, the archive of a base image, a layer. Out: an archive with one layer more, and the
image's configuration, whose sha256 is the image's id. Nothing here speaks to an engine. The format is that of
`docker save` (https://github.com/moby/docker-image-spec); times are the epoch, owners and modes set, entries sorted.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import IO, Any

from env_builder.runtime.canonical import canonical, digest
from warehouse.errors import EnvironmentBroken, InputError

ROOM_USER = 10001
"""The only user that may read what is in a room."""
ENTRYPOINT = ["python3", "-I", "-S", "-B", "/room/runtime"]
_OUTSIDE = ("manifest.json", "Dockerfile")
_EPOCH = "1970-01-01T00:00:00Z"


def room_layer(directory: Path) -> bytes:
    """The layer that holds the room: a tar whose bytes depend on the environment's content alone.

    Holds what `content_digest` covers, and of the manifest what follows from that; EnvironmentBroken where a file is not
    what the manifest says.
    """
    manifest = read_manifest(directory)
    files: dict[str, bytes] = {}
    covered = {path: expected for path, expected in manifest["files"].items() if path not in _OUTSIDE}
    for path, expected in sorted(covered.items()):
        data = (directory / path).read_bytes() if (directory / path).is_file() else b""
        if digest(data) != expected:
            place = str(directory / path)
            raise EnvironmentBroken("the file is not what the manifest says", place, "build the environment again")
        files[f"room/{path}"] = data
    inside = {"format": manifest["format"], "content_digest": manifest["content_digest"], "files": covered}
    files["room/manifest.json"] = canonical(inside).encode() + b"\n"
    return _tar(files)


def read_manifest(directory: Path) -> dict[str, Any]:
    """An environment's manifest; EnvironmentBroken where there is none."""
    path = directory / "manifest.json"
    if not path.is_file():
        what = "no manifest.json: not an environment, or one that was not written to its end"
        raise EnvironmentBroken(what, str(directory), "build it again")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def write_base(archive: Path, layer: Path, name: str) -> None:
    """Write the archive of an image of one layer (an uncompressed tar), called `name`."""
    machine = platform.machine()
    about = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["python3"]},
    }
    with layer.open("rb") as stream:
        difference = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
            _write_head(out, _document(about, [difference]), 1, name)
            _add(out, _layer_name(0), stream, layer.stat().st_size)


def write_on_top(archive: Path, below: Path, layer: bytes, name: str) -> None:
    """Write the archive of the image in the archive `below` with one layer more, called `name`."""
    with tarfile.open(below) as base, tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
        listed = json.loads(_member(base, "manifest.json").read())[0]
        about = json.loads(_member(base, listed["Config"]).read())
        about["config"] = {
            "Env": (about.get("config") or {}).get("Env") or [],
            "User": f"{ROOM_USER}:{ROOM_USER}",
            "WorkingDir": "/room",
            "Entrypoint": ENTRYPOINT,
            "Cmd": [],
        }
        differences = [*about["rootfs"]["diff_ids"], "sha256:" + digest(layer)]
        _write_head(out, _document(about, differences), len(differences), name)
        for number, path in enumerate(listed["Layers"]):
            stream = _member(base, path)
            _add(out, _layer_name(number), stream, stream.seek(0, io.SEEK_END))
        _add(out, _layer_name(len(listed["Layers"])), io.BytesIO(layer), len(layer))


def _document(about: dict[str, Any], diff_ids: list[str]) -> bytes:
    """An image's configuration; its sha256 is the image's id."""
    kept = {key: about[key] for key in ("architecture", "os", "variant", "config") if key in about}
    history = [{"created": _EPOCH, "created_by": "traceroom"} for _ in diff_ids]
    rootfs = {"type": "layers", "diff_ids": diff_ids}
    return canonical({**kept, "created": _EPOCH, "history": history, "rootfs": rootfs}).encode()


def _write_head(out: tarfile.TarFile, document: bytes, n_layers: int, name: str) -> None:
    config = digest(document) + ".json"
    listed = [{"Config": config, "RepoTags": [name], "Layers": [_layer_name(number) for number in range(n_layers)]}]
    for path, data in ((config, document), ("manifest.json", canonical(listed).encode())):
        _add(out, path, io.BytesIO(data), len(data))


def _layer_name(number: int) -> str:
    return f"{number:03}/layer.tar"


def _member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    stream = archive.extractfile(path)
    if stream is None:
        raise InputError(f"the base image's archive has no {path}", str(archive.name))
    return stream


def _tar(files: dict[str, bytes]) -> bytes:
    """A layer: the files and their folders, sorted, owned by the room's user and readable by it alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        folders = {str(parent) for path in files for parent in Path(path).parents} - {"."}
        for name in sorted([*files, *folders]):
            data = files.get(name)
            _add(out, name, io.BytesIO(data or b""), None if data is None else len(data), owner=ROOM_USER)
    return buffer.getvalue()


def _add(out: tarfile.TarFile, name: str, stream: IO[bytes], size: int | None, owner: int = 0) -> None:
    """Add a file of `size` bytes, or with None a folder."""
    entry = tarfile.TarInfo(name)
    entry.uid = entry.gid = owner
    entry.mode = (0o500 if size is None else 0o400) if owner else 0o644
    if size is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = size
    stream.seek(0)
    out.addfile(entry, stream)
