"""An exported issue is shown to the byte as mcp-atlassian 0.23.1 shows it: its own models made the expected values."""

from __future__ import annotations

import json
from typing import Any

from env_builder.runtime.company import CompanyDesk, CompanyWorld, DeskStart, FieldVersion, PersonSight
from env_builder.runtime.office.jira import TOOLS
from extractors.apps import ExportFile, read_exports
from extractors.apps.jira import APP

SITE = "https://toys.example/rest/api/2"
CATEGORIES = {"new": ("To Do", "blue-gray"), "done": ("Done", "green")}


def user(number: int, name: str) -> dict[str, Any]:
    return {"accountId": f"a{number}", "displayName": name, "emailAddress": f"u{number}@toys.example", "active": True,
            "avatarUrls": {"48x48": f"https://av/{number}"}, "timeZone": "Etc/GMT-1"}


def status(name: str, number: str, code: str) -> dict[str, Any]:
    category, color = CATEGORIES[code]
    return {"name": name, "id": number, "statusCategory": {"key": code, "name": category, "colorName": color}}


def named(name: str, number: str) -> dict[str, Any]:
    return {"name": name, "id": number, "self": SITE}


def issue(key: str, number: str, **fields: Any) -> dict[str, Any]:
    link = {"name": "Blocks", "id": "10000", "inward": "is blocked by", "outward": "blocks",
            "self": f"{SITE}/issueLinkType/10000"}
    side, other = ("outwardIssue", "AB-2") if key == "AB-1" else ("inwardIssue", "AB-1")
    return {"id": number, "key": key, "self": f"{SITE}/issue/{number}", "fields": {
        "summary": f"Sum {key}", "description": None, "issuetype": named("Bug", "10001"), "priority": named("High", "2"),
        "project": {"id": "5", "key": "AB", "name": "Alpha", "avatarUrls": {"48x48": "https://av/p"}},
        "status": status("Open", "1", "new"), "resolution": None, "resolutiondate": None, "assignee": None, "labels": [],
        "reporter": user(2, "Bo"), "creator": user(2, "Bo"), "components": [named("core", "1"), named("ui", "2")],
        "fixVersions": [named("1.0", "9")], "versions": [], "created": "2026-01-02T10:00:00.123+0100",
        "updated": "2026-01-05T10:00:00.500+0100", "issuelinks": [{"id": "555", "type": link, side: {"key": other}}],
        "customfield_42": {"value": "Gold", "id": "77"}, "customfield_43": [{"value": "p"}, {"value": "q"}],
        "comment": {"comments": [], "total": 0}, **fields}, "changelog": {"total": 0, "histories": []}}


COMMENT = {"id": "300", "author": user(1, "Ann"), "body": "hej", "created": "2026-01-05T10:00:00.500+0100",
           "updated": "2026-01-05T10:00:00.500+0100"}
ISSUES = [issue("AB-1", "10101", assignee=user(1, "Ann"), description="Text *x*", labels=["a"], duedate="2026-01-09",
                comment={"comments": [COMMENT], "total": 1}),
          issue("AB-2", "10102", status=status("Closed", "6", "done"), resolution=named("Fixed", "1"),
                resolutiondate="2026-01-03T10:00:00.000+0100")]
FIELDS = [{"id": "customfield_42", "name": "Tier", "custom": True}, {"id": "customfield_43", "name": "Many", "custom": True}]


EXPECTED: dict[str, Any] = {"AB-1": {"id": "10101",
          "key": "AB-1",
          "summary": "Sum AB-1",
          "url": "https://toys.example/rest/api/2/issue/10101",
          "description": "Text *x*",
          "status": {"name": "Open", "category": "To Do", "color": "blue-gray"},
          "issue_type": {"name": "Bug"},
          "priority": {"name": "High"},
          "project": {"key": "AB", "name": "Alpha", "avatar_url": "https://av/p"},
          "duedate": "2026-01-09",
          "assignee": {"account_id": "a1",
                       "display_name": "Ann",
                       "name": "Ann",
                       "email": "u1@toys.example",
                       "avatar_url": "https://av/1"},
          "reporter": {"account_id": "a2",
                       "display_name": "Bo",
                       "name": "Bo",
                       "email": "u2@toys.example",
                       "avatar_url": "https://av/2"},
          "labels": ["a"],
          "components": ["core", "ui"],
          "fix_versions": ["1.0"],
          "created": "2026-01-02 09:00:00 UTC",
          "updated": "2026-01-05 09:00:00 UTC",
          "comments": [{"id": "300",
                        "body": "hej",
                        "author": {"account_id": "a1",
                                   "display_name": "Ann",
                                   "name": "Ann",
                                   "email": "u1@toys.example",
                                   "avatar_url": "https://av/1"},
                        "created": "2026-01-05T10:00:00.500+0100",
                        "updated": "2026-01-05T10:00:00.500+0100"}],
          "issuelinks": [{"id": "555",
                          "type": {"id": "10000",
                                   "name": "Blocks",
                                   "inward": "is blocked by",
                                   "outward": "blocks",
                                   "self": "https://toys.example/rest/api/2/issueLinkType/10000"},
                          "outward_issue": {"id": "10102",
                                            "key": "AB-2",
                                            "self": "https://toys.example/rest/api/2/issue/10102",
                                            "fields": {"summary": "Sum AB-2",
                                                       "status": {"name": "Closed", "category": "Done", "color": "green"},
                                                       "priority": {"name": "High"},
                                                       "issuetype": {"name": "Bug"}}}}]},
 "AB-2": {"id": "10102",
          "key": "AB-2",
          "summary": "Sum AB-2",
          "url": "https://toys.example/rest/api/2/issue/10102",
          "status": {"name": "Closed", "category": "Done", "color": "green"},
          "issue_type": {"name": "Bug"},
          "priority": {"name": "High"},
          "project": {"key": "AB", "name": "Alpha", "avatar_url": "https://av/p"},
          "resolution": {"name": "Fixed", "id": "1"},
          "resolutiondate": "2026-01-03T10:00:00.000+0100",
          "assignee": {"display_name": "Unassigned"},
          "reporter": {"account_id": "a2",
                       "display_name": "Bo",
                       "name": "Bo",
                       "email": "u2@toys.example",
                       "avatar_url": "https://av/2"},
          "components": ["core", "ui"],
          "fix_versions": ["1.0"],
          "created": "2026-01-02 09:00:00 UTC",
          "updated": "2026-01-05 09:00:00 UTC",
          "issuelinks": [{"id": "555",
                          "type": {"id": "10000",
                                   "name": "Blocks",
                                   "inward": "is blocked by",
                                   "outward": "blocks",
                                   "self": "https://toys.example/rest/api/2/issueLinkType/10000"},
                          "inward_issue": {"id": "10101",
                                           "key": "AB-1",
                                           "self": "https://toys.example/rest/api/2/issue/10101",
                                           "fields": {"summary": "Sum AB-1",
                                                      "status": {"name": "Open", "category": "To Do", "color": "blue-gray"},
                                                      "priority": {"name": "High"},
                                                      "issuetype": {"name": "Bug"}}}}],
          "customfield_42": {"value": "Gold"},
          "customfield_43": {"value": ["p", "q"]}}}


def desk() -> CompanyDesk:
    files = {"search": {"issues": ISSUES, "maxResults": 50}, "field": FIELDS, "users": [user(1, "Ann"), user(2, "Bo")]}
    reading = read_exports([ExportFile(f"jira/{name}.json", json.dumps(content).encode()) for name, content in files.items()],
                           apps=(APP,))
    assert not reading.unread
    state = CompanyWorld([FieldVersion("person", "u1@toys.example", "dept", "", 0), *reading.versions]).at(2**60)
    shown = {"jira_get_issue": {"all": True, "comments": True}, "browse_url": False}
    return CompanyDesk(DeskStart(state, "u1@toys.example", {"u1@toys.example": {"jira_user": "a1"}},
                                 PersonSight(state, "u1@toys.example"), {"jira": {"shown": shown}}))


def test_all_parts_of_an_issue_have_the_server_s_shape() -> None:
    for key, fields in (("AB-1", None), ("AB-2", "*all")):
        shown = TOOLS["jira_get_issue"].answer(desk(), {"issue_key": key, "fields": fields})
        assert shown == json.dumps(EXPECTED[key], indent=2, ensure_ascii=False)
