"""Confluence pages with their versions, as its REST API gives them: content, `version` lists with bodies, comments.

Sees: title and body of each version, who wrote it when, comments. A page's place in the tree and its space are those of its
last state: a move writes no version.
Does not see, and says so: since when a page has its labels, who may see a space (the export has the last permissions), the text
of a comment before its last edit, bodies of versions that the export lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from extractors.apps.version import (
    BEGINNING,
    NEVER_KNOWN,
    AppRow,
    AppVersion,
    CompanyApp,
    ExportFile,
    RecordKind,
    bad_row,
    epoch,
    first_row,
    named_accounts,
)
from extractors.formats.instants import microseconds

PAGE, COMMENT, SPACE, ACCOUNT = "wiki", "wiki_comment", "wiki_space", "wiki_user"
_HEAD = 20_000


class _PageVersion(NamedTuple):
    number: int
    at: int
    author: str | None
    title: str | None
    body: str | None


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file holds content with a version."""
    if not file.name.endswith(".json"):
        return False
    start = file.content[:_HEAD] + file.content[-_HEAD:]
    if b'"number"' not in start:
        return False
    row = first_row(file, "results")
    version = row.get("version")
    return (isinstance(version, dict) and "number" in version) or ("minorEdit" in row and "number" in row)


def adopts(file: ExportFile) -> bool:
    """Return whether a file next to pages lists who may see a space."""
    return file.name.endswith(".json") and ("permission" in file.name or "restriction" in file.name)


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of pages and comments."""
    versions: dict[str, dict[int, _PageVersion]] = {}
    pages: dict[str, tuple[dict[str, Any], ExportFile]] = {}
    comments: dict[str, tuple[dict[str, Any], ExportFile]] = {}
    for file in files:
        try:
            content = file.json()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        if adopts(file):
            for name, value in (content.items() if isinstance(content, dict) else ()):
                yield AppVersion(SPACE, str(name), "readers", value, BEGINNING, guessed_until=NEVER_KNOWN, record=file.path)
            continue
        rows = content.get("results", [content]) if isinstance(content, dict) else content
        for row in rows:
            try:
                _sort(row, file, versions, pages, comments)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                yield bad_row(file, str(row.get("id")) if isinstance(row, dict) else "", error)
    yield from _setting([row for row, _ in pages.values()])
    yield from named_accounts(ACCOUNT, [row for row, _ in (*pages.values(), *comments.values())])
    for key in sorted({*pages, *versions}):
        row, file = pages.get(key, ({}, files[0]))
        yield from _page(key, row, file, versions.get(key, {}))
    for key, (row, file) in comments.items():
        try:
            yield from _comment(key, row, file)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield bad_row(file, key, error)


def _setting(rows: list[dict[str, Any]]) -> Iterator[AppVersion]:
    """Versions of the names of spaces, and of the site's address where a page's links have it."""
    names = {str(row["space"]["key"]): row["space"].get("name") for row in rows
             if isinstance(row.get("space"), dict) and row["space"].get("key")}
    for space, name in sorted(names.items()):
        yield AppVersion(SPACE, space, "name", name, BEGINNING)
    sites = {links["base"] for row in rows
             if isinstance(links := row.get("_links"), dict) and isinstance(links.get("base"), str)}
    if len(sites) == 1:
        yield AppVersion("setting", "confluence", "site", sites.pop(), BEGINNING)


def _sort(row: dict[str, Any], file: ExportFile, versions: dict[str, dict[int, _PageVersion]],
          pages: dict[str, tuple[dict[str, Any], ExportFile]], comments: dict[str, tuple[dict[str, Any], ExportFile]]) -> None:
    """Put a row where it belongs: a comment, a page's last state, or one of its versions."""
    if row.get("type") == "comment":
        comments[str(row["id"])] = (row, file)
        return
    body = row.get("content") if isinstance(row.get("content"), dict) else row
    key = str(row.get("id") or (body or {}).get("id") or file.name.removesuffix(".json"))
    version = _version(row, body or row)
    versions.setdefault(key, {}).setdefault(version.number, version)
    if "history" in row or "space" in row or "spaceId" in row:   # versions have none of these
        pages[key] = (row, file)
    for each in (((row.get("children") or {}).get("comment") or {}).get("results")) or ():
        comments[str(each["id"])] = ({"container": {"id": key}, **each}, file)


def _version(row: dict[str, Any], content: dict[str, Any]) -> _PageVersion:
    stated = row["version"] if isinstance(row.get("version"), dict) else row
    at = microseconds(stated.get("when") or stated.get("createdAt"))
    if at is None:
        raise ValueError("a version without a time")
    by = stated.get("by") or {}
    return _PageVersion(int(stated["number"]), at, by.get("accountId") or by.get("userKey") or by.get("username")
                        or stated.get("authorId"), content.get("title"), _body(content))


def _body(row: dict[str, Any]) -> str | None:
    body = row.get("body") or {}
    for name in ("storage", "atlas_doc_format", "view"):
        if isinstance(body.get(name), dict) and "value" in body[name]:
            return str(body[name]["value"])
    return None


def _page(key: str, row: dict[str, Any], file: ExportFile, by_number: dict[int, _PageVersion]) -> Iterator[AppVersion]:
    versions = [by_number[number] for number in sorted(by_number)]
    history = row.get("history") or {}
    born = microseconds(history.get("createdDate") or row.get("createdAt")) or versions[0].at
    record = f"{file.path}#{key}"
    author = (history.get("createdBy") or {}).get("accountId") or row.get("authorId") or versions[0].author
    ancestors = row.get("ancestors") or ()
    labels = [each["name"] for each in (((row.get("metadata") or {}).get("labels") or {}).get("results")) or ()]
    fixed = {"author": author, "created": epoch(born), "status": row.get("status") or "current",
             "type": row.get("type") or "page", "space": (row.get("space") or {}).get("key") or row.get("spaceId"),
             "parent": str(ancestors[-1]["id"]) if ancestors else row.get("parentId")}
    for field, value in fixed.items():
        yield AppVersion(PAGE, key, field, value, born, 0, author, BEGINNING, record)
    yield AppVersion(PAGE, key, "labels", labels, born, 0, author, NEVER_KNOWN if labels else BEGINNING, record)
    for index, version in enumerate(versions):
        following = versions[index + 1] if index + 1 < len(versions) else None
        is_gap = following is not None and following.number > version.number + 1
        at = born if version.number == 1 else max(version.at, born)
        known_from = following.at if is_gap and following else BEGINNING
        if index == 0 and version.number > 1:   # the export lacks the first versions
            for field, value in (("title", version.title), ("body", version.body), ("version", 1)):
                yield AppVersion(PAGE, key, field, value, born, 1, author, version.at, record)
        for field, value in (("title", version.title), ("body", version.body), ("version", version.number)):
            doubt = NEVER_KNOWN if value is None and field == "body" else known_from
            yield AppVersion(PAGE, key, field, value, at, version.number, version.author, doubt, record)


def _comment(key: str, row: dict[str, Any], file: ExportFile) -> Iterator[AppVersion]:
    history, version = row.get("history") or {}, row.get("version") or {}
    born = microseconds(history.get("createdDate") or row.get("createdAt") or version.get("when") or version.get("createdAt"))
    if born is None:
        raise ValueError("a comment without a time")
    author = (history.get("createdBy") or version.get("by") or {}).get("accountId") or version.get("authorId")
    edited = microseconds(version.get("when") or version.get("createdAt")) if (version.get("number") or 1) > 1 else None
    page = (row.get("container") or {}).get("id") or row.get("pageId") or _last_part(row)
    fields = {"author": author, "created": epoch(born), "page": str(page) if page is not None else None}
    record = f"{file.path}#{key}"
    for field, value in fields.items():
        yield AppVersion(COMMENT, key, field, value, born, 0, author, BEGINNING, record)
    yield AppVersion(COMMENT, key, "body", _body(row), born, 0, author, edited or BEGINNING, record)


def _last_part(row: dict[str, Any]) -> str | None:
    """Return the page's id at the end of the address under which an answer offers it unexpanded."""
    return str((row.get("_expandable") or {}).get("container") or "").rpartition("/")[2] or None


APP = CompanyApp("confluence", claims, read, rank=15, adopts=adopts, advice=(
    (PAGE, "labels", "Confluence webhooks: label_added, label_removed"),
    (COMMENT, "body", "Confluence webhooks: comment_updated, comment_removed"),
    (SPACE, "readers", "Confluence audit log: space permission changes"),
), kinds=(
    RecordKind(PAGE, texts=("title", "body"), place="wiki_space:{space}", follows=("version", "created")),
    RecordKind(COMMENT, texts=("body",), place="wiki:{page}", answers="wiki:{page}", follows=("created",)),
))
