"""Environments of web sites and of repositories, their tasks, and the work of a site's people, for the browser's pages.

Input: `mart.site_rooms`, `mart.code_rooms`, `mart.site_work`, the environments' own files, recorded pages (`core.events`).
Output: rows in the shape that pages of services take. Files and messages of a session are those of its person's name, from
its first request until soon after its last. Does not see which of them were part of the work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from env_builder.runtime.files import rows_of
from env_builder.site.parsing import parse
from env_builder.site.recorded import RecordedRequest, page_sessions
from pipelines.browser.framed import FramedPage, framed_text
from pipelines.browser.library import Library, checks_of, document_of, find_task, published_checks
from warehouse.errors import Missing, Unavailable

Row = dict[str, Any]
_ROOMS = """
    select environment, 'site' as kind, host as of_what, n_tasks, content_digest, rewards_digest from mart.site_rooms
    union all select environment, 'repository', repository, n_tasks, content_digest, rewards_digest from mart.code_rooms
    order by environment"""
_EVENTS = """
    select * from core.events where kind in ('page', 'request') and service in ($host, split_part($host, ':', 1))
    and coalesce(session_id, file_id) = $id order by happened_at, event_id"""
_AROUND = """
    select happened_at as at, format, tool, arguments, content from core.events
    where (format in ('file_audit', 'slack') or json_extract_string(arguments, '$.xpath') is not null)
    and happened_at between $first and $last
    and lower(split_part(name, '@', 1)) = lower(split_part($person, '@', 1)) order by happened_at, position, event_id"""
_SHEETS = """
    select content, max(json_extract_string(value, '$.body')) as text from core.events
    where kind = 'log' and json_extract_string(value, '$.type') = 'text/css' and content is not null
    and service in ($host, split_part($host, ':', 1))
    and json_extract_string(value, '$.body') is not null group by content order by content"""
_AFTER = timedelta(minutes=15)
"""How long after the last request what the person did counts as part of the session."""
LISTED = 200
"""Tasks of an environment on its page."""


def rooms(library: Library) -> list[Row]:
    """List the environments of sites and of repositories."""
    return library.once("rooms", lambda: library.rows(_ROOMS))


def environment_of(library: Library, name: str) -> Row | None:
    """Return an environment with its tools, tasks, audit, and of a site the work of its people; None if it is of a service."""
    row = next((row for row in rooms(library) if row["environment"] == name), None)
    if row is None:
        return None
    folder = library.out / "environments" / name
    tasks = library.read(folder / "tasks.jsonl", lambda path: list(rows_of(path))) or []
    tools = library.read(folder / "tools.jsonl", lambda path: list(rows_of(path))) or []
    work = work_of(library, row["of_what"]) if row["kind"] == "site" else []
    apps = (library.read(folder / "manifest.json", document_of) or {}).get("apps", [])
    expiry = next((app["expiry"] for app in apps if "expiry" in app), None)
    return {**row, "tools": tools, "tasks": tasks[:LISTED], "n_listed": min(LISTED, len(tasks)), "work": work, "expiry": expiry,
            "audit": document_of(library.out / "rewards" / name / "audit.json")}


def work_of(library: Library, host: str) -> list[Row]:
    """List what people did on a site, what was wrong first."""
    return library.rows(
        "select * from mart.site_work where host = $host order by is_right nulls last, complaint desc, session_id", host=host)


def task_of(library: Library, task_id: str) -> Row | None:
    """Return a task of a site or a repository as `views.task` returns those of services; None if there is no such task."""
    for room in rooms(library):
        folder = library.out / "environments" / room["environment"]
        task = library.line(folder / "tasks.jsonl", "task_id", task_id)
        if task is not None:
            sessions = [{"session_id": name, "started_at": None, "probability": None, "has_succeeded": True}
                        for name in task["session_ids"]]
            decisions = library.rows("select stage, kept, reason, detail from mart.decisions where subject = $id "
                                     "order by stage, reason", id=task_id)
            starts_at = datetime.fromisoformat(task["starts_at"]) if task.get("starts_at") else None
            return {"name": task["family"], "made_from": None, "derived_from": None, "slots": {}, **task,
                    "starts_at": starts_at, "service": room["environment"], "sessions": sessions, "decisions": decisions,
                    "is_published": True, "succeeded_session_ids": task["session_ids"], "room": folder, "of_room": room["kind"]}
    return None


def find_work(library: Library, session_id: str, step: int) -> Row | None:
    """Return what a person did on a site in a session, one recorded page after the other; None if it is no such session."""
    work = library.row("select * from mart.site_work where session_id = $id order by host", id=session_id)
    if work is None:
        return None
    events = library.rows(_EVENTS, host=work["host"], id=session_id) or library.rows(
        _EVENTS, host=work["host"], id=session_id.rpartition("~")[0])
    sessions = [each for each in page_sessions(events) if each.session_id == session_id]
    own = sorted(sessions, key=lambda each: each.host != work["host"])   # of two sites of one host, this one
    requests = own[0].requests if own else ()
    if step > len(requests):
        raise Missing(f"session {session_id} has no page {step}", hint=f"it has {len(requests)}")
    at = step or min(1, len(requests))
    shown = requests[at - 1] if requests else None
    room = next((row["environment"] for row in rooms(library) if row["of_what"] == work["host"]), None)
    page, problem = _page(shown, sheets_of(library, work["host"]))
    around = _around(library, work["person"], requests)
    ends = requests[at].at if at < len(requests) else None
    return {"work": work, "requests": requests, "at": at, "shown": shown, "page": page, "problem": problem, "room": room,
            "meanwhile": [row for row in around if shown is not None and shown.at <= row["at"] and (
                ends is None or row["at"] < ends)],
            "journal": sorted([{"at": each.at, "kind": "request", "text": f"{each.method} {each.url}", "step": place,
                                "status": each.status} for place, each in enumerate(requests, 1)] + around,
                              key=lambda row: row["at"])}


def _around(library: Library, person: str | None, requests: Sequence[RecordedRequest]) -> list[Row]:
    """Return what the person did to files and elements, and wrote, from the first request on."""
    if person is None or not requests:
        return []
    rows = []
    for event in library.rows(_AROUND, first=requests[0].at, last=requests[-1].at + _AFTER, person=person):
        facts = json.loads(event["arguments"] or "{}")
        if "xpath" in facts:
            rows.append({"at": event["at"], "kind": "element", "text": _element(event["tool"], facts), "step": None,
                         "status": None})
            continue
        text = event["content"] if event["format"] == "slack" else " ".join(filter(None, (
            facts.get("operation"), facts.get("path"), f"to {facts['to']}" if facts.get("to") else None)))
        if text:
            rows.append({"at": event["at"], "kind": "message" if event["format"] == "slack" else "file", "text": text,
                         "step": None, "status": None})
    return rows


def _element(act: str, facts: Row) -> str:
    """Return what was done to an element, without what was typed."""
    name = next((str(facts[each]) for each in ("text", "name", "id") if facts.get(each)), "")
    return " ".join(filter(None, (act, str(facts.get("tag", "")).lower(), name, str(facts["xpath"]))))


def sheets_of(library: Library, host: str) -> dict[str, str]:
    """Return the recorded style sheets of a host, by path."""
    rows = library.once(f"sheets of {host}", lambda: library.rows(_SHEETS, host=host))
    return {urlsplit(row["content"]).path: row["text"] for row in rows}


def sheets_of_room(library: Library, name: str) -> dict[str, str]:
    """Return the recorded style sheets of the site of an environment, by path."""
    return sheets_of(library, next((row["of_what"] for row in rooms(library) if row["environment"] == name), ""))


def _page(request: RecordedRequest | None, sheets: dict[str, str]) -> tuple[FramedPage | None, str]:
    """Return a recorded page, or why it is missing."""
    if request is None or request.html is None:
        return None, "" if request is None else "This request was not answered with a page."
    try:
        return framed_text(parse(request.html), request.url, sheets), ""
    except Unavailable as error:
        return None, str(error)


def checks_of_any(library: Library, task: Row) -> list[Row]:
    """Return the checks of a task of a service, a site or a repository, as the build has them."""
    if task.get("of_room"):
        return published_checks(library, task["service"], task["task_id"])
    return checks_of(library, task["task_id"])


def find_any_task(library: Library, task_id: str) -> Row:
    """Return a task of a service, a site or a repository, with the folder of its environment as `room`. Raises Missing."""
    return task_of(library, task_id) or find_task(library, task_id)
