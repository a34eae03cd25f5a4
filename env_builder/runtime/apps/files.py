"""Answer tools over a tree of files as of an instant: the kind `files`.

In: tree.jsonl of the app's folder, rows {"path", "hash", "size", "mode", "from", "to"} (the file had this content from one ISO
instant until another; null: ever), and blobs/<sha256>. A row may have an `origin` (where the bytes first came from, a text) and
`stored` false: then the bytes are not on record, and maybe neither their hash nor their size; or `tasks`: only these begin with
it. Out: an app with tools that list,
read, find, write, move, copy and delete files. A folder is there as long as a file is stored below it. Nothing that was written
after the episode's instant is visible, and what an episode writes has the episode's instant as its time. An origin stays with a
file that is moved, and goes along with a copy; who writes a file takes its origin away.
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
from . import App, FileDelivery, Name, ReceivingState, Start
from .identities import SessionUsers

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
    "hash_file": ("Return the sha256 and the size of a file, whatever it holds.", fields("path", path=PATH), False),
}
"""Tool -> description, schema of the arguments, whether it writes."""
STYLES = ("long", "short")
"""How the option `style` has the tools: as in `TOOLS` (the default, without `hash_file`); or named by the verb alone, behind
`files_` where no `prefix` is given, and able to overwrite a file that is there."""
OVERWRITE: Schema = {"type": "boolean", "description": "replace files that are there already; false by default"}
DOCUMENTS = {b"%PDF-": "a PDF document", b"PK\x03\x04": "a zip archive", b"\x89PNG": "a PNG picture",
             b"\xff\xd8\xff": "a JPEG picture"}
"""First bytes of files that no tool reads as text -> what they are."""


class FileEntry(NamedTuple):
    """A file at a path."""

    hash: str | None
    """None: unknown."""
    size: int | None
    mode: str
    modified: str | None
    """ISO instant, None where there is no clock."""
    content: bytes | None = None
    """None: stored among the blobs, if anywhere."""
    origin: str | None = None
    """Where its bytes first came from, as the app says that delivered them."""
    is_stored: bool = True
    """Whether its bytes are on record."""


class InvalidFileCall(Exception):
    """A call that makes no sense in this tree; its text is the answer."""


class UnknownContent(Exception):
    """A call about bytes that are not on record; its text is the answer."""


Tree = Mapping[str, FileEntry]
Change = dict[Name, FileEntry | None]


class OfferedTool(NamedTuple):
    """A tool as an app offers it."""

    name: str
    """In `TOOLS`."""
    schema: Schema


def offered_tools(prefix: str | None, style: str) -> dict[str, OfferedTool]:
    """Return the tools as an option `prefix` and an option `style` make them, by their names. ValueError: no such style."""
    if style not in STYLES:
        raise ValueError(f"no style {style!r} of tools; there are: {', '.join(STYLES)}")
    if style == "long":
        return {(prefix or "") + name: OfferedTool(name, TOOLS[name][1]) for name in TOOLS if name != "hash_file"}
    before = "files_" if prefix is None else prefix
    offered = {}
    for name, (_, schema, _) in TOOLS.items():
        if "destination" in schema["properties"]:
            schema = {**schema, "properties": {**schema["properties"], "overwrite": OVERWRITE}}
        offered[before + name.partition("_")[0]] = OfferedTool(name, schema)
    return offered


def descriptors(prefix: str | None = None, style: str = "long") -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools. ValueError: no such style."""
    return [{"name": shown, "description": TOOLS[tool.name][0], "inputSchema": tool.schema,
             "annotations": {"readOnlyHint": not TOOLS[tool.name][2]}}
            for shown, tool in sorted(offered_tools(prefix, style).items())]


class FilesApp(App):
    """A tree of files over time."""

    takes_files = True

    def __init__(self, name: str, folder: Path, row: Mapping[str, Any]) -> None:
        self.name = name
        self.tools = offered_tools(row.get("prefix"), row.get("style", "long"))
        self.answers = self.tools.keys()
        self.writes = frozenset(shown for shown, tool in self.tools.items() if TOOLS[tool.name][2])
        self.explained = self.writes
        self._users = SessionUsers.of_app(folder, row)
        self._blobs = folder / "blobs"
        self._rows = list(rows_of(folder / "tree.jsonl"))
        self._tasks = {task_id for row in self._rows for task_id in row.get("tasks", ())}
        """Tasks with files of their own."""
        self._trees: dict[tuple[str | None, str | None], Tree] = {}

    def reset(self, start: Start) -> FilesState:
        key = start.instant, start.task_id if start.task_id in self._tasks else None
        if key not in self._trees:
            self._trees[key] = dict(self._at(*key))
        return FilesState(self, self._trees[key], start.instant, self._users.user_of(start))

    def content(self, path: str, entry: FileEntry) -> bytes:
        """Return the bytes of a file. UnknownContent: they are not on record."""
        if entry.content is not None:
            return entry.content
        if not entry.is_stored or entry.hash is None:
            raise UnknownContent(f"unknown: the file {path!r} is there, but its bytes are not on record")
        return (self._blobs / entry.hash).read_bytes()

    def stored_files(self) -> Mapping[str, Path]:
        return {path.name: path for path in sorted(self._blobs.glob("*"))}

    def _at(self, instant: str | None, task_id: str | None) -> Iterator[tuple[str, FileEntry]]:
        """Yield the files that exist at an instant; without a clock the latest. Those of other tasks are left out."""
        for row in self._rows:
            if "tasks" in row and task_id not in row["tasks"]:
                continue
            since, until = row["from"], row["to"]
            if until is None if instant is None else (since or "") <= instant and (until is None or instant < until):
                yield row["path"], FileEntry(row["hash"], row["size"], row["mode"], since, None, row.get("origin"),
                                             row.get("stored", True))


class FilesState(ReceivingState):
    """One episode of a tree: what was changed lies in layers on top of it, so a fork copies nothing."""

    __slots__ = ("_app", "_instant", "_overlay", "_received", "_tree", "_user")

    def __init__(self, app: FilesApp, tree: Tree, instant: str | None, user: str) -> None:
        self._app = app
        self._tree = tree
        self._instant = instant
        self._user = user
        self._overlay = Overlay()
        self._received: tuple[tuple[str, str | None], ...] = ()

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        offered = self._app.tools.get(tool)
        if offered is None:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app.answers))}", True, "unknown")
        try:
            wrong = refusal(offered.schema, arguments, "the arguments")
            if wrong:
                raise InvalidFileCall(wrong)
            answer, change = _ANSWERS[offered.name](self, **arguments)
        except InvalidFileCall as refused:
            return Result(str(refused), True, "derived")
        except UnknownContent as unknown:
            return Result(str(unknown), True, "unknown")
        if change:
            self._overlay = self._overlay.over(change)
        return Result(answer, False, "derived")

    def snapshot(self) -> tuple[Overlay, tuple[tuple[str, str | None], ...]]:
        return self._overlay, self._received

    def restore(self, snapshot: tuple[Overlay, tuple[tuple[str, str | None], ...]]) -> None:
        self._overlay, self._received = snapshot

    def fork(self) -> FilesState:
        twin = FilesState(self._app, self._tree, self._instant, self._user)
        twin.restore(self.snapshot())
        return twin

    def receive(self, file: FileDelivery, folder: str) -> str | None:
        """Store a file as browsers do: under its own name, or the first `name (1).ext` that is free."""
        where = folder.replace("{user}", self._user)
        plain = "".join("_" if letter in "/\\" or not letter.isprintable() else letter for letter in file.name)
        stem, dot, extension = (plain.lstrip(".") or "download").rpartition(".")
        stem, extension = (stem, dot + extension) if dot else (extension, "")
        try:
            number, path = 0, _parsed(f"{where}/{stem}{extension}")
            self._must_be_free_for_file(path.rpartition("/")[0] + "/.")
            while self.entry(path) or any(each.startswith(path + "/") for each in self.paths()):
                number += 1
                path = _parsed(f"{where}/{stem} ({number}){extension}")
        except InvalidFileCall:
            return None
        content = file.content
        entry = FileEntry(None, None, MODE, self._instant, None, file.origin, False) if content is None else FileEntry(
            digest(content), len(content), MODE, self._instant, content, file.origin)
        self._overlay = self._overlay.over({(FILE, path): entry})
        self._received = (*self._received, (path, file.origin))
        return path

    def received(self) -> tuple[tuple[str, str | None], ...]:
        return self._received

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
        if not text:
            return self._listed(chosen), {}
        return self._listed([path for path in chosen if text.encode() in self._app.content(path, self._file(path))]), {}

    def read_file(self, path: str) -> tuple[str, Change]:
        entry = self._file(_parsed(path))
        content = self._app.content(path, entry)
        kind = next((kind for first, kind in DOCUMENTS.items() if content.startswith(first)), None)
        try:
            if kind is None:
                return content.decode(), {}
        except UnicodeDecodeError:
            kind = "no text"
        raise InvalidFileCall(f"{path!r} is {kind}: {entry.size} bytes with the sha256 {entry.hash}")

    def hash_file(self, path: str) -> tuple[str, Change]:
        """Return the hash of a file, which may be on record where its bytes are not."""
        entry = self._file(_parsed(path))
        if entry.hash is None:
            raise UnknownContent(f"unknown: the file {path!r} is there, but the hash of its bytes is not on record")
        return json.dumps({"sha256": entry.hash, "size": entry.size}), {}

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

    def copy_file(self, source: str, destination: str, overwrite: bool = False) -> tuple[str, Change]:
        pairs = self._pairs(_parsed(source), _parsed(destination), overwrite)
        copies: Change = {(FILE, new): self._file(old)._replace(modified=self._instant) for old, new in pairs}
        return f"copied {len(pairs)} files", copies

    def move_file(self, source: str, destination: str, overwrite: bool = False) -> tuple[str, Change]:
        """Move a file, or all files of a folder; they keep their times."""
        pairs = self._pairs(_parsed(source), _parsed(destination), overwrite)
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

    def _pairs(self, source: str, destination: str, overwrite: bool) -> list[tuple[str, str]]:
        """Return (old path, new path) of each file that is moved or copied."""
        if (destination + "/").startswith(source + "/"):
            raise InvalidFileCall(f"{destination!r} is {source!r} itself, or a path in it")
        pairs = [(path, destination + path.removeprefix(source)) for path in self._below(source)]
        for _, new in pairs:
            self._must_be_free_for_file(new)
            if self.entry(new) and not overwrite:
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
        if entry is None:
            return None
        value = {"hash": entry.hash, "mode": entry.mode, "size": entry.size}
        return canonical(value if entry.origin is None else value | {"origin": entry.origin})


_ANSWERS: dict[str, Callable[..., tuple[str, Change]]] = {name: getattr(FilesState, name) for name in TOOLS}
"""Tool -> what answers it: the text, and what it changes."""


def _parsed(path: str) -> str:
    """Return a path in its one form: names joined by /, none of them `.` or `..`."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names or not path.isprintable():
        raise InvalidFileCall(f"invalid path {path!r} (expected names joined by /, none of them ..)")
    return "/".join(names)


def load(folder: Path, row: Mapping[str, Any]) -> FilesApp:
    """Load the app from its folder; `prefix` and `style` of the manifest's row say how its tools are called."""
    return FilesApp(row["name"], folder, row)
