"""How likely a session of coding solved what it was asked for, and signs that it made tests pass by other means."""

from __future__ import annotations

import pytest

from extractors.workspaces.changes import CodeChange
from extractors.workspaces.frames import CommandRun, Frame
from extractors.workspaces.signs import signs_of, signs_of_commands
from extractors.workspaces.success import SessionEnd, last_tests, success

TESTS = """\
import pytest

@pytest.mark.slow
def test_wick():
    assert burns("wick")

def test_oil():
    with pytest.raises(ValueError):
        burns("water")
"""
LAMP = {"lamp.py": "def burns(it): ..."}
MERGED, CLOSED = CodeChange(1, "merged", "a" * 40, winner="a" * 40, won_by="itself"), CodeChange(1, "closed")


@pytest.mark.parametrize(("after", "signs"), [
    (TESTS + "\ndef test_more():\n    assert burns('tallow')\n", set()),
    (TESTS.replace("test_oil", "test_water"), set()),
    (TESTS.replace('"wick"', '"wicks"'), set()),
    (TESTS + "\n@pytest.mark.skipif(WINDOWS, reason='no fire')\ndef test_new():\n    assert burns('x')\n", set()),
    (TESTS.partition("def test_oil")[0], {"tests_deleted"}), (None, {"tests_deleted"}),
    (TESTS.replace("def test_oil", "@pytest.mark.skip(reason='flaky')\ndef test_oil"), {"tests_skipped"}),
    (TESTS.replace("import pytest\n", "import pytest\npytestmark = pytest.mark.xfail\n", 1), {"tests_skipped"}),
    (TESTS.replace('assert burns("wick")', "assert True"), {"tests_emptied"}),
    (TESTS.replace('assert burns("wick")', "pass"), {"tests_emptied"})])
def test_a_change_of_tests_has_the_signs_of_what_it_does(after: str | None, signs: set[str]) -> None:
    assert set(signs_of({"tests/test_lamp.py": TESTS, "lamp.py": ""}, {"tests/test_lamp.py": after, **LAMP})) == signs


def test_tests_in_other_languages_have_signs_too() -> None:
    before = "it('burns', () => { expect(lamp.burns).toBe(1) })"
    after = {"lamp.test.js": before.replace("it(", "it.skip("), "lamp.js": ""}
    assert set(signs_of({"lamp.test.js": before}, after)) == {"tests_skipped"}
    go = "func TestBurns(t *testing.T) {\n\tif !Burns() {\n\t\tt.Fatal()\n\t}\n}\n"
    assert set(signs_of({"lamp_test.go": go}, {"lamp_test.go": "package lamp\n", "lamp.go": ""})) == {"tests_deleted"}


def test_a_moved_test_is_not_deleted() -> None:
    assert signs_of({"tests/test_lamp.py": TESTS, "tests/test_all.py": None},
                    {"tests/test_lamp.py": None, "tests/test_all.py": TESTS, **LAMP}) == {}


def test_what_changes_the_runner_or_tests_alone_has_a_sign() -> None:
    hook = "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    outcome = yield\n"
    assert signs_of({"tests/conftest.py": ""}, {"tests/conftest.py": hook}) == dict.fromkeys(
            ("runner_changed", "only_tests"), "tests/conftest.py")
    assert signs_of({"conftest.py": ""}, {"conftest.py": "@pytest.fixture\ndef lamp(): ...\n", **LAMP}) == {}
    assert set(signs_of({"pyproject.toml": "[project]\n"}, {"pyproject.toml": "[project]\nversion = '2'\n", **LAMP})) == set()
    assert signs_of({}, {"sitecustomize.py": "import os\n", **LAMP}) == {"runner_changed": "sitecustomize.py"}
    assert signs_of({"tests/test_lamp.py": TESTS}, {"tests/test_lamp.py": TESTS.replace("wick", "rope")}) == {
        "only_tests": "tests/test_lamp.py"}
    assert signs_of({"tests/test_lamp.py": TESTS}, {"tests/test_lamp.py": TESTS + "\n# more\n"}) == {}


@pytest.mark.parametrize(("command", "has_sign"), [
    ("rm -rf tests/test_oil.py", True), ("sed -i 's/wick/rope/' tests/test_lamp.py", True),
    ("cat > tests/conftest.py <<'X'\nX", True), ("rm -rf build && pytest tests/test_lamp.py", False),
    ("cat > tests/test_new.py <<'X'\nX", False), ("sed -n 1,5p tests/test_lamp.py", False)])
def test_commands_that_rewrite_tests_have_a_sign(command: str, has_sign: bool) -> None:
    assert bool(signs_of_commands([ran(command)])) is has_sign


def ran(command: str, output: str = "", code: int | None = None) -> Frame:
    return CommandRun(command, output, code, switches=False, writes=True)


def end(change: CodeChange, words: str = "", signs: dict[str, str] | None = None, *frames: Frame) -> SessionEnd:
    return SessionEnd(change, True, False, signs or {}, words, frames)


def test_decisions_of_people_count_most_and_a_cheat_is_never_called_good() -> None:
    green, skipped = CodeChange(1, "closed", ci="success"), {"tests_skipped": "tests/test_lamp.py"}
    red = CodeChange(1, "merged", "a" * 40, ci="failure", winner="a" * 40, won_by="itself")
    chances = [success(each).probability or 0.0 for each in (
        end(CLOSED, "still broken for me"),
        end(CodeChange(1, "merged", "a" * 40, "b" * 40, "success"), "thanks!"),
        end(CodeChange(), "lgtm"), end(red), end(MERGED, "works for me"))]
    assert chances == sorted(chances) and chances[2] < 0.5 < chances[3] < 0.9 < chances[4]
    cheats = [success(end(change, "great, thanks", skipped)).probability for change in (
        green, CodeChange(1, "open", ci="success"))]
    assert all(chance is not None and chance < 0.2 for chance in cheats)


def test_it_abstains_where_evidence_is_at_odds_or_only_the_session_speaks() -> None:
    assert success(end(MERGED, "", {"tests_emptied": "tests/test_lamp.py"})) == (
        None, ("merged", "tests_emptied: tests/test_lamp.py"))
    unproposed = SessionEnd(CodeChange(), False, False, {}, "", [ran("pytest -q", "3 passed")])
    assert success(unproposed) == (None, ("tests_passed",))


def test_the_last_tests_that_ran_tell() -> None:
    assert last_tests([ran("pytest", "1 failed", 1), ran("python -m pytest -q", "2 passed in 0.1s")]) is True
    assert last_tests([ran("npm test", "2 passed"), ran("npm run test", "1 failed, 1 passed"), ran("ls", "", 1)]) is False
    assert last_tests([ran("ls", "2 passed")]) is None
