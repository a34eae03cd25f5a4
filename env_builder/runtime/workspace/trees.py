"""Trees of files, many of one repository in one file: a tree per task, each content once.

In: names and trees. Out: one xz stream, a line of JSON (trees, sizes), then the contents, those of one path side by side, so
that a version costs what it differs in. Trees alone: no history, no message, nothing that lies in no tree. The same trees
give the same bytes. Standard library only.
"""

from __future__ import annotations

import atexit
import json
import lzma
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from .sandbox import FOLDER, LINK, ChangedFile, Changes

Tree = Mapping[str, ChangedFile]
"""Path -> file."""


class Began(NamedTuple):
    """What an episode begins with."""

    name: str
    """Of the tree: the same name, the same tree."""
    tree: Tree
    committed: Tree
    """What its git has committed."""


OWNER = 10002
"""Who owns a laid out tree where this process is root: the user of sandboxes (inside.py)."""


def packed(trees: Mapping[str, Tree]) -> bytes:
    """Return trees as the bytes of a pack."""
    order = sorted({(path, file.content) for tree in trees.values() for path, file in tree.items()})
    places: dict[bytes, int] = {}
    for _, content in order:
        places.setdefault(content, len(places))
    rows = {name: [[path, file.mode, places[file.content]] for path, file in sorted(trees[name].items())]
            for name in sorted(trees)}
    index = json.dumps({"trees": rows, "sizes": [len(content) for content in places]}, separators=(",", ":"))
    return lzma.compress(index.encode() + b"\n" + b"".join(places), preset=6)


def unpacked(pack: bytes) -> dict[str, dict[str, ChangedFile]]:
    """Return the trees of a pack. ValueError where it is none."""
    try:
        index, _, rest = lzma.decompress(pack).partition(b"\n")
        rows = json.loads(index)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise ValueError(f"this is no pack of trees ({error})") from error
    contents, at = [], 0
    for size in rows["sizes"]:
        contents.append(rest[at:at + size])
        at += size
    return {name: {path: ChangedFile(contents[place], mode) for path, mode, place in tree}
            for name, tree in rows["trees"].items()}


def changed(tree: Tree, changes: Changes) -> dict[str, ChangedFile]:
    """Return a tree with changes made in it, without empty folders."""
    after = dict(tree)
    for path, file in sorted(changes.items(), key=lambda item: (item[1] is not None, item[0])):  # what is gone first
        for each in [each for each in after if each.startswith(path + "/")] if file is None or file.mode != FOLDER else []:
            del after[each]
        if file is None or file.mode == FOLDER:
            after.pop(path, None)
        else:
            after[path] = file
    return after


def lay_out(tree: Tree, folder: Path, is_given: bool = True) -> Path:
    """Write a tree into a folder that does not exist yet, complete or not at all; return the folder.

    `is_given`: it belongs to the user of sandboxes, who may change it in a layer of their own; packages do not.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        draft.chmod(0o755)
        for name, file in sorted(tree.items()):
            target = draft / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.mode == LINK:
                target.symlink_to(file.content.decode("utf-8", "surrogateescape"))
            else:
                target.write_bytes(file.content)
                target.chmod(0o755 if file.mode & 0o100 else 0o644)
        for path in (draft, *draft.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
            if is_given and os.geteuid() == 0:
                os.lchown(path, OWNER, OWNER)
        draft.rename(folder)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


class TreeFolders:
    """The folders in which this process has trees laid out, in a folder of its own that goes with it."""

    def __init__(self, most: int = 64, kept_s: float = 900.0) -> None:
        """`most`: how many are kept; one that was given out within `kept_s` seconds stays, as a command may still run in it."""
        self._most, self._kept_s = most, kept_s
        self._root: Path | None = None
        self._laid: dict[str, tuple[Path, float]] = {}
        self._changing = threading.Lock()

    @property
    def root(self) -> Path:
        """The folder in which all of them lie."""
        if self._root is None or not self._root.is_dir():
            self._root = Path(tempfile.mkdtemp(prefix="traceroom-trees-"))
            self._root.chmod(0o711)
            atexit.register(shutil.rmtree, self._root, ignore_errors=True)
        return self._root

    def folder(self, key: str, tree: Callable[[], Tree]) -> Path:
        """Return the folder of a tree; `tree` gives it where it is not there yet. The folders used last are kept."""
        with self._changing:
            laid, _ = self._laid.pop(key, (None, 0.0))
            if laid is None or not laid.is_dir():
                self._remove_old()
                laid = lay_out(tree(), self.root / sha256(key.encode()).hexdigest()[:16])
            self._laid[key] = laid, time.monotonic()
            return laid

    def _remove_old(self) -> None:
        for key, (folder, at) in list(self._laid.items())[:max(0, len(self._laid) + 1 - self._most)]:
            if time.monotonic() - at < self._kept_s:
                break
            del self._laid[key]
            shutil.rmtree(folder, ignore_errors=True)


folders = TreeFolders()
"""Those of this process."""
