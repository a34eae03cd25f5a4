"""Changes of direction and invisible characters of a log: none reaches a page, a report or a terminal as itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.browser.shown import visible
from pipelines.screen import printable
from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import HIDDEN
from tests.attacks.report import Report
from tests.command_line import called

CHARACTERS = [chr(n) for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x061C,
                               0xE0041, 0x1B, 0x9B, 0x07, 0x85, 0xD800)]


def attack(folder: Path, share: float) -> Report:
    """Show each character on a page and on a terminal, and write the report on a hostile run."""
    problems = [f"U+{ord(each):04X} reaches a page" for each in CHARACTERS if each in visible(f"a{each}b")]
    problems += [f"U+{ord(each):04X} reaches a terminal" for each in CHARACTERS if each in printable(f"a{each}b")]
    done = called("report", "--out", hostile_run(), "--to", folder / "report")
    assert done.returncode == 0, done.stderr
    text = (folder / "report" / "index.html").read_text("utf-8")
    if hidden := HIDDEN.search(text):
        problems.append(f"the report: {text[max(0, hidden.start() - 40):hidden.end() + 40]!r}")
    return Report(2 * len(CHARACTERS) + 1, tuple(problems))


@pytest.mark.xdist_group(GROUP)
@pytest.mark.slow
def test_no_text_turns_what_stands_beside_it(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
