"""A program inside a room's container: what it can change, what it can find, and what a room that lies is worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder import image, layers
from env_builder.audit.tampering import TRIES, Tampered, tamper
from env_builder.process import start_process
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from tests.rooms import OPEN, TASK, write_room

SECRET = "the-sentence-of-a-check"


@pytest.fixture(scope="module")
def tampered(tmp_path_factory: pytest.TempPathFactory, base_image: str) -> Tampered:
    room = write_room(tmp_path_factory.mktemp("tampering") / "hall")
    made = image.build(room, base_image)
    assert made.image_id, made.skip_reason
    return tamper(room, TASK, [SECRET], made.image_id)


@pytest.mark.docker
@pytest.mark.parametrize("name", TRIES)
def test_a_program_inside_the_container_cannot(tampered: Tampered, name: str) -> None:
    assert tampered.tries[name] in ("PermissionError", "OSError"), f"{name}: {tampered.tries[name]}"


@pytest.mark.docker
def test_the_container_holds_nothing_of_the_grader(tampered: Tampered) -> None:
    assert tampered.findings == [] and tampered.holds


@pytest.mark.docker
def test_a_secret_that_is_there_is_found(tmp_path: Path, base_image: str) -> None:
    room = write_room(tmp_path / "hall")
    tools = room / "tools.jsonl"
    tools.write_text(tools.read_text("utf-8").replace("in words", SECRET), "utf-8")
    manifest = json.loads((room / "manifest.json").read_text("utf-8"))
    manifest["files"]["tools.jsonl"] = layers.digest(tools.read_bytes())
    (room / "manifest.json").write_text(json.dumps(manifest | {"content_digest": "0" * 64}), "utf-8")
    made = image.build(room, base_image)
    assert made.image_id, made.skip_reason
    found = tamper(room, TASK, [SECRET], made.image_id)
    assert found.findings == [f"/room/tools.jsonl: {SECRET}"] and not found.holds


def test_what_a_room_claims_is_worth_nothing(tmp_path: Path) -> None:
    room = write_room(tmp_path / "environments" / "hall")
    end = {"documents": {"door/7": OPEN}, "write_calls": []}
    checks = [{"check_id": "a", "kind": "state", "role": "gate", "weight": 1.0, "description": "",
               "parameters": {"accepted": [end]}}]
    grader = tmp_path / "rewards" / "hall"
    grader.mkdir(parents=True)
    rubric = {"rubric_id": "r", "task_id": TASK, "checks": checks}
    (grader / "rubrics.jsonl").write_text(canonical(rubric) + "\n", "utf-8")
    environment = Environment.load(room)
    looked = {"kind": "call", "tool": "read_sign", "arguments": {"at": "gate"}}
    lies = [looked | {"content": OPEN, "is_error": False, "tier": "recorded", "difference": end, "reward": 1.0},
            {"kind": "grade", "reward": 1.0, "checks": []}, {"kind": "finish", "reward": 1.0}]
    assert environment.grade_journal(TASK, lies).reward == 0.0
    done = {"kind": "call", "tool": "open_door", "arguments": {"door": "7"}, "content": "nothing happened", "is_error": True}
    assert environment.grade_journal(TASK, [done]).reward == 1.0, "nor can a room that lies take a reward away"


def test_a_room_of_its_own_serves_no_answer(tmp_path: Path) -> None:
    room = write_room(tmp_path / "environments" / "hall")
    with start_process(room, TASK) as served:
        told = [served.call(tool["name"], {"?": "?"}).content for tool in served.tools()]
        assert told and not any("gate" in text or '"7"' in text for text in told), "what others asked is told to nobody"
        assert "rubric" not in json.dumps(served.tools())
