"""An agent against a baseline: the interval, the file, the command for continuous integration, and the pytest plug-in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rollouts.baselines import compare, markdown, read_baseline, rewards_by_task, write_baseline
from tests.command_line import ROOT, environ
from tests.pipelines.conftest import Traceroom
from warehouse.errors import InputError

pytest_plugins = ("pytester",)
by_task = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=1, max_size=3))


def test_surely_worse_is_where_the_whole_interval_lies_below() -> None:
    before = {f"t{n}": [1.0] for n in range(20)}
    half = compare({task_id: [float(n % 2)] for n, task_id in enumerate(before)}, before)
    assert (half.before, half.now, half.difference) == (1.0, 0.5, -0.5)
    assert half.high is not None and half.high < 0 and half.is_worse(0.0) and not half.is_worse(0.9)
    one = compare({**before, "t0": [0.0]}, before)
    assert not one.is_worse(0.0), "one task of twenty may be chance"
    assert [change.task_id for change in one.worse] == ["t0"] and one.better == ()


def test_tasks_that_only_one_of_them_has_are_not_compared() -> None:
    comparison = compare({"a": [1.0], "b": [0.0]}, {"a": [0.0], "c": [1.0]})
    assert (comparison.n_tasks, comparison.n_shared, comparison.mean) == (2, 1, 0.5)
    assert (comparison.difference, comparison.low) == (1.0, None), "one task has no interval"
    assert compare({"a": [1.0]}, {"c": [1.0]}).difference is None and not compare({"a": [1.0]}, None).is_worse(0.0)


@given(by_task, by_task)
def test_the_interval_holds_the_difference_and_swapping_turns_it_round(
    now: dict[str, list[float]], before: dict[str, list[float]],
) -> None:
    one, other = compare(now, before), compare(before, now)
    if one.difference is not None and other.difference is not None:
        assert one.difference == pytest.approx(-other.difference) and one.n_shared == other.n_shared
        assert [change.task_id for change in one.worse] == [change.task_id for change in other.better]
    if one.low is not None and one.high is not None and one.difference is not None:
        assert one.low - 1e-6 <= one.difference <= one.high + 1e-6
    assert compare(now, now).worse == compare(now, now).better == ()


def test_a_baseline_is_read_as_it_was_written_and_anything_else_is_refused(tmp_path: Path) -> None:
    rewards = rewards_by_task({"task_id": task_id, "reward": reward} for task_id, reward in (
        ("b", 1.0), ("a", 0.5), ("a", None), ("b", 0.0)))
    assert rewards == {"a": [0.5], "b": [0.0, 1.0]}
    write_baseline(tmp_path / "new" / "b.json", rewards, {"policy": "p"})
    assert read_baseline(tmp_path / "new" / "b.json") == rewards
    for text in ("", "[]", '{"format": "other"}', '{"format": "traceroom-baseline/1", "tasks": {"a": ["x"]}}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match=r"bad\.json"):
            read_baseline(tmp_path / "bad.json")


def test_the_table_names_the_tasks_that_changed() -> None:
    text = markdown(compare({"a": [0.0], "b": [1.0]}, {"a": [1.0], "b": [1.0]}), {"a": "open | the door\nplease"})
    assert "| mean reward | 1.000 | 0.500 | -0.500 (-1.000 to +0.000) | 2 |" in text
    assert "| `a` | open \\| the door please | 1.000 | 0.000 |" in text and "Better" not in text


def test_the_command_fails_where_the_policy_is_worse(
    sample_environment: Path, tmp_path: Path, traceroom: Traceroom,
) -> None:
    (tmp_path / "idle.py").write_text("def policy(observation):\n    return None\n")
    base = ("test", sample_environment, "--tasks", "4", "--out", tmp_path / "rollouts")
    good = traceroom(*base, "--policy", "oracle", "--save", tmp_path / "b.json", "--summary", tmp_path / "s.md",
                     "--least", "0.9")
    assert good.returncode == 0, good.stderr
    assert "| mean reward | – | 1.000 |" in (tmp_path / "s.md").read_text("utf-8")
    idle = ("--policy", f"script:{tmp_path / 'idle.py'}", "--baseline", tmp_path / "b.json", "--json")
    bad = traceroom(*base, *idle)
    assert bad.returncode == 1 and "worse than the baseline by 1.000" in bad.stderr
    assert len(json.loads(bad.stdout)["worse"]) == 4
    assert traceroom(*base, *idle, "--tolerance", "1").returncode == 0
    assert traceroom(*base, "--policy", "oracle", "--baseline", tmp_path / "none.json").returncode == 2


AGENT = """
import json, pathlib, pytest
STEPS = {{row["task_id"]: row["steps"] for row in map(json.loads, pathlib.Path({solutions!r}).read_text().splitlines())}}

@pytest.mark.traceroom({environment!r}, tasks=3)
def test_agent(traceroom_episode):
    assert traceroom_episode.tools and traceroom_episode.messages
    for step in STEPS[traceroom_episode.task_id]{some}:
        if "say" in step:
            traceroom_episode.say(step["say"])
        else:
            traceroom_episode.call(step["tool"], step["arguments"])
"""


def test_the_plugin_runs_a_test_for_each_task_and_compares(
    sample_environment: Path, tmp_path: Path, pytester: pytest.Pytester,
) -> None:
    solutions = str(sample_environment.parent.parent / "rewards" / sample_environment.name / "solutions.jsonl")
    quiet = ("-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider")
    pytester.makepyfile(AGENT.format(solutions=solutions, environment=str(sample_environment), some=""))
    pytester.runpytest_subprocess(*quiet, "--traceroom-save", str(tmp_path / "b.json")).assert_outcomes(passed=3)
    pytester.makepyfile(AGENT.format(solutions=solutions, environment=str(sample_environment), some="[:0]"))
    failed = pytester.runpytest_subprocess(*quiet)
    failed.assert_outcomes(failed=3)
    failed.stdout.fnmatch_lines(["*the reward is 0.000, below 1:*"])
    compared = pytester.runpytest_subprocess(*quiet, "--traceroom-baseline", str(tmp_path / "b.json"))
    compared.assert_outcomes(passed=3)
    assert compared.ret == pytest.ExitCode.TESTS_FAILED
    compared.stdout.fnmatch_lines(["| mean reward | 1.000 | 0.000 | -1.000 *"])


def test_the_action_calls_the_command_with_what_it_was_given(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "deploy" / "github" / "action.yml").read_text("utf-8"))
    (step,) = action["runs"]["steps"]
    echo = tmp_path / "traceroom"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    given = {"ENVIRONMENT": "out/environments/a b", "POLICY": "oracle", "BASELINE": "b.json", "ARGUMENTS": "--group 4",
             "TRACEROOM": str(echo), "GITHUB_STEP_SUMMARY": "s.md"}
    assert set(step["env"]) | {"GITHUB_STEP_SUMMARY"} == set(given)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", step["run"]], capture_output=True, text=True, check=True,
                          env=environ(**given))
    assert done.stdout.splitlines() == [
        "test", "out/environments/a b", "--policy", "oracle", "--summary", "s.md", "--group", "4", "--baseline", "b.json"]
