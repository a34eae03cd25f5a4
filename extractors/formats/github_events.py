"""Events of GitHub: pushes, pull requests, reviews, comments, and runs of CI.

In: webhook payloads (bare, with the event's name next to them, or as the delivery's `payload`), and pages of the Events API.
Out: a log event each, named as GitHub names event and action (`pull_request.closed`), with the facts that tell what became of a
change: commits, branches, numbers, states, conclusions, titles and texts. A payload delivered twice is one event.

Does not see: diffs and files of commits (the repository holds them); events that are about no code (stars, members, projects).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_of, objects_in, stated_text

_BODIES = {"pull_request_review": "review", "pull_request_review_comment": "comment", "issue_comment": "comment",
           "workflow_run": "workflow_run", "workflow_job": "workflow_job", "check_run": "check_run",
           "check_suite": "check_suite", "pull_request": "pull_request", "issues": "issue", "release": "release"}
"""Event -> where its payload has what it is about; an event stands before those whose payloads hold its body too."""
_API = {"PushEvent": "push", "PullRequestEvent": "pull_request", "PullRequestReviewEvent": "pull_request_review",
        "PullRequestReviewCommentEvent": "pull_request_review_comment", "IssueCommentEvent": "issue_comment",
        "IssuesEvent": "issues", "ReleaseEvent": "release", "CreateEvent": "create", "DeleteEvent": "delete"}
_NAMES = ("event", "event_name", "x-github-event", "X-GitHub-Event", "github_event")
_TIMES = ("created_at", "updated_at", "submitted_at", "completed_at", "merged_at", "closed_at", "published_at", "timestamp")


def claims(head: Head) -> bool:
    """Return whether most of the first objects are such events."""
    read_as = [_event(value) for each in head.objects for value in _values(each)]
    return head.is_json and bool(read_as) and sum(each is not None for each in read_as) * 2 > len(read_as)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the events as they come."""
    delivered: set[str] = set()
    for record in records:
        values = list(_values(record.value)) or [None]
        for value in values:
            event = _event(value)
            if event is None:
                emit.reject(record, "no_event", "the record is no event of GitHub about code; leave it out")
                continue
            with emit.guarded(record):
                _emit(record, value, *event, emit, delivered)


def _values(value: Any) -> Iterator[Any]:
    yield from value if isinstance(value, list) else [value]


def _event(value: Any) -> tuple[str, Row] | None:
    """Return the event's name and payload, None for what is not about code."""
    if not isinstance(value, dict):
        return None
    inner = value.get("payload")
    payload: Row = inner if isinstance(inner, dict) else value
    if isinstance(value.get("type"), str) and value["type"] in _API and payload is not value:
        return _API[value["type"]], {"repository": {"full_name": object_of(value.get("repo")).get("name")},
                                     "sender": value.get("actor"), "created_at": value.get("created_at"), **payload}
    headers = object_of(value.get("headers"))
    stated = next((each[name] for each in (value, headers) for name in _NAMES if isinstance(each.get(name), str)), None)
    is_push = isinstance(payload.get("ref"), str) and isinstance(payload.get("after"), str)
    is_payload = "sender" in payload or "repository" in payload
    names = [name for name, body in _BODIES.items() if isinstance(payload.get(body), dict)]
    if stated in _BODIES and isinstance(payload.get(_BODIES[stated]), dict):
        return stated, payload
    if stated in (None, "push") and is_push and is_payload:
        return "push", payload
    if stated is None and is_payload and names and isinstance(payload.get("action"), str):
        return _inferred(names, payload), payload
    return None


def _inferred(names: list[str], payload: Row) -> str:
    """Return the event of a bare payload: of comments, what they are on tells."""
    if "comment" in payload:
        return "issue_comment" if "issue" in payload else "pull_request_review_comment"
    return names[0]


def _emit(record: LogRecord, value: Row, name: str, payload: Row, emit: Emit, delivered: set[str]) -> None:
    body = object_of(payload.get(_BODIES[name])) if name in _BODIES else payload
    action = stated_text(payload.get("action"))
    facts = {"repository": object_of(payload.get("repository")).get("full_name"),
             "by_login": object_of(payload.get("sender")).get("login"), **_FACTS.get(name, _of_body)(payload, body)}
    at = next((instant for each in (value, payload) for key in _TIMES
               if (instant := microseconds(each.get(key))) is not None), None)
    if at is None:   # of what it is about, the latest time: it was made before, and may have been changed by this event
        at = max((instant for key in _TIMES if (instant := microseconds(body.get(key))) is not None), default=None)
    facts = {key: each for key, each in facts.items() if each is not None}
    tool = f"{name}.{action}" if action else name
    identity = dumped([tool, facts, at])
    if identity in delivered:
        emit.reject(record, "duplicate_event", f"{tool} was delivered before; no action needed")
        return
    delivered.add(identity)
    emit.event(record, "log", tool=tool, arguments=dumped(facts), happened_at=at, lossy=[],
               service=emit.envelope.service({}))


def _of_push(payload: Row, body: Row) -> Row:
    return {"ref": payload.get("ref"), "before": payload.get("before"), "after": payload.get("after", payload.get("head")),
            "forced": payload.get("forced"), "commits": [
                {"id": each.get("id", each.get("sha")), "message": each.get("message")}
                for each in objects_in(payload.get("commits"))] or None}


def _of_pull_request(payload: Row, body: Row) -> Row:
    head, base = object_of(body.get("head")), object_of(body.get("base"))
    merged = body.get("merged", body.get("merged_at") is not None if body.get("state") == "closed" else None)
    return {"number": body.get("number", payload.get("number")), "title": body.get("title"), "body": body.get("body"),
            "author_login": object_of(body.get("user")).get("login"), "state": body.get("state"), "merged": merged,
            "merge_commit": body.get("merge_commit_sha"), "head_ref": head.get("ref"), "head_commit": head.get("sha"),
            "base_ref": base.get("ref"), "base_commit": base.get("sha")}


def _of_run(payload: Row, body: Row) -> Row:
    numbers = [each.get("number") for each in objects_in(body.get("pull_requests"))]
    return {"run_id": body.get("run_id", body.get("id")), "name": body.get("name"), "commit": body.get("head_sha"),
            "branch": body.get("head_branch"), "trigger": body.get("event"), "status": body.get("status"),
            "conclusion": body.get("conclusion"), "pull_requests": numbers or None}


def _of_body(payload: Row, body: Row) -> Row:
    about = object_of(payload.get("pull_request", payload.get("issue")))
    facts = {"number": about.get("number", body.get("number")), "title": body.get("title"), "body": body.get("body"),
             "author_login": object_of(body.get("user")).get("login"), "state": body.get("state"),
             "commit": body.get("commit_id"), "path": body.get("path"),
             "is_pull_request": True if "pull_request" in {**payload, **about} else None}
    if not about or about == body:
        return facts
    return {**facts, "comment_id": body.get("id"), "about_title": about.get("title"), "about_body": about.get("body"),
            "about_state": about.get("state"), "about_author_login": object_of(about.get("user")).get("login")}


_FACTS = {"push": _of_push, "pull_request": _of_pull_request, "workflow_run": _of_run, "workflow_job": _of_run,
          "check_run": _of_run, "check_suite": _of_run}

FORMAT = Format(name="github_events", claims=claims, read=read, sample=sample("github_events.jsonl"), rank=30)
