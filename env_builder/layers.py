"""Layers of images: tars whose bytes depend on what is in them alone.

In: an environment's directory. Out: the runtime's layer (the same for all environments), the world's (the same wherever the
world is), the behaviour's (tools, programs, conditions, and what names the room); and the layer of an agent's container.
Times are the epoch, owners and modes set, entries sorted; facts and answers on record lie there packed (`runtime/files.py`).
Tasks are in no layer: the host hands a room its task when an episode begins (docs/containers.md). Nor are rewards.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import NAMED_BY, PACKED, TASKS, pack
from warehouse.errors import EnvironmentBroken

ROOM_USER = 10001
"""The only user that may read what is in a room."""
AGENT_USER = 10002
"""The user of an agent's programs."""
OUTSIDE = ("manifest.json", "Dockerfile", TASKS)
"""Files of an environment that are in no layer."""
AGENT_SIDE = Path(__file__).parent / "agents" / "tools.py"
"""What an agent's container has of ours."""


CACHE = "cache"
"""Folder of the compiled modules in a room."""
Compiled = Callable[[Mapping[str, str]], Mapping[str, bytes]]
"""Path -> source to path below the cache's folder -> bytes."""


class Layers(NamedTuple):
    """What an image holds beside its base, from the bottom up: what changes least lies lowest, so that most is shared."""

    runtime: bytes
    world: bytes
    behaviour: bytes


def read_manifest(directory: Path) -> dict[str, Any]:
    """An environment's manifest; EnvironmentBroken where there is none."""
    path = directory / "manifest.json"
    if not path.is_file():
        what = "no manifest.json: not an environment, or one that was not written to its end"
        raise EnvironmentBroken(what, str(directory), "build it again")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def room_digest(files: Mapping[str, str]) -> str:
    """What names a room without its tasks: sha256 over the sorted `path\\0sha256\\n` of its files (path -> sha256)."""
    return digest("".join(f"{path}\0{found}\n" for path, found in sorted(files.items()) if path not in OUTSIDE))


def layers_of(directory: Path, compiled: Compiled | None = None) -> Layers:
    """The layers of an environment; EnvironmentBroken where a file is not what the manifest says.

    `compiled` compiles the runtime (path -> source) for the base's Python; without it every start does.
    """
    manifest = read_manifest(directory)
    held = {path: _whole(directory / path, expected) for path, expected in manifest["files"].items() if path not in OUTSIDE}
    inside = {
        "format": manifest["format"], "room_digest": room_digest(manifest["files"]),
        "starts_from": manifest.get("starts_from"), "seeded": True, "privacy": manifest.get("privacy")}
    world = {Path(path).stem + PACKED: pack(held[path].decode(), by) for path, by in NAMED_BY.items() if path in held}
    rest = {path: data for path, data in held.items() if path not in NAMED_BY and not path.startswith("runtime/")}
    rest["manifest.json"] = canonical(inside).encode() + b"\n"
    runtime = {path: data for path, data in held.items() if path.startswith("runtime/")}
    if compiled is not None:
        made = compiled({path: data.decode() for path, data in runtime.items() if path.endswith(".py")})
        runtime |= {f"{CACHE}/{path}": data for path, data in made.items()}
    return Layers(*(_room(files) for files in (runtime, world, rest)))


def agent_layer() -> bytes:
    """What an agent's container has beside its base: the way to the tools, and an empty folder to work in."""
    entries = {"tools": (None, 0o755), "tools/tools.py": (AGENT_SIDE.read_bytes(), 0o644), "work": (None, 0o755)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, (data, mode) in entries.items():
            add(out, name, io.BytesIO(data or b""), None if data is None else len(data), mode=mode)
    return buffer.getvalue()


def _whole(path: Path, expected: str) -> bytes:
    data = path.read_bytes() if path.is_file() else b""
    if digest(data) != expected:
        raise EnvironmentBroken("the file is not what the manifest says", str(path), "build the environment again")
    return data


def _room(files: dict[str, bytes]) -> bytes:
    """A layer of files in /room and their folders, sorted, owned by the room's user and readable by it alone."""
    held = {f"room/{path}": data for path, data in files.items()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
        folders = {str(parent) for path in held for parent in Path(path).parents} - {"."} | {"room"}
        for name in sorted([*held, *folders]):
            data = held.get(name)
            size = None if data is None else len(data)
            add(out, name, io.BytesIO(data or b""), size, ROOM_USER, 0o500 if size is None else 0o400)
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
