"""Files are known by their path, and the reading side and the grading side agree on each."""

from __future__ import annotations

from itertools import product

import pytest

from env_builder.runtime.workspace.paths import kind_of_file
from extractors.workspaces.file_kinds import kind_of

KINDS = [
    ("src/lantern.py", "source"), ("contest.py", "source"), ("bin/lantern", "source"), ("lantern/data/wicks.json", "source"),
    ("src/lantern/locale/de.yml", "source"), ("lantern/oil.toml", "source"), ("lantern/schema.xml", "source"),
    ("lantern/testing/helpers.py", "source"), ("src/lantern/spec/parser.py", "source"), ("lantern/specs/json.py", "source"),
    ("lantern/test.py", "source"),
    ("tests/data/x.json", "tests"), ("lantern/test_wick.py", "tests"), ("pkg/wick_test.go", "tests"),
    ("spec/a_spec.rb", "tests"), ("web/wick.spec.ts", "tests"), ("conftest.py", "tests"), ("testing/helpers.py", "tests"),
    ("src/testing/wick.py", "tests"), ("lib/specs/wick.js", "tests"), ("lantern/tests/golden.txt", "tests"),
    ("tests/pytest.ini", "tests"), ("test.py", "tests"), ("web/test.js", "tests"),
    ("web/wick-test.cjs", "tests"), ("test-wick.mjs", "tests"), ("wick-test.py", "source"), ("web/__tests__/wick.js", "tests"),
    ("src/lantern/testing/test_helpers.py", "tests"),
    ("README.md", "texts"), ("docs/conf.py", "texts"), ("LICENSE", "texts"), ("lantern/COPYING", "texts"),
    ("lantern/test_plan.md", "texts"), ("requirements.txt", "texts"),
    ("pyproject.toml", "configuration"), (".github/workflows/ci.yml", "configuration"), ("setup.py", "configuration"),
    ("settings.yaml", "configuration"), ("lantern/.eslintrc.json", "configuration"), ("web/package.json", "configuration"),
    ("web/yarn.lock", "configuration"), ("jest.config.mjs", "configuration"), ("docs/Makefile", "configuration")]


@pytest.mark.parametrize(("path", "kind"), KINDS)
def test_files_are_known_by_what_they_are_for(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_the_verifier_has_the_same_law() -> None:
    words = sorted({part for path, _ in KINDS for part in path.split("/")} | {
        "TEST_A.PY", "Tests", "python", ".circleci", ".gitlab", ".mocharc.json", ".coveragerc", "go.mod", "vite.config.ts",
        "noxfile.py", "pytest.toml", "tox.ini", "azure-pipelines.yml"})
    paths = [*words, *map("/".join, product(words, words)), *map("/".join, product(("src", "lib", "a", "spec"), words, words))]
    assert [path for path in paths if kind_of(path) != kind_of_file(path)] == []
