"""Rebuild files at any instant from audit events of files, with the origin of their bytes.

In: events (`core.events`) of the format `file_audit`; a function that gives stored bytes by their sha256; downloads of pages.
Out: versions of files for an app of the kind `files` (env_builder.backends), and a decision on every event that gave nothing.
Sees: creates, changes, moves, copies and deletions, of a folder those of all files in it. A file that is used before it is
created was there before the log begins. Its bytes, and those that the store does not have, are not on record: the file is
there, and reading it says so. A file that is created where a download of that name just began, by the same user where both logs
tell one, comes from there; where two addresses fit, its origin is unknown. A move or a copy keeps the origin, a change takes it
away.
Does not see: files that no event names; which event of a pair of `moved_from` and `moved_to` belongs to which (the file at the
new path is there without its bytes); what changed a file without an event, until a later event tells another hash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.backends import FileVersion
from env_builder.runtime.canonical import digest
from env_builder.runtime.origins import origin_text
from warehouse.records import Decision, frame

Row = dict[str, Any]
EARLIEST, LATEST = timedelta(seconds=-2), timedelta(minutes=2)
"""How long after its download began a file is created: the clocks of two logs may differ a little."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NUMBERED = re.compile(r"(.+) \(\d+\)(\.[^.]*)?")


class PageDownload(NamedTuple):
    """A file that a page delivered."""

    at: datetime
    """When it was asked for."""
    user: str | None
    """As the files' events call who did it; None: unknown."""
    url: str
    """As the origin will have it: path and query."""
    name: str


class FileHistory(NamedTuple):
    """Files over time, and what became of the events."""

    versions: list[FileVersion]
    decisions: pl.DataFrame


@dataclass(frozen=True)
class _AuditedContent:
    hash: str | None = None
    size: int | None = None
    origin: str | None = None


@dataclass(frozen=True)
class _OpenFile:
    since: datetime | None
    content: _AuditedContent


def stored_below(folder: Path) -> Callable[[str], bytes | None]:
    """Return the function that gives the bytes of files that are named by their sha256, whatever their extension."""
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.iterdir()) if path.is_file()}

    def stored(name: str) -> bytes | None:
        content = paths[name].read_bytes() if name in paths else None
        return content if content is not None and digest(content) == name else None

    return stored


def file_history(
    events: pl.DataFrame, stored: Callable[[str], bytes | None], downloads: Iterable[PageDownload] = (), app: str = "site",
) -> FileHistory:
    """Rebuild the files. `app`: the app that delivers the downloads, as origins name it."""
    tree = _AuditedTree(stored, list(downloads), app)
    rows = events.filter(pl.col("format") == "file_audit").sort("happened_at", nulls_last=True, maintain_order=True)
    for row in rows.iter_rows(named=True):
        tree.add(row)
    return FileHistory(tree.versions(), frame(Decision, tree.decisions()))


class _AuditedTree:
    def __init__(self, stored: Callable[[str], bytes | None], downloads: list[PageDownload], app: str) -> None:
        self._stored = stored
        self._downloads: dict[str, list[PageDownload]] = {}
        for each in downloads:
            self._downloads.setdefault(each.name, []).append(each)
        self._app = app
        self._files: dict[str, _OpenFile] = {}
        self._spans: list[tuple[str, _AuditedContent, datetime | None, datetime | None]] = []
        self._decisions: list[Decision] = []
        self._n_kept = self._n_ambiguous = 0

    def add(self, row: Row) -> None:
        with suppress(ValueError, AttributeError):
            facts = json.loads(row["arguments"] or "{}")
            path, to = _path(facts.get("path")), _path(facts.get("to"))
            operation, at = facts.get("operation"), row["happened_at"]
            if path and at is not None:
                reason = self._apply(operation, path, to, _content(facts), at, row["name"])
                if reason is None:
                    self._n_kept += 1
                else:
                    self._reject(row, *reason)
                return
        self._reject(row, "no_file_event", "the event names no path and instant; complete or drop it")

    def _apply(
        self, operation: Any, path: str, to: str | None, content: _AuditedContent, at: datetime, user: str | None,
    ) -> tuple[str, str] | None:
        """Apply an event; return why it cannot be, if so."""
        if operation in ("create", "moved_to"):
            origin = self._origin(path.rpartition("/")[2], content.hash, at, user) if operation == "create" else None
            self._open(path, replace(content, origin=origin), at)
        elif operation == "modify":
            self._must_exist(path)
            self._open(path, content, at)
        elif operation in ("rename", "copy"):
            if to is None:
                return "no_destination", f"a {operation} without the new path; let the watcher write it"
            self._move(path, to, content, at, keeps_source=operation == "copy")
        elif operation in ("delete", "moved_from"):
            for each in self._below(path):
                self._close(each, at)
        elif operation in ("read", "attributes"):
            self._must_exist(path)
        else:
            return "no_file_event", f"{operation} is no operation that is known; no action needed"
        return None

    def _move(self, source: str, to: str, content: _AuditedContent, at: datetime, keeps_source: bool) -> None:
        if (to + "/").startswith(source + "/"):
            return   # onto itself, or into itself
        for path in self._below(source):
            own = self._files[path].content
            if path == source and content.hash not in (None, own.hash):   # a change without an event
                own = content if own.hash is not None else replace(content, origin=own.origin)
                self._open(path, own, at)
            if not keeps_source:
                self._close(path, at)
            self._open(to + path.removeprefix(source), own, at)

    def _below(self, path: str) -> list[str]:
        """Return the file of that path, or all files of the folder; one without a create event was there before."""
        inside = sorted(each for each in self._files if each.startswith(path + "/"))
        if not inside:
            self._must_exist(path)
        return inside or [path]

    def _must_exist(self, path: str) -> None:
        if path not in self._files and not any(each.startswith(path + "/") for each in self._files):
            self._files[path] = _OpenFile(None, _AuditedContent())

    def _open(self, path: str, content: _AuditedContent, at: datetime) -> None:
        if path in self._files:
            self._close(path, at)
        self._files[path] = _OpenFile(at, content)

    def _close(self, path: str, at: datetime | None) -> None:
        file = self._files.pop(path)
        if file.since is None or at is None or file.since < at:
            self._spans.append((path, file.content, file.since, at))

    def _origin(self, name: str, content_hash: str | None, at: datetime, user: str | None) -> str | None:
        """Return where a file that was just created comes from: the one address that a download of its name fits."""
        numbered = _NUMBERED.fullmatch(name)
        names = [name, *([numbered[1] + (numbered[2] or "")] if numbered else [])]
        urls = {each.url for own in names for each in self._downloads.get(own, ())
                if EARLIEST <= at - each.at <= LATEST and (None in (each.user, user) or each.user == user)}
        self._n_ambiguous += len(urls) > 1
        return origin_text(self._app, urls.pop(), content_hash) if len(urls) == 1 else None

    def versions(self) -> list[FileVersion]:
        spans = [*self._spans, *((path, file.content, file.since, None) for path, file in self._files.items())]
        versions = []
        for path, content, since, until in sorted(spans, key=lambda span: (span[0], _instant(span[2]) or "")):
            data = None if content.hash is None else self._stored(content.hash)
            versions.append(FileVersion(path, data, since=_instant(since), until=_instant(until), origin=content.origin,
                                        hash=content.hash, size=content.size))
        return versions

    def decisions(self) -> list[Decision]:
        kept = [Decision(stage="world", subject="files", kept=True, reason="files_rebuilt", detail=(
            f"{self._n_kept} events of files are {len(self._spans) + len(self._files)} contents of files over time."))]
        unclear = [Decision(stage="world", subject="files", kept=True, reason="ambiguous_origin", detail=(
            f"{self._n_ambiguous} files may come from two downloads of their name or more, so their origin is unknown; log "
            "who downloads what."))] if self._n_ambiguous else []
        return [*kept, *unclear, *self._decisions]

    def _reject(self, row: Row, reason: str, detail: str) -> None:
        self._decisions.append(Decision(stage="world", subject=row["event_id"], kept=False, reason=reason, detail=f"{detail}.",
                                        file_id=row["file_id"]))


def _content(facts: Row) -> _AuditedContent:
    written = next((value for name in ("sha256", "hash", "hashes") if isinstance(value := facts.get(name), str)), "")
    hashes = _SHA256.findall(written.lower())
    size = next((value for name in ("size", "filesize", "newsize", "bytes") if isinstance(value := facts.get(name), int)), None)
    return _AuditedContent(hashes[0] if len(hashes) == 1 else None, size)


def _path(value: Any) -> str | None:
    """Return a path as the files app has it: names joined by /, from the root or the drive on; None if it is invalid."""
    names = [name for name in str(value or "").removeprefix("file://").replace("\\", "/").split("/") if name not in ("", ".")]
    joined = "/".join(names)
    return joined if names and ".." not in names and joined.isprintable() else None


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
