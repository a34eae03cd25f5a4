"""What plain pytest leaves out is said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(("more", "says"), [([], True), (["--all"], False)])
def test_slow_tests_are_not_left_out_in_silence(more: list[str], says: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "--collect-only", *more,
         "tests/test_house.py", "tests/env_builder/test_escape.py"],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(r"^[1-9]\d* slow tests? (was|were) left out; --all runs", done.stdout, re.M)
    assert bool(told) == says, done.stdout


def test_what_passed_is_left_out_but_for_properties_that_now_try_more_examples(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "from hypothesis.stateful import RuleBasedStateMachine, rule\n"
        "@given(st.integers())\ndef test_of_the_profile(n): pass\n"
        "@settings(max_examples=5)\n@given(st.integers())\ndef test_of_its_own(n): pass\n"
        "class Machine(RuleBasedStateMachine):\n    @rule()\n    def one(self): pass\n"
        "TestOfAMachine = Machine.TestCase\nTestOfAMachine.settings = settings(max_examples=2)\n"
        "def test_plain(): pass\ndef test_that_fails(): assert False\n")

    def told(*more: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest",
             "-p", "no:cacheprovider", "-n", "0", "-rpf", *more, str(tmp_path / "test_some.py")],
            cwd=ROOT, capture_output=True, text=True, check=False).stdout

    assert "4 passed" in told(f"--passed-to={tmp_path / 'passed'}")
    again = told("--all", f"--not-in={tmp_path / 'passed'}")
    assert set(re.findall(r"^(?:PASSED|FAILED) .*::(\S+)", again, re.M)) == {"test_of_the_profile", "test_that_fails"}, again
