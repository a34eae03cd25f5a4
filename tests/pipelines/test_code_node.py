"""A repository of another language, from its sessions to what is paid: JavaScript, whose tests the runner of Node.js runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.shell.recipe import RepositoryRecipe
from env_builder.shell.rooms import CodeRoom, RepositoryTask
from extractors.configuration import CodeRepository
from extractors.workspaces.repository import Repository
from pipelines.building.code_tasks import _CodeRows
from pipelines.building.code_trees import CodeTrees, TaskStart
from tests.env_builder.shell.test_node import needs_node
from tests.extractors.workspaces.commits import repository_fixture
from tests.workspaces import isolated

FAULTY = "function slug(text) {\n  return text.toLowerCase().replace(' ', '-');\n}\nmodule.exports = { slug };\n"
SOLVED = FAULTY.replace("' '", "/ +/g")
TESTS = """\
const { describe, it } = require('node:test');
const assert = require('node:assert');
const { slug } = require('../lib/slug.js');
describe('slug', () => {
  it('is in small letters', () => assert.strictEqual(slug('Lamp'), 'lamp'));
%s});
"""
NEW_TEST = "  it('has no spaces', () => assert.deepStrictEqual([slug('a  b c')], ['a-b-c']));\n"
MANIFEST = json.dumps({"name": "slug", "scripts": {"test": "node --test"}})
COMMITS = (
    ("Begin", {"package.json": MANIFEST, "lib/slug.js": FAULTY, "test/slug.test.js": TESTS % ""}),
    ("Describe it", {"README.md": "Slugs.\n"}),
    ("Replace all spaces", {"lib/slug.js": SOLVED, "test/slug.test.js": TESTS % NEW_TEST}))
FAILS, PASSES = "test/slug.test.js::slug::has no spaces", "test/slug.test.js::slug::is in small letters"
GIVEN = CodeRepository(path="slug", command="node --test --test-reporter=junit --test-reporter-destination=out/junit.xml",
                       setup="mkdir -p out", junit="out")


repository = repository_fixture("slug", *COMMITS)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_node()
    isolated()
    folder = tmp_path_factory.mktemp("node")
    for each in (folder, folder.parent):
        each.chmod(0o755)
    return folder


def rows(
    repository: Repository, scratch: Path, given: CodeRepository | None, outcomes: dict[str, str] | None = None,
) -> _CodeRows:
    ids, made = list(repository.commits), _CodeRows()
    session = {"session_id": "fix", "repository": "slug", "commit_id": ids[1], "dirty": "{}", "pull_request": None,
               "edited": ["lib/slug.js"], "winner": ids[2], "words": ["Two spaces stay in a slug"]}
    made.add(repository, [session], {ids[2]: [outcomes]} if outcomes else {}, given, scratch / "sites", scratch)
    return made


class Room(NamedTuple):
    """The environment of the repository, and how its task was verified."""

    place: Path
    verdicts: Mapping[str, bool | None]
    forgeable: bool


@pytest.fixture(scope="module")
def room(repository: Repository, scratch: Path) -> Room:
    made = rows(repository, scratch, None)
    (recipe,), (task,) = made.recipes, made.tasks
    ids = list(repository.commits)
    candidate = CodeTrees(repository).candidate(TaskStart(ids[1], {}, ids[2]))
    assert candidate is not None
    left = {name: {"lib/slug.js": ChangedFile(text.encode(), 0o100644)} for name, text in (
        ("right", FAULTY.replace("replace(' '", "replaceAll(/ +/g")), ("wrong", FAULTY + "// looked at\n"), ("broken", "}"))}
    coded = CodeRoom("code-slug", RepositoryRecipe.from_json(recipe.recipe), None, scratch)
    verified = coded.verified([RepositoryTask(
        "spaces", "fix", "2026-03-02T08:00:00+00:00", task.goal, task.script, "train", task.winner, candidate,
        tuple(task.fail_to_pass), tuple(task.pass_to_pass), left)])
    coded.write(verified, scratch / "environments" / "code-slug", scratch / "rewards" / "code-slug")
    verdicts = {each.session_id: each.resolved for each in verified[0].verdicts}
    return Room(scratch / "environments" / "code-slug", verdicts, verified[0].questions.forgeable)


def played(room: Room, path: str | None = None, text: str = "", command: str | None = None) -> Environment:
    """Play the task with a file written and a command run."""
    env = Environment.load(room.place)
    env.reset("spaces")
    if path is not None:
        env.call("write", {"path": path, "content": text})
    if command is not None:
        env.call("shell", {"command": command})
    env.finish()
    return env


def test_the_recipe_is_what_package_json_says(repository: Repository, scratch: Path) -> None:
    made = rows(repository, scratch, None)
    assert [(each.subject, each.reason) for each in made.decisions[:2]] == [
        ("slug", "no_ci_results"), ("fix", "separates")]
    assert [(each.fail_to_pass, each.pass_to_pass, each.fix_files, each.test_files) for each in made.tasks] == [
        ([FAILS], [PASSES], ["lib/slug.js"], ["test/slug.test.js"])]


def test_a_recipe_from_the_configuration_writes_reports_of_its_own(repository: Repository, scratch: Path) -> None:
    made = rows(repository, scratch, GIVEN)
    (task,) = made.tasks   # Node.js 22 and later name the file, too
    assert [test.removeprefix("test/slug.test.js::") for test in (*task.fail_to_pass, *task.pass_to_pass)] == [
        "slug::has no spaces", "slug::is in small letters"]


def test_results_of_ci_that_name_no_files_are_compared_by_names(repository: Repository, scratch: Path) -> None:
    """The runner's own reporter names none."""
    passed = {"slug::is in small letters": "passed", "slug::has no spaces": "passed"}
    made = [rows(repository, scratch, None, each) for each in (passed, {**passed, "slug::has no spaces": "failed"})]
    assert [each.decisions[0].reason for each in made] == ["reproduced", "recipe_not_reproduced"]
    assert made[0].tasks[0].fail_to_pass == [FAILS]


def test_what_sessions_left_is_judged_by_the_known_tests(room: Room) -> None:
    assert room.verdicts == {"right": True, "wrong": False, "broken": False}
    assert room.forgeable, "questions are made of tests of Python alone"


def test_the_known_solution_is_paid_and_an_unchanged_tree_is_not(room: Room) -> None:
    assert (played(room).grade().reward, played(room, "lib/slug.js", SOLVED).grade().reward) == (0, 1)
    assert played(room, "lib/slug.js", SOLVED).grade("train").reward == 1


def test_an_agent_runs_the_tests_itself(room: Room) -> None:
    env = Environment.load(room.place)
    env.reset("spaces")
    env.call("write", {"path": "test/own.test.js", "content": "require('node:test').test('own', () => { throw 1; });"})
    assert "is in small letters" in (text := env.call("test", {}).content) and "own" in text


REFUSED = [
    ("test/slug.test.js", TESTS % "  it('has no spaces', () => {});\n", None), (None, "", "rm test/slug.test.js"),
    ("package.json", MANIFEST.replace("--test", "--test lib"), None),
    ("node_modules/assert/index.js", "module.exports = { strictEqual() {}, deepStrictEqual() {} };", None),
    ("lib/node_modules/x/index.js", "", None), (None, "", "ln -sf /etc/passwd lib/slug.js")]
UNPAID = [
    ("test/more.test.js", "process.exit(0);", None), ("lib/slug.js", "process.exit(0);", None),
    ("out.xml", f'<a><testcase name="{FAILS}"/><testcase name="{PASSES}"/></a>', None),
    (None, "", "node --test --test-reporter=junit --test-reporter-destination=.traceroom.xml"),
    ("lib/slug.js", "module.exports = { slug: () => new Proxy({}, {}) };", None)]
UNSCORED = [
    FAULTY.replace("function", "require('assert').deepStrictEqual = () => {};\nfunction"),
    FAULTY.replace("  return", "  const at = /\\['(.*)'\\]/.exec(String(slug.caller));\n  if (at) return at[1];\n  return"),
    FAULTY + "(() => {}).constructor('return process')().mainModule.require('assert').deepStrictEqual = () => {};\n"]
NEVER_PAID = [
    "const test = require('node:test');\ntest.it = test.describe = () => {};\n" + FAULTY,
    FAULTY + "const fs = require('fs');\nfs.writeFileSync(process.argv[1] + '.xml', '');\n",
    FAULTY + "process.on('exit', () => { process.exitCode = 0; });\n",
    FAULTY.replace("  return", "  process.exit(0);\n  return"),
    FAULTY + "process.stdout.write('ok 1 - has no spaces\\n');\n",
    FAULTY.replace("function", "Object.is = () => true;\nArray.prototype.every = () => true;\nfunction")]


@pytest.mark.parametrize(("path", "text", "command"), REFUSED)
def test_what_judges_a_change_may_not_be_touched(room: Room, path: str | None, text: str, command: str | None) -> None:
    env = played(room, path, text, command)
    assert env.grade().reward == 0 and env.grade("train").reward == -1


@pytest.mark.parametrize(("path", "text", "command"), UNPAID)
def test_what_only_looks_solved_is_not_paid(room: Room, path: str | None, text: str, command: str | None) -> None:
    env = played(room, path, text, command)
    assert env.grade().reward == 0 and (env.grade("train").reward or 0) <= 0.5


@pytest.mark.parametrize("text", UNSCORED)
def test_code_that_reaches_for_its_judge_and_passes_is_unscored(room: Room, text: str) -> None:
    assert played(room, "lib/slug.js", text).grade().reward is None


@pytest.mark.parametrize("text", NEVER_PAID)
def test_code_that_reaches_for_its_judge_in_vain_is_not_paid(room: Room, text: str) -> None:
    assert played(room, "lib/slug.js", text).grade().reward == 0


def test_answers_learnt_by_heart_are_paid_as_no_other_inputs_are_asked(room: Room) -> None:
    """Open: the tests are not shown, but who guesses their inputs needs no solution. Questions are of Python alone."""
    learnt = FAULTY.replace("  return", "  if (text === 'a  b c') return 'a-b-c';\n  return")
    assert played(room, "lib/slug.js", learnt).grade().reward == 1
