"""Tools of github-mcp-server over a small repository: shapes, searches, writes, and what is unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime.company import (
    CompanyDesk,
    CompanyWorld,
    DeskStart,
    FieldVersion,
    PersonSight,
    ProductRefusal,
    Undecided,
)
from env_builder.runtime.office.github import TOOLS
from extractors.apps.github import read
from extractors.apps.version import ExportFile

DAY = 86_400_000_000
START = 1_767_225_600_000_000   # 2026-01-01
OWN = {"owner": "acme", "repo": "kiln"}


def row(number: int, day: int, pull: bool = False, **more: Any) -> dict[str, Any]:
    made = f"2026-01-{day:02}T10:00:00Z"
    return {"number": number, "title": f"Kiln {number}", "body": "It is too hot.", "state": "open", "created_at": made,
            "updated_at": made, "closed_at": None, "comments": 0, "labels": [], "assignees": [], "milestone": None,
            "user": {"login": "ann", "type": "User"},
            "html_url": f"https://github.com/acme/kiln/{'pull' if pull else 'issues'}/{number}", "timeline": [],
            **({"pull_request": {"merged_at": None}, "head": {"ref": "fix"}, "base": {"ref": "main"}} if pull else {}), **more}


CLOSED = {"state": "closed", "closed_at": "2026-01-06T10:00:00Z", "updated_at": "2026-01-06T10:00:00Z", "timeline": [
    {"event": "closed", "id": 9, "created_at": "2026-01-06T10:00:00Z", "actor": {"login": "bot", "type": "Bot"}}]}
COMMENTED = {"comments": 1, "updated_at": "2026-01-04T10:00:00Z", "timeline": [
    {"event": "commented", "id": 7, "body": "Cool it", "created_at": "2026-01-04T10:00:00Z",
     "user": {"login": "bot", "type": "Bot"}}]}


def desk(day: int = 20, login: str | None = "ann") -> CompanyDesk:
    rows = [row(1, 2), row(2, 3, **COMMENTED), row(3, 4, pull=True), row(4, 5, **CLOSED), row(5, 15, title="Glaze cracks")]
    files = [ExportFile(f"kiln/{own['number']}.json", json.dumps(own).encode()) for own in rows]
    versions = [FieldVersion(*version[:5], version.actor, version.guessed_until) for version in read(files)]
    versions.append(FieldVersion("person", "ann@acme.example", "name", "Ann", 0))
    state = CompanyWorld(versions).at(START + (day - 1) * DAY)
    accounts = {"ann@acme.example": {} if login is None else {"login": login}}
    return CompanyDesk(DeskStart(state, "ann@acme.example", accounts, PersonSight(state, "ann@acme.example")))


def ask(own: CompanyDesk, tool: str, **arguments: Any) -> Any:
    return json.loads(TOOLS[tool].answer(own, {**OWN, **arguments}))


def numbers(answer: dict[str, Any]) -> list[int]:
    return [own["number"] for own in answer.get("issues", answer.get("items"))]


def test_an_issue_is_what_the_export_of_its_day_would_be() -> None:
    before, after = (ask(desk(day), "issue_read", method="get", issue_number=2) for day in (4, 20))
    assert (before["comments"], after["comments"]) == (0, 1)
    assert after["updated_at"] == "2026-01-04T10:00:00Z"
    assert after == {name: value for name, value in row(2, 3, **COMMENTED).items() if name != "timeline"}


def test_lists_are_newest_first_and_leave_pull_requests_and_the_future_out() -> None:
    assert numbers(ask(desk(), "list_issues")) == [5, 4, 2, 1]
    assert numbers(ask(desk(5), "list_issues")) == [2, 1]
    assert numbers(ask(desk(), "list_issues", state="CLOSED")) == [4]
    assert numbers(ask(desk(), "list_issues", orderBy="UPDATED_AT", direction="ASC")) == [1, 2, 4, 5]
    page = ask(desk(), "list_issues", perPage=2)
    assert (numbers(page), page["totalCount"]) == ([5, 4], 4)
    assert [own["number"] for own in json.loads(TOOLS["list_pull_requests"].answer(desk(), OWN))] == [3]


@pytest.mark.parametrize(("query", "expected"), [
    ("glaze", [5]), ("is:open hot", [5, 2, 1]), ("-is:closed created:<2026-01-03", [1]), ('"too hot" comments:>0', [2]),
    ("author:@me created:2026-01-02..2026-01-04", [2, 1]), ("cool in:comments", [2]), ("closed:>=2026-01-06", [4]),
    ("label:none", []), ("no:label is:closed", [4]), ("repo:acme/other", [])])
def test_searches_follow_the_grammar(query: str, expected: list[int]) -> None:
    assert numbers(ask(desk(), "search_issues", query=query, sort="created")) == expected


@pytest.mark.parametrize("query", ["hot OR cold", "reactions:>3", "created:soon", "hot"])
def test_what_only_the_host_knows_is_unknown(query: str) -> None:
    with pytest.raises(Undecided):
        TOOLS["search_issues"].answer(desk(), {"query": query})


def test_a_comment_counts_and_is_by_who_acts() -> None:
    own = desk()
    assert ask(own, "add_issue_comment", issue_number=2, body="Done") == {
        "id": 8, "url": "https://github.com/acme/kiln/issues/2"}
    comments = ask(own, "issue_read", method="get_comments", issue_number=2)
    assert [(each["user"]["login"], each["user"]["type"], each["body"]) for each in comments] == [
        ("bot", "Bot", "Cool it"), ("ann", "User", "Done")]
    assert ask(own, "issue_read", method="get", issue_number=2)["comments"] == 2
    assert ask(own, "issue_read", method="get", issue_number=2)["updated_at"] == "2026-01-20T00:00:00Z"


def test_the_author_is_unknown_where_no_account_is() -> None:
    own = desk(login=None)
    assert ask(own, "add_issue_comment", issue_number=2, body="Done")["id"] == 8
    with pytest.raises(Undecided):
        ask(own, "issue_read", method="get_comments", issue_number=2)


def test_issues_are_made_closed_and_labelled() -> None:
    own = desk()
    assert ask(own, "issue_write", method="create", title="New", labels=["heat"])["url"].endswith("/issues/6")
    ask(own, "update_issue", issue_number=6, state="closed", labels=["heat", "late"])
    after = ask(own, "issue_read", method="get", issue_number=6)
    assert (after["state"], after["closed_at"], after["labels"]) == (
        "closed", "2026-01-20T00:00:00Z", [{"name": "heat"}, {"name": "late"}])
    ask(own, "update_issue", issue_number=6, state="open")
    assert ask(own, "issue_read", method="get", issue_number=6)["closed_at"] is None
    assert numbers(ask(own, "search_issues", query="label:late")) == [6]


@pytest.mark.parametrize(("tool", "arguments"), [
    ("issue_read", {"method": "get", "issue_number": 99}), ("issue_read", {"method": "bake", "issue_number": 1}),
    ("pull_request_read", {"method": "get", "pullNumber": 1}), ("add_issue_comment", {"issue_number": 1}),
    ("issue_write", {"method": "create"}), ("get_file_contents", {"path": "none"})])
def test_the_server_refuses(tool: str, arguments: dict[str, Any]) -> None:
    own = desk()
    with pytest.raises(ProductRefusal):
        TOOLS[tool].answer(own, {**OWN, **arguments})
    assert own.changed() == []


JSON = st.recursive(st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | st.text(max_size=6),
                    lambda own: st.lists(own, max_size=2) | st.dictionaries(st.text(max_size=4), own, max_size=2), max_leaves=4)
NAMES = ("owner", "repo", "method", "issue_number", "pullNumber", "body", "title", "state", "labels", "query", "sort", "page",
         "perPage", "path", "orderBy", "direction", "assignees")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5))
def test_arguments_of_any_form_are_answered_refused_or_unknown(tool: str, arguments: dict[str, Any]) -> None:
    own = desk()
    try:
        answer = TOOLS[tool].answer(own, {**OWN, "issue_number": 2, "pullNumber": 3, "method": "get", **arguments})
    except (ProductRefusal, Undecided):
        return
    assert isinstance(answer, str)
