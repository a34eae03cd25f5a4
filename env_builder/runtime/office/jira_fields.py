"""Read the fields that a call sets in an issue, as the server formats them for Jira.

In: JSON text or an object: names or ids of fields -> values in the forms that the server takes. Out: fields of an issue as the
world holds them. Sees: standard fields, custom fields by id or by name. Does not see, and raises Undecided: fields that no
record holds, values (priorities, components, versions, people) that no record of the export shows, parents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..company import UNDECIDED, Undecided
from .jira_issues import ACCOUNT, FIELD, PRIORITY, PROJECT, JiraDesk, refused

_NAMES = {
    "summary": "summary", "description": "description", "environment": "environment", "priority": "priority",
    "labels": "labels", "components": "component", "component/s": "component", "duedate": "duedate", "due date": "duedate",
    "fixversions": "fix_versions", "fix version/s": "fix_versions", "fix versions": "fix_versions", "versions": "versions",
    "affects version/s": "versions", "affects versions": "versions", "assignee": "assignee", "reporter": "reporter",
}
"""Id or name of a standard field, in lower case -> field of an issue."""
_MOST_CHARACTERS = 255
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def parse_object(value: Any, name: str) -> dict[str, Any]:
    """Return an argument that is an object, or one as JSON text. Errors: ProductRefusal."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        raise refused(f"{name} must be a dictionary or JSON string.")
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise refused(f"{name} is not valid JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise refused(f"Parsed {name} is not a JSON object (dict).")
    return parsed


def read_fields(site: JiraDesk, project: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an issue that a call sets. Errors: Undecided, ProductRefusal."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        field = _NAMES.get(name.lower())
        reader = _READERS.get(field or "")
        if field is None:
            field, reader = _custom_field(site, name), _custom
            if field is None:
                site.desk.doubt(f"no record holds the field {name!r}")
                continue
        try:
            fields[field] = value if reader is None else reader(site, project, field, value)
        except Undecided as gap:
            site.desk.doubt(str(gap))
            fields[field] = UNDECIDED
    return fields


def _custom_field(site: JiraDesk, name: str) -> str | None:
    for field in site.desk.ids(FIELD):
        if name == field or name.lower() == str(site.desk.value(FIELD, field, "name")).lower():
            return str(site.desk.value(FIELD, field, "column"))
    return None


def _text(site: JiraDesk, project: str, field: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Undecided(f"{field} is set to something other than text")
    return value or None


def _summary(site: JiraDesk, project: str, field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refused("You must specify a summary of the issue.")
    if "\n" in value or "\r" in value:
        raise refused("The summary is invalid because it contains newline characters.")
    if len(value) > _MOST_CHARACTERS:
        raise refused(f"Summary must be less than {_MOST_CHARACTERS} characters.")
    return value.strip()


def _priority(site: JiraDesk, project: str, field: str, value: Any) -> str:
    text = str(value.get("name") or value.get("id") or "") if isinstance(value, dict) else str(value or "")
    name = site.named(PRIORITY, text) if text else None
    if name is None:
        raise Undecided(f"no record shows the priority {text!r}")
    return name


def _labels(site: JiraDesk, project: str, field: str, value: Any) -> list[str]:
    """Return labels as Jira keeps them: each once, by the alphabet."""
    given = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(given, list):
        raise Undecided("labels are set to something other than a list")
    labels = [str(label).strip() if isinstance(value, str) else str(label) for label in given]
    for label in labels:
        if any(character.isspace() for character in label):
            raise refused(f"The label '{label}' contains spaces which is invalid.")
    return sorted({label for label in labels if label})


def _members(site: JiraDesk, project: str, field: str, value: Any) -> Any:
    """Return components or versions by name; which ones a project has is known from those that its issues show."""
    given = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(given, list):
        raise Undecided(f"{field} is set to something other than a list")
    names = [str((each.get("name") or "") if isinstance(each, dict) else each).strip() for each in given]
    names_of_project = site.desk.value(PROJECT, project, f"{field}_names", ())
    for name in names:
        if name not in names_of_project:
            raise Undecided(f"no issue of {project} shows {name!r} in {field}")
    return names if field != "component" else names[0] if len(names) == 1 else names or None


def _assignee(site: JiraDesk, project: str, field: str, value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("accountId") or value.get("name") or value.get("id")
    if value in (None, ""):
        return None
    account = site.account(str(value))
    if account is None:
        raise Undecided(f"no record shows the person {value!r}")
    if not site.desk.value(ACCOUNT, account, "active", True):
        raise refused(f"User '{site.profile(account)['display_name']}' cannot be assigned issues.")
    return account


def _day(site: JiraDesk, project: str, field: str, value: Any) -> str | None:
    if value in (None, ""):
        return None
    if not isinstance(value, str) or not _DAY.match(value):
        raise Undecided(f"{field} is set to {value!r} (expected YYYY-MM-DD)")
    return value[:10]


def _custom(site: JiraDesk, project: str, field: str, value: Any) -> Any:
    """Return a custom field's value as the world holds it: what identifies an option or a person."""
    if isinstance(value, list):
        return [_custom(site, project, field, each) for each in value]
    if isinstance(value, dict):
        return next((value[name] for name in ("accountId", "value", "name", "key", "id") if value.get(name) is not None), value)
    return value


_READERS: dict[str, Callable[[JiraDesk, str, str, Any], Any]] = {
    "summary": _summary, "description": _text, "environment": _text, "priority": _priority, "labels": _labels,
    "component": _members, "fix_versions": _members, "versions": _members, "assignee": _assignee, "reporter": _assignee,
    "duedate": _day,
}
"""Field of an issue -> what reads a value for it."""
