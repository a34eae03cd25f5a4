"""The hunks of a change to a file, and the file with one of them turned back.

In: a file before and after. Out: stretches of changed lines, as a patch with three lines of context has them, each with what
the file after the change is without it.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

_CONTEXT = 3


class SourceHunk(NamedTuple):
    """A stretch of changed lines."""

    line: int
    """Of the file after the change, from 1."""
    n_lines: int
    """That it takes out and puts in, without empty ones."""
    added: tuple[str, ...]
    """Lines that it puts in."""
    without: bytes
    """The file after the change, with these lines as they were before."""


def hunks(before: bytes, after: bytes) -> list[SourceHunk]:
    """Return the hunks between two contents, in order; none of files that are no text."""
    if b"\0" in before or b"\0" in after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    return [each for group in groups if (each := _hunk(old, new, group)).n_lines]


def _hunk(old: list[bytes], new: list[bytes], group: list[tuple[str, int, int, int, int]]) -> SourceHunk:
    changed = [each for each in group if each[0] != "equal"]
    lines: list[bytes] = []
    at = n_lines = 0
    added: list[str] = []
    for _, old_low, old_high, new_low, new_high in changed:
        lines += new[at:new_low] + old[old_low:old_high]
        at = new_high
        n_lines += sum(bool(line.strip()) for line in (*old[old_low:old_high], *new[new_low:new_high]))
        added += [line.decode("utf-8", "replace").strip() for line in new[new_low:new_high]]
    first = changed[0][3] if changed else 0
    return SourceHunk(first + 1, n_lines, tuple(added), b"".join([*lines, *new[at:]]))
