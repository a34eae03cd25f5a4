"""Frames: the same reading, edit or command is the same, whichever agent's tool it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.workspaces.frames import CommandRun, FileEdit, FileLines, frames

SEEN = FileLines("a.py", 1, ("import os", "", "x = 1"), True)


def of(arguments: Any, content: str | None = "", is_error: bool | None = False) -> list[Any]:
    return list(frames(json.dumps(arguments), content, is_error))


@pytest.mark.parametrize(("arguments", "content"), [
    ({"file_path": "a.py"}, "     1→import os\n     2→\n     3→x = 1"),
    ({"path": "a.py"}, "     1\timport os\n     2\t\n     3\tx = 1\n"),
    ({"path": "a.py", "command": "view"}, "1: import os\n2: \n3: x = 1"),
    ({"target_file": "a.py"}, "import os\n\nx = 1\n"),
    ({"command": "cat a.py"}, "import os\n\nx = 1\n"),
    ({"command": ["bash", "-lc", "cat a.py"], "workdir": "."}, "import os\n\nx = 1\n"),
    ({"command": ["bash", "-lc", "cat a.py"]}, '{"output": "import os\\n\\nx = 1\\n", "metadata": {"exit_code": 0}}'),
    ({"command": "nl -ba a.py"}, "     1\timport os\n     2\t\n     3\tx = 1\n")])
def test_a_whole_file_is_seen(arguments: Any, content: str) -> None:
    assert of(arguments, content)[0] == SEEN


@pytest.mark.parametrize(("arguments", "content", "first_line"), [
    ({"command": "sed -n '5,6p' a.py"}, "one\ntwo\n", 5), ({"command": "cd src && head -2 a.py"}, "one\ntwo\n", 1),
    ({"file_path": "a.py", "offset": 5, "limit": 2}, "     5→one\n     6→two", 5)])
def test_a_part_is_seen_where_it_stands(arguments: Any, content: str, first_line: int) -> None:
    seen = of(arguments, content)[0]
    assert (seen.first_line, seen.lines, seen.is_whole) == (first_line, ("one", "two"), False)


def test_what_a_search_found_is_seen_line_by_line() -> None:
    assert of({"pattern": "x", "path": "/w", "output_mode": "content"}, "./a.py:3:x = 1\nb/c.py:9:x()") == [
        FileLines("/w/a.py", 3, ("x = 1",), False), FileLines("/w/b/c.py", 9, ("x()",), False)]
    assert of({"command": "grep -rn x ."}, "./a.py:3:x = 1\n")[0] == FileLines("a.py", 3, ("x = 1",), False)


def test_what_was_cut_is_seen_up_to_there() -> None:
    seen = of({"command": "cat a.py"}, "one\ntwo\nthr\n\n... [truncated] ...\n\nnine\n")[0]
    assert seen == FileLines("a.py", 1, ("one", "two"), False)


@pytest.mark.parametrize("arguments", [
    {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"},
    {"path": "a.py", "command": "str_replace", "old_str": "x = 1", "new_str": "x = 2"},
    {"file_path": "a.py", "edits": [{"old_string": "x = 1", "new_string": "x = 2"}]},
    {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"},
    {"command": "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\nEOF"}])
def test_an_edit_is_applied(arguments: Any) -> None:
    [edit] = of(arguments)
    assert edit.path == "a.py" and edit.applied("import os\nx = 1\n") == "import os\nx = 2\n" and edit.applied("y\n") is None


def test_a_file_is_written_and_lines_are_inserted() -> None:
    assert of({"file_path": "a.py", "content": "new\n"})[0].applied(None) == "new\n"
    assert of({"command": "create", "path": "a.py", "file_text": ""})[0].applied("old") == ""
    assert of({"command": "insert", "path": "a.py", "insert_line": 1, "new_str": "b"})[0].applied("a\nc\n") == "a\nb\nc\n"


@pytest.mark.parametrize(("command", "switches", "writes"), [
    ("git status --short", False, False), ("git checkout -q -b fix/x && git commit -qam x && git push", False, False),
    ("git checkout main", True, True), ("git pull --rebase", True, True), ("python -m pytest -q tests", False, False),
    ("sed -i s/a/b/ a.py", False, True), ("echo x > a.py", True, True), ("make format", False, True),
    ("cat a.py | head", False, False)])
def test_it_is_known_what_a_command_may_change(command: str, switches: bool, writes: bool) -> None:
    ran = of({"command": command}, "")[-1]
    assert isinstance(ran, CommandRun) and (ran.switches, ran.writes) == (switches, writes)


def test_a_failed_edit_changed_nothing_and_a_failed_command_has_its_code() -> None:
    assert of({"file_path": "a.py", "old_string": "x", "new_string": "y"}, "not found", True) == []
    [ran] = of({"command": "cat b.py"}, '{"output": "no such file", "metadata": {"exit_code": 1}}')
    assert ran == CommandRun("cat b.py", "no such file", 1, False, False)


NAMES = st.sampled_from(["command", "path", "old_string", "new_string", "edits", "input", "offset", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8)


@given(VALUES, st.none() | st.text(max_size=30))
def test_no_call_is_too_strange(arguments: Any, content: str | None) -> None:
    for each in of(arguments, content):
        assert isinstance(each, FileEdit | CommandRun | FileLines)
        if isinstance(each, FileEdit):
            each.applied("one\ntwo\n")
