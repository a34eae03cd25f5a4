"""Rollouts: policies play many tasks at once, and what they came to is kept whole, once, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder import image
from env_builder.runtime import Environment
from env_builder.runtime.trajectory import OWN, journal
from pipelines import playing
from pipelines.commands import inspecting
from pipelines.rollouts import datasets, policies, scheduling
from pipelines.rollouts.backends import Local
from pipelines.rollouts.kept import Kept, trajectories
from pipelines.rollouts.orders import Group, Job, advantages, ordered
from pipelines.rollouts.results import in_band, results, write
from pipelines.rollouts.scheduling import Episode, rollouts
from tests.command_line import ROOT, environ
from tests.endpoint import chatting
from tests.pipelines.conftest import Traceroom
from tests.rooms import OPEN, TASK, write_rewards, write_room
from tests.step_tables import all_steps, read_steps
from warehouse.errors import Busy, InputError, Missing, Unavailable

PACING = """
import os, time
def policy(seen):
    time.sleep({pause})
    {act}
    return "hello" if seen.n_turns < 2 else None
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "out" / "environments" / "house")
    write_rewards(made)
    return made


def script(folder: Path, text: str, name: str = "acts.py") -> str:
    path = folder / name
    path.write_text(text)
    return f"script:{path}"


def played(
    job: Job, folder: Path, n_groups: int | None = None, group: int = 1, n_seats: int = 2,
    deadline_s: float | None = None, task_ids: Sequence[str] = (TASK,), seed: int = 0,
) -> list[Any]:
    """Return what the async iterator gives, in order."""
    orders = ordered(job, policies.named(job).name, task_ids, n_groups, group, seed)

    async def go(kept: Kept) -> list[Any]:
        return [each async for each in rollouts(orders, backend, kept, deadline_s)]

    backend = Local(job, n_seats)
    try:
        with Kept(folder) as kept:
            return asyncio.run(go(kept))
    finally:
        backend.close()


def by_id(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["session_id"]: row for row in trajectories(folder)}


def timeless(value: Any) -> Any:
    """Without what the clock says."""
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in ("latency_ms", "seconds")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def test_the_oracle_earns_everything_and_the_same_command_adds_nothing(
    traceroom: Traceroom, sample_environment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rolled"
    command = ("rollout", sample_environment, "--policy", "oracle", "--group", "2", "--out", out, "--json")
    first = json.loads(traceroom(*command).stdout)
    n_tasks = len((sample_environment / "tasks.jsonl").read_text().splitlines())
    result = first["results"][0]
    assert (result["episodes"], result["mean_reward"], result["pass_1"], result["pass^2"]) == (2 * n_tasks, 1.0, 1.0, 1.0)
    assert first["groups"] == {"closed": n_tasks, "with_signal": 0, "by_deadline": 0}
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file() and path.suffix != ".parquet"}
    again = json.loads(traceroom(*command).stdout)
    assert again["played"] == 0 and again["results"] == first["results"]
    assert {path: path.read_bytes() for path in before} == before
    env = Environment.load(sample_environment)
    for row in trajectories(out):
        about = row["extra"][OWN]
        assert env.grade_journal(about["task_id"], journal(row)).reward == about["reward"] == 1.0
    bands = [json.loads(line) for line in (out / "difficulty.jsonl").read_text().splitlines()]
    assert len(bands) == n_tasks and {row["difficulty_band"] for row in bands} == {"mostly"}
    assert in_band(out, "oracle", "rarely", [row["task_id"] for row in bands]) == []
    steps = read_steps(out / "datasets")
    assert steps.filter(kind="result")["tier"].null_count() == 0 and steps.filter(kind="result")["state_hash"].null_count() == 0
    assert steps["episode_id"].n_unique() == 2 * n_tasks and steps["label_source"].unique().to_list() == ["rubric"]
    lines = sum(len(path.read_text().splitlines()) for path in (out / "datasets").glob("sft.*.jsonl"))
    assert lines == 2 * n_tasks


def test_rooms_apart_give_the_same_trajectories(room: Path, tmp_path: Path) -> None:
    moves = [{"say": "Which?"}, {"tool": "open_door", "arguments": {"door": "7"}}, {"tool": "fly", "arguments": {}},
             {"tool": "read_sign", "arguments": {"at": "gate"}}]
    policy = script(tmp_path, "".join(json.dumps(move) + "\n" for move in moves), "moves.jsonl")
    found = {}
    for on in ("process", "processes"):
        played(Job(str(room), None, policy, on), tmp_path / on)
        found[on] = timeless(by_id(tmp_path / on))
    assert found["process"] == found["processes"]
    (row,) = found["process"].values()
    assert row["extra"][OWN]["reward"] == 1.0 and row["extra"][OWN]["n_refused"] == 1
    assert [each["kind"] for each in journal(row)] == ["say", "call", "call", "finish"]
    assert row["agent"]["tool_definitions"][0]["function"]["description"].endswith("\u2028 😀")
    again = list(playing.graded_journals(room, None, tmp_path / "process" / "trajectories.jsonl", {}))
    assert [each["reward"] for each in again] == [1.0]


def test_known_ways_hold_whatever_names_an_episode_gives(sample_environment: Path, tmp_path: Path) -> None:
    task_ids = [json.loads(line)["task_id"] for line in (sample_environment / "tasks.jsonl").read_bytes().split(b"\n")[:4]]
    found = {}
    for on in ("process", "processes"):
        job = Job(str(sample_environment), None, "oracle", on, ("rebound", "shuffled"))
        played(job, tmp_path / on, task_ids=task_ids, seed=5)
        found[on] = timeless(by_id(tmp_path / on))
    assert found["process"] == found["processes"] and len(found["process"]) == 4
    env, n_renamed = Environment.load(sample_environment), 0
    for row in found["process"].values():
        about = row["extra"][OWN]
        n_renamed += "own" in json.dumps(row["steps"])
        assert about["reward"] == 1.0
        assert env.grade_journal(about["task_id"], journal(row), 5, ("rebound", "shuffled")).reward == 1.0
    assert n_renamed


def answers(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a model that asks, then makes two calls side by side, then tells."""
    said = [message for message in asked["messages"] if message["role"] == "assistant"]
    tools = {tool["function"]["name"] for tool in asked["tools"]}
    assert tools == {"open_door", "read_sign"}
    if not said:
        return {"content": "Which door?"}
    if len(said) == 1:
        assert asked["messages"][-1] == {"role": "user", "content": "The seventh, please."}
        return {"content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "open_door", "arguments": '{"door": "7"}'}},
            {"id": "b", "type": "function", "function": {"name": "read_sign", "arguments": "no json"}}]}
    assert [message.get("tool_call_id") for message in asked["messages"][-2:]] == ["a", "b"]
    assert asked["messages"][-2]["content"] == OPEN
    return {"content": "It is open."}


def test_a_model_plays_over_its_endpoint(room: Path, tmp_path: Path) -> None:
    with chatting(answers) as endpoint:
        endpoint.failures = [500, 429]
        played(Job(str(room), None, f"openai:m-1@{endpoint.url}", temperature=0.5), tmp_path / "model", group=3)
        assert {asked["temperature"] for asked in endpoint.asked} == {0.5}
        table = all_steps(datasets.source_of(tmp_path / "model", room))
        assert set(table.filter("loss_mask")["sampling"]) == {'{"temperature":0.5}'}
    (told,) = results((row["extra"][OWN] for row in trajectories(tmp_path / "model")), 3)
    assert (told["mean_reward"], told["pass^3"], told["episodes"]) == (1.0, 1.0, 3)
    for row in trajectories(tmp_path / "model"):
        agent = [step for step in row["steps"] if step["source"] == "agent"]
        assert [step["llm_call_count"] for step in agent] == [1, 1, 1] and agent[0]["model_name"] == "m-1"
        assert row["final_metrics"]["total_prompt_tokens"] == 1 + 3 + 6 and row["extra"][OWN]["ended"] == "terminated"
        refused = agent[1]["observation"]["results"][1]
        assert refused["extra"] == {"is_error": True, "refused": True, "arguments": "no json"}
    datasets.write(tmp_path / "model", room)
    assert not (tmp_path / "model" / "datasets" / "sft.train.jsonl").read_text()  # a call without an object as its arguments
    steps = read_steps(tmp_path / "model" / "datasets")
    assert steps.filter(role="assistant", kind="call")["policy_id"].unique().to_list() == ["m-1"]


def test_what_an_endpoint_refuses_is_tried_again_by_the_next_command(room: Path, tmp_path: Path) -> None:
    with chatting(answers) as endpoint:
        endpoint.failures = [400]
        job = Job(str(room), None, f"openai:m@{endpoint.url}")
        first = played(job, tmp_path / "two", group=2, n_seats=1)
        assert [type(each).__name__ for each in first] == ["Failed", "Episode"] and "refuses" in str(first[0].error)
        assert [type(each).__name__ for each in played(job, tmp_path / "two", group=2)] == ["Episode", "Group"]
        endpoint.failures = [400] * 99
        with pytest.raises(Unavailable, match="10 episodes in a row"):
            played(job, tmp_path / "none", group=30)


def test_a_conversation_that_grew_too_long_is_truncated(room: Path, tmp_path: Path) -> None:
    def filled(asked: dict[str, Any]) -> dict[str, Any]:
        endpoint.failures = [400]
        return {"content": "Which door?"}

    with chatting(filled) as endpoint:
        played(Job(str(room), None, f"openai:m@{endpoint.url}"), tmp_path / "long")
    (row,) = trajectories(tmp_path / "long")
    assert row["extra"][OWN]["ended"] == "truncated" and "refuses" in row["extra"][OWN]["note"]


def test_killed_midway_nothing_is_lost_and_nothing_twice(room: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    folder = room.parent.parent / "rollouts" / "house"
    file, halt = folder / "trajectories.jsonl", tmp_path / "halt"
    halt.touch()
    act = (f"while os.path.exists({str(halt)!r}) and os.path.exists({str(file)!r}) and "
           f"open({str(file)!r}, 'rb').read().count(b'\\n') >= 7: time.sleep(0.01)")  # so that it is killed before the end
    policy = script(tmp_path, PACING.format(pause=0, act=act))
    command = ["rollout", str(room), "--policy", policy, "--tasks", "20", "--group", "2", "--parallel", "4"]
    line = [sys.executable, "-m", "pipelines", *command]
    process = subprocess.Popen(line, cwd=ROOT, env=environ(), stderr=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or (file.exists() and file.read_bytes().count(b"\n") >= 7))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    halt.unlink()
    whole = file.read_bytes().splitlines(keepends=True)
    assert 7 <= len(whole) < 40
    file.write_bytes(b"".join(whole[:-1]) + whole[-1][:50])  # as after a loss of power: the last line is torn
    done = traceroom(*command, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ids = [json.loads(line)["session_id"] for line in file.read_bytes().splitlines()]
    assert len(ids) == len(set(ids)) == 40 and told["played"] == 40 - (len(whole) - 1)
    assert {json.loads(line)["session_id"] for line in whole[:-1]} <= set(ids)
    groups = [json.loads(line) for line in (folder / "groups.jsonl").read_bytes().splitlines()]
    assert sorted(each for row in groups for each in row["episode_ids"]) == sorted(ids) and len(groups) == 20


def until(holds: Callable[[], bool]) -> None:
    """Wait; what never comes is ended by the time that a test may take."""
    while not holds():
        time.sleep(0.01)


def test_one_writer_at_a_time(room: Path, tmp_path: Path) -> None:
    with Kept(tmp_path / "one"), pytest.raises(Busy, match="another rollout"):
        Kept(tmp_path / "one")


def test_a_group_closes_at_its_deadline_and_waits_for_nobody(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still until two of the three have ended; the third waits for the group to be closed."""
    kept = tmp_path / "late"
    policy = script(tmp_path, "import os, time\ndef policy(seen):\n"
                              f"    while seen.attempt == 1 and not os.path.getsize({str(kept / 'groups.jsonl')!r}):\n"
                              "        time.sleep(0.01)\n")
    ended = kept / "trajectories.jsonl"
    clock = SimpleNamespace(monotonic=lambda: 99.0 if ended.exists() and ended.read_bytes().count(b"\n") > 1 else 0.0)
    monkeypatch.setattr(scheduling, "time", clock)
    found = played(Job(str(room), None, policy), kept, group=3, n_seats=3, deadline_s=0.1)
    kinds = [type(each).__name__ for each in found]
    assert kinds == ["Episode", "Episode", "Group", "Episode"]
    group, late = found[2], found[3]
    assert (group.size, len(group.episode_ids), group.closed_by) == (3, 2, "deadline")
    assert [each.in_time for each in found if isinstance(each, Episode)] == [True, True, False]
    assert late.order.attempt == 1 and late.order.episode_id not in group.episode_ids
    assert len(by_id(tmp_path / "late")) == 3
    assert not played(Job(str(room), None, policy), tmp_path / "late", group=3)


def test_a_group_begins_from_one_state_and_tells_who_did_better(room: Path, tmp_path: Path) -> None:
    policy = script(tmp_path, "def policy(seen):\n    if not seen.n_turns and seen.attempt % 2:\n"
                              "        return {'tool': 'open_door', 'arguments': {'door': '7'}}\n")
    found = played(Job(str(room), None, policy), tmp_path / "group", group=4)
    (group,) = [each for each in found if isinstance(each, Group)]
    assert (group.rewards, group.advantages, group.signal) == ([0.0, 1.0, 0.0, 1.0], [-1.0, 1.0, -1.0, 1.0], True)
    moves = [row["steps"][1]["extra"]["finish"]["state_hash"] for row in by_id(tmp_path / "group").values() if
             row["extra"][OWN]["reward"] == 0.0]
    assert len(moves) == 2 and len(set(moves)) == 1


@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_advantages_are_centred_and_of_unit_spread(rewards: list[float | None]) -> None:
    found = advantages(rewards)
    scored = [each for each in found if each is not None]
    assert [each is None for each in found] == [reward is None for reward in rewards]
    assert sum(scored) == pytest.approx(0, abs=1e-6)
    spread = {reward for reward in rewards if reward is not None}
    if len(spread) > 1 and max(spread) - min(spread) > 1e-6:
        assert sum(each * each for each in scored) / len(scored) == pytest.approx(1)
    if len(spread) <= 1:
        assert not any(scored)


def test_a_lost_gate_ends_the_episode_where_that_is_asked_for(room: Path, tmp_path: Path) -> None:
    steps = [{"tool": "read_sign", "arguments": {"at": "roof"}}, {"tool": "open_door", "arguments": {"door": "7"}}]
    policy = script(tmp_path, json.dumps({"task_id": TASK, "steps": steps}) + "\n", "steps.jsonl")
    for prune in (True, False):
        played(Job(str(room), None, policy, prune=prune), tmp_path / str(prune))
    (cut,), (whole,) = by_id(tmp_path / "True").values(), by_id(tmp_path / "False").values()
    assert (cut["extra"][OWN]["ended"], cut["extra"][OWN]["pruned"], cut["extra"][OWN]["n_moves"]) == ("pruned", "call", 1)
    assert (whole["extra"][OWN]["ended"], whole["extra"][OWN]["n_moves"]) == ("terminated", 3)
    assert cut["extra"][OWN]["reward"] == whole["extra"][OWN]["reward"] == 0.0
    assert cut["session_id"] != whole["session_id"]


def test_recorded_sessions_are_replayed_attempt_by_attempt(room: Path, tmp_path: Path) -> None:
    played(Job(str(room), None, "replay"), tmp_path / "replay", group=3)
    rows = sorted(by_id(tmp_path / "replay").values(), key=lambda row: row["extra"][OWN]["attempt"])
    assert [row["extra"][OWN]["reward"] for row in rows] == [1.0, 0.0, 1.0]
    (told,) = results((row["extra"][OWN] for row in rows), 2)
    assert (told["pass_1"], told["pass^2"], told["mean_reward"]) == (0.666667, 0.333333, 0.666667)


def test_the_list_of_tasks_tells_who_succeeded_how_often(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = room.parent.parent / "rollouts" / room.name
    played(Job(str(room), None, "replay"), folder, group=2)
    with Kept(folder) as kept:
        write(folder, kept.episodes)
    inspecting.tasks(room, json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert {name: row["rollouts"][0][name] for name in ("policy", "n", "n_succeeded")} == {
        "policy": "replay", "n": 2, "n_succeeded": 1}
    inspecting.tasks(room)
    assert "replay: 1 of 2" in capsys.readouterr().err
    assert in_band(folder, "replay", "rarely", [TASK]) == [] and in_band(folder, "other", "rarely", [TASK]) == [TASK]


def test_ids_hang_on_what_is_played_and_on_nothing_else(room: Path) -> None:
    job = Job(str(room), None, "oracle")
    ids = [order.episode_id for order in ordered(job, "oracle", [TASK], 3, 2, 0)]
    assert len(set(ids)) == 6
    assert ids == [order.episode_id for order in ordered(job._replace(on="processes"), "oracle", [TASK], 3, 2, 0)]
    assert ids[2:] == [order.episode_id for order in ordered(job, "oracle", [TASK], 2, 2, 1)]
    for other, name in ((job._replace(perturbations=("faults",)), "oracle"), (job, "replay")):
        assert not set(ids) & {order.episode_id for order in ordered(other, name, [TASK], 3, 2, 0)}


@pytest.mark.parametrize(("policy", "says"), [
    ("gpt", "no policy 'gpt'.*openai:MODEL@URL, oracle, replay"), ("openai:m", "names no endpoint"),
    ("script:nowhere.py", "no such script")])
def test_a_policy_that_is_none_is_one_sentence(
    room: Path, policy: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACEROOM_MODEL_URL", raising=False)
    with pytest.raises((InputError, Missing), match=says):
        policies.named(Job(str(room), None, policy))


def test_a_script_that_breaks_is_one_sentence(room: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    policy = script(tmp_path, "def policy(seen):\n    return {'say': 'a', 'tool': 'b'}\n")
    done = traceroom("rollout", room, "--policy", policy)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "1 episodes could not be played" in done.stderr and "is no move" in done.stderr


@pytest.mark.docker
@pytest.mark.slow
def test_containers_give_the_same_trajectories(room: Path, base_image: str, tmp_path: Path) -> None:
    result = image.build(room, base_image)
    manifest = json.loads((room / "manifest.json").read_text())
    (room / "manifest.json").write_text(json.dumps(manifest | {"image": {"base": result.base, "image_id": result.image_id}}))
    for on in ("process", "containers"):
        played(Job(str(room), None, "oracle", on), tmp_path / on, group=3)
    assert timeless(by_id(tmp_path / "process")) == timeless(by_id(tmp_path / "containers"))


def test_without_an_image_no_containers(room: Path) -> None:
    with pytest.raises(InputError, match="no image"):
        Local(Job(str(room), None, "oracle", "containers"), 1)


@pytest.mark.slow
def test_a_ray_worker_that_dies_costs_nothing(room: Path, ray_python: Path, tmp_path: Path) -> None:
    """Two workers on a cluster of this machine; one is killed in the middle of an episode."""
    died, seen = tmp_path / "died", tmp_path / "seen"
    act = (f"open({str(seen)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
           f"    if seen.n_turns == 1 and not os.path.exists({str(died)!r}):\n"
           f"        open({str(died)!r}, 'w').close()\n        os.kill(os.getpid(), 9)")
    policy = script(tmp_path, PACING.format(pause=0.05, act=act))
    packages = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [ray_python, "-m", "pipelines", "rollout", room, "--policy", policy, "--tasks", "10", "--group", "2",
         "--executor", "ray", "--parallel", "2", "--json"], capture_output=True, text=True, check=False, timeout=300,
        cwd=tmp_path, env=environ() | {"PYTHONPATH": os.pathsep.join([str(ROOT), *packages])})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert died.exists() and len(set(seen.read_text().split())) >= 3
    folder = Path(told["rollouts"])
    ids = [json.loads(line)["session_id"] for line in (folder / "trajectories.jsonl").read_bytes().splitlines()]
    assert len(ids) == len(set(ids)) == 20 == told["played"] and told["groups"]["closed"] == 10
    played(Job(str(room), None, policy), tmp_path / "here", n_groups=10, group=2)
    assert timeless(by_id(folder)) == timeless(by_id(tmp_path / "here"))
