"""Files with their revisions, as Google Drive or SharePoint give them: a list of files with `revisions`, and their contents.

Sees: the content of each revision: tabs of workbooks (fields `!Tab`), text of documents, the hash of anything else; names and
owners, as of the last state: their changes are not listed. Does not see, and says so: who could read a file before the export.
Does not see states between two revisions: products merge what one person saves within minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from extractors.apps.version import (
    BEGINNING,
    NEVER_KNOWN,
    AppRow,
    AppVersion,
    CompanyApp,
    ExportFile,
    RecordKind,
    UnreadPart,
    bad_row,
    epoch,
)
from extractors.apps.workbook import document_text, tabs_of
from extractors.formats.instants import microseconds

DOCUMENT, ATTACHMENT = "sheet", "attachment"
_HEAD = 20_000
_MERGED = 600 * 1_000_000
"""Microseconds before a revision in which its author may have saved parts of it: saves that follow each other are one."""
_OFFICE = (b"PK\x03\x04",)
_TEXTS = (".md", ".txt", ".csv", ".html")


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file lists revisions, or is one."""
    if file.name.endswith(".json"):
        head = file.content[:_HEAD]
        return (b'"revisions"' in head or b'"versions"' in head) and (
            b'"modifiedTime"' in head or b'"lastModifiedDateTime"' in head)
    return file.name.endswith((".xlsx", ".docx")) and file.content.startswith(_OFFICE)


def adopts(file: ExportFile) -> bool:
    """Return whether a file next to others may be a revision of one."""
    return file.name.endswith(_TEXTS) and "/" in file.path


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of files."""
    contents = {file.path: file for file in files if not file.name.endswith(".json")}
    used: set[str] = set()
    for file in files:
        if not file.name.endswith(".json"):
            continue
        try:
            listed = file.json()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        rows = listed.get("files") or listed.get("value") or [listed] if isinstance(listed, dict) else listed
        for row in rows:
            try:
                yield from _document(row, file, contents, used)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                yield bad_row(file, str(row.get("id")) if isinstance(row, dict) else "", error)
    for path, file in contents.items():
        if path in used:
            continue
        if not file.at:
            yield UnreadPart(path, "", "no_revision", "no list of files names this file")
            continue
        try:
            fields = _content(file.name, file.content)   # attached to a mail
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        for field, value in fields.items():
            yield AppVersion(ATTACHMENT, path, field, value, file.at, record=path)


def _who(value: Any) -> str | None:
    """Return the address of a person, else the name."""
    person = value.get("user", value) if isinstance(value, dict) else {}
    return person.get("emailAddress") or person.get("email") or person.get("displayName")


def _document(row: dict[str, Any], file: ExportFile, contents: dict[str, ExportFile], used: set[str]) -> Iterator[AppRow]:
    key, name = str(row["id"]), str(row.get("name") or row.get("title") or row["id"])
    revisions = sorted(row.get("revisions") or row.get("versions") or (),
                       key=lambda each: (_time(each) or 0, str(each.get("id"))))
    born = microseconds(row.get("createdTime") or row.get("createdDateTime")) or (_time(revisions[0]) if revisions else None)
    if born is None:
        raise ValueError("a file without a time")
    owners = row.get("owners") or ([row["createdBy"]] if row.get("createdBy") else [])
    owner = _who(owners[0]) if owners else None
    record = f"{file.path}#{key}"
    for field, value in (("name", name), ("owner", owner), ("mime_type", row.get("mimeType"))):
        yield AppVersion(DOCUMENT, key, field, value, born, 0, owner, BEGINNING, record)
    readers = [each.get("displayName") or each.get("emailAddress") or each.get("type") for each in row.get("permissions") or ()]
    yield AppVersion(DOCUMENT, key, "readers", readers, born, 0, owner, NEVER_KNOWN, record)
    before: dict[str, Any] = {}
    previous = born
    for number, revision in enumerate(revisions, start=1):
        at, place = _time(revision), str(revision.get("file") or revision.get("path") or "")
        path = f"{file.folder}/{place}" if file.folder else place
        export = contents.get(path) or contents.get(place)
        if at is None or export is None:
            yield UnreadPart(file.path, f"{key}/{revision.get('id')}", "missing_content",
                             f"the content of revision {revision.get('id')} is not in the export: {place!r}")
            continue
        used.add(export.path)
        fields = _content(export.name, export.content)
        at = born if number == 1 else max(at, born)
        for field in {**before, **fields}:
            value = fields.get(field)
            if value != before.get(field):
                author = _who(revision.get("lastModifyingUser") or revision.get("lastModifiedBy"))
                if number > 1 and max(previous, at - _MERGED) < at:   # saved some time in it: what stood there is not known
                    yield AppVersion(DOCUMENT, key, field, value, max(previous, at - _MERGED), number, author, at, export.path)
                yield AppVersion(DOCUMENT, key, field, value, at, number, author, BEGINNING, export.path)
        before, previous = fields, at
        yield AppVersion(DOCUMENT, key, "modified", epoch(at), at, number, None, BEGINNING, record)


def _time(revision: dict[str, Any]) -> int | None:
    return microseconds(revision.get("modifiedTime") or revision.get("lastModifiedDateTime") or revision.get("modified"))


def _content(name: str, content: bytes) -> dict[str, Any]:
    """Return the fields of a file's content. Errors: ValueError for a damaged office file."""
    if name.endswith(".xlsx"):
        return {f"!{tab}": rows for tab, rows in tabs_of(content).items()}
    if name.endswith(".docx"):
        return {"text": document_text(content)}
    if name.endswith(_TEXTS):
        return {"text": content.decode("utf-8", "replace")}
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


APP = CompanyApp("drive", claims, read, rank=50, adopts=adopts, advice=(
    (DOCUMENT, "readers", "Google Drive activity API: permissionChange; SharePoint audit log"),
), kinds=(
    RecordKind(DOCUMENT, texts=("!*", "text"), follows=("modified",)),
))
