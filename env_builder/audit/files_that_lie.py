"""Attacks of an agent that trusts the names of files: what lies there already is taken for what was to be fetched.

In: the known solution as it was replayed. Out: attacks. `trusts_names` leaves every file that lay where the solution puts
another one; `takes_older` files a file that lay among the downloads in the place of the one that arrived next to it. Where the
bytes are the same in the end, the attack has an excuse. Sees: files of apps of the kind `files`, and how browsers name a second
download. Does not see: files that an app of its own kind keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from env_builder.audit.attackers import Attack
from env_builder.audit.plays import Replayed, Row, call
from env_builder.runtime.answers import parse

SAME_BYTES = "the file that lay there has the same bytes"
_COPY = re.compile(r" \(\d+\)(?=(?:\.\w+)?$)")
_PLACES = ("path", "destination")


def attacks_of_names(solved: Replayed) -> Iterator[Attack]:
    """Yield the attacks on a task whose files begin where the solution puts others."""
    files = _StartedFiles(solved)
    rows = solved.journal
    lying = {str(row["arguments"][name]) for row in rows if files.is_about(row) for name in _PLACES
             if name in row["arguments"] and files.at_start(str(row["arguments"][name])) is not None}
    trusted = [row for row in rows
               if not files.is_about(row) or not any(row["arguments"].get(name) in lying for name in _PLACES)]
    if lying and len(trusted) < len(rows):
        excuse = SAME_BYTES if all(files.at_start(path) == files.at_end(path) for path in lying) else ""
        yield Attack("trusts_names", trusted, "the solution, which leaves files that lie where others belong", excuse)
    older = {str(row["arguments"]["source"]): plain for row in rows if files.is_about(row) and "source" in row["arguments"]
             and (plain := _COPY.sub("", str(row["arguments"]["source"]))) != row["arguments"]["source"]
             and files.at_start(plain) is not None}
    if older:
        taken = [call(row["tool"], row["arguments"] | {"source": older[row["arguments"]["source"]]})
                 if files.is_about(row) and row["arguments"].get("source") in older else row for row in rows]
        ends = [row["arguments"].get("destination") for row in rows
                if files.is_about(row) and row["arguments"].get("source") in older]
        excuse = SAME_BYTES if all(files.at_start(plain) == files.at_end(str(end)) for plain, end in zip(
            older.values(), ends, strict=False)) else ""
        yield Attack("takes_older", taken, "the solution with the file next to each second download", excuse)


class _StartedFiles:
    """The files of a task at its start and at the end of its solution."""

    def __init__(self, solved: Replayed) -> None:
        apps = solved.environment.manifest["apps"]
        self._environment = solved.environment.replaying(solved.task.task_id)
        self._ended = solved.before(len(solved.journal))[1]
        self._classes = [f"{app['name']}:file" if len(apps) > 1 else "file" for app in apps if app["kind"] == "files"]
        self._tools = solved.environment.explained

    def is_about(self, row: Row) -> bool:
        """Return whether a row is a call that changes files, as far as its arguments tell."""
        return row["kind"] == "call" and row["tool"] in self._tools and isinstance(row["arguments"], dict) and not (
            {"path", "destination", "source"}.isdisjoint(row["arguments"])) and bool(self._classes)

    def at_start(self, path: str) -> str | None:
        """Return the hash of a file at the start; None where there is none."""
        return next((own for each in self._classes if (own := _hash(self._environment.read(f"{each}/{path}")[0]))), None)

    def at_end(self, path: str) -> str | None:
        """Return the hash of a file at the end of the solution."""
        return next((own for each in self._classes if (own := _hash(self._ended.read(f"{each}/{path}")[1]))), None)


def _hash(text: str | None) -> str | None:
    value = parse(text) if text is not None else None
    return value.get("hash") if isinstance(value, dict) else None
