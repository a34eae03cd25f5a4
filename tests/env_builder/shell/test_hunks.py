"""Hunks of a change, and what a file is without one of them."""

from __future__ import annotations

from env_builder.shell.hunks import hunks

OLD = b"".join(b"%d\n" % n for n in range(30))


def test_each_hunk_alone_is_turned_back() -> None:
    new = OLD.replace(b"\n3\n", b"\nthree\n").replace(b"\n5\n", b"\n").replace(b"\n25\n", b"\n25\nmore\n\n")
    first, second = hunks(OLD, new)
    assert (first.line, first.n_lines, first.added) == (4, 3, ("three",))
    assert first.without == OLD.replace(b"\n25\n", b"\n25\nmore\n\n")
    assert (second.line, second.n_lines) == (26, 1)
    assert second.without == new.replace(b"more\n\n", b"")


def test_empty_lines_and_files_that_are_no_text_are_no_hunks() -> None:
    assert hunks(OLD, OLD + b"\n\n") == [] and hunks(OLD, OLD) == [] and hunks(b"a\0", b"b\0") == []
