"""What others bring: OpenEnv's client and its validator, Gymnasium's checker, an MCP client that is not the official one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from env_builder.process import runtime_command
from env_builder.runtime import Environment
from tests.conftest import ROOT, traceroom
from tests.peers import with_openenv, with_package
from tests.rooms import OPEN, TASK, write_room

HERE = Path(__file__).parent


@contextlib.contextmanager
def served(room: Path, *options: str) -> Iterator[str]:
    """`traceroom serve` as a process; the URL that it says it answers at."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines", "serve", str(room), "--port", "0", *options], cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    try:
        match = next(match for line in process.stderr if (match := re.search(r"http://\S+", line)))
        yield match.group()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=200)
    finally:
        process.kill()
        process.communicate()


def last_line(*line: str | Path) -> Any:
    """Return what a script says on its last line, as JSON."""
    done = subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=500, check=False, cwd="/")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_openenv_validates_the_server_and_its_client_earns_what_the_grader_gives(
    sample_environment: Path, tmp_path: Path,
) -> None:
    python, kept = with_openenv(), tmp_path / "kept.jsonl"
    rewards = sample_environment.parent.parent / "rewards" / sample_environment.name
    solution = json.loads((rewards / "solutions.jsonl").read_text("utf-8").splitlines()[0])
    with served(sample_environment, "--openenv", "--journals", str(kept), "--episodes", "8") as url:
        report = subprocess.run(
            [python.parent / "openenv", "validate", "--url", url], capture_output=True, text=True, timeout=300, check=False)
        assert report.returncode == 0 and report.stdout.count("PASS") == 7, report.stdout
        plays = {"task_id": solution["task_id"], "steps": solution["steps"], "sessions": 8}
        played = last_line(python, HERE / "openenv_client.py", url, json.dumps(plays))
        beyond = last_line(python, HERE / "openenv_client.py", url, json.dumps({**plays, "sessions": 12}))
    task = next(task for task in Environment.load(sample_environment).tasks if task.task_id == solution["task_id"])
    for one in played:
        assert (one["rewards"], one["done"], one["wrong"]) == ([1.0, 1.0], True, True)
        assert one["messages"] == [dict(message) for message in task.opening] and one["tools"]
        assert one["state"]["task_id"] == task.task_id and one["state"]["step_count"] == len(solution["steps"]) + 1
    assert 1 <= len([one for one in beyond if "at capacity" in one.get("error", "").lower() or "error" in one]) <= 4
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    assert len(rows) >= 16 and {row["task_id"] for row in rows} == {task.task_id}
    graded = traceroom("grade", sample_environment, kept)
    assert graded.returncode == 0, graded.stderr


def test_a_model_does_not_answer_to_openenv(tmp_path: Path) -> None:
    room = write_room(tmp_path / "hall")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "serve", str(room), "--openenv", "--ask"], cwd="/", capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEROOM_MODEL": "m", "TRACEROOM_MODEL_URL": "http://[::1]:9"},
        check=False)
    assert done.returncode == 2 and "cannot let a model answer" in " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_a_third_party_client_of_mcp_plays_an_episode(kind: str, tmp_path: Path) -> None:
    python, room = with_openenv(), write_room(tmp_path / "hall")
    with contextlib.ExitStack() as stack:
        target = ([*runtime_command(room), "--task", TASK] if kind == "stdio"
                  else [stack.enter_context(served(room, "--task", TASK))])
        results = last_line(python, HERE / "fastmcp_client.py", kind, *target)
    assert results["tools"] == ["open_door", "read_sign", "say", "finish"]
    assert (results["read"], results["opened"]) == ("Mind the gap\n — 雨", json.loads(OPEN))
    assert "unknown" in results["failed"]


GYMNASIUM = """
import json, sys, warnings
warnings.simplefilter("error")
sys.path.append(sys.argv[1])
import gymnasium
from gymnasium.utils.env_checker import check_env
env = gymnasium.make("env_builder.gymnasium_env:traceroom/Room-v0", environment=sys.argv[2], render_mode="ansi")
check_env(env.unwrapped)
solution = json.loads(sys.argv[3])
env.reset(options={"task_id": solution["task_id"]})
for step in solution["steps"]:
    *_, info = env.step(step["say"] if "say" in step else json.dumps(step))
seen, reward, terminated, truncated, info = env.step(json.dumps({"finish": True}))
drawn = [env.reset(seed=5)[1]["task_id"] for _ in range(2)]
print(json.dumps([reward, terminated, truncated, info["scored"], drawn[0] == drawn[1]]))
"""


@pytest.mark.slow
def test_gymnasium_checks_the_environment_and_a_known_solution_earns_1(sample_environment: Path) -> None:
    rewards = sample_environment.parent.parent / "rewards" / sample_environment.name
    solution = (rewards / "solutions.jsonl").read_text("utf-8").splitlines()[0]
    python = with_package("gymnasium==1.4.0")
    assert last_line(python, "-c", GYMNASIUM, ROOT, sample_environment, solution) == [1.0, True, False, True, True]


def test_without_gymnasium_the_hint_is_said() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import env_builder.gymnasium_env"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "gymnasium is not installed; install it beside Traceroom" in done.stderr
