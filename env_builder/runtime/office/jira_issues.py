"""Read a Jira site from a person's desk, and show its issues as mcp-atlassian's models do.

In: a desk. Out: issues, people, statuses, priorities and links as the server writes them, keys in its order.
Sees: records of the classes that `extractors/apps/jira.py` reads, the setup of the site (`extractors/apps/jira_setup.py`), and
what recorded answers show of the server's version (`env_builder.company.conventions`: `shown`).
Does not see: attachments, work logs, time tracking, epics by name; texts are shown as they are stored, as Jira's markup is not
converted. What an issue has that no export holds (who watches, the log of changes in the answer) is undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..company import CompanyDesk, ProductRefusal, Undecided

ISSUE, COMMENT, ACCOUNT, PROJECT, STATUS = "jira", "jira_comment", "jira_user", "jira_project", "jira_status"
PRIORITY, RESOLUTION, TYPE, FIELD, LINK_TYPE = "jira_priority", "jira_resolution", "jira_type", "jira_field", "jira_link_type"
LISTED_FIELD, LINK = "jira_listed_field", "jira_link"
PRODUCT = "jira"
NO_ISSUE = "Issue does not exist or you do not have permission to see it."
ALL = "*all"
DEFAULT_FIELDS = ("summary", "description", "status", "assignee", "reporter", "labels", "versions", "priority", "created",
                  "updated", "issuetype")
"""What the server asks for unless the call names fields."""
CATEGORIES = {"new": "To Do", "indeterminate": "In Progress", "done": "Done"}
"""Jira's categories of statuses."""
BUILT_IN = {"Open": "new", "Reopened": "new", "To Do": "new", "Backlog": "new", "Selected for Development": "new",
            "In Progress": "indeterminate", "In Review": "indeterminate", "Resolved": "done", "Closed": "done", "Done": "done"}
"""Statuses that Jira brings along -> category."""
Fields = str | Sequence[str] | None
"""`ALL`, names of fields, or None: all standard fields, and no custom ones."""


def refused(text: str) -> ProductRefusal:
    """Return Jira's refusal, as the server passes it on."""
    return ProductRefusal(f"Error: {text}")


class JiraDesk:
    """A Jira site as one person sees it now."""

    def __init__(self, desk: CompanyDesk) -> None:
        self.desk = desk
        self.me: str = desk.account(ACCOUNT)
        """Account of the acting person."""
        self._people: dict[str, dict[str, Any]] = {}

    def value(self, key: str, field: str) -> Any:
        """Return an issue's field. Errors: Undecided."""
        return self.desk.value(ISSUE, key, field)

    def visible(self, key: Any) -> str:
        """Return the key of an issue that the person can see. Errors: ProductRefusal, Undecided."""
        own = str(key).strip().upper()
        try:
            is_there = self.desk.exists(ISSUE, own)
        except Undecided:
            project = own.rpartition("-")[0]
            if not self.desk.exists(PROJECT, project) or self.desk.sees(PROJECT, project):
                raise
            is_there = False   # it would not be seen if it were there
        if not is_there or not self.desk.sees(ISSUE, own):
            raise refused(NO_ISSUE)
        return own

    def sees_project(self, project: str) -> bool:
        """Return whether a project is there and the person can see it."""
        return self.desk.exists(PROJECT, project) and self.desk.sees(PROJECT, project)

    def comments(self, key: str) -> list[str]:
        """Return the ids of an issue's comments, oldest first."""
        return [comment for comment in self.desk.where(COMMENT, "key", key) if not self.desk.value(COMMENT, comment, "deleted")]

    def named(self, entity_class: str, text: str) -> str | None:
        """Return the status, priority or type of a name (in any case) or number, or None."""
        wanted = text.strip().casefold()
        return next((name for name in self.desk.ids(entity_class) if wanted == name.casefold()
                     or wanted == str(self.desk.value(entity_class, name, "number", "")).casefold()), None)

    # People

    def account(self, text: str) -> str | None:
        """Return the account of an address, an id, a user name or a full name; None if nobody has it. Errors: Undecided."""
        wanted = text.strip().removeprefix("accountid:")
        if self.desk.exists(ACCOUNT, wanted):
            return wanted
        own = self.desk.account_of(ACCOUNT, wanted)
        if own is not None:
            return own
        fitting = {account for account in self.desk.ids(ACCOUNT) for field in ("display_name", "email", "handle")
                   if str(self.desk.value(ACCOUNT, account, field) or "").casefold() == wanted.casefold()}
        if len(fitting) > 1:
            raise Undecided(f"{len(fitting)} accounts fit {text!r}")
        return next(iter(fitting), None)

    def person(self, account: str) -> dict[str, Any]:
        """Return a person as issues and comments show one."""
        shown = self._people.get(account)
        if shown is None:
            shows_addresses = self.desk.value("setting", PRODUCT, "shows_addresses", False)
            shown = self._people[account] = self.profile(account, with_address=bool(shows_addresses))
        return shown

    def profile(self, account: str, with_address: bool = True) -> dict[str, Any]:
        """Return a person as the server's model shows one."""
        value = self.desk.value
        name = value(ACCOUNT, account, "display_name")
        if name is None:
            raise Undecided(f"no record names the account {account}")
        return {"account_id": account, "display_name": name, "name": value(ACCOUNT, account, "handle") or name,
                "email": value(ACCOUNT, account, "email") if with_address else None,
                "avatar_url": value(ACCOUNT, account, "avatar")}

    # Time

    def zone(self) -> tzinfo:
        """Return the time zone of the acting person, in which Jira writes and reads instants. Errors: Undecided."""
        name = self.desk.value(ACCOUNT, self.me, "time_zone")
        if name in (None, "UTC", "Etc/UTC", "GMT"):
            return UTC
        try:
            return ZoneInfo(str(name))
        except (ZoneInfoNotFoundError, ValueError):
            raise Undecided(f"the time zone {name!r} is not known here") from None

    def time(self, seconds: float) -> str:
        """Return an instant as Jira's REST API writes it. Errors: Undecided."""
        milliseconds = round(seconds * 1000)
        moment = datetime.fromtimestamp(milliseconds // 1000, self.zone())
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}{moment:%z}"

    # Parts of an issue

    def status(self, name: str) -> dict[str, Any]:
        """Return a status with its category. Errors: Undecided if no record shows the category."""
        category = self.desk.value(STATUS, name, "category")
        color = self.desk.value(STATUS, name, "color")
        if category is None:
            category, color = self.desk.convention(PRODUCT, "categories", {}).get(name, (None, None))
        if category is None:
            category, color = CATEGORIES[BUILT_IN[name]] if name in BUILT_IN else None, self._color(name)
        if category is None:
            raise Undecided(f"no record shows the category of the status {name!r}")
        return {"name": name, "category": category, "color": color or ""}

    def category_code(self, name: str) -> str | None:
        """Return `new`, `indeterminate` or `done`: the category of a status; None if no record shows it."""
        code = self.desk.value(STATUS, name, "category_key")
        if code is None:
            learnt = self.desk.convention(PRODUCT, "categories", {}).get(name, (None, None))[0]
            code = next((code for code, shown in CATEGORIES.items() if shown == learnt), BUILT_IN.get(name))
        return None if code is None else str(code)

    def _color(self, name: str) -> str | None:
        """Return the color of a built-in status: that of another status of its category."""
        return next((self.desk.value(STATUS, other, "color") for other in self.desk.ids(STATUS)
                     if self.desk.value(STATUS, other, "category_key") == BUILT_IN.get(name)), None)

    def resolution(self, name: str) -> dict[str, Any]:
        """Return a resolution; with its number where the site shows one."""
        number = self.desk.value(RESOLUTION, name, "number")
        return {"name": name} if number is None else {"name": name, "id": str(number)}

    def project(self, key: str) -> dict[str, Any]:
        """Return a project."""
        avatar = self.desk.value(PROJECT, key, "avatar")
        return {"key": key, "name": self.desk.value(PROJECT, key, "name") or "Unknown",
                **({"avatar_url": avatar} if avatar else {})}

    def comment(self, key: str) -> dict[str, Any]:
        """Return a comment as issues show it."""
        value = self.desk.value
        return {"id": key, "body": _plain_text(value(COMMENT, key, "body") or ""),
                "author": self.person(value(COMMENT, key, "author")),
                "created": self.time(value(COMMENT, key, "created")), "updated": self.time(value(COMMENT, key, "updated"))}

    def links(self, key: str) -> list[dict[str, Any]]:
        """Return the links of an issue to issues that the person can see."""
        shown = []
        for link in self.value(key, "links") or ():
            other = link["key"]
            if not self.desk.exists(ISSUE, other) or not self.desk.sees(ISSUE, other):
                continue
            kind, side = self._link_type(str(link["type"]))
            number = self.desk.value(LINK, f"{key} {link['type']} {other}", "number")
            if number is None:
                raise Undecided(f"no record shows the number of the link from {key} to {other}")
            shown.append({"id": str(number), "type": kind, f"{side}_issue": self._linked(other)})
        return shown

    def _link_type(self, wording: str) -> tuple[dict[str, Any], str]:
        """Return the type of a link that one side words so, and which side that is."""
        for name in self.desk.ids(LINK_TYPE):
            fields = {field: self.desk.value(LINK_TYPE, name, field) for field in ("inward", "outward")}
            side = next((field for field in ("outward", "inward") if fields[field] == wording), None)
            if side is not None:
                kind = {"id": str(self.desk.value(LINK_TYPE, name, "number") or "0"), "name": name, **fields}
                url = self.desk.value(LINK_TYPE, name, "url")
                return kind | ({"self": url} if url else {}), side
        raise Undecided(f"no record shows the type of a link {wording!r}")

    def _linked(self, key: str) -> dict[str, Any]:
        url = self.value(key, "url")
        fields = {"summary": self.value(key, "summary") or "", "status": self.status(self.value(key, "status"))}
        if self.value(key, "priority") is not None:
            fields["priority"] = {"name": self.value(key, "priority")}
        fields["issuetype"] = {"name": self.value(key, "type")}
        return {"id": str(self.value(key, "number")), "key": key, **({"self": url} if url else {}), "fields": fields}

    # Issues

    def issue(self, key: str, fields: Fields = None, n_comments: int | None = None) -> dict[str, Any]:
        """Return an issue as the server's model shows it. `n_comments`: how many of the latest comments; None: all.

        Errors: Undecided if a shown field is not known.
        """
        def is_shown(name: str) -> bool:
            return fields is None or fields == ALL or name in fields

        shown: dict[str, Any] = {"id": str(self.value(key, "number")), "key": key}
        if is_shown("summary"):
            shown["summary"] = self.value(key, "summary") or ""
        if is_shown("url") and (url := self.value(key, "url")):
            shown["url"] = url
        if self._shows("browse_url") and (browse := self._browse_url(key)):
            shown["browse_url"] = browse
        shown |= self._what(key, is_shown) | self._whose(key, is_shown)
        for field in ("created", "updated"):
            if is_shown(field):
                shown[field] = server_time(self.value(key, field))
        if is_shown("comment") and n_comments != 0 and (comments := self.comments(key)):
            shown["comments"] = [self.comment(comment) for comment in comments[-n_comments if n_comments else 0:]]
        if is_shown("issuelinks") and (links := self.links(key)):
            shown["issuelinks"] = links
        return shown | self._custom(key, fields)

    def _what(self, key: str, is_shown: Any) -> dict[str, Any]:
        """Return the fields of an issue that say what it is about, in the model's order."""
        shown: dict[str, Any] = {}
        if is_shown("description") and (text := self.value(key, "description")):
            shown["description"] = _plain_text(text)
        if is_shown("status"):
            shown["status"] = self.status(self.value(key, "status"))
        if is_shown("issuetype"):
            shown["issue_type"] = {"name": self.value(key, "type")}
        if is_shown("priority") and (priority := self.value(key, "priority")):
            shown["priority"] = {"name": priority}
        if is_shown("project"):
            shown["project"] = self.project(self.value(key, "project"))
        if is_shown("resolution") and (resolution := self.value(key, "resolution")):
            shown["resolution"] = self.resolution(resolution)
        if is_shown("duedate") and (day := self.value(key, "duedate")):
            shown["duedate"] = day
        if is_shown("resolutiondate") and (resolved := self.value(key, "resolved")):
            shown["resolutiondate"] = self.time(resolved)
        if is_shown("parent") and self.value(key, "parent"):
            raise Undecided(f"no record holds how Jira shows the parent of {key}")
        return shown

    def _whose(self, key: str, is_shown: Any) -> dict[str, Any]:
        """Return the people and the lists of an issue, in the model's order."""
        shown: dict[str, Any] = {}
        if is_shown("assignee"):
            assignee = self.value(key, "assignee")
            shown["assignee"] = self.person(assignee) if assignee else {"display_name": "Unassigned"}
        if is_shown("reporter") and (reporter := self.value(key, "reporter")):
            shown["reporter"] = self.person(reporter)
        for name, field, label in (("labels", "labels", "labels"), ("components", "component", "components"),
                                   ("fixVersions", "fix_versions", "fix_versions"), ("versions", "versions", "versions")):
            if is_shown(name) and (members := as_list(self.value(key, field))):
                shown[label] = members
        return shown

    def _custom(self, key: str, fields: Fields) -> dict[str, Any]:
        """Return the custom fields that a call asks for, by id: Jira knows them by no other name here."""
        wanted = self.desk.ids(FIELD) if fields == ALL else [name for name in fields or () if self.desk.exists(FIELD, name)]
        return {name: {"value": self.value(key, str(self.desk.value(FIELD, name, "column")))} for name in wanted}

    def _shows(self, name: str) -> bool:
        return bool(self.desk.convention(PRODUCT, "shown", {}).get(name, True))

    def _browse_url(self, key: str) -> str | None:
        address, rest, _ = str(self.value(key, "url") or "").partition("/rest/")
        return f"{address}/browse/{key}" if rest else None


def as_list(value: Any) -> list[str]:
    """Return a field with several values as a list: components are one name, or a list of names."""
    return [] if value in (None, "") else [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _plain_text(text: Any) -> str:
    """Return a text that is plain or Jira's markup. Errors: Undecided for a document in Atlassian's format."""
    if not isinstance(text, str):
        raise Undecided("how the server writes a document in Atlassian's format")
    return text


def server_time(seconds: float) -> str:
    """Return an instant as the server writes it, on a machine of UTC."""
    return f"{datetime.fromtimestamp(round(seconds * 1000) // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
