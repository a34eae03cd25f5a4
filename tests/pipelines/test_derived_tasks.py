"""Tasks of commits that no session was about, and of hunks that are turned back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from env_builder.shell.recipe import RepositoryRecipe, Sites
from env_builder.shell.rooms import CodeRoom
from env_builder.shell.trials import Trials
from extractors.workspaces.changes import HostEvent
from extractors.workspaces.repository import Repository
from pipelines.building.code_rooms import _repository_tasks
from pipelines.building.code_trees import CodeTrees
from pipelines.building.derived_tasks import DerivedLimits, DerivedRows, DerivedTasks
from tests.extractors.workspaces.commits import repository_fixture
from tests.pipelines.test_code_tasks import RUNNER, scratch
from tests.workspaces import needs_namespaces

__all__ = ["scratch"]
RECIPE = RepositoryRecipe(command=("sh", "run.sh"), results="junit.xml", files=())
MANY = DerivedLimits(9, 9)


def lamp(*parts: str) -> str:
    """Return a file with parts far enough from each other to be hunks of their own."""
    return "".join(f"{part}\n" + "-\n" * 8 for part in parts)


COMMITS = (
    ("Light it", {"run.sh": RUNNER, "lamp.c": lamp("wick", "shade", "foot"), "tests/test_wick.txt": "wick\n"}),
    ("Burn oil in the lamp (#7)", {"lamp.c": lamp("wick", "oil", "shade", "foot"), "tests/test_oil.txt": "oil\n"}),
    ("Paint the foot red", {"lamp.c": lamp("wick", "oil", "shade", "red foot"), "tests/test_red.txt": "red foot\n"}),
    ('Revert "Paint the foot red"', {"lamp.c": lamp("wick", "oil", "shade", "foot"), "tests/test_red.txt": "foot\n"}),
    ("Hook it up and turn the knob down\n\nSigned-off-by: A <a@example.org>",
     {"lamp.c": lamp("hook", "wick", "oil", "shade", "foot", "knob"), "tests/test_hook.txt": "hook\n",
      "tests/test_knob.txt": "knob\n"}),
    ("v1.2", {"lamp.c": lamp("hook", "wick", "oil", "shade", "foot", "knob", "bulb"), "tests/test_bulb_glows.txt": "bulb\n"}))


repository = repository_fixture("lamp", *COMMITS)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """Run the tests of each tree once for all of them."""
    needs_namespaces()
    folder = tmp_path_factory.mktemp("trials")
    for each in (folder, folder.parent):
        each.chmod(0o755)
    return Trials(Sites(folder / "sites"), "namespaces", folder)


def derived(
    repository: Repository, trials: Trials, limits: DerivedLimits = MANY, *winners: int, events: tuple[HostEvent, ...] = (),
) -> DerivedRows:
    ids = list(repository.commits)
    return DerivedTasks(CodeTrees(repository), events, RECIPE, trials).rows({ids[each] for each in winners}, limits)


def test_other_commits_and_hunks_that_tests_notice_become_tasks(repository: Repository, trials: Trials) -> None:
    ids = list(repository.commits)
    made = derived(repository, trials)
    assert [(each.derived_from, each.winner, each.base_commit, each.session_id) for each in made.tasks] == [
        ("commit", ids[4], ids[3], None), ("commit", ids[1], ids[0], None), ("hunk", ids[5], ids[5], None),
        ("hunk", ids[4], ids[5], None), ("hunk", ids[4], ids[5], None)]
    assert [each.fail_to_pass for each in made.tasks] == [
        ["lamp::test_hook", "lamp::test_knob"], ["lamp::test_oil"], ["lamp::test_bulb_glows"], ["lamp::test_hook"],
        ["lamp::test_knob"]]
    assert [(each.subject.replace(ids[1], "1").replace(ids[5], "5"), each.reason) for each in made.decisions
            if not each.kept] == [
        ("5", "no_request"), (ids[3], "is_revert"), (ids[2], "reverted"), ("1 lamp.c:2", "same_as_task")]


def test_what_it_asks_for_does_not_say_who_made_it_or_which_pull_request(repository: Repository, trials: Trials) -> None:
    goals = [each.goal for each in derived(repository, trials).tasks]
    assert goals[:2] == ["Please make this change:\n\nHook it up and turn the knob down",
                         "Please make this change:\n\nBurn oil in the lamp"]
    assert goals[2] == "Something that worked is broken.\n\nIt shows in: bulb glows."
    assert goals[3].splitlines()[2:] == ["Hook it up and turn the knob down"]


def test_an_issue_that_a_commit_closes_is_what_it_asks_for(repository: Repository, trials: Trials) -> None:
    events = (HostEvent("pull_request.opened", {"number": 7, "title": "Oil", "body": "Closes #3"}, None),
              HostEvent("issues.opened", {"number": 3, "title": "It does not burn", "body": "The wick stays dark."}, None))
    made = derived(repository, trials, DerivedLimits(9, 0), events=events)
    assert made.tasks[1].goal == "Please resolve this issue:\n\nIt does not burn\n\nThe wick stays dark."


def test_a_pull_request_says_what_to_do_unless_the_message_says_more(repository: Repository, trials: Trials) -> None:
    few, more = (derived(repository, trials, DerivedLimits(9, 0), events=(
        HostEvent("pull_request.opened", {"number": 7, "title": title, "body": None}, None),)).tasks[1].goal
        for title in ("Merge commit from fork (#7)", "Let the lamp burn any oil"))
    assert few.endswith("\n\nBurn oil in the lamp") and more.endswith("\n\nLet the lamp burn any oil")


def test_winners_of_sessions_are_no_derived_tasks_but_their_hunks_may_be(repository: Repository, trials: Trials) -> None:
    made = derived(repository, trials, MANY, 1, 4)
    ids = list(repository.commits)
    assert [(each.derived_from, each.winner) for each in made.tasks] == [
        ("hunk", ids[5]), ("hunk", ids[4]), ("hunk", ids[4])]


def test_ids_are_the_same_whatever_else_is_tried_and_the_rest_is_named(repository: Repository, trials: Trials) -> None:
    few, many = derived(repository, trials, DerivedLimits(1, 1)), derived(repository, trials)
    names = {each.task_id: each for each in many.tasks}
    assert len(names) == 5 and all(names[each.task_id] == each for each in few.tasks)
    assert [(each.derived_from, each.winner) for each in few.tasks] == [
        ("commit", list(repository.commits)[4]), ("hunk", list(repository.commits)[5])]
    assert [each.subject for each in few.decisions if each.reason == "over_limit"] == ["lamp commit", "lamp hunk"]


def test_their_environment_starts_without_their_solutions_and_pays_them(
    repository: Repository, trials: Trials, scratch: Path,
) -> None:
    rows = [{**each.model_dump(), "started_at": None} for each in derived(repository, trials).tasks]
    tasks = _repository_tasks(repository, rows, {})
    room = CodeRoom("code-lamp", RECIPE, None, scratch / "draft")
    verified = room.verified(tasks)
    assert [each.reason for each in verified] == ["verified"] * 5
    place = scratch / "environments" / "code-lamp"
    room.write(verified, place, scratch / "rewards" / "code-lamp")
    env = Environment.load(place)
    assert sorted(str(task.derived_from) for task in env.tasks) == ["commit", "commit", "hunk", "hunk", "hunk"]
    splits = {task.task_id: task.split for task in env.tasks}
    assert len({splits[row["task_id"]] for row in rows if row["winner"] == rows[0]["winner"]}) == 1
    solutions = [json.loads(line) for line in (
        scratch / "rewards/code-lamp/solutions.jsonl").read_text("utf-8").splitlines()]
    for row in solutions:
        env.reset(row["task_id"])
        own = next(each for each in rows if each["task_id"] == row["task_id"])
        patterns = " ".join(f"-e {name.split('_')[1]}" for name in own["fail_to_pass"])
        assert env.call("shell", {"command": f"grep -rhx {patterns} lamp.c tests; git log --oneline | wc -l"}).content == "1"
        for step in row["steps"]:
            env.call(step["tool"], step["arguments"])
        env.finish()
        assert env.grade().reward == 1
