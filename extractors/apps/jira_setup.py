"""How a Jira site is set up, as its exported issues show it: statuses, priorities, types, projects, fields, links, accounts.

In: issues with changelogs, accounts and custom fields of an export. Out: versions from the beginning on.
Sees: what the issues name (ids, categories of statuses), and what changelogs agree on: the resolution that an issue has after
it came into a status, the status in which issues begin. Where two issues disagree nothing is said.
Does not see: a status, priority or type that no issue of the export ever had; changes of the setup over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.apps.version import BEGINNING, AppVersion

STATUS, PRIORITY, RESOLUTION, TYPE = "jira_status", "jira_priority", "jira_resolution", "jira_type"
PROJECT, FIELD, LINK_TYPE, ACCOUNT, SETTING = "jira_project", "jira_field", "jira_link_type", "jira_user", "setting"
LISTED_FIELD = "jira_listed_field"
_DISAGREE = object()
_MEMBERS = {"components": "component", "fixVersions": "fix_versions", "versions": "versions"}
_CHANGES_STATUS = "status"


class JiraSetup:
    """Collects the setup of a site from rows of its export."""

    def __init__(self, record: str) -> None:
        self._record = record
        self._values: dict[tuple[str, str, str], Any] = {}
        """(class, id, field) -> value; `_DISAGREE` where two rows differ."""
        self._members: dict[tuple[str, str], set[str]] = {}
        """(project, field) -> names of the components or versions that its issues show."""
        self._shows_addresses: bool | None = None

    def add_field(self, key: str, name: str, column: str) -> None:
        """Take in a custom field: its id, name, and the name of the field that holds it in the world."""
        self._set(FIELD, key, name=name, column=column)

    def list_field(self, row: dict[str, Any]) -> None:
        """Take in a field's definition, as the REST API lists it; the list is whole if standard fields are in it."""
        self._set(LISTED_FIELD, str(row["id"]), row=row)
        if not str(row["id"]).startswith("customfield_"):
            self._set(SETTING, "jira", lists_all_fields=True)

    def add_account(self, row: dict[str, Any]) -> None:
        """Take in an account as its user's profile or an issue shows it."""
        avatars = row.get("avatarUrls")
        avatar = avatars.get("48x48") if isinstance(avatars, dict) else None
        self._set(ACCOUNT, str(row["accountId"]), avatar=avatar, time_zone=row.get("timeZone"))

    def add_issue(self, row: dict[str, Any]) -> None:
        """Take in what an issue names."""
        fields = row["fields"]
        status, project, kind = (fields.get(name) or {} for name in ("status", "project", "issuetype"))
        category = status.get("statusCategory") or {}
        self._named(STATUS, status, category=category.get("name"), category_key=category.get("key"),
                    color=category.get("colorName"))
        self._named(PRIORITY, fields.get("priority") or {})
        self._named(RESOLUTION, fields.get("resolution") or {})
        self._named(TYPE, kind, is_subtask=kind.get("subtask"))
        if project.get("key"):
            avatars = project.get("avatarUrls")
            self._set(PROJECT, str(project["key"]), name=project.get("name"), number=project.get("id"),
                      avatar=avatars.get("48x48") if isinstance(avatars, dict) else None)
            for field, column in _MEMBERS.items():
                names = self._members.setdefault((str(project["key"]), column), set())
                names.update(str(each["name"]) for each in fields.get(field) or ()
                             if isinstance(each, dict) and each.get("name"))
        for link in fields.get("issuelinks") or ():
            kind_of_link = link.get("type") or {}
            self._named(LINK_TYPE, kind_of_link, inward=kind_of_link.get("inward"), outward=kind_of_link.get("outward"),
                        url=kind_of_link.get("self"))
        people = [each for name in ("assignee", "reporter", "creator") if isinstance(each := fields.get(name), dict)]
        people += [comment["author"] for comment in (fields.get("comment") or {}).get("comments") or ()
                   if isinstance(comment.get("author"), dict)]
        for each in people:
            self._shows_addresses = bool(self._shows_addresses or each.get("emailAddress"))
            if each.get("accountId"):
                self.add_account(each)
        self._follow(row, str(status.get("name")), str(kind.get("name")), str(project.get("key")))

    def _follow(self, row: dict[str, Any], last: str, kind: str, project: str) -> None:
        """Take in the issue's way through the statuses."""
        fields = row["fields"]
        changelog = row.get("changelog") or {}
        histories = sorted(changelog.get("histories") or changelog.get("values") or (),
                           key=lambda history: (str(history.get("created")), int(history.get("id") or 0)))
        first, resolution = None, (fields.get("resolution") or {}).get("name")
        for history in reversed(histories):   # the resolution that the issue began with
            for item in history.get("items") or ():
                if (item.get("fieldId") or item.get("field")) == "resolution":
                    resolution = item.get("fromString")
        for history in histories:
            changes = {str(item.get("fieldId") or item.get("field")): item for item in history.get("items") or ()}
            if "resolution" in changes:
                resolution = changes["resolution"].get("toString")
            moved = changes.get(_CHANGES_STATUS)
            if moved is None:
                continue
            first = first or moved.get("fromString")
            for side, number in (("fromString", "from"), ("toString", "to")):
                if moved.get(side):
                    self._set(STATUS, moved[side], name=moved[side], number=moved.get(number))
            self._set(STATUS, moved.get("toString"), resolution_after=[resolution])
        if (changelog.get("total") or 0) <= len(histories):
            self._set(PROJECT, project, first_status=first or last)
            self._set(TYPE, kind, first_status=first or last)

    def versions(self) -> Iterator[AppVersion]:
        """Yield what the rows agree on."""
        for (entity_class, entity_id, field), value in self._values.items():
            if value is not _DISAGREE:
                yield AppVersion(entity_class, entity_id, field, value, BEGINNING, record=self._record)
        for (project, field), names in self._members.items():
            yield AppVersion(PROJECT, project, f"{field}_names", sorted(names), BEGINNING, record=self._record)
        if self._shows_addresses is not None:
            yield AppVersion(SETTING, "jira", "shows_addresses", self._shows_addresses, BEGINNING, record=self._record)

    def _named(self, entity_class: str, value: dict[str, Any], **fields: Any) -> None:
        if value.get("name"):
            self._set(entity_class, str(value["name"]), name=value["name"], number=value.get("id"), **fields)

    def _set(self, entity_class: str, entity_id: str | None, **fields: Any) -> None:
        """Set fields of a record; None says nothing, another value than before means that rows disagree."""
        for field, value in fields.items():
            key = (entity_class, str(entity_id), field)
            if value is not None and self._values.setdefault(key, value) != value:
                self._values[key] = _DISAGREE


def last_break(workflow: dict[str, Any], issues: Iterable[dict[str, Any]]) -> str:
    """Return the instant of the last logged change of status that an exported workflow forbids; empty if it allows all.

    Before that instant the workflow was another one, or the change was made around it.
    """
    allowed = {(source, str(step.get("to"))) for source, steps in workflow.items() if isinstance(steps, list)
               for step in steps if isinstance(step, dict)}
    last = ""
    for row in issues:
        changelog = row.get("changelog") or {}
        for history in changelog.get("histories") or changelog.get("values") or ():
            for item in history.get("items") or ():
                if (item.get("fieldId") or item.get("field")) == _CHANGES_STATUS \
                        and (item.get("fromString"), str(item.get("toString"))) not in allowed:
                    last = max(last, str(history.get("created")))
    return last
