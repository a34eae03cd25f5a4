"""Episodes recorded as ATIF: what is written is read again, by our own reader and by the format's own models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime import Environment
from env_builder.runtime.trajectory import OWN, Recorder, journal
from extractors.inventory import SourceFile
from extractors.reading import read
from tests.rooms import OPEN, TASK, write_rewards, write_room

HARBOR = "harbor==0.25.0"
"""The package that ATIF's models come from."""


@cache
def _folder() -> Path:
    import tempfile

    room = write_room(Path(tempfile.mkdtemp()) / "environments" / "house")
    write_rewards(room)
    return room


@pytest.fixture
def env() -> Environment:
    return Environment.load(_folder())


def recorded(env: Environment, *moves: Any) -> Recorder:
    """Return a recorder after these moves: text is said, (tool, arguments) called, None ends, a list is a turn of moves."""
    recorder = Recorder(env)
    recorder.begin(env.reset(TASK).messages)
    for move in moves:
        if isinstance(move, list):
            recorder.turn("m-1", "let me see", {"prompt_tokens": 7, "completion_tokens": 2}, 1)
        for each in move if isinstance(move, list) else [move]:
            if each is None:
                recorder.finish()
            elif isinstance(each, str):
                recorder.say(each)
            else:
                recorder.call(*each)
    return recorder


WAY = (["Which door?"], [("open_door", {"door": "7"}), ("read_sign", {"at": "gate"})], ["It is open."], None)


def written(env: Environment, *moves: Any) -> dict[str, Any]:
    recorder = recorded(env, *moves)
    return recorder.trajectory("me", {"episode_id": "e1"}, env.grade(), env.shaped(TASK, env.journal))


def test_every_step_has_tier_latency_state_and_reward(env: Environment) -> None:
    told = written(env, *WAY)
    assert [step["source"] for step in told["steps"]] == ["user", "agent", "user", "agent", "agent"]
    assert [step["step_id"] for step in told["steps"]] == [1, 2, 3, 4, 5]
    results = told["steps"][3]["observation"]["results"]
    assert [result["source_call_id"] for result in results] == [
        call["tool_call_id"] for call in told["steps"][3]["tool_calls"]]
    assert results[0]["content"] == OPEN and results[0]["extra"]["tier"] == "recorded"
    moves = [told["steps"][1]["extra"]["say"], *(result["extra"] for result in results), told["steps"][4]["extra"]["say"],
             told["steps"][4]["extra"]["finish"]]
    assert all(move["latency_ms"] > 0 and len(move["state_hash"]) == 64 for move in moves)
    assert moves[1]["state_hash"] != moves[0]["state_hash"] and moves[4]["state_hash"] == env.state_hash()
    about = told["extra"][OWN]
    assert about["reward"] == 1.0 and [check["passed"] for check in about["checks"]] == [True, True, True]
    begun = env.replaying(TASK).grade("train").reward
    assert begun == 0.0 and sum(move["reward"] for move in moves) == pytest.approx(1.0 - 2 / 3)
    """The end's reward less the first potential: two of three gates hold at the beginning."""
    assert told["agent"]["tool_definitions"][0]["function"]["name"] == "open_door"
    assert told["final_metrics"] == {"total_prompt_tokens": 21, "total_completion_tokens": 6, "total_steps": 5}


MOVES = st.lists(st.recursive(
    st.none() | st.sampled_from(["hello", "", "bye"])
    | st.tuples(st.sampled_from(["open_door", "read_sign"]), st.sampled_from([{"door": "7"}, {"at": "gate"}, {}])),
    lambda inner: st.lists(inner, max_size=3), max_leaves=1) | st.lists(
        st.sampled_from(["hi", ("open_door", {"door": "7"}), ("read_sign", {"at": "roof"})]), max_size=4), max_size=6)


@given(MOVES)
def test_the_journal_is_read_back_from_the_trajectory(moves: list[Any]) -> None:
    env = Environment.load(_folder())
    recorder = Recorder(env)
    recorder.begin(env.reset(TASK).messages)
    for move in moves:
        if isinstance(move, list):
            recorder.turn()
        for each in move if isinstance(move, list) else [move]:
            if each is None:
                recorder.finish()
            elif isinstance(each, str):
                recorder.say(each)
            elif isinstance(each, tuple):
                recorder.call(*each)
    told = json.loads(json.dumps(recorder.trajectory("me", {"episode_id": "e"})))
    assert journal(told) == [dict(row) for row in env.journal]


def test_our_own_reader_reads_it(env: Environment, tmp_path: Path) -> None:
    told = written(env, *WAY)
    path = tmp_path / "trajectories.jsonl"
    path.write_text(json.dumps(told) + "\n" + json.dumps({**told, "session_id": "e2", "trajectory_id": "e2"}) + "\n")
    found = read(SourceFile(path, path.name))
    assert found.file.format == "atif" and found.decisions.filter(~pl.col("kept")).is_empty()
    events = found.events.filter(session_id="e1")
    assert events.filter(kind="message").select("role", "content").rows() == [
        ("user", "Open the door."), ("assistant", "Which door?"), ("user", "The seventh, please."),
        ("assistant", "It is open.")]
    assert events.filter(kind="call")["tool"].to_list() == ["open_door", "read_sign"]
    assert events.filter(kind="result").select("content", "is_error").rows()[0] == (OPEN, False)
    assert set(found.declarations["tool"]) == {"open_door", "read_sign"}


def test_a_room_apart_needs_a_witness() -> None:
    with pytest.raises(ValueError, match="witness"):
        Recorder(object())  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def harbor() -> Path:
    """Return a folder with the package alone: its models need pydantic and nothing else."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "traceroom" / HARBOR.replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-requires-python",
                            "--upgrade", "--target", folder, HARBOR], check=True, capture_output=True, text=True)
            (folder / "done").touch()
    return folder


@pytest.mark.slow
def test_the_models_of_the_format_take_it(env: Environment, harbor: Path, tmp_path: Path) -> None:
    ways: list[tuple[Any, ...]] = [WAY, (), (None,), ("a", "b"), ([],), ([("read_sign", {"at": "roof"}), "late words"], None)]
    refused = Recorder(env)
    refused.begin(env.reset(TASK).messages)
    refused.turn(n_asked=1)
    refused.refuse("fly", "not json", None, "no tool 'fly'")
    documents = [recorded(env, *way).trajectory("me", {"episode_id": str(n)}) for n, way in enumerate(ways)]
    documents.append(refused.trajectory("me", {"episode_id": "refused"}))
    path = tmp_path / "trajectories.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    code = ("import sys, json\nfrom harbor.models.trajectories.trajectory import Trajectory\n"
            "for line in open(sys.argv[1]):\n"
            "    given = json.loads(line)\n"
            "    assert Trajectory.model_validate(given).to_json_dict() == given, given\n"
            "try: Trajectory.model_validate({**given, 'more': 1})\n"
            "except ValueError: print('whole')\n")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(harbor)})
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
