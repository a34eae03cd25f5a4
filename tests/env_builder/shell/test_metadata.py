"""Metadata: what trees of Python projects say of how they are set up and tested, in the shapes in which projects write it."""

from __future__ import annotations

import pytest

from env_builder.shell.metadata import caret, metadata_of, name_of
from env_builder.shell.requirements import needed, of_missing

MODERN = """
[project]
name = "lantern"
version = "2.1"
requires-python = ">=3.9"
dependencies = ["wick>=1"]
optional-dependencies = {docs = ["sphinx"], tests = ["pytest", "oil-gauge"]}
scripts = {lantern = "lantern.cli:main"}
[dependency-groups]
test = ["flint", {include-group = "base"}]
base = ["tinder"]
[tool.setuptools.packages.find]
where = ["src"]
[tool.setuptools_scm]
version_file = "src/lantern/_version.py"
[tool.pytest.ini_options]
addopts = ["-ra", "--strict-markers"]
markers = ["slow: takes long", "fast"]
"""
POETRY = """
[tool.poetry]
name = "lantern"
version = "1.0"
[tool.poetry.dependencies]
python = "^3.9"
wick = "^1.2"
shade = {version = "~2.0", optional = true}
[tool.poetry.group.dev.dependencies]
pytest = "*"
flint = {version = "^0.3", extras = ["dry"]}
beacon = {path = "../beacon"}
"""
SETUP = """
from setuptools import setup
TESTS = ["pytest", "flint"]
setup(name="lantern", version=compute(), python_requires=">=3.8", install_requires=["wick"] + EXTRA,
      extras_require={"test": TESTS, "docs": ["sphinx"], "dev": [*TESTS, "black"]},
      entry_points={"pytest11": ["lantern = lantern.plugin"]})
"""
TOX = """
[tox]
envlist = py39
[testenv]
deps =
    pytest
    -rrequirements/extra.txt
    py{310,311}: flint>=2  # only there
    py39: tinder
extras = fire
commands = pytest
[testenv:docs]
deps = sphinx
"""
CI = """
jobs:
  test:
    strategy:
      matrix:
        python-version: ["3.9", '3.12', "pypy3.10"]
    steps:
      - run: |
          pip install -e ".[fire]" flint==1.0
          python -m pip install -r requirements/extra.txt
      - run: pytest
"""


def read(minor: int = 11, **files: str) -> dict[str, object]:
    names = {"pyproject": "pyproject.toml", "setup": "setup.py", "cfg": "setup.cfg", "tox": "tox.ini",
             "ci": ".github/workflows/test.yml", "extra": "requirements/extra.txt", "nox": "noxfile.py"}
    tree = {names[name]: text.encode() for name, text in files.items()} | {"src/lantern/__init__.py": b""}
    metadata = metadata_of(tree, minor)
    return {name: getattr(metadata, name) for name in metadata.__slots__}


def test_a_modern_project_states_its_tests_in_extras_and_groups() -> None:
    metadata = read(pyproject=MODERN)
    assert metadata["requirements"] == ["wick>=1", "pytest", "oil-gauge", "flint", "tinder"]
    assert metadata["others"] == ["sphinx", "tinder"]
    assert metadata["roots"] == ("src", "")
    assert metadata["version_files"] == ("src/lantern/_version.py",)
    assert metadata["runner"] == {"markers": "slow: takes long\nfast"} and metadata["addopts"] == "-ra --strict-markers"
    assert metadata["entry_points"] == {"console_scripts": {"lantern": "lantern.cli:main"}}


def test_versions_of_poetry_are_read_as_ranges() -> None:
    metadata = read(pyproject=POETRY)
    assert metadata["requirements"] == ["wick>=1.2,<2", "pytest", "flint[dry]>=0.3,<0.4"]
    assert [caret(each) for each in ("^1.2.3", "^0.0.3", "~1.4", "1.0", ">=1,<3", "*")] == [
        ">=1.2.3,<2", ">=0.0.3,<0.0.4", ">=1.4,<1.5", "==1.0", ">=1,<3", ""]


def test_literals_of_a_setup_file_are_read_without_running_it() -> None:
    metadata = read(setup=SETUP)
    assert metadata["requirements"] == ["wick", "pytest", "flint"]
    assert metadata["others"] == ["pytest", "flint", "black", "sphinx"]
    assert metadata["version"] is None and metadata["requires_python"] == ">=3.8"
    assert metadata["entry_points"] == {"pytest11": {"lantern": "lantern.plugin"}, "console_scripts": {}}


def test_factors_of_tox_hold_for_their_version_of_python() -> None:
    extra, fire = "oil # for lamps\n-e .\n", "[options.extras_require]\nfire = steel\n"
    assert read(tox=TOX, extra=extra, cfg=fire)["requirements"] == ["pytest", "oil", "flint>=2", "steel"]
    assert read(9, tox=TOX, extra=extra, cfg=fire)["requirements"] == ["pytest", "oil", "tinder", "steel"]


def test_what_ci_installs_is_read_with_the_versions_it_runs() -> None:
    metadata = read(ci=CI, extra="oil\n", cfg="[options.extras_require]\nfire = steel\n")
    assert metadata["requirements"] == ["flint==1.0", "oil", "steel"] and metadata["minors"] == (9, 10, 12)


def test_sessions_of_nox_that_run_tests_are_read() -> None:
    text = ("import nox\n@nox.session\ndef tests(session):\n    session.install('-e', '.', 'flint')\n"
            "@nox.session\ndef lint(session):\n    session.install('black')\n")
    assert read(nox=text)["requirements"] == ["flint"]


@pytest.mark.parametrize("files", [{"pyproject": "= nonsense"}, {"cfg": "no section"}, {"setup": "def ("},
                                   {"tox": "[testenv\n"}, {"cfg": "[a]\nb\n  c\n"},
                                   {"pyproject": "tool.hatch.envs = {a = 1}\ntool.poetry.group = [1]\nproject.name = 3"}])
def test_damaged_metadata_says_nothing(files: dict[str, str]) -> None:
    assert read(**files)["requirements"] == []


def test_files_for_developers_count_where_none_is_for_tests() -> None:
    files = {"requirements/dev.txt": b"black\nflint\n", "requirements/docs.txt": b"sphinx\n", "requirements.txt": b"wick\n"}
    assert metadata_of(files, 11).requirements == ["wick", "black", "flint"]
    metadata = metadata_of({**files, "requirements/tests.in": b"oil\n"}, 11)
    assert metadata.requirements == ["oil", "wick"] and metadata.others == ["black", "flint", "sphinx"]


def test_addresses_and_paths_are_no_packages() -> None:
    requirements = ("Oil_Gauge[x]>=1", "wick @ git+https://git.example/w", "./local", "wick; python_version<'3'")
    assert [name_of(each) for each in requirements] == ["oil-gauge", None, None, "wick"]


def test_tools_are_left_out_unless_a_file_imports_them() -> None:
    metadata = metadata_of({"requirements-dev.txt": b"black\npytest-cov\nwick\ncoverage\n"}, 11)
    assert needed([metadata], {"wick"}) == (["wick", "pytest"], ["black", "pytest-cov", "coverage"])
    assert needed([metadata], {"coverage"})[0] == ["wick", "coverage", "pytest"]


def test_what_a_run_lacks_is_named_as_the_metadata_names_it() -> None:
    messages = ("E   ModuleNotFoundError: No module named 'yaml.nodes'\nE  fixture 'mocker' not found\n"
                "No module named 'oil_gauge'")
    assert of_missing(messages, ["Oil-Gauge>=2", "pyyaml<7"]) == ["pyyaml<7", "Oil-Gauge>=2", "pytest-mock"]
