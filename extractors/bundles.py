"""Folders whose files are one log: a conversation of OpenHands (`base_state.json`, and each event in a file of its own).

In: names of files; then the files themselves. Out: which of them belong together; then an archive of them, by name. Its bytes,
and so its ids, depend on the names below the folder and on what the files hold, not on where the folder lies. Sees names
alone; a folder that lacks the state stays as it is.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from typing import BinaryIO, cast

STATE = "base_state.json"
_EVENT = re.compile(r"event-\d+[^/]*\.json")
_IN_MEMORY = 1 << 25
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def bundles(places: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folders that are one log each: the names of their members below them, sorted."""
    inside: dict[str, list[str]] = {}
    for place in places:
        folder, _, name = place.rpartition("/")
        inside.setdefault(folder, []).append(name)
    found = {}
    for folder, names in inside.items():
        events = sorted(f"events/{name}" for name in inside.get(f"{folder}/events", ()) if _EVENT.fullmatch(name))
        if STATE in names and events:
            found[folder] = (STATE, *events)
    return found


def packed(members: Iterable[tuple[str, Callable[[], BinaryIO]]]) -> BinaryIO:
    """An archive of the members in the order given: not compressed, and without times. Errors: OSError."""
    held = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (whoever asked closes it)
    with zipfile.ZipFile(held, "w") as archive:
        for name, opened in members:
            info = zipfile.ZipInfo(name, _FIRST_DATE)
            info.create_system = 3   # the same bytes on every system
            with opened() as file:
                archive.writestr(info, file.read())
    held.seek(0)
    return cast(BinaryIO, held)
