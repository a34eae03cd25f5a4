"""Recipes of Python projects, with packages from an index: slow, and only where uv and an index are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from env_builder.runtime.workspace.sandbox import ChangedFile, SandboxUnavailable, best_way
from env_builder.shell.acceptance import AcceptedRecipe, Checked, find_recipe
from env_builder.shell.packages import Unresolvable, interpreters, resolved
from env_builder.shell.recipe import Sites, site_tree
from env_builder.shell.trials import Trials
from tests.conftest import lacking

pytestmark = pytest.mark.slow
UNTIL = datetime(2026, 3, 1, tzinfo=UTC)
PROJECT = {
    "pyproject.toml": """
[project]
name = "lantern-oil"
version = "2.1"
requires-python = ">=3.9"
scripts = {lantern = "lantern:main"}
[dependency-groups]
dev = ["pytest", "black"]
[tool.setuptools_scm]
version_file = "src/lantern/_version.py"
""",
    "src/lantern/__init__.py": """
from importlib.metadata import version
from lantern._version import __version__
def main():
    print(version("lantern-oil"))
""",
    "tests/test_lantern.py": """
import subprocess
import iniconfig, six
def test_version():
    import lantern
    assert lantern.__version__ == "2.1"
def test_command(mocker, tmp_path):
    assert subprocess.check_output(["lantern"], cwd=tmp_path) == b"2.1\\n"
"""}


def test_what_a_run_lacks_is_added_and_the_site_is_the_same_each_time(tmp_path: Path) -> None:
    try:
        way = best_way()
        resolved(["six"], interpreters()[0], UNTIL)
    except (SandboxUnavailable, Unresolvable) as error:
        lacking(str(error))
    tmp_path.chmod(0o755)
    tree = {path: ChangedFile(text.encode(), 0o100644) for path, text in PROJECT.items()}
    trials = Trials(Sites(tmp_path / "sites"), way, tmp_path)
    accepted = find_recipe([Checked("a", tree, []), Checked("b", tree, [])], UNTIL, trials)
    assert isinstance(accepted, AcceptedRecipe), accepted
    names = {each.partition("==")[0] for each in accepted.recipe.requirements}
    assert {"pytest", "six", "pytest-mock"} <= names and "black" not in names
    assert {path for path, _ in accepted.recipe.site_files} > {"bin/lantern"}
    first, again = trials.sites.site(accepted.recipe), Sites(tmp_path / "again").site(accepted.recipe)
    assert contents(first) == contents(again)
    assert {path: file.content for path, file in site_tree(first).items()} == contents(first)
    assert site_tree(first)["bin/lantern"].mode == 0o100755
    assert not any(path.endswith((".pyc", "RECORD")) or str(tmp_path).encode() in content
                   for path, content in contents(first).items())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_packages_are_of_their_day() -> None:
    try:
        old, new = (resolved(["six"], interpreters()[0], datetime(year, 1, 1, tzinfo=UTC))[0].split()[0]
                    for year in (2018, 2026))
    except Unresolvable as error:
        lacking(str(error))
    assert (old, new) == ("six==1.11.0", "six==1.17.0")
