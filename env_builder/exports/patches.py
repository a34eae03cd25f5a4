"""Write what changes in a tree of files as a patch that `git apply` takes.

In: a tree, and what changes in it. Out: a patch in git's format: new files, files that are gone, other modes, links, lines that
end with CRLF, a last line without an end; what is no UTF-8 as git's binary patch. Does not see renames: the old file goes, the
new one comes.
"""

from __future__ import annotations

import base64
import difflib
import re
import zlib
from collections.abc import Iterator
from hashlib import sha1

from env_builder.runtime.workspace.sandbox import FOLDER, ChangedFile, Changes
from env_builder.runtime.workspace.trees import Tree

_NONE = "/dev/null"
_NO_END = "\n\\ No newline at end of file\n"
_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')
_BINARY_LINE = 52
"""Bytes in a line of a binary patch."""
_TYPE = 0o170000


def git_patch(tree: Tree, changes: Changes) -> str:
    """Return the patch that makes the changes in the tree; empty where nothing differs."""
    parts: list[str] = []
    for path, after in sorted(changes.items()):
        before = tree.get(path)
        after = None if after is None or after.mode == FOLDER else after._replace(mode=_mode(after))
        before = None if before is None else before._replace(mode=_mode(before))
        if before == after:
            continue
        if before is not None and after is not None and before.mode & _TYPE != after.mode & _TYPE:
            parts += [_of_file(path, before, None), _of_file(path, None, after)]   # a link in the place of a file
        else:
            parts.append(_of_file(path, before, after))
    return "".join(parts)


def _of_file(path: str, before: ChangedFile | None, after: ChangedFile | None) -> str:
    old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    head = f"diff --git {old} {new}\n"
    if before is None and after is not None:
        head += f"new file mode {after.mode:o}\n"
    elif before is not None and after is None:
        head += f"deleted file mode {before.mode:o}\n"
    elif before is not None and after is not None and before.mode != after.mode:
        head += f"old mode {before.mode:o}\nnew mode {after.mode:o}\n"
    one, other = (b"" if file is None else file.content for file in (before, after))
    texts = [_text(content) for content in (one, other)]
    if None in texts:
        return f"{head}index {_blob(before)}..{_blob(after)}\nGIT binary patch\n{_literal(other)}\n"
    hunks = "".join(_hunks(*(text or "" for text in texts)))
    if not hunks:
        return head
    names = (_NONE if file is None else name for file, name in ((before, old), (after, new)))
    ends = ("\t" if " " in path else "" for _ in range(2))
    return head + "".join(f"{mark} {name}{end if name != _NONE else ''}\n" for mark, name, end in zip(
        ("---", "+++"), names, ends, strict=True)) + hunks


def _hunks(before: str, after: str) -> Iterator[str]:
    """Yield the lines of a unified diff, each with its end."""
    lines = difflib.unified_diff(_lines(before), _lines(after), lineterm="\n")
    for line in list(lines)[2:]:
        yield line if line.endswith("\n") else line + _NO_END


def _lines(text: str) -> list[str]:
    """Return lines with their ends; a line ends with LF alone, as git has it."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _text(content: bytes) -> str | None:
    """Return a content as text; None where a patch cannot hold it as such."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _literal(content: bytes) -> str:
    packed = zlib.compress(content, 9)
    lines = [f"literal {len(content)}"]
    for at in range(0, len(packed), _BINARY_LINE):
        piece = packed[at:at + _BINARY_LINE]
        length = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        lines.append(length + base64.b85encode(piece, pad=True).decode())
    return "\n".join(lines) + "\n"


def _blob(file: ChangedFile | None) -> str:
    """Return git's id of a file's content."""
    if file is None:
        return "0" * 40
    return sha1(b"blob %d\0" % len(file.content) + file.content, usedforsecurity=False).hexdigest()


def _mode(file: ChangedFile) -> int:
    """Return the mode that git keeps of a file."""
    if file.mode & _TYPE == 0o120000:
        return 0o120000
    return 0o100755 if file.mode & 0o100 else 0o100644


def _quoted(name: str) -> str:
    """Return a path as git writes it, in quotes where it holds signs that a line of a patch cannot."""
    if not _QUOTED.search(name):
        return name
    return '"' + _QUOTED.sub(lambda sign: f"\\{ord(sign[0]):03o}", name) + '"'
