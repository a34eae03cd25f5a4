"""Trials, recipes and tasks: what tests of a tree say in a sandbox, here of a project that is no Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.shell.acceptance import AcceptedRecipe, Checked, NoRecipe, agreement, allows, find_recipe, given_recipe
from env_builder.shell.merging import merged, merged_text
from env_builder.shell.recipe import RepositoryRecipe, Sites
from env_builder.shell.tasks import Candidate, separation
from env_builder.shell.trials import Trials
from tests.workspaces import needs_namespaces

RUNNER = """\
out='<testsuite>'
for test in tests/*.txt; do
    if grep -qxf "$test" lamp.txt; then body='/>'; else body='><failure message="dark"/></testcase>'; fi
    out="$out<testcase classname=\\"lamp\\" name=\\"$(basename "$test" .txt)\\" time=\\"0.01\\"$body"
done
mkdir -p reports && echo "$out</testsuite>" > reports/a.xml
"""
RECIPE = RepositoryRecipe(command=("sh", "run.sh"), results="reports")


def tree(**files: str) -> dict[str, ChangedFile]:
    paths = {"run": "run.sh", "lamp": "lamp.txt"}
    texts = {"run": RUNNER, **files}
    return {paths.get(name, f"tests/{name}.txt"): ChangedFile(text.encode(), 0o100644) for name, text in texts.items()}


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    needs_namespaces()
    tmp_path.chmod(0o755)
    yield Trials(Sites(tmp_path / "sites"), "namespaces", tmp_path, 2)


def candidate(before: str, after: str, **tests: str) -> Candidate:
    known = {path: file for path, file in tree(**tests).items() if path.startswith("tests/")}
    fix = {"lamp.txt": ChangedFile(after.encode(), 0o100644)} if after != before else {}
    return Candidate(tree(lamp=before, old="wick\n"), known, fix, {"settings.toml": ChangedFile(b"", 0o100644)})


def test_tests_that_fail_before_and_pass_after_the_fix_make_a_task(trials: Trials) -> None:
    result = separation(candidate("wick\n", "wick\noil\n", oil="oil\n", never="glass\n"), RECIPE, trials)
    assert result.reason == "separates"
    assert (result.fail_to_pass, result.pass_to_pass) == (("lamp::oil",), ("lamp::old",))
    assert trials.n_runs == 6
    separation(candidate("wick\n", "wick\noil\n", oil="oil\n", never="glass\n"), RECIPE, trials)
    assert trials.n_runs == 6


def test_a_change_that_no_test_tells_from_the_start_is_no_task(trials: Trials) -> None:
    assert separation(candidate("wick\n", "wick\noil\n"), RECIPE, trials).reason == "no_tests_separate"
    assert separation(candidate("wick\n", "wick\n", oil="oil\n"), RECIPE, trials).reason == "no_source_change"
    assert separation(candidate("wick\n", "oil\n", old="glass\n"), RECIPE, trials).reason == "does_not_build"


def test_a_fix_whose_configuration_is_needed_says_so(trials: Trials) -> None:
    gated = RUNNER.replace("grep -qxf", "test -f settings.toml -o $test = tests/old.txt && grep -qxf")
    change = candidate("wick\n", "wick\noil\n", oil="oil\n")
    change = change._replace(start={**change.start, "run.sh": ChangedFile(gated.encode(), 0o100644)})
    assert separation(change, RECIPE, trials).reason == "fix_needs_configuration"


def test_a_given_recipe_is_accepted_if_it_reproduces_what_ci_saw(trials: Trials) -> None:
    lit = tree(lamp="wick\n", wick="wick\n", oil="oil\n")
    right, wrong = ({"lamp::wick": "passed", "lamp::oil": outcome} for outcome in ("failed", "passed"))
    accepted = given_recipe(RECIPE, [Checked("a", lit, [wrong, right])], trials)
    assert accepted == AcceptedRecipe(RECIPE, 1.0, 1, "reproduced", "It gives 100.0% of the outcomes of 1 commits that CI ran.")
    refused = given_recipe(RECIPE, [Checked("a", lit, [wrong])], trials)
    assert isinstance(refused, NoRecipe) and refused.reason == "recipe_not_reproduced"
    assert "lamp::oil is failed, was passed (1 commits)" in refused.detail


def test_without_results_of_ci_the_tests_of_the_latest_tree_that_has_any_have_to_pass(trials: Trials) -> None:
    lit, dark = Checked("a", tree(lamp="wick\n", wick="wick\n"), []), Checked("b", tree(lamp="wick\n", oil="oil\n"), [])
    many = {f"wick{n}": "wick\n" for n in range(99)}
    without, large = Checked("c", {}, []), Checked("d", tree(lamp="wick\n", oil="oil\n", **many), [])
    for latest in ([lit, lit], [lit, dark], [without, lit], [large]):
        accepted = given_recipe(RECIPE, latest, trials)
        assert isinstance(accepted, AcceptedRecipe) and (accepted.reason, accepted.share) == ("no_ci_results", None)
    assert accepted.detail == "CI left no results; 99 of 100 tests pass on the main line (lamp::oil)."
    for latest in ([dark, lit], [without, dark], [without]):
        refused = given_recipe(RECIPE, latest, trials)
        assert isinstance(refused, NoRecipe) and refused.reason == "recipe_not_reproduced"
    assert refused.detail == "CI left no results, and no test of the main line ran."


def test_a_repository_without_python_asks_for_a_command(trials: Trials) -> None:
    result = find_recipe([Checked("a", tree(lamp=""), [])], datetime(2026, 1, 1, tzinfo=UTC), trials)
    assert isinstance(result, NoRecipe) and result.reason == "no_recipe_known"


def test_a_terminal_shared_memory_and_its_own_address_are_there_for_tests(trials: Trials) -> None:
    program = ("import os, multiprocessing, socket\nos.openpty()\nmultiprocessing.Lock()\n"
               "server = socket.create_server(('localhost', 0))\nsocket.create_connection(server.getsockname())\n"
               "open('out.xml', 'w').write('<a><testcase name=\"t\"/></a>')")
    recipe = RepositoryRecipe(command=("python3", "-c", program), results="out.xml")
    assert trials.of(tree(lamp=""), recipe)[0].outcomes == {"t": "passed"}


def test_a_recipe_is_a_value_with_a_digest() -> None:
    recipe = replace(RECIPE, requirements=("a==1 --hash=x",), env=(("A", "b"),), minor=11)
    assert RepositoryRecipe.from_json(recipe.to_json()) == recipe
    assert len({recipe.digest, RECIPE.digest, replace(recipe, as_root=True).digest}) == 3
    assert recipe.site_digest == replace(recipe, as_root=True).site_digest
    row = RepositoryRecipe(minor=11, env=(("A", "b"),)).workspace_row
    assert (row["python"], row["env"], row["test"][-1]) == ("3.11", {"A": "b"}, "--junitxml={junit}")


def test_outcomes_agree_by_kind() -> None:
    assert agreement({"a": "error", "b": "passed", "c": "passed"}, {"a": "failed", "b": "flaky", "d": "passed"}) == (2, 4)


@pytest.mark.parametrize(("specifier", "allowed"), [(">=3.9", True), (">=3.12", False), ("<3.11", False), ("^3.8", True),
                                                    (">=3.8,<4", True), ("==3.11.*", True), ("!=3.11.*", False), (None, True)])
def test_versions_of_python_are_allowed_as_projects_say(specifier: str | None, allowed: bool) -> None:
    assert allows(specifier, 11) is allowed


def test_a_change_is_made_in_a_file_that_changed_elsewhere() -> None:
    before, after = b"a\nb\nc\nd\ne\nf\n", b"a\nb\nC\nd\ne\nf\n"
    assert merged_text(before, after, b"new\na\nb\nc\nd\ne\nF\n") == b"new\na\nb\nC\nd\ne\nF\n"
    assert merged_text(before, after, b"a\nb\nother\nd\ne\nf\n") is None
    file = {name: ChangedFile(text, 0o100644) for name, text in (("before", before), ("after", after))}
    assert merged({"x": (file["before"], file["after"])}, {"x": file["after"]}) == {"x": file["after"]}
    assert merged({"x": (file["before"], file["after"])}, {}) is None
    assert merged({"x": (None, file["after"])}, {}) == {"x": file["after"]}
