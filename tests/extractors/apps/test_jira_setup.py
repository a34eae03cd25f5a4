"""The issues of a Jira export tell how the site is set up, where they agree."""

from __future__ import annotations

import json
from typing import Any

from extractors.apps import ExportFile, read_exports
from extractors.apps.jira import APP
from extractors.apps.jira_setup import last_break
from extractors.apps.version import BEGINNING, NEVER_KNOWN


def row(key: str, *moves: tuple[str, str, str | None], status: str = "Done", **fields: Any) -> dict[str, Any]:
    histories = []
    for number, (before, after, resolution) in enumerate(moves, start=1):
        items = [
            {"fieldId": "status", "from": f"1{len(before)}", "fromString": before, "to": f"1{len(after)}", "toString": after}
        ]
        if resolution is not None:
            items.append({"fieldId": "resolution", "fromString": None, "toString": resolution or None})
        histories.append({"id": str(number), "created": f"2026-03-02T1{number}:00:00.000+0000", "items": items})
    return {
        "id": "10001",
        "key": key,
        "self": "https://toys.example/rest/api/2/issue/10001",
        "fields": {
            "created": "2026-03-02T09:00:00.000+0000",
            "updated": "2026-03-02T19:00:00.000+0000",
            "summary": "x",
            "project": {"key": "KIT", "name": "Toy kits", "id": "7"},
            "issuetype": {"name": "Task", "id": "4", "subtask": False},
            "status": {"name": status, "id": "14", "statusCategory": {"key": "done", "name": "Done", "colorName": "green"}},
            "resolution": {"name": "Fixed", "id": "1"},
            "priority": {"name": "High", "id": "2"},
            "components": [{"name": "wheels"}],
            **fields,
        },
        "changelog": {"total": len(histories), "histories": histories},
    }


def read(*issues: dict[str, Any], **files: Any) -> dict[tuple[str, str], dict[str, Any]]:
    exports = [ExportFile("jira/search.json", json.dumps({"issues": issues, "maxResults": 50}).encode())]
    exports += [ExportFile(f"jira/{name}.json", json.dumps(content).encode()) for name, content in files.items()]
    reading = read_exports(exports, apps=(APP,))
    assert not reading.unread
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for version in reading.versions:
        if version.entity_class not in ("jira", "jira_comment"):
            found.setdefault((version.entity_class, version.entity_id), {})[version.field] = (
                version.value if version.guessed_until == BEGINNING else ("guess", version.guessed_until)
            )
    return found


def test_statuses_types_and_projects_have_names_numbers_and_categories() -> None:
    setup = read(row("KIT-1", ("Open", "Done", "Fixed")))
    assert setup["jira_status", "Done"] == {
        "name": "Done",
        "number": "14",
        "category": "Done",
        "category_key": "done",
        "color": "green",
        "resolution_after": ["Fixed"],
    }
    assert setup["jira_status", "Open"] == {"name": "Open", "number": "14"}
    assert setup["jira_project", "KIT"] == {
        "name": "Toy kits",
        "number": "7",
        "first_status": "Open",
        "component_names": ["wheels"],
        "fix_versions_names": [],
        "versions_names": [],
    }
    assert setup["jira_type", "Task"]["first_status"] == "Open"
    assert setup["jira_resolution", "Fixed"]["number"] == "1" and setup["jira_priority", "High"]["number"] == "2"


def test_what_issues_disagree_on_is_not_said() -> None:
    setup = read(
        row("KIT-1", ("Open", "Done", "Fixed")),
        row("KIT-2", ("New", "Done", "Done")),
        row("KIT-3", ("Open", "Busy", None), resolution=None, status="Busy"),
    )
    assert "first_status" not in setup["jira_project", "KIT"]
    assert "resolution_after" not in setup["jira_status", "Done"] and setup["jira_status", "Busy"]["resolution_after"] == [
        None
    ]


def test_a_workflow_is_known_since_the_last_change_that_it_forbids() -> None:
    workflow = {"Open": [{"id": "1", "name": "Close", "to": "Done"}]}
    allowed, forbidden = row("KIT-1", ("Open", "Done", "Fixed")), row("KIT-2", ("New", "Done", "Fixed"))
    assert last_break(workflow, [allowed]) == ""
    assert read(allowed, workflow=workflow)["jira_status", "Open"]["transitions"] == workflow["Open"]
    kind, instant = read(allowed, forbidden, workflow=workflow)["jira_status", "Open"]["transitions"]
    assert kind == "guess" and instant == 1772449200 * 10**6 + 1 < NEVER_KNOWN


def test_people_are_shown_with_addresses_if_issues_show_one() -> None:
    person = {"accountId": "a1", "displayName": "Mara", "timeZone": "Europe/Oslo", "avatarUrls": {"48x48": "u"}}
    hidden = read(row("KIT-1", reporter=person))
    assert hidden["setting", "jira"] == {"shows_addresses": False}
    assert (hidden["jira_user", "a1"]["avatar"], hidden["jira_user", "a1"]["time_zone"]) == ("u", "Europe/Oslo")
    assert read(row("KIT-1", reporter=person | {"emailAddress": "m@toys.example"}))["setting", "jira"]["shows_addresses"]


def test_a_whole_list_of_fields_is_told_from_one_of_custom_fields() -> None:
    custom = {"id": "customfield_7", "name": "Team size", "custom": True, "clauseNames": ["cf[7]"]}
    standard = {"id": "summary", "name": "Summary", "custom": False, "clauseNames": ["summary"]}
    partial, whole = (read(row("KIT-1"), field=rows) for rows in ([custom], [standard, custom]))
    assert partial["jira_field", "customfield_7"] == {"name": "Team size", "column": "team_size"}
    assert "setting" not in {kind for kind, _ in partial} or "lists_all_fields" not in partial["setting", "jira"]
    assert whole["setting", "jira"]["lists_all_fields"] and whole["jira_listed_field", "summary"]["row"] == standard
