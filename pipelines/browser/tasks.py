"""One task with its rubric and its audit, and one environment: from the warehouse and the files that a run wrote beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.browser.library import Library
from warehouse.errors import Missing

Row = dict[str, Any]
FOLDERS = ("environments", "withheld")
"""Folders of rooms: of tasks with a verified reward, and of the others."""


def task(library: Library, task_id: str) -> Row:
    """All that is known of a task, also of one that was made new. Raises Missing."""
    found = library.row("select * from mart.tasks where task_id = $id", id=task_id)
    variant = library.row("select * from mart.variants where task_id = $id", id=task_id)
    if found is None and variant is None:
        raise Missing(f"no task {task_id!r}", mend="look for it in its family or its environment")
    told: Row = found or {}
    told = {**(variant or {}), **told, "made_from": variant["made_from"] if variant else None,
            "derived_from": (variant or {}).get("derived_from") or told.get("derived_from")}
    sessions = library.rows(
        "select session_id, started_at, probability from core.sessions join mart.outcomes using (session_id) "
        "where session_id in (select unnest($ids)) order by probability desc nulls last, session_id",
        ids=told["session_ids"]) if told["session_ids"] else []
    good = told.get("good_session_ids") or []
    return {
        **told, "slots": json.loads(told["slots"]),
        "sessions": [{**row, "is_good": row["session_id"] in good} for row in sessions],
        "name": (library.row("select name from mart.names where family = $id", id=told["family"]) or {}).get("name"),
        "verdicts": library.rows(
            "select stage, kept, reason, detail from mart.verdicts where subject = $id order by stage, reason", id=task_id),
        "room": room_of(library, told["service"], task_id), "is_published": _is_published(library, task_id)}


def _is_published(library: Library, task_id: str) -> bool:
    return library.row(
        "select 1 from mart.verdicts where stage = 'verify' and subject = $id and kept", id=task_id) is not None


def rubric(library: Library, task_id: str) -> list[Row]:
    """The checks of a task as the build mined and persons corrected them, those that count first; none without a rubric."""
    row = library.row("select checks from mart.variants where task_id = $id", id=task_id) or library.row(
        "select checks from mart.rubrics where task_id = $id", id=task_id)
    order = ("gate", "score", "penalty", "shaping", "diagnostic")
    checks = json.loads(row["checks"]) if row else []
    return sorted(checks, key=lambda check: (order.index(check["role"]), check["kind"], check["check_id"]))


def evidence(library: Library, checks: list[Row]) -> dict[str, Row]:
    """Event id -> the turn that it is, of all events that the checks stand on."""
    ids = sorted({event for check in checks for side in check["provenance"].get("events", {}).values() for event in side})
    if not ids:
        return {}
    rows = library.rows(
        "select turn_id, result_id, session_id, position, kind, role, tool from core.turns "
        "where turn_id in (select unnest($ids)) or result_id in (select unnest($ids))", ids=ids)
    return {name: row for row in rows for name in (row["result_id"], row["turn_id"]) if name in ids}


def audit(library: Library, service: str, task_id: str) -> Row | None:
    """Who was played against a task's reward, and what they earned; None where it was not published."""
    for name in _names(library, service):
        row = library.line(library.out / "rewards" / name / "audit.jsonl", "task_id", task_id)
        if row is not None:
            return row
    return None


def room_of(library: Library, service: str, task_id: str) -> Path | None:
    """The directory of the room that has the task; None where none was written."""
    for folder in FOLDERS:
        for name in _names(library, service):
            room = library.out / folder / name
            if library.line(room / "tasks.jsonl", "task_id", task_id) is not None:
                return room
    return None


def _names(library: Library, service: str) -> list[str]:
    """Names of a service's rooms: as the warehouse says, else the folders that the manifests say are its."""
    known = [row["environment"] for row in library.rows(
        "select environment from mart.environments where service = $service", service=service)]
    there = sorted({room.name for folder in FOLDERS if (library.out / folder).is_dir()
                    for room in (library.out / folder).iterdir() if (room / "manifest.json").is_file()})
    return [*known, *(name for name in there if name not in known and service in (name, _service(library, name)))]


def _service(library: Library, name: str) -> str | None:
    path = next((path for folder in FOLDERS if (path := library.out / folder / name / "manifest.json").is_file()), None)
    told = json.loads(path.read_text("utf-8")) if path else {}
    return told.get("service") if isinstance(told, dict) else None


def environment(library: Library, name: str) -> Row:
    """A published environment: its tools and what is known of them, what it can answer, who got through. Raises Missing."""
    row = library.row("select * from mart.environments where environment = $name", name=name)
    if row is None:
        known = [each["environment"] for each in library.rows("select environment from mart.environments")]
        raise Missing.named("environment", name, known)
    tools = library.rows(
        "select t.tool, description, n_calls, declared, effect, n_support, fidelity, abstains, "
        "program is not null and program != 'null' as has_program from core.tools t left join mart.behaviours b "
        "on b.service = t.service and b.tool = t.tool where t.service = $service order by n_calls desc, t.tool",
        service=row["service"])
    return {**row, "tools": tools, "manifest": _document(library.out / "environments" / name / "manifest.json"),
            "audit": _document(library.out / "rewards" / name / "audit.json")}


def _document(path: Path) -> Row:
    told = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return told if isinstance(told, dict) else {}
