"""Jira issues as its REST API gives them with `expand=changelog`: pages of a search, single issues, lists of issues.

Sees: every field's changes in the changelog, comments and when each was last edited, names of custom fields (`field.json`, or
`names` of a search), accounts (of the cloud by `accountId`, of a server by `name`), transitions between statuses, who may see a
project. `updated` is computed from what is visible.
Does not see, and says so: watchers, the text of a comment before its last edit, changes that a cut changelog lacks, and which
field of its own a company changed where the changelog has a name that no list explains. Deleted issues and comments are not in
an export at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from extractors.apps import jira_setup
from extractors.apps.history import FieldChange, FieldSource, latest_versions, scalar_versions, set_versions
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
    first_row,
    is_server_account,
    named_accounts,
)
from extractors.formats.instants import microseconds

ISSUE, COMMENT, ACCOUNT, PROJECT, STATUS = "jira", "jira_comment", "jira_user", "jira_project", "jira_status"
LINK = "jira_link"
_HEAD = 20_000
_MARKS = (b'"fields"', b'"issues"', b'"accountId"', b'"customfield_', b'"clauseNames"')
_PLAIN = {"summary": "summary", "description": "description", "environment": "environment", "duedate": "duedate"}
_NAMED = {"issuetype": "type", "status": "status", "priority": "priority", "resolution": "resolution"}
_PEOPLE = {"assignee": "assignee", "reporter": "reporter"}
_LISTS = {"labels": "labels", "fixVersions": "fix_versions", "versions": "versions"}
_IDENTITIES = ("accountId", "value", "name", "key", "id", "displayName")
_LOGGED_AS = {"component": "components", "components": "components", "fix version": "fixVersions", "version": "versions",
              "link": "issuelinks", "issuetype": "issuetype", "issue type": "issuetype", "due date": "duedate"}
"""Names of fields in changelogs without `fieldId`."""


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file holds issues, accounts or custom fields."""
    if not file.name.endswith((".json", ".jsonl")) or not any(mark in file.content[:_HEAD] for mark in _MARKS):
        return False
    row = first_row(file, "issues", "values")
    return (isinstance(row.get("fields"), dict) and "key" in row) or ("issues" in row and "maxResults" in row) or (
        "accountId" in row and "displayName" in row) or _is_field(row)


def adopts(file: ExportFile) -> bool:
    """Return whether a file next to issues is a workflow or a list of permissions."""
    return file.name.endswith(".json") and ("workflow" in file.name or "permission" in file.name)


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of issues, comments, accounts, and what is configured."""
    names: dict[str, str] = {}
    accounts: set[str] = set()
    issues: dict[str, tuple[dict[str, Any], ExportFile]] = {}
    settings: list[tuple[Any, ExportFile]] = []
    setup = jira_setup.JiraSetup(files[0].path if files else "")
    for file in files:
        try:
            content = [file.json()] if not file.name.endswith(".jsonl") else file.json_lines()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        for part in content:
            if adopts(file):
                settings.append((part, file))
                continue
            names |= _listed_names(part)
            for row in _rows(part):
                if "fields" in row and "key" in row:
                    issues[str(row["key"])] = (row, file)
                elif row.get("accountId"):
                    accounts.add(str(row["accountId"]))
                    setup.add_account(row)
                    yield from _account(row, file)
                elif _is_field(row):
                    setup.list_field(row)
                    if str(row["id"]).startswith("customfield_"):
                        names[str(row["id"])] = str(row.get("name") or row["id"])
                elif row:
                    yield bad_row(file, str(row.get("id", "")), "neither an issue, an account nor a field")
    listed = frozenset(accounts)
    yield from (version for version in named_accounts(ACCOUNT, [row for row, _ in issues.values()])
                if version.entity_id not in listed)
    for content, file in settings:
        yield from _configuration(content, file, [row for row, _ in issues.values()])
    columns = column_names(names)
    listing = _Listing(columns, _ids_of(names), dict(_server_names([row for row, _ in issues.values()])))
    for key, name in names.items():
        setup.add_field(key, name, columns[key])
    for key, (row, file) in issues.items():
        try:
            yield from _JiraIssue(row, file, listing).versions()
            setup.add_issue(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield bad_row(file, key, error)
    yield from setup.versions()


def _is_field(row: dict[str, Any]) -> bool:
    """Return whether a row defines a field of issues."""
    return str(row.get("id", "")).startswith("customfield_") or ("clauseNames" in row and isinstance(row.get("custom"), bool))


def _listed_names(content: Any) -> dict[str, str]:
    """Return id -> name of the company's own fields that a search's answer or an issue lists beside its rows."""
    listed = content.get("names") if isinstance(content, dict) else None
    rows = listed.items() if isinstance(listed, dict) else ()
    return {key: str(name) for key, name in rows if key.startswith("customfield_")}


def _ids_of(names: dict[str, str]) -> dict[str, str]:
    """Return name, in small letters -> id of the only field of that name."""
    shared = Counter(name.lower() for name in names.values())
    return {name.lower(): key for key, name in names.items() if shared[name.lower()] == 1}


def _server_names(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (key, name) of the accounts of a server: records name them, changelogs write the key."""
    waiting: list[Any] = list(rows)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if is_server_account(value) and isinstance(value.get("key"), str):
                yield value["key"], value["name"]
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _rows(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, dict):
        for name in ("issues", "values"):
            if isinstance(content.get(name), list):
                return [row for row in content[name] if isinstance(row, dict)]
        return [content]
    return [row for row in content if isinstance(row, dict)] if isinstance(content, list) else []


def _account(row: dict[str, Any], file: ExportFile) -> Iterator[AppVersion]:
    account = str(row["accountId"])
    for field, value in (("display_name", row.get("displayName")), ("email", row.get("emailAddress"))):
        yield AppVersion(ACCOUNT, account, field, value, BEGINNING, record=file.path)
    active = row.get("active", True)
    yield AppVersion(ACCOUNT, account, "active", active, BEGINNING, guessed_until=BEGINNING if active else NEVER_KNOWN,
                     record=file.path)


def _configuration(content: Any, file: ExportFile, issues: list[dict[str, Any]]) -> Iterator[AppRow]:
    """Transitions from each status, known since the changelogs obey them; or who may see each project, as of the export."""
    if not isinstance(content, dict):
        yield bad_row(file, "", "a mapping is expected")
        return
    is_workflow = "workflow" in file.name
    known_from = NEVER_KNOWN
    if is_workflow:
        broken = microseconds(jira_setup.last_break(content, issues))
        known_from = BEGINNING if broken is None else broken + 1
    for name, value in content.items():
        yield AppVersion(STATUS if is_workflow else PROJECT, str(name), "transitions" if is_workflow else "readers", value,
                         BEGINNING, guessed_until=known_from, record=file.path)


def plain(value: Any) -> Any:
    """Return what identifies a value of a field: a person's account, an option's or a version's name."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return next((value[name] for name in _IDENTITIES if value.get(name) is not None), value)
    return value


def _as_number(change: FieldChange, last: Any) -> FieldChange:
    """Return a change with numbers where the field holds one: changelogs write all values as texts."""
    if not isinstance(last, (int, float)) or isinstance(last, bool):
        return change
    return change._replace(before=_number(change.before), after=_number(change.after))


def _number(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def slug(name: str) -> str:
    """Return a custom field's name as the name of a column: `SLA due` -> `sla_due`."""
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_")


def column_names(names: dict[str, str]) -> dict[str, str]:
    """Return id of a custom field -> the field that holds it: its name as a slug, or the id where two names make one slug."""
    slugs = {key: slug(name) for key, name in names.items()}
    is_unique = len(set(slugs.values())) == len(slugs)
    return {key: own if own and is_unique else key for key, own in slugs.items()}


class _Listing(NamedTuple):
    """What lists of fields and accounts tell of names in issues."""

    columns: dict[str, str]
    """Id of a field of the company's own -> the field that holds it."""
    ids: dict[str, str]
    """Name of such a field, in small letters -> id."""
    accounts: dict[str, str]
    """Key of an account of a server -> its name."""


class _JiraIssue:
    """One issue, and the versions of its fields."""

    def __init__(self, row: dict[str, Any], file: ExportFile, listing: _Listing) -> None:
        self.row, self.fields, self.file, self.listing = row, row["fields"], file, listing
        self.key = str(row["key"])
        created = microseconds(self.fields["created"])
        if created is None:
            raise ValueError(f"created is no time: {self.fields['created']!r}")
        self.born = created
        self.record = f"{file.path}#{self.key}"
        self.reporter = plain(self.fields.get("creator") or self.fields.get("reporter"))
        changelog = row.get("changelog") or {}
        self.histories = sorted(changelog.get("histories") or changelog.get("values") or (),
                                key=lambda history: (microseconds(history["created"]) or 0, int(history.get("id") or 0)))
        is_cut = (changelog.get("total") or 0) > len(self.histories)
        self.guessed_until = (microseconds(self.histories[0]["created"]) or 0) if is_cut and self.histories else BEGINNING
        self.log: dict[str, list[tuple[int, int, str | None, dict[str, Any]]]] = {}
        self.unnamed_until = BEGINNING
        """The last change of a field of the company's own that no list names: any of them may have changed."""
        for history in self.histories:
            at = microseconds(history["created"]) or 0
            for item in history.get("items") or ():
                field = self.logged_field(item)
                self.log.setdefault(field, []).append((at, int(history.get("id") or 0), plain(history.get("author")), item))
                if item.get("fieldtype") == "custom" and not field.startswith("customfield_"):
                    self.unnamed_until = max(self.unnamed_until, at)

    def logged_field(self, item: dict[str, Any]) -> str:
        """Return the field of issues that an item of the changelog is about; the item's own name where none is known."""
        field = str(item.get("fieldId") or item.get("field"))
        if item.get("fieldtype") == "custom":
            return self.listing.ids.get(field.lower(), field)
        return _LOGGED_AS.get(field.lower(), field)

    def source(self, field: str) -> FieldSource:
        """Return where versions of a field come from."""
        return FieldSource(ISSUE, self.key, field, self.born, self.record, self.reporter)

    def versions(self) -> Iterator[AppRow]:
        """Yield the versions of all fields, and of the comments."""
        fields = self.fields
        fixed = {"key": self.key, "project": plain({"key": (fields.get("project") or {}).get("key")}),
                 "created": epoch(self.born), "parent": (fields.get("parent") or {}).get("key"),
                 "number": self.row.get("id"), "url": self.row.get("self")}
        for name, value in fixed.items():
            yield self.source(name).version(value, self.born, 0, self.reporter)
        for name, field in _PLAIN.items():
            if name in fields or name in self.log:
                yield from self.scalar(field, fields.get(name), self.changes(name, "toString"))
        for name, field in _NAMED.items():
            last = (fields.get(name) or {}).get("name")
            yield from self.scalar(field, last, self.changes(name, "toString"))
        for name, field in _PEOPLE.items():
            yield from self.scalar(field, plain(fields.get(name)), self.people_changes(name))
        for name, field in _LISTS.items():
            last = plain(fields.get(name) or [])
            yield from set_versions(self.source(field), last, self.set_changes(name), self.guessed_until)
        for version in set_versions(self.source("component"), plain(fields.get("components") or []),
                                    self.set_changes("components"), self.guessed_until):
            names = version.value   # most issues have one component at most
            yield version._replace(value=names[0] if len(names) == 1 else names or None)
        yield from self.custom_fields()
        yield from self.links()
        yield from self.resolved()
        yield self.source("watchers").version([self.reporter], self.born, 0, self.reporter, NEVER_KNOWN)
        yield from self.comments()

    def scalar(self, field: str, last: Any, changes: Iterable[FieldChange]) -> Iterator[AppVersion]:
        """Yield the versions of a field with one value."""
        return scalar_versions(self.source(field), last, changes, self.guessed_until)

    def changes(self, name: str, side: str) -> Iterator[FieldChange]:
        """Yield the logged changes of a field with one value; `side` names the value (`to` or `toString`)."""
        before = "from" if side == "to" else "fromString"
        for at, sequence, actor, item in self.log.get(name, ()):
            yield FieldChange(at, sequence, item.get(before), item.get(side), actor)

    def people_changes(self, name: str) -> Iterator[FieldChange]:
        """Yield the logged changes of a person, as records name the account."""
        names = self.listing.accounts
        for change in self.changes(name, "to"):
            yield change._replace(before=names.get(change.before, change.before), after=names.get(change.after, change.after))

    def set_changes(self, name: str) -> Iterator[FieldChange]:
        """Yield the logged changes of a list: whole lists apart by blanks (labels), else one member at a time."""
        for at, sequence, actor, item in self.log.get(name, ()):
            before, after = item.get("fromString") or "", item.get("toString") or ""
            old, new = ([part] if part else [] for part in (before, after))
            if name == "labels":
                old, new = before.split(), after.split()
            removed, added = [each for each in old if each not in new], [each for each in new if each not in old]
            yield FieldChange(at, sequence, removed, added, actor)

    def custom_fields(self) -> Iterator[AppVersion]:
        """Yield the versions of the company's own fields, under their names."""
        for name, value in self.fields.items():
            if not name.startswith("customfield_"):
                continue
            field = self.listing.columns.get(name, name)
            last = plain(value)
            by_id = list(self.changes(name, "to"))
            changes = by_id if by_id and by_id[-1].after == last else list(self.changes(name, "toString"))
            if not changes and self.unnamed_until:
                yield self.source(field).version(last, self.born, 0, self.reporter, self.unnamed_until)
            else:
                yield from self.scalar(field, last, (_as_number(change, last) for change in changes))

    def links(self) -> Iterator[AppVersion]:
        """Yield the versions of the issue's links: type and key."""
        last = []
        for link in self.fields.get("issuelinks") or ():
            side = "outward" if "outwardIssue" in link else "inward"
            last.append({"type": (link.get("type") or {}).get(side), "key": (link.get(f"{side}Issue") or {}).get("key")})
        changes = []
        for at, sequence, actor, item in self.log.get("issuelinks", ()):
            added = [link for link in last if link["key"] == item.get("to")] if item.get("to") else []
            removed = [{"type": item.get("fromString"), "key": item.get("from")}] if item.get("from") else []
            changes.append(FieldChange(at, sequence, removed, added, actor))
        yield from set_versions(self.source("links"), last, changes, self.guessed_until)
        added_at = {link["key"]: change.at for change in changes for link in change.after}
        for link, row in zip(last, self.fields.get("issuelinks") or (), strict=True):
            yield AppVersion(LINK, f"{self.key} {link['type']} {link['key']}", "number", row.get("id"),
                             max(self.born, added_at.get(link["key"], self.born)), record=self.record)

    def resolved(self) -> Iterator[AppVersion]:
        """Yield the versions of the instant of resolution: set and cleared with the resolution."""
        changes = list(self.changes("resolution", "toString"))
        source, last = self.source("resolved"), microseconds(self.fields.get("resolutiondate"))
        if not changes:
            known_from = last if last is not None and last > self.born else BEGINNING
            yield source.version(epoch(last), self.born, 0, self.reporter, known_from)
            return
        first = changes[0].before
        yield source.version(None if first is None else epoch(self.born), self.born, 0, self.reporter,
                             BEGINNING if first is None else changes[0].at)
        for change in changes:
            yield source.version(None if change.after is None else epoch(change.at), change.at, change.sequence, change.actor)

    def comments(self) -> Iterator[AppRow]:
        """Yield the versions of the comments, and of `updated`."""
        listed = self.fields.get("comment") or {}
        comments = listed.get("comments") or ()
        if (listed.get("total") or 0) > len(comments):
            yield UnreadPart(self.file.path, self.key, "partial_record",
                             f"the export holds {len(comments)} of {listed['total']} comments")
        touched: list[tuple[int, str | None]] = [
            (microseconds(history["created"]) or 0, plain(history.get("author"))) for history in self.histories]
        for comment in comments:
            created, updated = microseconds(comment["created"]), microseconds(comment.get("updated") or comment["created"])
            if created is None or updated is None:
                yield bad_row(self.file, str(comment.get("id")), "a comment without a time")
                continue
            author, key = plain(comment.get("author")), str(comment["id"])
            editor = plain(comment.get("updateAuthor")) or author
            touched += [(created, author), (updated, editor)]
            fields = {"key": self.key, "author": author, "created": epoch(created), "deleted": False}
            known_from = updated if updated > created else BEGINNING
            record = f"{self.record}/{key}"
            for field, value in fields.items():
                yield AppVersion(COMMENT, key, field, value, created, 0, author, BEGINNING, record)
            yield AppVersion(COMMENT, key, "body", comment.get("body"), created, 0, author, known_from, record)
            yield AppVersion(COMMENT, key, "updated", epoch(created), created, 0, author, known_from, record)
            if known_from:
                yield AppVersion(COMMENT, key, "updated", epoch(updated), updated, 0, editor, BEGINNING, record)
        last = microseconds(self.fields.get("updated"))
        yield from latest_versions(self.source("updated"), touched if last is None else [*touched, (last, None)])


APP = CompanyApp("jira", claims, read, rank=20, adopts=adopts, advice=(
    (COMMENT, "body", "Jira webhooks: comment_updated, comment_deleted"),
    (ISSUE, "watchers", "Jira webhooks: issue_updated with watchers, or the audit log"),
    (PROJECT, "readers", "Jira audit log: permission scheme changes"),
), kinds=(
    RecordKind(ISSUE, texts=("summary", "description"), people=("assignee", "reporter"), place="jira_project:{project}",
               answers="jira:{parent}",
               follows=("updated", "resolved", "resolution", "number", "url", "key", "created", "watchers")),
    RecordKind(COMMENT, texts=("body",), place="jira:{key}", answers="jira:{key}", follows=("updated", "created", "deleted")),
))
