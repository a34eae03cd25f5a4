"""Trees of files, many of one repository in one file: a tree per task, each content once.

In: names and trees. Out: one xz stream, a line of JSON (trees, sizes), then the contents, those of one path side by side, so
that a version costs what it differs in. Trees alone: no history, no message, nothing that lies in no tree. The same trees give
the same bytes. Standard library only.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .sandbox import FOLDER, LINK, ChangedFile, Changes

Tree = Mapping[str, ChangedFile]
"""Path -> file."""
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
    for path, file in changes.items():
        for each in [each for each in after if each.startswith(path + "/")] if file is None or file.mode != FOLDER else []:
            del after[each]
        if file is None or file.mode == FOLDER:
            after.pop(path, None)
        else:
            after[path] = file
    return after


def lay_out(tree: Tree, folder: Path) -> Path:
    """Write a tree into a folder that does not exist yet, complete or not at all; return the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    own = os.geteuid() == 0
    try:
        os.chmod(draft, 0o755)
        for path, file in sorted(tree.items()):
            target = draft / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.mode == LINK:
                target.symlink_to(file.content.decode("utf-8", "surrogateescape"))
            else:
                target.write_bytes(file.content)
                target.chmod(0o755 if file.mode & 0o100 else 0o644)
        for above, folders, files in os.walk(draft):
            for name in folders:
                os.chmod(os.path.join(above, name), 0o755) if not os.path.islink(os.path.join(above, name)) else None
            for name in (*folders, *files) if own else ():
                os.chown(os.path.join(above, name), OWNER, OWNER, follow_symlinks=False)
        if own:
            os.chown(draft, OWNER, OWNER)
        draft.rename(folder)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder
