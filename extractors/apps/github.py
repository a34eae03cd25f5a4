"""GitHub issues and pull requests with their timelines, as its REST API gives them.

In: an issue or pull request with `timeline` inside, or lists of them; timelines in files of their own, whose comments, or whose
name, say the issue. Sees: labels, assignees, reviewers, milestones, titles,
state and comments at any instant; `comments` and `updated` are computed from what is visible. Of a repository: its web address,
the members that its issues and pull requests have in the API's answers, the digits of its instants; of a login: its type.
Does not see, and says so: a body or a comment before its last edit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from extractors.apps.history import (
    FieldChange,
    FieldSource,
    count_versions,
    latest_versions,
    scalar_versions,
    set_versions,
)
from extractors.apps.version import BEGINNING, AppRow, AppVersion, CompanyApp, ExportFile, bad_row, epoch, first_row
from extractors.formats.instants import microseconds
from warehouse.records import RecordKind

ISSUE, COMMENT, REVIEW, REPOSITORY, USER = "gh", "gh_comment", "gh_review", "gh_repo", "gh_user"
_HEAD = 20_000
_REPOSITORY = re.compile(r"(?:github\.com|/repos)/([^/]+)/([^/]+)(?:/(?:issues|pull|pulls)/\d+|$)")
_PEOPLE = ("actor", "user", "assignee", "requested_reviewer")
_WEB = re.compile(r"(https?://[^/]+/[^/]+/[^/]+)/(?:issues|pull|pulls)/\d+$")
_FRACTION = re.compile(r"\.(\d+)")
_MARKS = ("timeline", "pull_request", "html_url", "repository_url")
_ISSUE = re.compile(r"/(?:issues|pull|pulls)/(\d+)(?=\D|$)")
_LISTS = (("labeled", "unlabeled", "label", "name"), ("assigned", "unassigned", "assignee", "login"),
          ("review_requested", "review_request_removed", "requested_reviewer", "login"))
"""(event that adds, event that removes, member of the event, what identifies it)"""


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file holds issues or pull requests."""
    if not file.name.endswith((".json", ".jsonl")):
        return False
    head = file.content[:_HEAD] + file.content[-_HEAD:]
    if b'"created_at"' not in head:
        return False
    row = first_row(file)
    return _is_event(row) or ("number" in row and "created_at" in row and any(name in row for name in _MARKS))


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of issues, pull requests, comments and reviews."""
    rows: list[tuple[dict[str, Any], ExportFile]] = []
    for file in files:
        try:
            content = file.json_lines() if file.name.endswith(".jsonl") else file.json()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        rows += [(row, file) for row in (content if isinstance(content, list) else [content]) if isinstance(row, dict)]
    rows, unclear = _with_timelines(rows)
    for timeline in unclear:
        yield bad_row(timeline.file, "", f"{len(timeline.events)} events of an issue that neither they nor the path tell")
    yield from _repositories(rows)
    yield from _users(rows)
    names = {full for row, file in rows if (full := _full_name(row, file)) is not None}
    shared = Counter(full.rsplit("/", 1)[-1] for full in names)
    for row, file in rows:
        short = _short_name(_full_name(row, file) or "", shared)
        try:
            yield from _GitHubIssue(row, file, short).versions()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            yield bad_row(file, str(row.get("number", "")), error)


def _is_event(row: dict[str, Any]) -> bool:
    """Return whether a row is an event of a timeline."""
    return isinstance(row.get("event"), str) and "number" not in row and bool(_login(row.get("actor") or row.get("user")))


class _Timeline(NamedTuple):
    """The events of one issue, from a file of their own."""

    file: ExportFile
    events: list[dict[str, Any]]

    def is_of(self, row: dict[str, Any], file: ExportFile) -> bool:
        """Return whether the issue may be a row's: by the addresses in events, else by the last number in the file's path."""
        addresses = " ".join(str(event.get(name) or "") for event in self.events for name in ("issue_url", "url"))
        numbers = set(_ISSUE.findall(addresses)) or set(re.findall(r"\d+", self.file.path)[-1:])
        repositories = set(re.findall(r"/repos/([^/]+/[^/]+)/", addresses))
        return (numbers == {str(row["number"])} and _are_near(self.file.folder, file.folder)
                and repositories <= {_full_name(row, file)})


def _with_timelines(rows: list[tuple[dict[str, Any], ExportFile]]) -> tuple[list[tuple[dict[str, Any], ExportFile]],
                                                                            list[_Timeline]]:
    """Return the issues, each with the events that another file has of it, and the timelines that fit none, or several."""
    timelines: dict[str, _Timeline] = {}
    for row, file in rows:
        if _is_event(row):
            timelines.setdefault(file.path, _Timeline(file, [])).events.append(row)
    issues = [(row, file) for row, file in rows if not _is_event(row)]
    unclear = []
    for timeline in timelines.values():
        fitting = [index for index, (row, file) in enumerate(issues) if "timeline" not in row and timeline.is_of(row, file)]
        if len(fitting) == 1:
            row, file = issues[fitting[0]]
            issues[fitting[0]] = {**row, "timeline": timeline.events}, file
        else:
            unclear.append(timeline)
    return issues, unclear


def _are_near(one: str, other: str) -> bool:
    """Return whether two folders are one, or one lies in the other."""
    return one == other or one.startswith(f"{other}/" if other else "") or other.startswith(f"{one}/" if one else "")


def _full_name(row: dict[str, Any], file: ExportFile) -> str:
    for name in ("html_url", "url", "repository_url"):
        match = _REPOSITORY.search(str(row.get(name) or ""))
        if match is not None:
            return f"{match[1]}/{match[2]}"
    return str((row.get("repository") or {}).get("full_name") or file.folder.rsplit("/", 1)[-1])


def _short_name(full: str, shared: Counter[str]) -> str:
    short = full.rsplit("/", 1)[-1]
    return short if shared[short] == 1 else full


def _repositories(rows: list[tuple[dict[str, Any], ExportFile]]) -> Iterator[AppVersion]:
    """Yield what is the same in all answers about a repository."""
    names = {full for row, file in rows if (full := _full_name(row, file))}
    shared = Counter(full.rsplit("/", 1)[-1] for full in names)
    for full in sorted(names):
        own = [row for row, file in rows if _full_name(row, file) == full]
        addresses = {match[1] for row in own if (match := _WEB.match(str(row.get("html_url") or "")))}
        fields: dict[str, Any] = {"full_name": full, "address": addresses.pop() if len(addresses) == 1 else None,
                                  "digits": max((len(match[1]) for row in own if (match := _FRACTION.search(
                                      str(row.get("created_at"))))), default=0)}
        for field, is_pull in (("issue_members", False), ("pull_members", True)):
            members = {name for row in own if bool(row.get("pull_request") or row.get("head")) is is_pull for name in row}
            fields[field] = sorted(members - {"timeline", "events"})
        for field, value in fields.items():
            yield AppVersion(REPOSITORY, _short_name(full, shared), field, value, BEGINNING)


def _users(rows: list[tuple[dict[str, Any], ExportFile]]) -> Iterator[AppVersion]:
    """Yield the types of logins, from their first record on."""
    first: dict[str, tuple[int, str]] = {}
    for row, _ in rows:
        events = row.get("timeline") or row.get("events") or ()
        dated = [(row.get("created_at"), row.get("user"))]
        dated += [(event.get("created_at") or event.get("submitted_at"), event.get(name))
                  for event in events if isinstance(event, dict) for name in _PEOPLE]
        for instant, person in dated:
            at, login = microseconds(instant), _login(person)
            kind = person.get("type") if isinstance(person, dict) else None
            if login is not None and at is not None and isinstance(kind, str):
                first[login] = min(first.get(login, (at, kind)), (at, kind))
    for login, (at, kind) in sorted(first.items()):
        yield AppVersion(USER, login, "type", kind, at)


def _login(person: Any) -> str | None:
    return person.get("login") if isinstance(person, dict) else None


class _GitHubIssue:
    """One issue or pull request."""

    def __init__(self, row: dict[str, Any], file: ExportFile, repository: str) -> None:
        self.row, self.file, self.repository = row, file, repository
        self.key = f"{repository}#{row['number']}"
        born = microseconds(row["created_at"])
        if born is None:
            raise ValueError(f"created_at is no time: {row['created_at']!r}")
        self.born, self.author = born, _login(row.get("user"))
        self.record = f"{file.path}#{self.key}"
        self.events: list[tuple[int, int, str | None, dict[str, Any]]] = []
        for event in row.get("timeline") or row.get("events") or ():
            at = microseconds(event.get("created_at") or event.get("submitted_at"))
            if at is not None:
                sequence = event.get("id")
                self.events.append((at, sequence if isinstance(sequence, int) else 0,
                                    _login(event.get("actor") or event.get("user")), event))
        self.events.sort(key=lambda event: event[:2])
        self.has_timeline = "timeline" in row or "events" in row

    def source(self, field: str) -> FieldSource:
        """Return where versions of a field come from."""
        return FieldSource(ISSUE, self.key, field, self.born, self.record, self.author)

    def versions(self) -> Iterator[AppRow]:
        """Yield the versions of all fields, comments and reviews."""
        row = self.row
        touched = microseconds(row.get("updated_at")) or self.born
        doubt = BEGINNING if self.has_timeline else touched
        latest = max((at for at, *_ in self.events), default=self.born)
        fixed = {"number": row["number"], "repo": self.repository, "author": self.author, "created": epoch(self.born),
                 "branch": (row.get("head") or {}).get("ref"), "base": (row.get("base") or {}).get("ref"),
                 "is_pull": bool(row.get("pull_request") or row.get("head"))}
        for field, value in fixed.items():
            yield self.source(field).version(value, self.born, 0, self.author)
        edited = touched if touched > latest else BEGINNING   # something without an event changed
        yield self.source("body").version(row.get("body") or "", self.born, 0, self.author, edited)
        renamed = [FieldChange(at, sequence, event["rename"]["from"], event["rename"]["to"], actor)
                   for at, sequence, actor, event in self.events if event.get("event") == "renamed" and event.get("rename")]
        yield from scalar_versions(self.source("title"), row.get("title"), renamed, doubt)
        milestone = (row.get("milestone") or {}).get("title")
        yield from self.milestones(milestone, doubt)
        members: tuple[tuple[str, list[Any]], ...] = (
            ("labels", [each["name"] if isinstance(each, dict) else each for each in row.get("labels") or ()]),
            ("assignees", [_login(each) for each in row.get("assignees") or ()]),
            ("reviewers", [_login(each) for each in row.get("requested_reviewers") or ()]))
        for (field, last), kind in zip(members, _LISTS, strict=True):
            for version in set_versions(self.source(field), last, self.set_changes(*kind), doubt):
                yield version
                if field == "assignees":
                    yield version._replace(field="assignee", value=version.value[0] if version.value else None)
        yield from self.state(doubt)
        yield from self.comments()
        instants = [(at, actor) for at, _, actor, _ in self.events]
        yield from latest_versions(self.source("updated"), [*instants, (touched, None)] if touched > latest else instants)

    def set_changes(self, adds: str, removes: str, member: str, identity: str) -> Iterator[FieldChange]:
        """Yield the changes of a list that the timeline reports."""
        for at, sequence, actor, event in self.events:
            if event.get("event") in (adds, removes) and isinstance(event.get(member), dict):
                name = [event[member].get(identity)]
                yield FieldChange(at, sequence, *(([], name) if event["event"] == adds else (name, [])), actor)

    def milestones(self, last: str | None, doubt: int) -> Iterator[AppVersion]:
        """Yield the versions of the milestone."""
        changes, before = [], None
        for at, sequence, actor, event in self.events:
            if event.get("event") in ("milestoned", "demilestoned"):
                after = (event.get("milestone") or {}).get("title") if event["event"] == "milestoned" else None
                changes.append(FieldChange(at, sequence, before, after, actor))
                before = after
        yield from scalar_versions(self.source("milestone"), last, changes, doubt)

    def state(self, doubt: int) -> Iterator[AppVersion]:
        """Yield the versions of state, instant of closing, and whether it was merged."""
        row = self.row
        logged = [(at, sequence, actor, event["event"]) for at, sequence, actor, event in self.events
                  if event.get("event") in ("closed", "reopened", "merged")]
        closed = microseconds(row.get("closed_at"))
        merged = microseconds((row.get("pull_request") or {}).get("merged_at") or row.get("merged_at"))
        for field, value in (("state", "open"), ("closed", None), ("merged", False)):
            yield self.source(field).version(value, self.born, 0, self.author)
        if closed is not None and not any(name == "closed" for *_, name in logged):
            logged.append((closed, 0, None, "closed"))
        if merged is not None and not any(name == "merged" for *_, name in logged):
            logged.append((merged, 0, None, "merged"))
        for at, sequence, actor, name in sorted(logged, key=lambda event: event[:2]):
            if name == "merged":
                yield self.source("merged").version(True, at, sequence, actor)
            else:
                is_closed = name == "closed"
                yield self.source("state").version("closed" if is_closed else "open", at, sequence, actor)
                yield self.source("closed").version(epoch(at) if is_closed else None, at, sequence, actor)

    def comments(self) -> Iterator[AppVersion]:
        """Yield the versions of comments and reviews, and of the count of comments."""
        instants = []
        for at, sequence, actor, event in self.events:
            kind = event.get("event")
            if kind not in ("commented", "reviewed"):
                continue
            entity, key = COMMENT if kind == "commented" else REVIEW, f"{self.key}/{event.get('id')}"
            edited = microseconds(event.get("updated_at")) or at
            fields = {"author": actor, "created": epoch(at), "issue": self.key}
            if kind == "reviewed":
                fields["state"] = event.get("state")
            else:
                instants.append((at, actor))
            for field, value in fields.items():
                yield AppVersion(entity, key, field, value, at, sequence, actor, BEGINNING, self.record)
            yield AppVersion(entity, key, "body", event.get("body") or "", at, sequence, actor,
                             edited if edited > at else BEGINNING, self.record)
        yield from count_versions(self.source("comments"), instants)


APP = CompanyApp("github", claims, read, rank=25, advice=(
    (ISSUE, "body", "GitHub webhooks: issues.edited, pull_request.edited"),
    (COMMENT, "body", "GitHub webhooks: issue_comment.edited"),
), kinds=(
    RecordKind(ISSUE, texts=("title", "body"), people=("assignee", "assignees", "reviewers"), place="gh_repo:{repo}",
               follows=("updated", "comments", "number", "created", "closed")),
    RecordKind(USER, setting=True),
    RecordKind(COMMENT, texts=("body",), place="gh:{issue}", answers="gh:{issue}", follows=("created",)),
))
