"""The reference pages say what the code says, and every variable that the sources read is explained."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from pipelines.reference import COMMENTS, FOLDER, PAGES, VARIABLES, comments, pages, tables, used_variables
from tests.command_line import called

made = cache(pages)
"""Not at import: every worker imports this file, and few run it."""


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_is_what_the_code_says(name: str) -> None:
    page = FOLDER / f"{name}.md"
    assert page.is_file() and page.read_text("utf-8") == made()[page.name], "write the reference anew: just reference"


def test_the_warehouse_is_commented_as_the_records_say() -> None:
    assert COMMENTS.read_text("utf-8") == comments(), "write the reference anew: just reference"


def test_nothing_is_left_of_pages_that_are_no_longer_made() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.md")) == sorted(made())


def test_every_variable_that_is_read_is_explained() -> None:
    used = set(used_variables())
    assert sorted(used ^ set(VARIABLES)) == [], "say in VARIABLES of pipelines/reference.py what it is for"
    assert {"TRACEROOM_KEY", "TRACEROOM_KEY_FILE"} <= used, "names that a constant holds"


def test_every_option_and_every_column_has_a_sentence() -> None:
    empty = [line for name in ("commands.md", "configuration.md") for line in made()[name].splitlines()
             if line.startswith("| `") and "|  |" in line]
    assert empty == [] and {"core.events", "mart.tasks", "raw.files"} <= set(tables())
    assert all(command in made()["commands.md"] for command in ("## run\n", "## export\n", "`--family`", "`PLACE`"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell: str) -> None:
    for typed, wanted, other in (("traceroom ex", "export", "play"), ("traceroom export --fam", "--family", "--form")):
        done = called(_TRACEROOM_COMPLETE=f"complete_{shell}", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" ")),
                      _TYPER_COMPLETE_ARGS=typed, _TYPER_COMPLETE_FISH_ACTION="get-args")
        assert wanted in done.stdout and other not in re.sub(r"[^\w-]", " ", done.stdout).split()


def test_the_shell_completes_environments_tasks_and_perturbations(
    sample_environment: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(sample_environment.parents[2])
    environment = str(sample_environment.relative_to(Path.cwd()))
    task_id = json.loads((sample_environment / "tasks.jsonl").read_text("utf-8").splitlines()[0])["task_id"]
    for typed, wanted in (
        (f"traceroom play {environment[:-2]}", environment), (f"traceroom play {environment} {task_id[:4]}", task_id),
        (f"traceroom serve {environment} --perturbation fau", "faults"), ("traceroom rollout x --policy or", "oracle"),
    ):
        done = called(_TRACEROOM_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" ")))
        assert wanted in done.stdout.split(), typed
