"""A person's drive as files of the working folder: `drive/<name>`, workbooks as `.xlsx`.

In: a desk. Out: the paths and bytes of the files that the person may read, written from the same records that the tools show;
a file that was saved becomes a revision of its record. A save of a workbook changes the tabs whose cells differ, in the order
of the file; tabs that the file lacks are removed. A file under a new path is a new file of the person.
Sees: cells and texts. Does not see: files of which no export has the content, or not at this instant (they are not in the
folder); formats and charts of what was saved; a file that was removed from the folder, which stays in the drive.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..canonical import digest
from ..company import CompanyDesk, Undecided
from .drive import FILE, refused, tabs_of
from .office_files import read_document, read_workbook, trimmed, write_document, write_workbook
from .tools import OfficeTool

SAVE = "save_file"
"""The tool that saves a file of the folder: the host's, and in no list of tools."""
FOLDER = "drive"
MOST_BYTES = 700_000
"""Of a file that is saved: what fits into the arguments of a call."""
_WORKBOOK, _DOCUMENT = ".xlsx", ".docx"
_TEXTS = (".md", ".txt", ".csv", ".html")
_WRITERS: dict[str, Callable[[str], bytes]] = {_DOCUMENT: write_document}
_KINDS = {_WORKBOOK: "application/vnd.google-apps.spreadsheet", _DOCUMENT: "application/vnd.google-apps.document"}


class FolderFile(NamedTuple):
    """A file of the folder."""

    key: str
    """Id of its record."""
    content: bytes
    sha256: str


def files_of(desk: CompanyDesk) -> dict[str, FolderFile]:
    """Return the files of the folder as they are now, by path. Of two files with one name the older one has it."""
    begun = desk.of_start("drive files", _written)
    written = {**begun, **{key: file for key in desk.own(FILE) if (file := _file(desk, key)) is not None}}
    names = _paths(desk)
    return {path: written[key] for key, path in names.items() if key in written}


def _written(desk: CompanyDesk) -> Mapping[str, FolderFile]:
    return {key: file for key in desk.visible(FILE) if (file := _file(desk, key)) is not None}


def _paths(desk: CompanyDesk) -> dict[str, str]:
    """Return the path of each record that the person may read."""
    used: set[str] = set()
    names: dict[str, str] = {}
    for key in desk.visible(FILE):
        name = "".join("_" if letter in "/\\" or not letter.isprintable() else letter
                       for letter in str(desk.last_known(FILE, key, "name") or key)).lstrip(".")
        ending = _ending(desk, key, name)
        stem = name.removesuffix(ending)
        names[key] = next(path for number in range(1, len(used) + 2) if (
            path := f"{FOLDER}/{stem}{f' ({number})' if number > 1 else ''}{ending}") not in used)
        used.add(names[key])
    return names


def _ending(desk: CompanyDesk, key: str, name: str) -> str:
    if any(field.startswith("!") for field in desk.fields(FILE, key)):
        return _WORKBOOK
    named = next((each for each in (_DOCUMENT, *_TEXTS) if name.lower().endswith(each)), None)
    is_document = "document" in str(desk.last_known(FILE, key, "mime_type") or "")
    return name[-len(named):] if named else _DOCUMENT if is_document else ".txt"


def _file(desk: CompanyDesk, key: str) -> FolderFile | None:
    """Return a file as a program finds it; None where its content is not known."""
    try:
        if tabs := tabs_of(desk, key):
            content = write_workbook(tabs)
        elif isinstance(text := desk.value(FILE, key, "text"), str):
            ending = _ending(desk, key, str(desk.last_known(FILE, key, "name") or ""))
            content = _WRITERS.get(ending.lower(), str.encode)(text.encode("utf-8", "replace").decode())
        else:
            return None
    except Undecided:
        return None
    return FolderFile(key, content, digest(content))


def _save(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    path, given = arguments.get("path"), arguments.get("content")
    if not isinstance(path, str) or not isinstance(given, str):
        raise refused("a file is saved with its path and its content in base64")
    try:
        content = base64.b64decode(given, validate=True)
    except binascii.Error:
        raise refused("the content is not base64") from None
    if len(content) > MOST_BYTES:
        raise refused(f"the file has more than {MOST_BYTES} bytes")
    ending = "." + path.rpartition(".")[2].lower()
    folder, _, name = path.rpartition("/")
    if folder != FOLDER or not name.isprintable() or ending not in (_WORKBOOK, _DOCUMENT, *_TEXTS) or name.startswith("."):
        raise refused(f"{path} is no workbook and no document in {FOLDER}")
    before = next((key for key, own in _paths(desk).items() if own == path), None)
    try:
        new = _fields(ending, content)
    except (ValueError, UnicodeDecodeError) as error:
        raise refused(f"{path} cannot be read: {error}") from None
    if before is None:
        key = desk.made_id("file", 33)
        desk.write(FILE, key, name=name, owner=desk.address, mime_type=_KINDS.get(ending), readers=[], modified=desk.now, **new)
        return f"Saved the new file {path}."
    old = {name: desk.value(FILE, before, name) for name in desk.fields(FILE, before) if name.startswith("!") or name == "text"}
    values = {name: new.get(name) for name in {**old, **new} if not _is_same(old.get(name), new.get(name))}
    if not values:
        return f"Nothing in {path} changed."
    desk.write(FILE, before, **values, modified=desk.now)
    return f"Saved {path}."


def _fields(ending: str, content: bytes) -> dict[str, Any]:
    """Return the fields of a record that a file's content gives. Errors: ValueError."""
    if ending == _WORKBOOK:
        return {f"!{name}": rows for name, rows in read_workbook(content).items()}
    return {"text": read_document(content) if ending == _DOCUMENT else content.decode()}


def _is_same(old: Any, new: Any) -> bool:
    return trimmed(old) == trimmed(new) if isinstance(old, list) and isinstance(new, list) else old == new


TOOLS: dict[str, OfficeTool] = {SAVE: OfficeTool(_save, writes=(FILE,))}
"""Offered to hosts beside those of the product `drive`."""
