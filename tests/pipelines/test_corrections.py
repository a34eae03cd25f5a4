"""What a person corrected is an event like any other: the next run follows it, and says who and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.quality import rules
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.store import Store

UP_TO_VARIANTS = STAGES[: [stage.name for stage in STAGES].index("environments")]


SPOKE = {"kind": "spoke", "role": "gate", "description": "It speaks twice.", "parameters": {"at_least": 2}}


def line(kind: str, subject: str, value: object, by: str = "Ada", minute: int = 0, why: str = "I looked") -> str:
    return json.dumps({"format": "traceroom-correction/1", "at": f"2026-11-22T10:{minute:02}:00Z", "by": by, "why": why,
                       "subject": {"kind": kind, "id": subject}, "value": value}) + "\n"


def computed(settings: Settings) -> None:
    for stage in UP_TO_VARIANTS:
        carry_out(stage, settings)


def rows(store: Store, sql: str, **parameters: object) -> list[dict[str, Any]]:
    return store.read(sql, **parameters).to_dicts()


@pytest.mark.slow
def test_the_next_run_follows_what_was_corrected_and_says_who_and_why(logs: Path, tmp_path: Path) -> None:
    settings = Settings(logs=(str(logs),), out=str(tmp_path / "out"), image=False, only=("logs", "tools"))
    computed(settings)
    with Store.open(settings.warehouse) as store:
        good = rows(store, "select session_id from mart.outcomes where probability > 0.5 order by all")
        session, other = good[0]["session_id"], good[1]["session_id"]
        kind = rows(store, "select kind from mart.goals order by all")[0]["kind"]
        rubric, *_, last = rows(store, "select task_id, checks from mart.rubrics order by task_id")
        check = json.loads(rubric["checks"])[0]
        gate = next(each for each in json.loads(last["checks"]) if each["role"] == "gate")
    written = settings.corrections / "ada.jsonl"
    written.parent.mkdir()
    written.write_text(
        line("outcome", session, "good") + line("outcome", session, "bad", "Grace", 1, "the wrong seat")
        + line("outcome", other, "bad") + line("outcome", other, None, minute=2)
        + line("family", kind, "what we call it") + line("family", "nowhere", "x")
        + line("check", f"{rubric['task_id']}/{check['check_id']}", {"weight": 2.5, "says": "So it is."}, "Grace", 3)
        + line("check", gate["check_id"], {"accepted": False}, why="no duty")
        + line("check", f"{rubric['task_id']}/spoke", SPOKE)
        + line("check", f"{last['task_id']}/broken", {**SPOKE, "kind": "x"})
        + line("check", "no-task", SPOKE, minute=4)
        + line("check", "nothing", {"accepted": True}) + line("outcome", "lost", "good")
        + line("outcome", session, "splendid") + "{broken\n")
    computed(settings)
    with Store.open(settings.warehouse) as store:
        outcomes = {row["session_id"]: row for row in rows(store, "select * from mart.outcomes")}
        votes = {vote["name"]: vote for vote in json.loads(outcomes[session]["signals"])}
        assert outcomes[session]["probability"] < 0.05 and votes["correction"]["vote"] == -1
        assert votes["correction"]["description"] == "Grace says that it failed: the wrong seat"
        assert rows(store, "select name from core.events where event_id = $id", id=votes["correction"]["evidence"][0]) == [
            {"name": "Grace"}]
        assert outcomes[other]["probability"] > 0.5 and "correction" not in outcomes[other]["signals"]
        [named] = rows(store, "select name, written_by from mart.names where family = $kind", kind=kind)
        assert named == {"name": "what we call it", "written_by": "Ada"}
        assert all("what we call it" in row["name"] for row in rows(
            store, "select name from mart.names where list_contains(kinds, $kind)", kind=kind))
        [held] = rows(store, "select checks from mart.rubrics where task_id = $task", task=rubric["task_id"])
        [after] = [each for each in json.loads(held["checks"]) if each["check_id"] == check["check_id"]]
        assert (after["weight"], after["description"]) == (2.5, "So it is.")
        assert (after["provenance"]["author"], after["provenance"]["was"]["weight"]) == ("Grace", check["weight"])
        [spoke] = [each for each in json.loads(held["checks"]) if each["kind"] == "spoke" and "added" in each["provenance"]]
        assert (spoke["role"], spoke["parameters"]) == ("gate", {"at_least": 2})
        assert spoke["provenance"]["added"] == f"{rubric['task_id']}/spoke" and spoke["provenance"]["author"] == "Ada"
        [held] = rows(store, "select checks from mart.rubrics where task_id = $task", task=last["task_id"])
        [rejected] = [each for each in json.loads(held["checks"]) if each["check_id"] == gate["check_id"]]
        assert (rejected["role"], rejected["provenance"]["accepted"]) == ("diagnostic", False)
        assert rejected["provenance"]["was"] == {"role": "gate"} and rejected["provenance"]["why"] == "no duty"
        reasons = {row["reason"] for row in rows(
            store, "select reason from mart.decisions where not kept and (subject in (select correction_id from "
            "core.corrections) or file_id in (select file_id from raw.files where format = 'correction'))")}
        assert reasons == {"corrected_again", "no_such_family", "no_such_check", "invalid_check",
                           "unknown_session", "malformed_correction",
                           "unreadable_record"}
        assert store.count("raw.quarantine") == 3
        assert not [name for name in rules.broken(store) if "correction" in name or "vanish" in name]
        assert rows(store, "select * from mart.decisions where stage = 'drift' and detail like '%correction%'") == []

