"""Exporters of rooms, without their consumers: what is written, what it holds, what it must not hold, and that it plays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from env_builder.exports import harbor, openenv, packages
from env_builder.exports.exporter import RoomExporter
from env_builder.exports.kit import Kit, kit_of
from env_builder.runtime.canonical import canonical
from tests.rooms import TASK, write_rewards, write_room

EXPORTERS = {each.name: each for each in (harbor.EXPORTER, packages.INSPECT, openenv.EXPORTER, packages.VERIFIERS)}
NAME = f"house-{TASK[:16]}"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    room = write_room(tmp_path / "out" / "environments" / "house")
    return kit_of(room, write_rewards(room))


def written(exporter: RoomExporter, out: Path, kit: Kit) -> dict[str, bytes]:
    """Files of an export, by their paths."""
    out.mkdir(parents=True)
    exporter.write(out, kit)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", ["inspect", "openenv", "verifiers"])
def test_a_package_can_be_built_and_says_what_it_needs(name: str, kit: Kit, tmp_path: Path) -> None:
    files = written(EXPORTERS[name], tmp_path / "export", kit)
    project = tomllib.loads(files["pyproject.toml"].decode())
    assert project["project"]["dependencies"][0].startswith(("inspect-ai==", "openenv==", "verifiers=="))
    assert project["build-system"]["build-backend"] == "hatchling.build"
    if name == "openenv":
        manifest = json.loads(files["openenv.yaml"])
        assert manifest["validation"]["capabilities"]["declared_task_count"] == {"train": 1}


def test_a_harbor_task_is_whole_and_hides_what_its_agent_must_not_see(kit: Kit, tmp_path: Path) -> None:
    files = written(harbor.EXPORTER, tmp_path / "export", kit)
    config = tomllib.loads(files[f"{NAME}/task.toml"].decode())
    assert config["verifier"]["environment_mode"] == "separate" and config["agent"]["user"] == 10002
    assert {side["network_mode"] for side in (config["environment"], config["verifier"]["environment"])} == {"no-network"}
    assert config["metadata"]["traceroom"]["digest"] == kit.digest
    dataset = tomllib.loads(files["dataset.toml"].decode())
    assert dataset["tasks"] == [{"name": f"traceroom/{NAME}", "digest": harbor.task_digest(tmp_path / "export" / NAME)}]
    inside = {path: data for path, data in files.items() if path.startswith(f"{NAME}/environment/")}
    agents = b"".join(data for path, data in inside.items() if path.endswith(".jsonl"))
    assert b"rubric_id" not in agents and b"Which door?" not in agents and b"Open the door." in agents
    assert b"Open the door." in files[f"{NAME}/instruction.md"]
    assert f"{NAME}/trajectory.json" not in files


def test_tasks_share_their_room_on_disk(kit: Kit, tmp_path: Path) -> None:
    tasks = kit.room / "tasks.jsonl"
    rows = [json.loads(tasks.read_text("utf-8"))]
    rows.append({**rows[0], "task_id": "u" * 64})
    rubric, steps = (json.loads((kit.grader / name).read_text("utf-8")) for name in ("rubrics.jsonl", "solutions.jsonl"))
    for path, row in ((kit.grader / "rubrics.jsonl", rubric), (kit.grader / "solutions.jsonl", steps)):
        path.write_text("".join(canonical({**row, "task_id": each["task_id"]}) + "\n" for each in rows), "utf-8")
    out = tmp_path / "export"
    files = written(harbor.EXPORTER, out, kit._replace(tasks=rows))
    other = f"house-{'u' * 16}"
    for side in ("environment", "tests"):
        world = f"{side}/room/world.jsonl"
        assert (out / NAME / world).stat().st_ino == (out / other / world).stat().st_ino
        assert files[f"{NAME}/{side}/task/tasks.jsonl"] != files[f"{other}/{side}/task/tasks.jsonl"]


def test_a_task_in_mid_conversation_comes_with_the_conversation_so_far(kit: Kit, tmp_path: Path) -> None:
    opening = [{"role": "system", "content": "Be kind."}, {"role": "assistant", "content": "Hello!"},
               {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "What is it?"},
               {"role": "user", "content": "Open the door."}]
    task = {**kit.tasks[0], "opening": opening}
    files = written(harbor.EXPORTER, tmp_path / "export", kit._replace(tasks=[task]))
    trajectory = json.loads(files[f"{NAME}/trajectory.json"])
    assert [(step["step_id"], step["source"], step["message"]) for step in trajectory["steps"]] == [
        (1, "system", "Be kind."), (2, "agent", "Hello!"), (3, "user", "Hi."), (4, "agent", "What is it?")]
    assert files[f"{NAME}/instruction.md"].startswith(b"Open the door.\n\n---")
    greeted = written(harbor.EXPORTER, tmp_path / "greeted", kit._replace(tasks=[{**task, "opening": opening[:3]}]))
    assert f"{NAME}/trajectory.json" not in greeted, "a greeting alone is no conversation"


def test_the_room_of_a_harbor_task_answers_its_tools_and_its_journal_is_graded(kit: Kit, tmp_path: Path) -> None:
    folder = tmp_path / "export" / NAME
    written(harbor.EXPORTER, tmp_path / "export", kit)
    for side, files in (("environment", ["tasks.jsonl"]), ("tests", ["tasks.jsonl", "rubrics.jsonl"])):  # as Dockerfiles do
        for name in files:
            place = folder / side / ("grader" if name == "rubrics.jsonl" else "room") / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes((folder / side / "task" / name).read_bytes())
    journal, place = tmp_path / "journal.json", os.path.relpath(tmp_path / "tools.sock", tmp_path)
    settings = {"TOOLS_SOCKET": place, "ROOM_JOURNAL": str(journal)}
    python = [sys.executable, "-I", "-S", "-B"]
    room = subprocess.Popen([*python, folder / "environment" / "harbor_room.py", "serve"], env=settings, cwd=tmp_path)
    try:
        while not (tmp_path / "tools.sock").exists():
            assert room.poll() is None
        (tmp_path / "grades").mkdir()
        grade = [*python, folder / "tests" / "harbor_grade.py", journal, tmp_path / "grades"]
        tools = [*python, folder / "environment" / "tools.py"]

        def ran(words: list[str | Path]) -> str:
            return subprocess.run(words, env=settings, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

        ran(grade)
        assert json.loads((tmp_path / "grades" / "reward.json").read_text()) == {"reward": 0.0}
        assert [json.loads(line)["name"] for line in ran([*tools, "list"]).splitlines()] == ["open_door", "read_sign"]
        assert ran([*tools, "say", "Which door?"]) == "The seventh, please.\n"
        assert json.loads(ran([*tools, "call", "open_door", '{"door": "7"}']))["state"] == "open"
        ran(grade)
        assert json.loads((tmp_path / "grades" / "reward.json").read_text()) == {"reward": 1.0}
        assert json.loads((tmp_path / "grades" / "findings.json").read_text())["digest"] == kit.digest
    finally:
        room.kill()
        room.wait()


def test_criteria_of_judges_go_out_as_files_wherever_they_stand(kit: Kit, tmp_path: Path) -> None:
    criteria = [{"name": "polite", "text": "It is polite.", "weight": 1.0, "choices": ["no", "yes"]}]
    judge = {
        "check_id": "j", "kind": "judge", "role": "score", "weight": 1.0, "description": "s",
        "parameters": {"criteria": criteria}}
    inner = {"kind": "judge", "parameters": {"criteria": criteria}}
    nested = {**judge, "check_id": "c", "kind": "combine", "parameters": {"how": "any", "checks": [inner]}}
    path = kit.grader / "rubrics.jsonl"
    rubric = json.loads(path.read_text("utf-8"))
    path.write_text(canonical({**rubric, "checks": [*rubric["checks"], judge, nested]}) + "\n", "utf-8")
    files = written(packages.VERIFIERS, tmp_path / "export", kit)
    found = [json.loads(data) for name, data in files.items() if "/criteria/" in name]
    assert found == [{"criteria": criteria}] * 2


def test_verl_always_has_rows_to_validate_on(kit: Kit, tmp_path: Path) -> None:
    """Where none are kept for it, verl would look for those of its own example, and not start."""
    files = written(packages.VERL, tmp_path / "export", kit)
    data = json.loads(files["config.yaml"])["data"]
    assert (data["train_files"], data["val_files"]) == ("train.parquet", "train.parquet")
    assert {"train.parquet"} == {name for name in files if name.endswith(".parquet")}
