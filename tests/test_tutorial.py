"""docs/tutorial.md, done as it stands: every command is run in order in an empty folder, and prints what the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLE
from tests.manual import agrees, blocks, commands, play

PAGE = ROOT / "docs" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_can_be_done_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "tests" / "logs" / "airline")
    assert play(PAGE, tmp_path) >= 12


def test_every_block_is_run_or_saved_and_what_is_saved_is_used() -> None:
    found = blocks(PAGE)
    assert [block.language for block in found if not block.file and block.language != "console"] == []
    lines = " ".join(command.line for block in found if not block.file for command in commands(block.text))
    assert [block.file for block in found if block.file and block.file not in lines] == []
    assert PAGE.read_text("utf-8").count("```") == 2 * len(found)


def test_what_is_shown_is_held_to_what_is_printed() -> None:
    printed = "stage  in\nextract   5\nrewards  23\n\nin 1.5 s\n"
    assert agrees(["stage in", "…", "in … s"], printed) and agrees([], printed)
    assert agrees(["stage in", "extract 5", "rewards 23", "in 1.5 s"], printed)
    for wrong in (["stage in", "…", "in … minutes"], ["stage in", "in … s"], ["…", "rewards 24", "…"], ["stage in"]):
        assert not agrees(wrong, printed)
