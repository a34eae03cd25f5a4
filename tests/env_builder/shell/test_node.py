"""A project of Node.js says in package.json how its tests run, and gets a recipe where that is one call of its runner."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from env_builder.runtime.workspace.sandbox import ChangedFile, Sandbox
from env_builder.shell.acceptance import AcceptedRecipe, Checked, find_recipe
from env_builder.shell.node import OLDEST, REPORTER, node_recipe, node_version
from env_builder.shell.recipe import RESULTS, RepositoryRecipe, Sites
from env_builder.shell.trials import Trials
from tests.conftest import lacking
from tests.workspaces import isolated

REPORTS = (f"--test-reporter={REPORTER}", f"--test-reporter-destination={RESULTS}", "--test-reporter=spec",
           "--test-reporter-destination=stdout")
TESTS = """\
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.strictEqual(1 + 1, 2));
test('is <odd> & "quoted"\\n', () => assert.strictEqual(1, 2));
describe('lists', () => {
  it('sorts', () => {});
  it.skip('later', () => {});
  it.todo('some day', () => { throw new Error('not yet'); });
  describe('of lists', () => { it('sorts', () => { throw new Error('no\\u0000'); }); });
});
test('many', async (t) => { await t.test('one', () => {}); await t.test('other', () => assert.ok(false)); });
"""


def tree(script: str | None = "node --test", **files: str) -> dict[str, ChangedFile]:
    manifest = {} if script is None else {"package.json": json.dumps({"scripts": {"test": script}})}
    return {path: ChangedFile(text.encode(), 0o100644) for path, text in {**manifest, **files}.items()}


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    needs_node()
    tmp_path.chmod(0o755)
    return Trials(Sites(tmp_path), isolated(), tmp_path)


def needs_node() -> None:
    """Skip the test where Node.js is not installed, or fail it if nothing may be lacking."""
    if (node_version() or (0, 0)) < OLDEST:
        lacking("Node.js 18.20 or later is not installed (Debian: apt-get install nodejs)")


@pytest.mark.parametrize(("script", "command"), [
    ("node --test", ("node", *REPORTS, "--test")),
    ("node --no-warnings --test lib/ test/", ("node", *REPORTS, "--no-warnings", "--test", "lib/", "test/")),
    ("node --test --test-reporter spec --watch --test-reporter-destination=stdout test", ("node", *REPORTS, "--test", "test")),
    ("node --test test/*.js 'a b.js'", ("/bin/sh", "-c", f"exec node {' '.join(REPORTS)} --test test/*.js a\\ b.js"))])
def test_a_call_of_the_runner_is_a_recipe(script: str, command: tuple[str, ...]) -> None:
    needs_node()
    assert node_recipe(tree(script)) == RepositoryRecipe(command=command)


def test_variables_before_the_call_are_the_recipe_s() -> None:
    needs_node()
    recipe = node_recipe(tree("TZ=UTC LEVEL='a b' node --test"))
    assert isinstance(recipe, RepositoryRecipe) and recipe.env == (("TZ", "UTC"), ("LEVEL", "a b"))


@pytest.mark.parametrize("script", [
    None, "jest", "npm run lint && node --test", "node test.js", "node --test | tap", "node '--test"])
def test_what_is_no_single_call_of_the_runner_has_a_reason(script: str | None) -> None:
    reason = node_recipe(tree(script))
    assert isinstance(reason, str) and (script is None or script in reason)


@pytest.mark.parametrize("manifest", ["[]", "{", '{"scripts": []}', '{"scripts": {"test": 1}}', "\xff"])
def test_a_damaged_manifest_has_no_script(manifest: str) -> None:
    assert isinstance(node_recipe(tree(None, **{"package.json": manifest})), str)


def test_each_test_is_called_by_its_file_its_suites_and_its_name(trials: Trials) -> None:
    recipe = node_recipe(files := tree(**{
        "test/sums.js": TESTS, "test/more.mjs": "import { test } from 'node:test'; test('adds', () => {});",
        "test/broken.js": "require('./absent');", "test/plain.js": "1 + 1;"}))
    assert isinstance(recipe, RepositoryRecipe)
    run = trials.of(files, recipe)[0]
    assert run.outcomes == {
        "test/broken.js": "failed", "test/more.mjs::adds": "passed", "test/plain.js": "passed", "test/sums.js::adds": "passed",
        'test/sums.js::is <odd> & "quoted"\n': "failed", "test/sums.js::lists::sorts": "passed",
        "test/sums.js::lists::later": "skipped", "test/sums.js::lists::some day": "skipped",
        "test/sums.js::lists::of lists::sorts": "failed", "test/sums.js::many": "failed", "test/sums.js::many::one": "passed",
        "test/sums.js::many::other": "failed"}
    assert "Expected values to be strictly equal" in run.messages and run.code == 1


def test_a_script_of_python_beside_it_does_not_make_it_a_project_of_python(trials: Trials) -> None:
    files = tree(**{"test/sums.js": "require('node:test').test('adds', () => {});", "tools/release.py": "print(1)\n"})
    accepted = find_recipe([Checked("a", files, [])], datetime(2026, 1, 1, tzinfo=UTC), trials)
    assert isinstance(accepted, AcceptedRecipe)
    assert accepted.detail == "CI left no results; 1 of 1 tests pass on the main line."


def test_the_runner_s_own_reports_are_read_as_well(trials: Trials) -> None:
    """Before Node.js 22 they name no file but that of a test that could not be loaded."""
    command = ("node", "--test", "--test-reporter=junit", "--test-reporter-destination=out.xml")
    files = tree(**{"test/sums.js": TESTS.replace("\\u0000", ""), "test/broken.js": "require('./absent');"})
    run = trials.of(files, RepositoryRecipe(command=command, results="out.xml"))[0]
    outcomes = {test.removeprefix("test/sums.js::"): outcome for test, outcome in run.outcomes.items()}
    assert {test: outcomes[test] for test in ("adds", "lists::sorts", "lists::of lists::sorts", "test/broken.js")} == {
        "adds": "passed", "lists::sorts": "passed", "lists::of lists::sorts": "failed", "test/broken.js": "failed"}


def test_workers_and_compiled_modules_have_address_space_and_memory_has_a_limit(tmp_path: Path) -> None:
    needs_node()
    tmp_path.chmod(0o755)
    box, run = Sandbox(isolated()), (
        "const { Worker } = require('worker_threads'); new WebAssembly.Memory({ initial: 1 }); let n = 0;"
        "for (let i = 0; i < 2; i++) new Worker('1', { eval: true }).on('exit', (code) => { n += code === 0; });"
        "process.on('exit', () => console.log(n, 'workers'));")
    assert box.run(tmp_path, {}, ["node", "-e", run]).output == "2 workers\n"
    hungry = box.run(tmp_path, {}, ["node", "-e", "const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1));"])
    assert hungry.code != 0 and not hungry.timed_out


def test_a_recipe_gives_results_under_the_name_that_a_verifier_draws() -> None:
    needs_node()
    recipe = node_recipe(tree())
    assert isinstance(recipe, RepositoryRecipe)
    row = replace(recipe, setup=("true",)).workspace_row
    assert "--test-reporter-destination={junit}" in row["test"] and "results" not in row
