"""Answer tools over a tree of files as of an instant: the kind `files`.

In: tree.jsonl of the app's folder, rows {"path", "hash", "size", "mode", "from", "to"} (the file had this content from one ISO
instant until another; null: ever), and blobs/<sha256>. Out: an app with tools that list, read, find, write, move, copy and
delete files. A folder is there as long as a file is stored below it. Nothing that was written after the episode's instant is
visible, and what an episode writes has the episode's instant as its time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ..canonical import canonical, digest
from ..files import rows_of
from ..records import Result
from ..schemas import Schema, fields, refusal
from ..world import Overlay
from . import App, AppState, Name, Start

FILE = "file"
"""Class of the entities."""
MODE = "0644"
"""Of files that are new."""
PATH: Schema = {"type": "string", "minLength": 1, "description": "path of a file or folder, names joined by /"}
TEXT: Schema = {"type": "string"}
TOOLS: dict[str, tuple[str, Schema, bool]] = {
    "list_files": ("List the files below a folder, or all files.", fields(path=PATH), False),
    "read_file": ("Return the text of a file.", fields("path", path=PATH), False),
    "find_files": ("Find files by a pattern of their path (* and ?), and by a text that they contain.",
                   fields(pattern=TEXT, text=TEXT), False),
    "write_file": ("Create a file, or replace its text.", fields("path", "content", path=PATH, content=TEXT), True),
    "move_file": ("Move a file or folder to a new path.", fields("source", "destination", source=PATH, destination=PATH), True),
    "copy_file": ("Copy a file or folder to a new path.", fields("source", "destination", source=PATH, destination=PATH), True),
    "delete_file": ("Delete a file, or a folder with everything in it.", fields("path", path=PATH), True),
}
"""Tool -> description, schema of the arguments, whether it writes."""


class FileEntry(NamedTuple):
    """A file at a path."""

    hash: str
    size: int
    mode: str
    modified: str | None
    """ISO instant, None where there is no clock."""
    content: bytes | None = None
    """None: stored among the blobs."""


class InvalidFileCall(Exception):
    """A call that makes no sense in this tree; its text is the answer."""


Tree = Mapping[str, FileEntry]
Change = dict[Name, FileEntry | None]


def descriptors(prefix: str = "") -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools, each name behind a prefix."""
    return [{"name": prefix + name, "description": description, "inputSchema": schema,
             "annotations": {"readOnlyHint": not writes}} for name, (description, schema, writes) in sorted(TOOLS.items())]


class FilesApp(App):
    """A tree of files over time."""

    def __init__(self, name: str, folder: Path, prefix: str = "") -> None:
        self.name = name
        self.prefix = prefix
        self.answers = frozenset(prefix + tool for tool in TOOLS)
        self.writes = frozenset(prefix + tool for tool, (_, _, writes) in TOOLS.items() if writes)
        self._blobs = folder / "blobs"
        self._rows = list(rows_of(folder / "tree.jsonl"))
        self._trees: dict[str | None, Tree] = {}

    def reset(self, start: Start) -> FilesState:
        if start.instant not in self._trees:
            self._trees[start.instant] = dict(self._at(start.instant))
        return FilesState(self, self._trees[start.instant], start.instant, Overlay())

    def content(self, entry: FileEntry) -> bytes:
        return (self._blobs / entry.hash).read_bytes() if entry.content is None else entry.content

    def _at(self, instant: str | None) -> Iterator[tuple[str, FileEntry]]:
        """Yield the files that exist at an instant; without a clock the latest."""
        for row in self._rows:
            since, until = row["from"], row["to"]
            if until is None if instant is None else (since or "") <= instant and (until is None or instant < until):
                yield row["path"], FileEntry(row["hash"], row["size"], row["mode"], since)


class FilesState(AppState):
    """One episode of a tree: what was changed lies in layers on top of it, so a fork copies nothing."""

    __slots__ = ("_app", "_instant", "_overlay", "_tree")

    def __init__(self, app: FilesApp, tree: Tree, instant: str | None, overlay: Overlay) -> None:
        self._app = app
        self._tree = tree
        self._instant = instant
        self._overlay = overlay

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        name = tool.removeprefix(self._app.prefix)
        if tool not in self._app.answers:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app.answers))}", True, "unknown")
        try:
            wrong = refusal(TOOLS[name][1], arguments, "the arguments")
            if wrong:
                raise InvalidFileCall(wrong)
            answer, change = _ANSWERS[name](self, **arguments)
        except InvalidFileCall as refused:
            return Result(str(refused), True, "derived")
        if change:
            self._overlay = self._overlay.over(change)
        return Result(answer, False, "derived")

    def snapshot(self) -> Overlay:
        return self._overlay

    def restore(self, snapshot: Overlay) -> None:
        self._overlay = snapshot

    def fork(self) -> FilesState:
        return FilesState(self._app, self._tree, self._instant, self._overlay)

    def difference(self) -> dict[str, Any]:
        """Return the files that differ from the start, in content or mode."""
        documents = {}
        for (_, path), entry in self._overlay.items().items():
            before, after = self._text(self._tree.get(path)), self._text(entry)
            if before != after:
                documents[f"{FILE}/{path}"] = after
        return {"documents": documents, "write_calls": []}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        if name[0] != FILE:
            return None, None
        return self._text(self._tree.get(name[1])), self._text(self.entry(name[1]))

    def may_write(self, tool: str) -> bool:
        return tool in self._app.writes

    def entry(self, path: str) -> FileEntry | None:
        entry: FileEntry | None = self._overlay.get((FILE, path), self._tree.get(path))
        return entry

    def paths(self) -> list[str]:
        changed = {path: entry is not None for (_, path), entry in self._overlay.items().items()}
        return sorted({path for path in {*self._tree, *changed} if changed.get(path, True)})

    def list_files(self, path: str = "") -> tuple[str, Change]:
        chosen = self._below(_parsed(path)) if path else self.paths()
        return self._listed(chosen), {}

    def find_files(self, pattern: str = "*", text: str = "") -> tuple[str, Change]:
        chosen = [path for path in self.paths() if fnmatchcase(path, pattern)]
        return self._listed([path for path in chosen if text.encode() in self._app.content(self._file(path))]), {}

    def read_file(self, path: str) -> tuple[str, Change]:
        entry = self._file(_parsed(path))
        try:
            return self._app.content(entry).decode(), {}
        except UnicodeDecodeError:
            raise InvalidFileCall(f"{path!r} is no text: {entry.size} bytes with the sha256 {entry.hash}") from None

    def write_file(self, path: str, content: str) -> tuple[str, Change]:
        parsed = _parsed(path)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise InvalidFileCall("the content is no text: it has half a surrogate pair") from None
        self._must_be_free_for_file(parsed)
        before = self.entry(parsed)
        entry = FileEntry(digest(data), len(data), before.mode if before else MODE, self._instant, data)
        return f"wrote {len(data)} bytes to {parsed}", {(FILE, parsed): entry}

    def copy_file(self, source: str, destination: str) -> tuple[str, Change]:
        pairs = self._pairs(_parsed(source), _parsed(destination))
        copies: Change = {(FILE, new): self._file(old)._replace(modified=self._instant) for old, new in pairs}
        return f"copied {len(pairs)} files", copies

    def move_file(self, source: str, destination: str) -> tuple[str, Change]:
        """Move a file, or all files of a folder; they keep their times."""
        pairs = self._pairs(_parsed(source), _parsed(destination))
        gone: Change = {(FILE, old): None for old, _ in pairs}
        return f"moved {len(pairs)} files", gone | {(FILE, new): self._file(old) for old, new in pairs}

    def delete_file(self, path: str) -> tuple[str, Change]:
        chosen = self._below(_parsed(path))
        return f"deleted {len(chosen)} files", {(FILE, each): None for each in chosen}

    def _file(self, path: str) -> FileEntry:
        entry = self.entry(path)
        if entry is None:
            raise InvalidFileCall(f"no file {path!r}")
        return entry

    def _below(self, path: str) -> list[str]:
        """Return the file of that path, or all files of the folder."""
        chosen = [path] if self.entry(path) else [each for each in self.paths() if each.startswith(path + "/")]
        if not chosen:
            raise InvalidFileCall(f"no file or folder {path!r}")
        return chosen

    def _pairs(self, source: str, destination: str) -> list[tuple[str, str]]:
        """Return (old path, new path) of each file that is moved or copied."""
        if (destination + "/").startswith(source + "/"):
            raise InvalidFileCall(f"{destination!r} is {source!r} itself, or a path in it")
        pairs = [(path, destination + path.removeprefix(source)) for path in self._below(source)]
        for _, new in pairs:
            self._must_be_free_for_file(new)
            if self.entry(new):
                raise InvalidFileCall(f"there is a file {new!r} already")
        return pairs

    def _must_be_free_for_file(self, path: str) -> None:
        """Refuse a path that is a folder, or that lies in a file."""
        if any(each.startswith(path + "/") for each in self.paths()):
            raise InvalidFileCall(f"{path!r} is a folder")
        parents = path.split("/")[:-1]
        for n in range(1, len(parents) + 1):
            if self.entry("/".join(parents[:n])):
                raise InvalidFileCall(f"{'/'.join(parents[:n])!r} is a file, no folder")

    def _listed(self, paths: list[str]) -> str:
        rows = [{"path": path, "size": entry.size, "mode": entry.mode, "modified": entry.modified}
                for path in paths for entry in [self._file(path)]]
        return json.dumps(rows, ensure_ascii=False)

    @staticmethod
    def _text(entry: FileEntry | None) -> str | None:
        return None if entry is None else canonical({"hash": entry.hash, "mode": entry.mode, "size": entry.size})


_ANSWERS: dict[str, Callable[..., tuple[str, Change]]] = {name: getattr(FilesState, name) for name in TOOLS}
"""Tool -> what answers it: the text, and what it changes."""


def _parsed(path: str) -> str:
    """Return a path in its one form: names joined by /, none of them `.` or `..`."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names or not path.isprintable():
        raise InvalidFileCall(f"invalid path {path!r} (expected names joined by /, none of them ..)")
    return "/".join(names)


def load(folder: Path, row: Mapping[str, Any]) -> FilesApp:
    """Load the app from its folder; `prefix` of the manifest's row stands before the names of its tools."""
    return FilesApp(row["name"], folder, row.get("prefix", ""))
