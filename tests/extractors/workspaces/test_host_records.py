"""Pull requests and issues over time: each version holds from the event that shows it, and nothing is dated back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from extractors.workspaces.changes import HostEvent
from extractors.workspaces.host_records import HostHistory, StoredEvent, by_repository
from extractors.workspaces.repository import Repository
from tests.extractors.workspaces.commits import FIRST, commit_all


def event(name: str, hours: float | None, number: int | None = None, /, file_id: str = "f", **facts: Any) -> StoredEvent:
    at = None if hours is None else FIRST + timedelta(hours=hours)
    numbered = facts if number is None else {"number": number, **facts}
    return StoredEvent(f"{name} {hours}", file_id, HostEvent(name, numbered, at))


def opened(hours: float, number: int = 7, **facts: Any) -> StoredEvent:
    return event("pull_request.opened", hours, number, **{
        "title": "Trim", "body": "It smokes.", "author_login": "kim", "state": "open", "head_ref": "wick", "head_commit": "a",
        **facts})


def hours(at: datetime | None) -> float | None:
    return None if at is None else (at - FIRST) / timedelta(hours=1)


def versions(*events: StoredEvent) -> list[tuple[str, int, float | None, float | None, dict[str, Any]]]:
    return [(each.kind, each.number, hours(each.valid_from), hours(each.valid_to), each.value)
            for each in HostHistory(events).versions]


def test_a_pull_request_is_as_its_events_show_it() -> None:
    made = versions(
        event("pull_request.closed", 5, 7, title="Trim", body="", state="closed", merged=True, head_commit="b"), opened(1),
        event("pull_request.edited", 2, 7, title="Trim the wick", body="It smokes.", state="open"),
        event("pull_request_review.submitted", 3, 7, state="changes_requested", body="No test.", by_login="jo", comment_id=1),
        event("issue_comment.created", 4, 7, body="Done.", by_login="kim", comment_id=2))
    assert [(kind, number, since, until) for kind, number, since, until, _ in made] == [
        ("pull_request", 7, 1, 2), ("pull_request", 7, 2, 3), ("pull_request", 7, 3, 4), ("pull_request", 7, 4, 5),
        ("pull_request", 7, 5, None)]
    values = [value for *_, value in made]
    assert [value["title"] for value in values] == ["Trim", *["Trim the wick"] * 4]
    assert [value["state"] for value in values] == [*["open"] * 4, "merged"]
    assert values[0]["comments"] == [] and values[-1] | {"comments": 0} == {
        "number": 7, "title": "Trim the wick", "body": "It smokes.", "author": "kim", "state": "merged", "head_ref": "wick",
        "created_at": "2026-03-02T01:00:00Z", "comments": 0}
    assert values[-1]["comments"] == [
        {"author": "jo", "created_at": "2026-03-02T03:00:00Z", "body": "No test.", "review": "changes_requested"},
        {"author": "kim", "created_at": "2026-03-02T04:00:00Z", "body": "Done."}]


def test_results_of_ci_are_those_of_the_head_of_that_time() -> None:
    made = versions(
        opened(1), event("workflow_run.requested", 2, commit="a", name="tests", status="queued"),
        event("workflow_run.completed", 3, commit="a", name="tests", conclusion="failure"),
        event("workflow_run.completed", 3.5, commit="z", name="tests", conclusion="success"),
        event("push", 4, ref="refs/heads/other", after="y"), event("push", 5, ref="refs/heads/wick", after="b"),
        event("workflow_run.completed", 6, commit="a", name="late", conclusion="failure"),
        event("workflow_run.completed", 7, commit="b", name="tests", conclusion="success"))
    assert [(since, value.get("checks")) for *_, since, _, value in made] == [
        (1, None), (2, {"tests": "queued"}), (3, {"tests": "failure"}), (5, None), (7, {"tests": "success"})]


def test_issues_are_opened_commented_edited_and_gone() -> None:
    issue = {"title": "Smoke", "body": "Black.", "author_login": "kim", "state": "open"}
    about = {"about_title": "Rope", "about_state": "open", "about_author_login": "jo"}
    made = versions(
        event("issues.opened", 1, 3, **issue),
        event("issue_comment.created", 2, 3, body="Here too", by_login="jo", comment_id=9),
        event("issue_comment.edited", 3, 3, body="Here as well", by_login="jo", comment_id=9),
        event("issue_comment.deleted", 4, 3, body="Here as well", by_login="jo", comment_id=9),
        event("issues.labeled", 4.5, 3, **issue),
        event("issues.closed", 5, 3, **issue | {"state": "closed"}), event("issues.deleted", 6, 3, **issue),
        event("issue_comment.created", 2, 4, body="Mine too", by_login="kim", comment_id=1, **about))
    assert [(kind, number, since, until) for kind, number, since, until, _ in made] == [
        ("issue", 3, 1, 2), ("issue", 3, 2, 3), ("issue", 3, 3, 4), ("issue", 3, 4, 5), ("issue", 3, 5, 6),
        ("issue", 4, 2, None)]
    assert [[comment["body"] for comment in value["comments"]] for *_, value in made] == [
        [], ["Here too"], ["Here as well"], [], [], ["Mine too"]]
    assert made[-1][-1]["title"] == "Rope" and "created_at" not in made[-1][-1], "when it was opened nobody knows"


def test_what_nobody_can_place_is_rejected_with_its_reason() -> None:
    history = HostHistory([event("issue_comment.created", 1, 5, body="hm"), event("pull_request.opened", None, 7, title="T"),
                           event("issues.opened", 1, title="no number"), event("push", None, ref="refs/heads/main")])
    assert [(each.event_id, reason) for each, reason, _ in history.rejected] == [
        ("issue_comment.created 1", "unknown_thread"), ("issues.opened 1", "unknown_thread"),
        ("pull_request.opened None", "no_time")]
    assert history.versions == []


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Repository]]:
    folders = [tmp_path_factory.mktemp(name) for name in ("lamp", "rope")]
    for folder in folders:
        commit_all(folder, (folder.name, {"file": folder.name}))
    with Repository.open(folders[0]) as lamp, Repository.open(folders[1]) as rope:
        yield [lamp, rope]


def test_events_are_of_the_repository_that_has_their_commits(repositories: list[Repository], tmp_path: Path) -> None:
    lamp, rope = (next(iter(repository.commits)) for repository in repositories)
    events = [
        opened(1, 7, file_id="one", repository="shop/lamp", base_commit=lamp), event("issues.opened", 1, 8, file_id="one"),
        event("push", 2, file_id="two", after=rope), event("issues.opened", 2, 9, file_id="two"),
        event("issues.opened", 3, 10, file_id="both", repository="shop/lamp"),
        event("issues.opened", 3, 11, file_id="both", repository="shop/other"), event("issues.opened", 4, 12, file_id="both")]
    numbers = [[each.event.facts.get("number") for each in own] for own in by_repository(events, repositories)]
    assert numbers == [[7, 8, 10], [None, 9]]
    assert [len(own) for own in by_repository(events, repositories[:1])] == [3]
    assert [len(own) for own in by_repository(events[5:], repositories[:1])] == [2], "nothing speaks against the only one"
