"""Tasks that start midway: the world is where their prefix leads, and each is proven by replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder import bundle
from env_builder.exports import Kit
from env_builder.exports.kit import kit_of
from env_builder.runtime import Environment
from env_builder.starts import AFTER_ANSWER, BEFORE_FAILURE, KINDS, with_starts
from tests.rooms import OPEN, TASK, write_rewards, write_room

READ = {"tool": "read_sign", "arguments": {"at": "gate"}}
KNOCK = {"tool": "read_sign", "arguments": {"at": "roof"}}
OPENS = {"tool": "open_door", "arguments": {"door": "7"}}
DONE = {"say": "It is open."}
SOLUTION = [READ, {"say": "Which door?"}, OPENS, DONE]


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """Return a room whose solution reads, asks and opens; one session forgot to open, one knocked at the roof."""
    room = write_room(tmp_path / "environments" / "door")
    rewards = write_rewards(room)
    write_lines(rewards / "solutions.jsonl", [{"task_id": TASK, "steps": SOLUTION}])
    write_lines(rewards / "sessions.jsonl", [
        {"task_id": TASK, "session_id": "forgot", "probability": 0.1, "steps": [READ, READ, {"say": "Done."}]},
        {"task_id": TASK, "session_id": "good", "probability": 0.9, "steps": SOLUTION},
        {"task_id": TASK, "session_id": "knocked", "probability": 0.0, "steps": [READ, KNOCK, OPENS, DONE]},
        {"task_id": TASK, "session_id": "rushed", "probability": 0.0, "steps": [KNOCK, DONE]}])
    rewritten(room, rewards)
    return kit_of(room, rewards)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def rewritten(room: Path, rewards: Path) -> None:
    """Give both sides the digests that a run gives them."""
    (rewards / "rewards.json").write_text(json.dumps({"environment": room.name, "privacy": "none", "rewards_digest": ""}))
    bundle.rewrite(room, rewards, 1, 1)


def started(kit: Kit, tmp_path: Path, *kinds: str) -> tuple[Kit, dict[str, str]]:
    new, decisions = with_starts(kit, kinds, tmp_path / "with-starts")
    return new, dict(decisions.select("subject", "reason").iter_rows())


def prefixes(kit: Kit) -> dict[str, Any]:
    return {task["task_id"]: task["prefix"] for task in kit.tasks if "prefix" in task}


def played(kit: Kit, task_id: str, steps: list[dict[str, Any]]) -> float | None:
    environment = Environment.load(kit.room, kit.grader)
    environment.reset(task_id)
    for step in steps:
        _ = environment.say(step["say"]) if "say" in step else environment.call(step["tool"], step["arguments"])
    environment.finish()
    grade = environment.grade()
    assert grade == environment.grade_journal(task_id, environment.journal)
    return grade.reward


def test_a_task_starts_after_each_answer_that_leaves_something_to_do(kit: Kit, tmp_path: Path) -> None:
    new, reasons = started(kit, tmp_path, AFTER_ANSWER)
    assert list(prefixes(new).values()) == [[READ]]
    assert reasons == {f"{TASK} step 1": "after_answer", f"{TASK} step 3": "only_words_left"}
    (task_id,) = prefixes(new)
    task = next(task for task in new.tasks if task["task_id"] == task_id)
    assert (task["split"], task["session_ids"], task["derived_from"]) == ("train", ["s1"], TASK)
    assert played(new, task_id, SOLUTION[1:]) == 1.0 and played(new, task_id, []) == 0.0
    assert [row["task_id"] for row in new.tasks] == sorted(row["task_id"] for row in new.tasks)


def test_the_agent_sees_the_steps_before_its_own_and_the_world_is_where_they_lead(kit: Kit, tmp_path: Path) -> None:
    new, _ = started(kit, tmp_path, AFTER_ANSWER)
    (task_id,) = prefixes(new)
    environment = Environment.load(new.room, new.grader)
    opening, call, answer = environment.reset(task_id).messages
    assert opening == {"role": "user", "content": "Open the door."}
    assert call["tool_calls"][0]["function"] == {"name": "read_sign", "arguments": '{"at": "gate"}'}
    assert answer == {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "Mind the gap\n — 雨"}
    assert [row["tool"] for row in environment.journal] == ["read_sign"]
    assert environment.say("Which door?") == "The seventh, please."
    assert environment.call("open_door", {"door": "7"}).content == OPEN


def test_a_failed_session_starts_where_it_could_still_be_saved(kit: Kit, tmp_path: Path) -> None:
    new, reasons = started(kit, tmp_path, BEFORE_FAILURE)
    assert sorted(map(len, prefixes(new).values())) == [1, 3]
    assert reasons == {
        "forgot step 3": "before_failure", "knocked step 1": "before_failure", "rushed": "certain_from_the_start"}
    for task_id in prefixes(new):
        assert played(new, task_id, [OPENS, DONE]) == 1.0 and played(new, task_id, [DONE]) == 0.0


def test_a_start_has_the_same_id_in_every_export_and_stands_once(kit: Kit, tmp_path: Path) -> None:
    after, _ = started(kit, tmp_path, AFTER_ANSWER)
    both, _ = with_starts(kit, KINDS, tmp_path / "both")
    again, _ = with_starts(kit, KINDS, tmp_path / "again")
    assert prefixes(after).items() <= prefixes(both).items() and len(prefixes(both)) == 2
    assert both.digest == again.digest != kit.digest


def test_the_grader_makes_the_prefix_itself_whatever_the_journal_says(kit: Kit, tmp_path: Path) -> None:
    new, _ = started(kit, tmp_path, AFTER_ANSWER)
    (task_id,) = prefixes(new)
    environment = Environment.load(new.room, new.grader)
    forged = [{"kind": "call", **OPENS}]
    assert environment.grade_journal(task_id, forged).reward == 0.0
    assert environment.grade_journal(task_id, [*forged, {"kind": "call", **OPENS}]).reward == 1.0
    rewards = environment.shaped(task_id, [{"kind": "call", **READ}, {"kind": "call", **OPENS}])
    assert rewards is not None and len(rewards) == 2 and rewards[0] == 0.0


def test_an_older_runtime_is_renewed(kit: Kit, tmp_path: Path) -> None:
    (kit.room / "runtime" / "records.py").write_text("")
    new, _ = started(kit, tmp_path, AFTER_ANSWER)
    assert (new.room / "runtime" / "records.py").read_text() == (bundle.RUNTIME / "records.py").read_text()
