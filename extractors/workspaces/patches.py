"""Patches as coding agents write them, and as `diff` does: what they change in which file, and the file after it.

Sees: unified diffs (git's too), and the format of `apply_patch` (`*** Begin Patch`). Hunks are placed by their lines, of
several places nearest to their number: models count wrong. Does not see: binary patches, context diffs, changes of mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BEGIN = "*** Begin Patch"
_APPLY = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")
_MOVE = "*** Move to: "
_UNIFIED = re.compile(r"(?:---|\+\+\+) (\S[^\t\n]*)")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_FILE = "/dev/null"


@dataclass(slots=True)
class Hunk:
    """Lines that stand in for others."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    line: int | None = None
    """Number of the first line that gives way, from 1, as the patch has it; of none that do: of the line before."""


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file."""

    path: str
    """Of the file before; of a new file, after."""
    hunks: list[Hunk] = field(default_factory=list)
    is_new: bool = False
    is_deleted: bool = False
    moved_to: str | None = None

    def applied(self, text: str | None) -> str | None:
        """Return the file's text after the patch, None where it does not fit. `text`: before it, None if there is no file.

        A hunk is placed where its old lines stand, nearest to its line, else behind the hunk before it, else anywhere."""
        if self.is_new:
            return "".join(f"{line}\n" for hunk in self.hunks for line in hunk.after)
        if text is None:
            return None
        lines, at, n_added = lines_of(text), 0, 0
        for hunk in self.hunks:
            expected = None if hunk.line is None else hunk.line - bool(hunk.before) + n_added
            place = _place(lines, hunk.before, at, expected)
            if place is None:
                return None
            lines[place:place + len(hunk.before)] = hunk.after
            at = place + len(hunk.after)
            n_added += len(hunk.after) - len(hunk.before)
        end = "\n" if text.endswith("\n") or not text else ""
        return "\n".join(lines) + end if lines else ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as files have them: only a line feed ends one, and one at the end begins no other."""
    return text.removesuffix("\n").split("\n") if text else []


def file_patches(text: str) -> list[FilePatch]:
    """Return what a text that is, or holds, a patch does to each file; none where it holds no patch."""
    lines = [line.removesuffix("\r") for line in lines_of(text)]
    begin = next((n for n, line in enumerate(lines) if line.strip() == BEGIN), None)
    return list(_apply_patch(lines[begin + 1:])) if begin is not None else list(_unified(lines))


def _apply_patch(lines: list[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    for line in lines:
        if line.startswith("*** End Patch"):
            break
        if (match := _APPLY.fullmatch(line)) is not None:
            if current is not None:
                yield current
            kind, path = match.groups()
            current = FilePatch(path.strip(), [Hunk()] if kind == "Add" else [], kind == "Add", kind == "Delete")
        elif current is None or line == "*** End of File":
            continue
        elif line.startswith(_MOVE):
            current.moved_to = line[len(_MOVE):].strip()
        elif line.startswith("@@"):
            current.hunks.append(Hunk())
        else:
            if not current.hunks:
                current.hunks.append(Hunk())
            _add(current.hunks[-1], line)
    if current is not None:
        yield current


def _unified(lines: list[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    n_before = n_after = 0   # lines of the hunk that are still to come
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        if current is not None and current.hunks and (n_before > 0 or n_after > 0):
            if line.startswith("\\"):   # no newline at the end of the file
                continue
            n_before, n_after = n_before - (line[:1] != "+"), n_after - (line[:1] != "-")
            _add(current.hunks[-1], line)
        elif line.startswith("--- ") and following.startswith("+++ "):
            if current is not None:
                yield current
            old, new = (_path(each) for each in (line, following))
            current = FilePatch(new if old == _NO_FILE else old, is_new=old == _NO_FILE, is_deleted=new == _NO_FILE)
            current.moved_to = new if new not in (old, _NO_FILE) and old != _NO_FILE else None
        elif current is not None and (match := _HUNK.match(line)) is not None:
            n_before, n_after = (1 if each is None else int(each) for each in match.groups()[1:])
            current.hunks.append(Hunk(line=int(match[1])))
    if current is not None:
        yield current


def _path(line: str) -> str:
    match = _UNIFIED.match(line)
    path = match[1].strip() if match is not None else _NO_FILE
    return path[2:] if path[:2] in ("a/", "b/") else path


def _add(hunk: Hunk, line: str) -> None:
    kind, rest = line[:1], line[1:]
    if kind != "+":
        hunk.before.append(rest)
    if kind != "-":
        hunk.after.append(rest)


def _place(lines: list[str], before: list[str], at: int, expected: int | None) -> int | None:
    """Return where the lines stand: nearest to where they are expected, else at or after a line, else anywhere; white space at
    their ends does not count."""
    if not before:
        return len(lines) if expected is None else min(max(expected, 0), len(lines))
    for same in (_same, _same_but_for_ends):
        places = [n for n in range(len(lines) - len(before) + 1) if same(lines[n:n + len(before)], before)]
        if places and expected is not None:
            return min(places, key=lambda n: (abs(n - expected), n))
        if places:
            return next((n for n in places if n >= at), places[0])
    return None


def _same(some: list[str], others: list[str]) -> bool:
    return some == others


def _same_but_for_ends(some: list[str], others: list[str]) -> bool:
    return all(one.rstrip() == other.rstrip() for one, other in zip(some, others, strict=True))
