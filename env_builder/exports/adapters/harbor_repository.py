"""The repository in a Harbor task's containers: laid out when they are built, and what the agent changed, taken at the end.

    python3 harbor_repository.py lay PACK NAME FOLDER USER     write a tree of a pack into a folder that belongs to a user
    python3 harbor_repository.py collect                       as root, when the agent is done: write /changes/changes.json

`collect` first ends whatever the agent began, so that nothing changes while it reads; it follows no links. Its file is
{path: [mode, text or {"base64"}], or null where the file is gone}, as a journal has what a command left; without git's folder.
More than `MOST_BYTES` stays out as a whole. Standard library only. Does not see: sockets, devices, empty folders.
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

HOME, REPOSITORY, CHANGES = Path("/opt/traceroom"), Path("/repo"), Path("/changes/changes.json")
AGENT = 10002
MOST_BYTES = 64 << 20
LINK = 0o120000
WAIT_S = 20.0
_DROPPED = (".git", "__pycache__", ".pytest_cache")
Tree = dict[str, tuple[int, bytes]]
"""Path -> mode as git has it, and content (of a link its target)."""


def unpacked(pack: Path, name: str) -> Tree:
    """Return a tree of a pack."""
    index, _, contents = lzma.decompress(pack.read_bytes()).partition(b"\n")
    rows = json.loads(index)
    ends = [0]
    for size in rows["sizes"]:
        ends.append(ends[-1] + size)
    return {path: (mode, contents[ends[place]:ends[place + 1]]) for path, mode, place in rows["trees"][name]}


def lay(tree: Tree, folder: Path, user: int) -> None:
    """Write a tree into a folder, all of it a user's own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (mode, content) in sorted(tree.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            path.symlink_to(os.fsdecode(content))
        else:
            path.write_bytes(content)
            path.chmod(0o755 if mode & 0o100 else 0o644)
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, user, user)


def end_all(user: int) -> None:
    """End all processes of a user. RuntimeError where some outlive it."""
    deadline = time.monotonic() + WAIT_S
    while running := _processes(user):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(running)} processes of user {user} do not end")
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def _processes(user: int) -> list[int]:
    """Return the processes of a user that are not dead yet."""
    running = []
    for process in Path("/proc").iterdir():
        with suppress(OSError, IndexError):
            if process.name.isdecimal() and process.stat().st_uid == user:
                state = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
                running += [] if state in "ZX" else [int(process.name)]
    return running


def collect(start: Tree, repository: Path, out: Path) -> None:
    """Write what differs from the start."""
    changes: dict[str, Any] = {}
    present, total = set(), 0
    for path, mode, content in _files(repository):
        present.add(path)
        before = start.get(path)
        if before is None or before[1] != content or _kind(before[0]) != _kind(mode):
            changes[path] = _written(mode, content)
            total += len(content)
            if total > MOST_BYTES:
                changes, present = {}, set(start)
                break
    changes |= {path: None for path in start if path not in present and ".git" not in path.split("/")[:1]}
    draft = out.with_suffix(".part")
    draft.write_text(json.dumps(changes, sort_keys=True), "utf-8")
    draft.replace(out)


def _files(root: Path) -> Iterator[tuple[str, int, bytes]]:
    for folder, folders, files in os.walk(root):
        above = os.path.relpath(folder, root)
        above = "" if above == "." else above + "/"
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in _DROPPED)
        for name in sorted((*files, *links)):
            path = Path(folder, name)
            state = path.lstat()
            if stat.S_ISLNK(state.st_mode):
                yield above + name, LINK, os.fsencode(path.readlink())
            elif stat.S_ISREG(state.st_mode):
                with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                    yield above + name, 0o100000 | stat.S_IMODE(state.st_mode), file.read(MOST_BYTES + 1)


def _kind(mode: int) -> str:
    return "link" if mode == LINK else "program" if mode & 0o100 else "file"


def _written(mode: int, content: bytes) -> Any:
    try:
        return [mode, content.decode()]
    except UnicodeDecodeError:
        return [mode, {"base64": base64.b64encode(content).decode()}]


def main(words: list[str]) -> int:
    """Do what the command line says."""
    if words[:1] == ["lay"]:
        pack, name, folder, user = words[1:]
        lay(unpacked(Path(pack), name), Path(folder), int(user))
    else:
        end_all(AGENT)
        collect(unpacked(HOME / "start.pack", "start"), REPOSITORY, CHANGES)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
