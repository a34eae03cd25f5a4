"""Answers in shapes that vendors' clients are tested with: a Jira server's, GitHub's lists, Confluence's unexpanded ones."""

from __future__ import annotations

from typing import Any

from tests.extractors.apps.exports import read_files, state_of

EARLY, DAY = "2022-01-06T00:00:00Z", "2022-02-01T00:00:00Z"


def value(files: dict[str, Any], instant: str, kind: str, key: str, field: str) -> Any:
    """Return a value that is known at an instant, else None."""
    return state_of(files, instant).values(kind, key).get(field)


def person(name: str, key: str) -> dict[str, Any]:
    return {"name": name, "key": key, "emailAddress": f"{name}@mill.example", "displayName": f"{name.title()} Roe"}


def item(field: str, before: Any, after: Any, kind: str = "jira", keys: tuple[Any, Any] = (None, None)) -> dict[str, Any]:
    return {"field": field, "fieldtype": kind, "from": keys[0], "fromString": before, "to": keys[1], "toString": after}


def server_search(names: dict[str, str] | None) -> dict[str, Any]:
    fields = {
        "summary": "Mend the wheel", "created": "2022-01-05T10:00:00.000+0000", "updated": "2022-01-09T10:00:00.000+0000",
        "status": {"name": "Open", "id": "1"}, "issuetype": {"name": "Task", "id": "1"}, "project": {"key": "MILL", "id": "10"},
        "assignee": person("ben", "JIRAUSER2"), "reporter": person("ada", "JIRAUSER1"), "customfield_10005": 3.0,
        "comment": {"comments": [{"id": "1", "author": {"displayName": "Gone"}, "body": "hm",
                                  "created": "2022-01-06T12:00:00.000+0000"}], "total": 1}}
    histories = [
        {"id": "100", "author": person("ada", "JIRAUSER1"), "created": "2022-01-06T10:00:00.000+0000",
         "items": [item("assignee", "Ada Roe", "Ben Roe", keys=("JIRAUSER1", "JIRAUSER2"))]},
        {"id": "101", "author": person("ada", "JIRAUSER1"), "created": "2022-01-07T10:00:00.000+0000",
         "items": [item("Story Points", "2", "3", "custom")]}]
    issue = {"id": "5", "key": "MILL-7", "fields": fields, "changelog": {"total": 2, "histories": histories}}
    return {"startAt": 0, "maxResults": 50, "total": 1, "issues": [issue], **({"names": names} if names else {})}


def test_a_servers_accounts_are_known_by_name_although_its_changelog_has_keys() -> None:
    files = {"jira/search.json": server_search({"customfield_10005": "Story Points"})}
    assert value(files, "2022-01-05T12:00:00Z", "jira", "MILL-7", "assignee") == "ada"
    assert value(files, DAY, "jira", "MILL-7", "assignee") == "ben"
    assert value(files, DAY, "jira_user", "ben", "email") == "ben@mill.example"
    assert value(files, DAY, "jira_comment", "1", "author") == "Gone"


def test_a_field_of_the_companys_own_follows_the_name_that_a_search_lists() -> None:
    files = {"jira/search.json": server_search({"customfield_10005": "Story Points"})}
    values = [value(files, instant, "jira", "MILL-7", "story_points") for instant in (EARLY, DAY)]
    assert values == [2.0, 3.0]


def test_without_the_name_the_field_is_unknown_until_the_last_such_change() -> None:
    files = {"jira/search.json": server_search(None)}
    early, late = (state_of(files, instant).field("jira", "MILL-7", "customfield_10005") for instant in (EARLY, DAY))
    assert early is not None and late is not None
    assert (early.is_known, late.is_known, late.value) == (False, True, 3.0)


def login(name: str) -> dict[str, Any]:
    return {"login": name, "id": 1, "type": "User"}


def listed(number: int, repository: str = "app") -> dict[str, Any]:
    address = f"https://api.github.com/repos/mill/{repository}"
    return {"url": f"{address}/issues/{number}", "repository_url": address, "number": number, "title": "Wheel",
            "user": login("ada"), "labels": [{"name": "v1"}], "state": "open", "created_at": "2022-01-05T10:00:00Z",
            "updated_at": "2022-01-07T10:00:00Z"}


LABELED = {"id": 2, "actor": login("ben"), "event": "labeled", "created_at": "2022-01-07T10:00:00Z", "label": {"name": "v1"},
           "url": "https://api.github.com/repos/mill/app/issues/events/2"}
COMMENTED = {"id": 3, "issue_url": "https://api.github.com/repos/mill/app/issues/28", "user": login("ben"),
             "event": "commented", "actor": login("ben"), "created_at": "2022-01-06T10:00:00Z", "body": "mine"}


def test_a_timeline_in_a_file_of_its_own_is_the_issues_whose_number_it_names() -> None:
    files = {"gh/issues.json": [listed(28), listed(29)], "gh/timelines/28.json": [LABELED]}
    assert value(files, EARLY, "gh", "app#28", "labels") == []
    assert value(files, DAY, "gh", "app#28", "labels") == ["v1"]
    named_in_a_comment = {"gh/issues.json": [listed(28), listed(29)], "gh/a.json": [COMMENTED, LABELED]}
    assert value(named_in_a_comment, DAY, "gh_comment", "app#28/3", "body") == "mine"


def test_a_timeline_that_fits_two_issues_or_none_is_rejected() -> None:
    of_two = {"gh/issues.json": [listed(28), listed(28, "web")], "gh/28.json": [{**LABELED, "url": None}]}
    for files in (of_two, {"gh/issues.json": [listed(28)], "gh/29.json": [LABELED]}):
        assert [part.reason for part in read_files(files).unread] == ["bad_row"]


def test_an_unexpanded_comment_lies_on_the_page_that_its_address_names() -> None:
    version = {"by": {"accountId": "u1", "displayName": "Ada Roe"}, "when": "2022-01-05T10:00:00Z", "number": 1}
    page = {"id": "987", "type": "page", "title": "Wheel", "space": {"key": "MILL"}, "version": version,
            "body": {"storage": {"value": "<p>x</p>"}}}
    comment = {"id": "456", "type": "comment", "title": "Re: Wheel", "version": version,
               "body": {"view": {"value": "<p>y</p>"}},
               "_expandable": {"container": "/rest/api/content/987"}}
    files = {"wiki/pages.json": {"results": [page]}, "wiki/comments.json": {"results": [comment]}}
    assert value(files, DAY, "wiki_comment", "456", "page") == "987"
