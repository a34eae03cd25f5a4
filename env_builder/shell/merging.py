"""Make a known change in files that are not quite those it was made in: a three-way merge by lines."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

from env_builder.runtime.workspace.sandbox import ChangedFile


def merged(
    change: Mapping[str, tuple[ChangedFile | None, ChangedFile | None]], onto: Mapping[str, ChangedFile],
) -> dict[str, ChangedFile | None] | None:
    """Return what a change (path -> the file before and after) makes of other files; None where it does not apply."""
    result: dict[str, ChangedFile | None] = {}
    for path, (before, after) in sorted(change.items()):
        own = onto.get(path)
        if own in (before, after):
            result[path] = after
        elif own is None or before is None or after is None:
            return None
        else:
            text = merged_text(before.content, after.content, own.content)
            if text is None:
                return None
            result[path] = ChangedFile(text, own.mode)
    return result


def merged_text(before: bytes, after: bytes, own: bytes) -> bytes | None:
    """Return `own` with the change from `before` to `after`; None where both changed the same lines, or lines next to them."""
    base, new, current = (text.splitlines(keepends=True) for text in (before, after, own))
    kept = SequenceMatcher(None, base, current, autojunk=False).get_matching_blocks()
    lines: list[bytes] = []
    at = 0
    for tag, low, high, new_low, new_high in SequenceMatcher(None, base, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        first, last = max(0, low - 1), min(len(base), high + 1)
        block = next((each for each in kept if each.a <= first and last <= each.a + each.size), None)
        if block is None:
            return None
        shift = block.b - block.a
        lines += current[at:low + shift] + new[new_low:new_high]
        at = high + shift
    return b"".join([*lines, *current[at:]])
