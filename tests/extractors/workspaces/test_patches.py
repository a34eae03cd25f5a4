"""Patches: what was changed is what comes out when they are applied."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.workspaces.patches import file_patches, lines_of

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=6), min_size=1, max_size=12)


def diff(before: str, after: str) -> str:
    return "\n".join(difflib.unified_diff(lines_of(before), lines_of(after), "a/x.py", "b/x.py", lineterm=""))


@given(LINES, LINES)
def test_a_unified_diff_gives_the_text_after_it(before: list[str], after: list[str]) -> None:
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    patches = file_patches(diff(old, new))
    if old == new:
        assert patches == []
    else:
        assert [patch.path for patch in patches] == ["x.py"]
        assert patches[0].applied(old) == new


def test_each_file_of_a_diff_of_git_is_read() -> None:
    text = ("diff --git a/one.py b/one.py\nindex 1..2 100644\n"
            "--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
            "diff --git a/two.py b/two.py\nnew file mode 100644\n--- /dev/null\n+++ b/two.py\n@@ -0,0 +1 @@\n+new\n"
            "diff --git a/three.py b/three.py\ndeleted file mode 100644\n--- a/three.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n")
    one, two, three = file_patches(text)
    assert one.applied("a = 1\nb = 2\n") == "a = 1\nb = 3\n" and one.applied("a = 1\nb = 4\n") is None
    assert two.is_new and two.path == "two.py" and two.applied(None) == "new\n"
    assert three.is_deleted and three.path == "three.py"


@pytest.mark.parametrize("text", [
    "*** Begin Patch\n{}*** End Patch", "apply_patch <<'EOF'\n*** Begin Patch\n{}*** End Patch\nEOF\n"])
def test_the_patches_of_agents_are_read(text: str) -> None:
    body = ("*** Update File: a.py\n@@ def f():\n     x = 1\n-    return x\n+    return x + 1\n"
            "*** Add File: b.py\n+new\n+file\n*** Delete File: c.py\n*** Update File: d.py\n*** Move to: e.py\n@@\n-d\n+e\n")
    a, b, c, d = file_patches(text.format(body))
    assert a.applied("def f():\n    x = 1\n    return x\n") == "def f():\n    x = 1\n    return x + 1\n"
    assert b.applied(None) == "new\nfile\n" and c.is_deleted
    assert (d.path, d.moved_to, d.applied("d\n")) == ("d.py", "e.py", "e\n")


def test_hunks_are_placed_by_their_lines() -> None:
    [patch] = file_patches("--- a/x\n+++ b/x\n@@ -90,2 +90,2 @@\n one\n-two\n+2\n")
    assert patch.applied("zero\none\ntwo\n") == "zero\none\n2\n"


@pytest.mark.parametrize("text", [
    "", "a sentence", "--- \n", "@@ -1 +1 @@", "*** Begin Patch", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a"])
def test_what_is_no_whole_patch_does_no_harm(text: str) -> None:
    for patch in file_patches(text):
        patch.applied("a\n")
        patch.applied(None)
