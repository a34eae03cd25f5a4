"""A pack holds trees as they are, each content once, in the same bytes whatever order they came in."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.workspace.sandbox import FOLDER, LINK, ChangedFile
from env_builder.runtime.workspace.trees import TreeFolders, changed, lay_out, packed, unpacked
from tests.workspaces import file

NAMES = st.text(st.characters(blacklist_characters="/\0"), min_size=1, max_size=5).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FILES = st.builds(ChangedFile, st.binary(max_size=20), st.sampled_from([0o100644, 0o100755, LINK]))
TREES = st.dictionaries(NAMES, st.dictionaries(PATHS, FILES, max_size=5), max_size=4)


@given(TREES, st.randoms(use_true_random=False))
def test_what_is_unpacked_is_what_was_packed_in_the_same_bytes_in_any_order(
        trees: dict[str, dict[str, ChangedFile]], chance: random.Random) -> None:
    pack = packed(trees)
    assert unpacked(pack) == trees
    shuffled = {name: dict(chance.sample(sorted(tree.items()), len(tree))) for name, tree in
                chance.sample(sorted(trees.items()), len(trees))}
    assert packed(shuffled) == pack


def test_a_content_costs_once() -> None:
    content = random.Random(1).randbytes(50_000)
    one = len(packed({"a": {"x": file(content)}}))
    many = len(packed({str(n): {"x": file(content), f"y{n}": file(content)} for n in range(20)}))
    assert many < one + 1000


@pytest.mark.parametrize("damage", [lambda pack: pack[:-10], lambda pack: b"no pack", lambda pack: b"", lambda pack: pack[5:]])
def test_what_is_no_pack_is_refused(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ValueError, match="no pack of trees"):
        unpacked(damage(packed({"a": {"x": file("1")}})))


def test_changes_are_made_in_any_order() -> None:
    tree = {"a/x": file("1"), "a/y": file("2"), "b": file("3"), "c/d/e": file("4")}
    changes = {"a": None, "a/z": file("5"), "b/in": file("6"), "b": None, "c": file("7"), "empty": ChangedFile(b"", FOLDER)}
    after = {"a/z": file("5"), "b/in": file("6"), "c": file("7")}
    for seed in range(20):
        assert changed(tree, dict(random.Random(seed).sample(sorted(changes.items()), len(changes)))) == after
    assert changed(tree, {}) == tree and changed(tree, {"c": ChangedFile(b"", FOLDER)}) == tree


def test_a_tree_that_is_laid_out_has_contents_modes_and_links(tmp_path: Path) -> None:
    folder = lay_out({"x/run": file("1", 0o100755), "x/read": file("2"), "to": file("x/read", LINK)}, tmp_path / "tree")
    assert (folder / "to").readlink() == Path("x/read") and (folder / "to").read_text() == "2"
    assert os.access(folder / "x/run", os.X_OK) and (folder / "x/read").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_folders_that_were_used_last_are_kept() -> None:
    kept = TreeFolders(most=2, kept_s=0)
    first, second = (kept.folder(name, lambda: {"x": file("1")}) for name in "ab")
    kept.folder("a", dict)
    third = kept.folder("c", lambda: {"x": file("2")})
    assert first.is_dir() and third.is_dir() and not second.exists()
    assert (kept.folder("b", lambda: {"x": file("3")}) / "x").read_text() == "3"


def test_folders_in_which_a_command_may_still_run_are_kept() -> None:
    kept = TreeFolders(most=1)
    laid = [kept.folder(name, lambda: {"x": file("1")}) for name in "abc"]
    assert all(each.is_dir() for each in laid)
