"""What hosts of code and CI log: events of GitHub, results of tests, logs of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.privacy.fields import kind_of_field
from extractors.reading import read

PULL = {"number": 7, "title": "Trim", "body": "It smokes.", "user": {"login": "kim"}, "state": "closed", "merged": True,
        "merge_commit_sha": "5dd05a9", "head": {"ref": "fix/wick", "sha": "36f2082"}, "base": {"ref": "main", "sha": "bca2d42"},
        "updated_at": "2026-03-02T10:13:00Z"}
WEBHOOK = {"action": "closed", "number": 7, "pull_request": PULL, "repository": {"full_name": "shop/lantern"},
           "sender": {"login": "jo"}}


def events(folder: Path, content: str | bytes, name: str = "log") -> list[tuple[str, Any]]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    reading = read(SourceFile(path, path.name))
    assert reading.decisions.filter(~pl.col("kept")).is_empty()
    return [(tool, json.loads(arguments)) for tool, arguments in reading.events.select("tool", "arguments").rows()]


@pytest.mark.parametrize("value", [
    WEBHOOK, {"event": "pull_request", **WEBHOOK}, {"headers": {"X-GitHub-Event": "pull_request"}, "payload": WEBHOOK},
    {"type": "PullRequestEvent", "actor": {"login": "jo"}, "repo": {"name": "shop/lantern"},
     "created_at": "2026-03-02T10:13:00Z", "payload": {"action": "closed", "number": 7, "pull_request": PULL}}])
def test_an_event_is_the_same_however_it_was_delivered(value: Any, tmp_path: Path) -> None:
    [(tool, facts)] = events(tmp_path, json.dumps(value))
    assert tool == "pull_request.closed" and facts == {
        "repository": "shop/lantern", "by_login": "jo", "number": 7, "title": "Trim", "body": "It smokes.",
        "author_login": "kim", "state": "closed", "merged": True, "merge_commit": "5dd05a9", "head_ref": "fix/wick",
        "head_commit": "36f2082", "base_ref": "main", "base_commit": "bca2d42"}


def test_pushes_runs_reviews_and_comments_are_told_apart(tmp_path: Path) -> None:
    around = {"repository": {"full_name": "shop/lantern"}, "sender": {"login": "jo"}}
    values = [
        {"ref": "refs/heads/main", "before": "0" * 40, "after": "1" * 40, "commits": [{"id": "1" * 40, "message": "x"}],
         **around},
        {"action": "completed", "workflow_run": {"id": 5, "head_sha": "1" * 40, "head_branch": "main", "conclusion": "failure",
                                                 "pull_requests": [{"number": 7}]}, **around},
        {"action": "submitted", "review": {"state": "approved", "body": None}, "pull_request": PULL, **around},
        {"action": "created", "comment": {"body": "no"}, "issue": {"number": 7, "title": "Trim", "pull_request": {}}, **around}]
    made = events(tmp_path, "\n".join(map(json.dumps, values)))
    assert [tool for tool, _ in made] == [
        "push", "workflow_run.completed", "pull_request_review.submitted", "issue_comment.created"]
    push, run, review, comment = (facts for _, facts in made)
    assert push["after"] == "1" * 40 and push["commits"] == [{"id": "1" * 40, "message": "x"}]
    assert (run["run_id"], run["conclusion"], run["pull_requests"]) == (5, "failure", [7])
    assert (review["number"], review["state"]) == (7, "approved")
    assert (comment["number"], comment["body"], comment["is_pull_request"]) == (7, "no", True)


def test_an_event_is_of_when_it_came_not_of_when_what_it_is_about_was_made(tmp_path: Path) -> None:
    issue = {"number": 3, "title": "Smoke", "user": {"login": "kim"}, "state": "closed", "body": "Black.",
             "created_at": "2026-03-02T08:00:00Z", "closed_at": "2026-03-04T08:00:00Z", "updated_at": "2026-03-04T08:00:00Z"}
    comment = {"id": 9, "body": "Still.", "user": {"login": "jo"}, "created_at": "2026-03-05T08:00:00Z",
               "updated_at": "2026-03-06T08:00:00Z"}
    around = {"repository": {"full_name": "shop/lantern"}, "sender": {"login": "ana"}}
    values = [{"action": "closed", "issue": issue, **around},
              {"action": "edited", "issue": issue, "comment": comment, **around},
              {"action": "reopened", "issue": issue, "created_at": "2026-03-07T08:00:00Z", **around}]
    path = tmp_path / "log"
    path.write_text("\n".join(map(json.dumps, values)))
    made = read(SourceFile(path, path.name)).events.select("tool", "happened_at", "arguments").rows()
    assert [(tool, at.day) for tool, at, _ in made] == [
        ("issues.closed", 4), ("issue_comment.edited", 6), ("issues.reopened", 7)]
    facts = json.loads(made[1][2])
    assert facts == {"repository": "shop/lantern", "by_login": "ana", "number": 3, "body": "Still.",
                     "author_login": "jo", "comment_id": 9, "about_title": "Smoke", "about_body": "Black.",
                     "about_state": "closed", "about_author_login": "kim"}
    assert {kind_of_field(name) for name in facts if name.endswith("login")} == {"id"}, "a login is somebody's, as it looks"
    assert not {name for name in json.loads(made[0][2]) if name.startswith(("about", "comment"))}


def suite(*cases: str) -> str:
    return f'<testsuite name="s" tests="{len(cases)}" timestamp="2026-03-02T10:15:02Z">{"".join(cases)}</testsuite>'


@pytest.mark.parametrize("wrap", [
    "{}", "<testsuites>{}</testsuites>", "<?xml version='1.0'?>\n<testsuites name='all'>{}</testsuites>"])
def test_each_test_has_its_outcome(wrap: str, tmp_path: Path) -> None:
    cases = (
        '<testcase classname="a.B" name="one" time="0.5"/>', '<testcase classname="a.B" name="two"><failure/></testcase>',
        '<testcase classname="a.B" name="two"/>', '<testcase classname="a.B" name="three"><error/></testcase>',
        '<testcase name="four"><skipped/></testcase>', '<testcase file="t.py" name="five"><flakyFailure/></testcase>',
        '<testcase classname="a.B" name="six" time="1,000.0"><rerunFailure/><failure/></testcase>')
    [(tool, facts)] = events(tmp_path, wrap.format(suite(*cases)))
    assert tool == "test_run" and facts == {"suite": "s", "seconds": 1000.5, "outcomes": {
        "a.B::one": "passed", "a.B::two": "failed", "a.B::three": "error", "four": "skipped", "t.py::five": "flaky",
        "a.B::six": "failed"}}


def test_a_job_says_what_it_checked_out_and_how_it_ended(tmp_path: Path) -> None:
    lines = ["##[group]Run actions/checkout@v4", "HEAD is now at 5dd05a9 Trim", "##[endgroup]", "##[group]Run make test", "ok"]
    log = [f"2026-03-02T10:15:0{n}.7381280Z {line}" for n, line in enumerate(lines)]
    facts = {"commit": "5dd05a9", "commands": ["actions/checkout@v4", "make test"]}
    assert events(tmp_path, "\n".join(log)) == [("ci_job", {**facts, "exit_code": 0})]
    failed = [*log, "2026-03-02T10:15:09.0000000Z ##[error]Process completed with exit code 2."]
    assert events(tmp_path, "\n".join(failed), "other") == [("ci_job", {**facts, "exit_code": 2})]
