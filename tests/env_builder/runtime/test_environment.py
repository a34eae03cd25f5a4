"""The room as a policy meets it: answers, acts, forks, limits, learning, grading by the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.records import Limits
from env_builder.runtime.world import Overlay, View, World
from tests.rooms import CLOSED, OPEN, TASK, write_room


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("out") / "environments" / "house")


@pytest.fixture
def env(directory: Path) -> Environment:
    found = Environment.load(directory)
    found.reset(TASK, seed=0)
    return found


def test_begins_with_what_the_user_said(directory: Path) -> None:
    observation = Environment.load(directory).reset(TASK, seed=0)
    assert observation.messages == [{"role": "user", "content": "Open the door."}]
    assert [tool["name"] for tool in observation.tools] == ["open_door", "read_sign"]
    assert observation.limits is not None and observation.limits.steps == 5


def test_answers_what_is_on_record_and_says_unknown_otherwise(env: Environment) -> None:
    assert env.call("read_sign", {"at": "gate"}) == ("Mind the gap\n — 雨", False, "recorded")
    unknown = env.call("read_sign", {"at": "roof"})
    assert (unknown.tier, unknown.is_error) == ("unknown", True)
    assert "gate" not in unknown.content, "who does a task is told nothing of what others asked"
    missing = env.call("close_door", {"door": "7"})
    assert missing.tier == "unknown" and "open_door, read_sign" in missing.content
    assert env.call("read_sign", ["gate"]).tier == "unknown"


def test_an_act_changes_the_world_once(env: Environment) -> None:
    assert env.call("open_door", {"door": "7"}).content == OPEN
    assert env.difference() == {"documents": {"door/7": OPEN}, "write_calls": []}
    assert env.call("open_door", {"door": "7"}).tier == "unknown"  # never seen: a door opened twice
    assert [row["tool"] for row in env.unknown_writes] == ["open_door"]


def test_rolls_back_to_any_step_as_if_what_came_after_had_not_been(env: Environment) -> None:
    env.call("read_sign", {"at": "roof"})
    hashes, steps = [env.state_hash()], [("open_door", {"door": "7"}), ("read_sign", {"at": "roof"})]
    for tool, arguments in steps:
        env.call(tool, arguments)
        hashes.append(env.state_hash())
    env.say("done")
    before, said_hash = list(env.journal), env.state_hash()
    env.finish()
    fork = env.fork()
    for n_steps in range(3, 0, -1):
        env.rollback(n_steps)
        assert env.state_hash() == hashes[n_steps - 1] and env.ended is None and list(env.journal) == before[:n_steps]
    for tool, arguments in steps:
        env.call(tool, arguments)
    env.say("done")
    assert list(env.journal) == before and env.state_hash() == said_hash == fork.state_hash()
    assert hashes[0] != hashes[1] == hashes[2] and fork.ended == "terminated"
    with pytest.raises(ValueError, match="4 steps cannot be rolled back to step 6"):
        env.rollback(6)
    env.reset(None)
    with pytest.raises(ValueError, match="open room"):
        env.rollback(0)


def test_forks_do_not_see_each_other(env: Environment) -> None:
    fork = env.fork()
    fork.call("open_door", {"door": "7"})
    fork.say("done")
    assert (env.difference()["documents"], env.journal) == ({}, ())
    assert fork.difference()["documents"] == {"door/7": OPEN}
    assert env.say("hello") == "The seventh, please."


def test_the_user_says_what_was_said_and_then_nothing(env: Environment) -> None:
    assert [env.say("which?"), env.say("and?")] == ["The seventh, please.", None]


def test_an_unknown_of_the_open_room_names_the_calls_that_share_most_with_it(tmp_path: Path) -> None:
    directory = write_room(tmp_path / "house")
    rows = [json.loads(line) for line in (directory / "recorded.jsonl").read_text("utf-8").splitlines()]
    sign = next(row for row in rows if row["tool"] == "read_sign")
    asked = [{"a": f"{n:03}", "by": "night" if n == 40 else "day", "z": "x"} for n in range(60)]
    rows += [sign | {"arguments": canonical(each)} for each in asked]
    (directory / "recorded.jsonl").write_text("".join(canonical(row) + "\n" for row in rows))
    unknown = Environment.load(directory)
    unknown.reset(None)
    told = unknown.call("read_sign", {"a": "010x", "by": "night", "z": "x"})
    assert told.tier == "unknown" and told.is_error
    assert told.content.endswith(": " + ", ".join(canonical(asked[n]) for n in (40, 11, 10)))


def test_ends_by_the_agent_or_by_a_limit(env: Environment) -> None:
    assert env.ended is None
    for _ in range(6):
        env.call("read_sign", {"at": "gate"})
    assert (env.ended, len(env.journal)) == ("truncated", 5)
    env.reset(TASK)
    env.finish()
    assert env.ended == "terminated"
    assert env.call("open_door", {"door": "7"}).is_error
    assert env.difference()["documents"] == {}


def test_an_open_room_learns_what_it_was_told(env: Environment) -> None:
    env.reset(None, at=None)
    assert env.call("read_sign", {"at": "roof"}).tier == "unknown"
    env.learn("read_sign", {"at": "roof"}, "No entry")
    assert env.call("read_sign", {"at": "roof"}) == ("No entry", False, "recorded")
    env.reset(TASK)
    assert env.call("read_sign", {"at": "roof"}).tier == "unknown"
    with pytest.raises(ValueError, match="open"):
        env.learn("read_sign", {"at": "roof"}, "No entry")


def test_what_an_open_room_was_told_outlasts_its_session_but_not_what_acts_made_of_it(env: Environment) -> None:
    env.manifest["starts_from"] = "reset"
    env.reset(None)
    env.call("read_sign", {"at": "roof"})
    env.learn("read_sign", {"at": "roof"}, "No entry")
    env.call("open_door", {"door": "9"})
    env.learn("open_door", {"door": "9"}, OPEN)
    env.call("open_door", {"door": "9"})
    env.learn("open_door", {"door": "9"}, "Error: open already")
    assert env.call("open_door", {"door": "9"}).content == "Error: open already"
    env.reset(None)
    assert env.call("read_sign", {"at": "roof"}).content == "No entry"
    assert env.call("open_door", {"door": "9"}).content == OPEN
    assert env.difference()["write_calls"] == [["open_door", '{"door":"9"}']]


@pytest.mark.parametrize(("day", "told", "kept"), [("01", False, False), ("01", True, True), ("02", False, True)])
def test_an_open_room_at_the_same_instant_begins_anew_what_was_only_played(
    env: Environment, day: str, told: bool, kept: bool
) -> None:
    env.reset(None, at="2026-01-01T00:00:00Z")
    assert env.call("open_door", {"door": "7"}).content == OPEN
    if told:
        env.learn("open_door", {"door": "7"}, OPEN)
    env.reset(None, at=f"2026-01-{day}T00:00:00Z")
    assert (env.call("open_door", {"door": "7"}).content == OPEN) != kept, "a door opened twice was never seen"


def test_a_call_that_changed_nothing_when_repeated_answers_so_again(env: Environment) -> None:
    env.manifest["starts_from"] = "reset"
    for second, told in (("once more", "unknown"), ("open", "recorded")):
        env.reset(TASK)
        env.reset(None)
        for answer in ("open", second):
            env.call("open_door", {"door": "9"})
            env.learn("open_door", {"door": "9"}, answer)
        assert env.call("open_door", {"door": "9"}).tier == told
    env.learn("open_door", {"door": "9"}, "jammed")
    assert env.call("open_door", {"door": "9"}).tier == "unknown", "it did change something"


def test_grades_by_replaying_the_journal_and_believes_none_of_it(directory: Path, env: Environment) -> None:
    state = {
        "check_id": "c", "kind": "state", "role": "gate", "weight": 1.0, "description": "the door is open",
        "parameters": {"accepted": [{"documents": {"door/7": OPEN}, "write_calls": []}]}, "provenance": {}}
    rewards = directory.parent.parent / "rewards" / "house"
    rewards.mkdir(parents=True, exist_ok=True)
    (rewards / "rubrics.jsonl").write_text(canonical({"rubric_id": "r", "task_id": TASK, "checks": [state]}) + "\n")
    graded = Environment.load(directory)
    graded.reset(TASK)
    assert graded.grade().reward == 0
    graded.call("open_door", {"door": "7"})
    assert graded.grade().reward == 1
    forged: list[Any] = [
        {"kind": "call", "tool": "read_sign", "arguments": {}, "content": OPEN, "tier": "recorded", "is_error": False},
        {"kind": "reward", "reward": 1}, {}, {"kind": "call"}, {"kind": "say", "content": 7}, None, "call", [1],
        {"kind": "call", "tool": "open_door", "arguments": {"door": float("nan")}}, {"kind": ["call"], "tool": {}}]
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    forged += [{"kind": "call", "tool": "open_door", "arguments": {"door": deep}}, {"kind": "say", "content": "\ud800"}]
    assert graded.grade_journal(TASK, forged).reward == 0
    steps = graded.shaped(TASK, [*forged, *graded.journal])
    assert steps is not None and steps[-1] == sum(steps) == 1 and len(steps) == len(forged) + 1
    assert Environment.load(directory, rewards=rewards).grade_journal(TASK, graded.journal).reward == 1
    assert env.grade_journal(TASK, graded.journal).reward in (None, 1)


def test_a_task_without_a_reward_is_unscored(tmp_path: Path) -> None:
    env = Environment.load(write_room(tmp_path / "environments" / "bare"))
    env.reset(TASK)
    assert env.grade() == (None, ())


def test_finds_its_rewards_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall = write_room(tmp_path / "environments" / "hall")
    grader = tmp_path / "rewards" / "hall"
    grader.mkdir(parents=True)
    (grader / "rubrics.jsonl").write_text("no rubric\n")
    monkeypatch.chdir(hall.parent)
    with pytest.raises(ValueError, match="Expecting value"):
        Environment.load("hall")
    monkeypatch.chdir(hall)
    with pytest.raises(ValueError, match="Expecting value"):
        Environment.load(".")


def test_arguments_that_cannot_be_written_down_are_nothing(env: Environment) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value in (float("nan"), float("inf"), deep, object()):
        result = env.call("open_door", {"door": value})
        assert (result.tier, result.is_error) == ("unknown", True) and env.difference() == {"documents": {}, "write_calls": []}
        assert env.journal[-1]["arguments"] is None
    assert env.grade().reward == env.grade_journal(env.tasks[0].task_id, env.journal).reward


@pytest.mark.parametrize("levels", [300, 600, 900])
def test_arguments_that_are_deep_and_can_be_written_down_are_answered(env: Environment, levels: int) -> None:
    deep: Any = "7"
    for _ in range(levels):
        deep = [deep]
    for tool, argument in (("open_door", "door"), ("read_sign", "at")):
        assert env.call(tool, {argument: deep}).tier == "unknown"
    assert env.grade().reward == env.grade_journal(env.tasks[0].task_id, env.journal).reward


def test_refuses_what_is_no_environment(tmp_path: Path, directory: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "something-else"}')
    with pytest.raises(ValueError, match="not an environment"):
        Environment.load(tmp_path)
    with pytest.raises(KeyError, match="no task"):
        Environment.load(directory).reset("nothing")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["set", "fork", "switch"]), st.integers(0, 3), st.integers(0, 9)), max_size=60))
def test_an_overlay_forks_like_a_copied_dict(steps: list[tuple[str, int, int]]) -> None:
    overlays, models = [Overlay()], [{}]
    current = 0
    for kind, key, value in steps:
        if kind == "set":
            overlays[current] = overlays[current].over({("c", str(key)): value})
            models[current][("c", str(key))] = value
        elif kind == "fork":
            overlays.append(overlays[current])
            models.append(dict(models[current]))
        else:
            current = key % len(overlays)
    assert [overlay.items() for overlay in overlays] == models


def test_a_world_is_looked_at_from_an_instant_and_a_session() -> None:
    def fact(value: str, since: str | None, until: str | None, session: str | None = None) -> dict[str, Any]:
        return {"class": "door", "key": "7", "value": value, "from": since, "to": until, "session": session}

    world = World([fact("old", None, "2031-02"), fact("new", "2031-03", None), fact("mine", None, None, "s1")], [])
    seen = {
        (at, session): world.document(("door", "7"), View(at, frozenset((session,))))
        for at in ("2031-01", "2031-02", "2031-03", None) for session in ("s0", "s1")
    }
    assert [seen[at, "s0"] for at in ("2031-01", "2031-02", "2031-03", None)] == ["old", None, "new", "old"]
    assert {seen[at, "s1"] for at in ("2031-01", "2031-02", "2031-03", None)} == {"mine"}
    assert json.loads(CLOSED)["state"] == "closed"
    room = EpisodeState(world, {}, View("2031-03", frozenset()))
    assert room.document(("door", "7")) == "new"
    twin = room.fork(View("2031-01", frozenset()))
    assert (twin.document(("door", "7")), room.document(("door", "7"))) == ("old", "new"), "nothing is remembered across views"


def test_one_of_many_sessions_that_saw_something_else_does_not_speak_for_the_others() -> None:
    def answer(content: str, session: str | None) -> dict[str, Any]:
        asked = {"tool": "look", "arguments": "{}", "after": [], "from": None, "to": None, "is_error": False}
        return {**asked, "content": content, "session": session}

    def seen_by(world: World, *sessions: str) -> str | None:
        row = world.answer(("look", "{}"), View(None, frozenset(sessions)), [])
        return row["content"] if row else None

    own = [answer("cut", "s1"), answer("odd", "s2"), answer("odd", "s3")]
    for rows in ([answer("all", None), *own], [*own[::-1], answer("all", None)]):
        world = World([], rows)
        assert seen_by(world) == seen_by(world, "s0") == seen_by(world, "s0", "s1") == seen_by(world, "s1", "s2") == "all"
        assert seen_by(world, "s1") == "cut" and seen_by(world, "s2", "s3", "s0") == seen_by(world, "s2", "s3", "s1") == "odd"
    assert seen_by(World([], own[:1]), "s0", "s1") == "cut", "better than nothing"


def test_tokens_are_a_limit_and_who_runs_the_model_knows_better(directory: Path) -> None:
    env = Environment.load(directory)
    observation = env.reset(TASK, limits=Limits(50, 60.0, tokens=40))
    assert observation.limits == Limits(50, 60.0, 40) and env.tokens == 4, "a quarter of what the opening holds, rounded up"
    env.say("a" * 40)
    after_words = env.tokens
    assert after_words == -(-(len("Open the door.") + 40 + len("The seventh, please.")) // 4) and env.ended is None
    twin = env.fork()
    env.call("read_sign", {"at": "g" * 80})
    assert env.tokens > 40 and env.ended == "truncated" and env.say("Hello?") is None
    env.rollback(1)
    assert env.tokens == after_words and env.ended is None and twin.tokens == after_words
    twin.used(39)
    assert twin.tokens == 39 and twin.ended is None
    twin.say("ab")
    assert twin.tokens == 40 and twin.ended == "truncated"


def test_a_model_may_say_the_users_words_and_no_others(env: Environment) -> None:
    asked: list[str] = []
    env.reword(lambda prompt: asked.append(prompt) or "The seventh one, if you please.")  # type: ignore[func-returns-value]
    assert env.say("Which?") == "The seventh one, if you please." and "Which?" in asked[0] and not env.user_left
    env.replay(TASK, env.journal)
    assert len(asked) == 1, "who replays a journal asks no model"
    env.rollback(0)
    env.reword(lambda prompt: "The 8th, please.")
    assert env.say("Which?") == "The seventh, please."
