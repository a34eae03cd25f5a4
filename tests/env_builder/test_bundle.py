"""The directory: same content, same bytes, wherever and whenever; what depends on what."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from env_builder import behaviour, bundle, world
from env_builder.audit import AuditReport
from env_builder.rooms import rows_of
from env_builder.runtime import Environment
from env_builder.users import scripts
from tests.lockers import Logged
from warehouse.records import Rubric, Task, Tool, empty, frame

LEFT = {"left": "not asked for"}


@pytest.fixture(scope="module")
def draft() -> bundle.Bundle:
    return drafted()


def drafted() -> bundle.Bundle:
    """Return a bundle of forty sessions of lockers that all share."""
    logged = Logged(4, 40, shared=True)
    built = world.build(logged.sessions, logged.turns, empty(Tool), {})
    tasks = frame(Task, [
        {"task_id": f"task-{session_id}", "service": "main", "family": "f", "slots": "{}", "goal": "look",
         "session_ids": [session_id], "segment_of": None, "derived_from": None, "starts_at": started_at,
         "succeeded_session_ids": [session_id], "split": "train", "difficulty": 0.5}
        for session_id, started_at in logged.sessions.select("session_id", "started_at").iter_rows()
    ])
    tools = frame(Tool, [
        {"service": "main", "tool": tool, "description": None, "input_schema": '{"type": "object"}', "declared": False,
         "annotations": None, "n_calls": 1} for tool in sorted(built.services["main"].programs)
    ])
    rubrics = frame(Rubric, [{
        "rubric_id": "r", "task_id": "task-s0001", "service": "main", "checks": "[]", "solution": '[{"say": "hello"}]'}])
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    return bundle.Bundle("main", "main", "shared", rows, tools, tasks, scripts(tasks, logged.turns), rubrics, 9, {}, [])


def files(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_same_content_gives_the_same_bytes_anywhere(draft: bundle.Bundle, tmp_path: Path) -> None:
    made = []
    for name in ("here", "somewhere/else"):
        room, grader = tmp_path / name / "environments" / "main", tmp_path / name / "rewards" / "main"
        made.append((bundle.write(draft, room, grader, LEFT), files(room), files(grader)))
    assert made[0] == made[1]
    manifest = json.loads(made[0][1]["manifest.json"])
    assert set(manifest["files"]) == set(made[0][1]) - {"manifest.json"}
    assert not any(str(tmp_path).encode() in content for content in made[0][1].values())


def test_nobody_else_may_look_into_the_room_or_the_graders_side(draft: bundle.Bundle, tmp_path: Path) -> None:
    room, grader = tmp_path / "environments" / "main", tmp_path / "rewards" / "main"
    bundle.write(draft, room, grader, LEFT)
    assert [stat.S_IMODE(place.stat().st_mode) for place in (room, grader)] == [0o700, 0o700]


def test_a_changed_reward_touches_nothing_of_the_room(draft: bundle.Bundle, tmp_path: Path) -> None:
    one = bundle.write(draft, tmp_path / "1" / "room", tmp_path / "1" / "grader", LEFT)
    without = draft._replace(rubrics=draft.rubrics.clear())
    other = bundle.write(without, tmp_path / "2" / "room", tmp_path / "2" / "grader", LEFT)
    assert files(tmp_path / "1" / "room") == files(tmp_path / "2" / "room")
    assert one.content_digest == other.content_digest
    assert one.rewards_digest != other.rewards_digest


def test_what_is_published_of_a_draft_is_what_would_be_written_anew(draft: bundle.Bundle, tmp_path: Path) -> None:
    room, grader = tmp_path / "room", tmp_path / "grader"
    bundle.write(draft, room, grader, LEFT)
    fewer = draft._replace(tasks=draft.tasks.head(3))
    audit = AuditReport([{"task_id": "task-s0001", "plays": []}, {"task_id": "gone", "plays": []}], {"format": "f"})
    published = bundle.publish(fewer, room, grader, audit, LEFT)
    anew = bundle.write_room(fewer, tmp_path / "anew", LEFT)
    assert published.content_digest == anew and files(room) == files(tmp_path / "anew")
    assert [json.loads(line)["task_id"] for line in (grader / "audit.jsonl").read_text("utf-8").splitlines()] == ["task-s0001"]
    assert bundle.stands(room, anew) and not bundle.stands(tmp_path / "nowhere", anew)
    assert bundle.copy_room(draft, room, tmp_path / "copy", LEFT) != anew
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700
    (room / "world.jsonl").write_text("{}", "utf-8")
    assert not bundle.stands(room, anew), "a room that was changed does not stand"


def test_a_changed_task_changes_the_digest(draft: bundle.Bundle, tmp_path: Path) -> None:
    one = bundle.write(draft, tmp_path / "1" / "room", tmp_path / "1" / "grader", LEFT)
    fewer = draft._replace(tasks=draft.tasks.head(3))
    assert bundle.write(fewer, tmp_path / "2" / "room", tmp_path / "2" / "grader", LEFT).content_digest != one.content_digest


def test_the_image_is_noted_without_changing_the_content(draft: bundle.Bundle, tmp_path: Path) -> None:
    room = tmp_path / "environments" / "main"
    before = bundle.write(draft, room, tmp_path / "rewards" / "main", LEFT)
    bundle.note(room, image={"base": "b", "image_id": "sha256:1"})
    manifest = json.loads((room / "manifest.json").read_text())
    assert manifest["image"] == {"base": "b", "image_id": "sha256:1"}
    assert manifest["content_digest"] == before.content_digest
    assert not list(room.glob("*.part"))


def test_what_is_written_can_be_played(draft: bundle.Bundle, tmp_path: Path) -> None:
    bundle.write(draft, tmp_path / "environments" / "main", tmp_path / "rewards" / "main", LEFT)
    env = Environment.load(tmp_path / "environments" / "main")
    assert len(env.tasks) == 40
    assert {tool["name"] for tool in env.tools} == set(draft.tools["tool"])
    assert all(task.limits.steps >= 36 for task in env.tasks)
    env.reset("task-s0001")
    assert env.grade().checks == () and env.grade().reward in (0, None)


def test_the_runtime_is_shipped_verbatim(draft: bundle.Bundle, tmp_path: Path) -> None:
    bundle.write(draft, tmp_path / "room", tmp_path / "grader", LEFT)
    shipped = {name: content for name, content in files(tmp_path / "room").items() if name.startswith("runtime/")}
    own = {f"runtime/{path.relative_to(bundle.RUNTIME).as_posix()}": path.read_bytes()
           for path in bundle.RUNTIME.rglob("*.py") if path.relative_to(bundle.RUNTIME).parts[0] not in bundle.SHIPPED}
    assert shipped == own
