"""What plain pytest leaves out is said."""

from __future__ import annotations

import re
import subprocess
import sys

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
