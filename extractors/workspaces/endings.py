"""What a session of coding had left: the files that it changed, as they were at its end.

In: its frames, and the texts with which it began. Out: path -> text, as far as its edits tell. Does not see: what programs
wrote (formatters, generators); a session in which an edit does not fit is not told at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from extractors.workspaces.frames import FileEdit, Frame


def ending(frames: Iterable[Frame], begun: Callable[[str], str | None]) -> dict[str, str | None] | None:
    """Return the text of each file that a session changed, None where it is gone; None where an edit does not fit.

    `frames`: with paths from the repository's root; `begun`: path -> text at the start, None where there is none. What lies
    outside of the repository does not count.
    """
    texts: dict[str, str | None] = {}
    for frame in frames:
        if not isinstance(frame, FileEdit) or frame.path.startswith(("/", "..", "~")):
            continue
        before = texts[frame.path] if frame.path in texts else begun(frame.path)
        if frame.patch is not None and frame.patch.is_deleted:
            texts[frame.path] = None
            continue
        after = frame.applied(before)
        if after is None:
            return None
        texts[frame.path] = after
        if frame.patch is not None and frame.patch.moved_to:
            texts[frame.path], texts[frame.patch.moved_to] = None, after
    return texts
