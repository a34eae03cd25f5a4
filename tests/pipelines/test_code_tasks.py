"""The stage `code_tasks`: recipes of repositories, and tasks of the sessions about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extractors.configuration import CodeRepository
from extractors.workspaces.repository import Repository
from pipelines.building.code_tasks import _CodeRows
from pipelines.building.code_trees import CodeTrees, TaskStart
from tests.extractors.workspaces.commits import repository_fixture
from tests.workspaces import needs_namespaces

RUNNER = """\
echo '<testsuite>' > junit.xml
for test in tests/*.txt; do
    grep -qxf "$test" lamp.c && body='/>' || body='><failure/></testcase>'
    echo "<testcase classname=\\"lamp\\" name=\\"$(basename "$test" .txt)\\"$body" >> junit.xml
done
echo '</testsuite>' >> junit.xml
"""
COMMITS = (
    ("Light the lamp", {"run.sh": RUNNER, "lamp.c": "wick\n\nshade\n", "tests/test_wick.txt": "wick\n"}),
    ("Describe the lamp", {"README.md": "A lamp.\n"}),
    ("Burn oil (#7)", {"lamp.c": "wick\noil\n\nshade\n", "tests/test_oil.txt": "oil\n"}),
    ("Rename the shade", {"lamp.c": "wick\noil\n\nscreen\n"}))


repository = repository_fixture("lamp", *COMMITS)


def session(repository: Repository, session_id: str, at: int, winner: int | None, **more: Any) -> dict[str, Any]:
    ids = list(repository.commits)
    return {"session_id": session_id, "repository": "lamp", "commit_id": ids[at], "dirty": "{}", "pull_request": 7,
            "edited": [], "winner": None if winner is None else ids[winner], "words": ["It needs oil (#7)", "thanks"], **more}


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    needs_namespaces()
    tmp_path.chmod(0o755)
    return tmp_path


def rows(repository: Repository, scratch: Path, command: str, *sessions: dict[str, Any]) -> _CodeRows:
    made, ids = _CodeRows(), list(repository.commits)
    outcomes = {ids[2]: [{"lamp::test_wick": "passed", "lamp::test_oil": "passed"}]}
    given = CodeRepository(path="lamp", command=command)
    made.add(repository, list(sessions), outcomes, given, scratch / "sites", scratch)
    return made


def test_sessions_about_a_change_with_tests_become_tasks(repository: Repository, scratch: Path) -> None:
    dirty = json.dumps({"lamp.c": "wick\n\nshade\nhook\n", "notes": None})
    made = rows(repository, scratch, "sh run.sh", session(repository, "fix", 1, 2),
                session(repository, "dirty", 0, 2, dirty=dirty),
                session(repository, "rename", 2, 3), session(repository, "docs", 0, 1),
                session(repository, "question", 0, None))
    assert [(each.reason, each.kept) for each in made.decisions] == [
        ("reproduced", True), ("separates", True), ("separates", True), ("no_tests_separate", False),
        ("no_source_change", False), ("no_winner", False), ("same_as_task", False)]
    assert [(each.session_id, each.base, each.fail_to_pass, each.pass_to_pass) for each in made.tasks] == [
        (name, "start", ["lamp::test_oil"], ["lamp::test_wick"]) for name in ("fix", "dirty")]
    assert (made.tasks[0].goal, made.tasks[0].script) == ("It needs oil", ["thanks"])
    assert (made.tasks[0].test_files, made.tasks[0].fix_files) == (["tests/test_oil.txt"], ["lamp.c"])
    assert (made.recipes[0].share, made.recipes[0].n_runs) == (1.0, 1)


def test_the_same_repository_gives_the_same_rows_in_another_folder(repository: Repository, scratch: Path) -> None:
    made = []
    for name in ("one", "other"):
        (scratch / name).mkdir(mode=0o755)
        made.append(rows(repository, scratch / name, "sh run.sh", session(repository, "fix", 1, 2)))
    assert (made[0].recipes, made[0].tasks, made[0].decisions) == (made[1].recipes, made[1].tasks, made[1].decisions)


def test_a_fix_that_does_not_apply_begins_at_its_parent_if_edited_files_agree(repository: Repository) -> None:
    trees, ids = CodeTrees(repository), list(repository.commits)
    own = TaskStart(ids[0], {"lamp.c": "other\n"}, ids[2])
    assert trees.candidate(own) is None
    assert trees.parent_start(own, ["README.md"]) is None
    assert trees.parent_start(own, ["/home/x/lamp/lamp.c"]) is None
    assert trees.parent_start(own, ["tests/test_wick.txt"]) == TaskStart(ids[1], {}, ids[2])


def test_a_repository_whose_recipe_fails_makes_no_tasks(repository: Repository, scratch: Path) -> None:
    made = rows(repository, scratch, "false", session(repository, "fix", 1, 2))
    assert [(each.subject, each.reason) for each in made.decisions] == [("lamp", "recipe_not_reproduced"), ("fix", "no_recipe")]
    assert not made.tasks
