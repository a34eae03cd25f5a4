"""The stage `code_rooms`: an environment of a repository, of any language whose runner writes JUnit XML."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.shell.recipe import RepositoryRecipe
from env_builder.shell.rooms import CodeRoom, RepositoryTask, VerifiedTask, winners_split
from extractors.workspaces.repository import Repository
from pipelines.building.code_trees import CodeTrees, TaskStart
from tests.pipelines.test_code_tasks import repository, scratch

__all__ = ["repository", "scratch"]
RECIPE = RepositoryRecipe(command=("sh", "run.sh"), results="junit.xml", files=())
SOLVED = "wick\noil\n\nshade\n"
MEASURED = [{"tool": "test", "n_calls": 9, "n_timed": 9, "latency_ms": [5000.0] * 21, "fault_rate": 1.0,
             "faults": [{"content": ["no runner is free"], "share": 1.0}]}]


def task(repository: Repository, **sessions: str) -> RepositoryTask:
    """Return the task of the lamp's oil, and what sessions left of lamp.c."""
    ids = list(repository.commits)
    candidate = CodeTrees(repository).candidate(TaskStart(ids[1], {}, ids[2]))
    assert candidate is not None
    left = {name: {"lamp.c": ChangedFile(text.encode(), 0o100644)} for name, text in sessions.items()}
    return RepositoryTask("oil", "fix", "2026-03-02T08:00:00+00:00", "It needs oil", ["thanks"], "train", ids[2], candidate,
                          ("lamp::test_oil",), ("lamp::test_wick",), left)


def room(repository: Repository, scratch: Path, **sessions: str) -> tuple[Path, list[VerifiedTask]]:
    made = CodeRoom("code-lamp", RECIPE, None, scratch)
    verified = made.verified([task(repository, **sessions)])
    made.write(verified, scratch / "environments" / "code-lamp", scratch / "rewards" / "code-lamp", MEASURED, "on")
    return scratch / "environments" / "code-lamp", verified


def test_a_repository_becomes_an_environment_that_pays_for_the_tests(repository: Repository, scratch: Path) -> None:
    place, verified = room(repository, scratch, right=SOLVED, wrong="wick\n\nshade\nrope\n", broken="oil\n")
    assert [each.reason for each in verified] == ["verified"]
    assert [(each.session_id, each.resolved) for each in verified[0].verdicts] == [
        ("broken", False), ("right", True), ("wrong", False)]
    env = Environment.load(place)
    assert [message["content"] for message in env.reset("oil").messages] == ["It needs oil"]
    assert (env.grade().reward, env.grade("train").reward) == (0, pytest.approx(0.5 * (0.1 + 0.9 / 2)))
    assert "[exit code" not in env.call("shell", {"command": "sed -i 's/^wick$/wick\\noil/' lamp.c && git diff --stat"}).content
    assert env.call("open_pr", {"title": "Burn oil", "body": ""}).content == "opened pull request 1: Burn oil"
    env.finish()
    assert (env.grade().reward, env.grade("train").reward) == (1, 1)
    assert env.grade_journal("oil", env.journal).reward == 1


@pytest.mark.parametrize("command", [
    "rm tests/test_wick.txt", "echo 'cp tests/all.xml junit.xml' > run.sh", "echo wick > tests/test_oil.txt",
    "echo '<testsuite><testcase classname=\"lamp\" name=\"test_oil\"/><testcase classname=\"lamp\" name=\"test_wick\"/>"
    "</testsuite>' > junit.xml", "ln -sf /etc/passwd lamp.c", "echo > conftest.py"])
def test_what_only_looks_solved_is_not_paid(repository: Repository, scratch: Path, command: str) -> None:
    place, _ = room(repository, scratch)
    env = Environment.load(place)
    env.reset("oil")
    env.call("shell", {"command": command})
    env.finish()
    assert env.grade().reward == 0 and (env.grade("train").reward or 0) <= 0.5


def test_a_known_solution_that_is_not_paid_makes_no_task(repository: Repository, scratch: Path) -> None:
    made = CodeRoom("code-lamp", RECIPE, None, scratch)
    wrong = task(repository)._replace(fail_to_pass=("lamp::test_rope",))
    assert [(each.reason, each.holds) for each in made.verified([wrong])] == [("known_solution_not_paid", False)]


def test_tests_that_pass_in_one_order_alone_run_in_it(repository: Repository, scratch: Path) -> None:
    ordered = replace(RECIPE, command=("sh", "-c", 'test "${TRACEROOM_ORDER:-0}" != 2 && sh run.sh'))
    rows = [CodeRoom("code-lamp", recipe, None, scratch / str(n)).verified([task(repository)])[0] for n, recipe in enumerate(
        (RECIPE, ordered))]
    assert [(each.reason, each.row["undisturbed"]) for each in rows] == [("verified", False), ("verified", True)]


def test_tools_take_and_fail_as_long_and_as_often_as_they_did(repository: Repository, scratch: Path) -> None:
    place, _ = room(repository, scratch)
    env = Environment.load(place)
    env.reset("oil", perturbations=["latency", "faults"])
    assert env.call("test", {}).content == "no runner is free" and env.journal[-1]["latency_ms"] == 5000
    assert json.loads((place / "manifest.json").read_text("utf-8"))["privacy"] == "on"
    env.reset("oil")
    assert "no runner" not in env.call("test", {}).content


def test_the_same_tasks_give_the_same_bytes(repository: Repository, scratch: Path) -> None:
    digests = []
    for name in ("one", "other"):
        (scratch / name).mkdir(mode=0o755)
        place, _ = room(repository, scratch / name)
        digests.append([json.loads((place / "manifest.json").read_text("utf-8"))["content_digest"],
                        json.loads((scratch / name / "rewards/code-lamp/rewards.json").read_text("utf-8"))["rewards_digest"]])
    assert digests[0] == digests[1]


def test_only_what_some_task_sees_of_pull_requests_is_in_the_environment(repository: Repository, scratch: Path) -> None:
    def row(number: int, title: str, since: str, until: str | None = None) -> dict[str, Any]:
        return {"class": "pull_request", "number": number, "from": since, "to": until,
                "value": {"number": number, "title": title, "comments": []}}

    host = [row(1, "As it was", "2026-03-01T00:00:00+00:00", "2026-03-02T08:00:00+00:00"),
            row(1, "As it is", "2026-03-02T08:00:00+00:00", "2026-03-02T08:00:00.500000+00:00"),
            row(1, "As it became", "2026-03-02T08:00:00.500000+00:00"), row(2, "The fix", "2026-03-02T09:00:00+00:00")]
    made = CodeRoom("code-lamp", RECIPE, None, scratch, host)
    made.write(made.verified([task(repository)]), scratch / "environments" / "code-lamp", scratch / "rewards" / "code-lamp")
    stored = (scratch / "environments/code-lamp/apps/code/host.jsonl").read_text("utf-8")
    assert [json.loads(line)["value"]["title"] for line in stored.splitlines()] == ["As it is"]
    env = Environment.load(scratch / "environments" / "code-lamp")
    env.reset("oil")
    env.call("comment", {"number": 1, "body": "On it."})
    env.call("write", {"path": "lamp.c", "content": SOLVED})
    assert env.call("open_pr", {"title": "Burn oil", "body": ""}).content == "opened pull request 2: Burn oil"
    env.finish()
    assert (env.grade().reward, env.grade("train").reward) == (1, 1), "what is written on them is not penalised"
    assert env.grade_journal("oil", env.journal).reward == 1


def test_tasks_of_one_change_are_on_one_side() -> None:
    winners = [f"{n:08x}" + "0" * 32 for n in range(20)]
    splits = winners_split([*winners, *winners])
    assert set(splits.values()) == {"train", "validation", "held_out"}
    assert winners_split(reversed(winners)) == splits
