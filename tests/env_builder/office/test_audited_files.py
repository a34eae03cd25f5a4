"""Files are rebuilt from audit events as they were at any instant, with the download that each began as."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder import Environment
from env_builder.backends import AppSource, assemble
from env_builder.office.audited_files import FileHistory, PageDownload, file_history, stored_below
from env_builder.runtime.origins import origin_text
from extractors.inventory import SourceFile
from extractors.reading import read
from tests.apps import task

BEGIN = datetime(2031, 1, 1, tzinfo=UTC)
STORE = {hashlib.sha256(text).hexdigest(): text for text in (b"one", b"two", b"three")}
ONE, TWO, THREE = STORE


def event(second: float, op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"at": (BEGIN + timedelta(seconds=second)).isoformat(), "user": "ann", "process": "browser", "op": op,
            "path": f"/home/{path}", **{name: f"/home/{value}" if name == "to" else value for name, value in more.items()}}


def history_of(folder: Path, *events: dict[str, Any], downloads: tuple[PageDownload, ...] = ()) -> FileHistory:
    (folder / "audit.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    return file_history(read(SourceFile(folder / "audit.jsonl", "audit.jsonl")).events, STORE.get, downloads)


def download(second: float, url: str, name: str, user: str | None = "ann") -> PageDownload:
    return PageDownload(BEGIN + timedelta(seconds=second), user, url, name)


def at(history: FileHistory, second: float) -> dict[str, tuple[str | None, str | None]]:
    """Return hash and address of each file that is there at an instant."""
    instant = (BEGIN + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    there = [each for each in history.versions if (each.since or "") <= instant < (each.until or "9")]
    assert len({each.path for each in there}) == len(there), "one content at a time"
    return {each.path.removeprefix("home/"): (each.hash, each.origin and json.loads(each.origin)["url"]) for each in there}


def test_a_download_keeps_its_origin_through_names_and_copies(tmp_path: Path) -> None:
    history = history_of(
        tmp_path, event(1, "create", "in/a.pdf", sha256=ONE, size=3), event(2, "rename", "in/a.pdf", to="in/b.pdf"),
        event(3, "copy", "in/b.pdf", to="done/b.pdf"), event(4, "delete", "in/b.pdf"),
        event(5, "modify", "done/b.pdf", sha256=TWO, size=3), downloads=(download(.5, "/papers/1", "a.pdf"),))
    assert [at(history, second + .5) for second in range(6)] == [
        {}, {"in/a.pdf": (ONE, "/papers/1")}, {"in/b.pdf": (ONE, "/papers/1")},
        {"in/b.pdf": (ONE, "/papers/1"), "done/b.pdf": (ONE, "/papers/1")}, {"done/b.pdf": (ONE, "/papers/1")},
        {"done/b.pdf": (TWO, None)}]
    assert history.versions[-1].content == b"one" and history.versions[-1].origin == origin_text("site", "/papers/1", ONE)


@pytest.mark.parametrize(("downloads", "url"), [
    ((download(0, "/x", "a.pdf"),), "/x"), ((download(0, "/x", "a.pdf", None),), "/x"),
    ((download(0, "/x", "a.pdf"), download(-3, "/x", "a.pdf")), "/x"),
    ((download(0, "/x", "a.pdf"), download(-3, "/y", "a.pdf")), None),
    ((download(0, "/x", "a.pdf", "bea"),), None), ((download(0, "/x", "b.pdf"),), None),
    ((download(-600, "/x", "a.pdf"),), None), ((download(30, "/x", "a.pdf"),), None), ((), None)])
def test_an_origin_is_the_one_download_that_fits(tmp_path: Path, downloads: tuple[PageDownload, ...], url: str | None) -> None:
    for name in ("a.pdf", "a (1).pdf"):
        history = history_of(tmp_path, event(1, "create", f"in/{name}", sha256=ONE), downloads=downloads)
        assert at(history, 2) == {f"in/{name}": (ONE, url)}
    is_ambiguous = "ambiguous_origin" in history.decisions["reason"]
    assert is_ambiguous == (len({each.url for each in downloads}) == 2)


def test_a_file_from_before_the_log_is_there_and_its_bytes_are_not(tmp_path: Path) -> None:
    history = history_of(
        tmp_path, event(1, "rename", "in/old.txt", to="done/old.txt"),
        event(2, "create", "in/lost.pdf", sha256="f" * 64, size=9), event(3, "create", "in/a.txt", sha256=TWO))
    assert at(history, .5) == {"in/old.txt": (None, None)} and at(history, 1.5) == {"done/old.txt": (None, None)}
    environment = tmp_path / "environments" / "x"
    tools = [AppSource("files", "files", history.versions, {"style": "short"})]
    assemble("x", tools, [task()], [], environment, tmp_path / "rewards" / "x")
    env = Environment.load(environment)
    env.reset("t" * 64)
    for path in ("home/done/old.txt", "home/in/lost.pdf"):
        result = env.call("files_read", {"path": path})
        assert (result.is_error, result.tier) == (True, "unknown") and "not on record" in result.content
    assert [(row["path"], row["size"]) for row in json.loads(env.call("files_list", {}).content)] == [
        ("home/done/old.txt", None), ("home/in/a.txt", 3), ("home/in/lost.pdf", 9)]
    assert env.call("files_hash", {"path": "home/done/old.txt"}).tier == "unknown"
    assert json.loads(env.call("files_hash", {"path": "home/in/lost.pdf"}).content) == {"sha256": "f" * 64, "size": 9}
    assert env.call("files_find", {"text": "two"}).tier == "unknown"
    assert "in/a.txt" in env.call("files_find", {"text": "two", "pattern": "*a.txt"}).content
    env.call("files_move", {"source": "home/done/old.txt", "destination": "home/old.txt"})
    assert json.loads(env.difference()["documents"]["file/home/old.txt"]) == {"hash": None, "mode": "0644", "size": None}
    assert not env.unknown_writes, "no call that may write was unknown"


def test_what_cannot_be_applied_is_rejected(tmp_path: Path) -> None:
    history = history_of(tmp_path, event(1, "create", "a.txt", sha256=ONE), event(2, "rename", "a.txt"))
    assert history.decisions.filter(pl.col("kept").not_())["reason"].to_list() == ["no_destination"]
    assert at(history, 3) == {"a.txt": (ONE, None)}


def test_stored_bytes_are_those_of_their_hash(tmp_path: Path) -> None:
    (tmp_path / f"{ONE}.pdf").write_bytes(b"one")
    (tmp_path / f"{TWO}.pdf").write_bytes(b"damaged")
    assert [stored_below(tmp_path)(name) for name in STORE] == [b"one", None, None]


PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "e/a"])
OPERATIONS = st.lists(st.one_of(
    st.tuples(st.just("create"), PATHS, st.sampled_from(list(STORE))),
    st.tuples(st.sampled_from(["rename", "copy"]), st.sampled_from(["a", "b", "d/a", "d", "e/a"]), PATHS | st.just("f")),
    st.tuples(st.just("delete"), st.sampled_from(["a", "d/a", "d", "e"]), st.none())), max_size=12)


def _done(tree: dict[str, str], operation: tuple[str, str, Any]) -> dict[str, str] | None:
    """Return a tree after an operation; None where it makes no sense there."""
    name, path, more = operation
    chosen = [each for each in tree if each == path or each.startswith(path + "/")]
    if name == "create":
        return None if any(each.startswith(path + "/") for each in tree) else {**tree, path: more}
    if not chosen or (more is not None and (more + "/").startswith(path + "/")):
        return None
    moved = {more + each.removeprefix(path): tree[each] for each in chosen} if more else {}
    kept = tree if name == "copy" else {each: value for each, value in tree.items() if each not in chosen}
    return {**kept, **moved}


@given(OPERATIONS)
def test_files_are_as_they_were_after_each_event(operations: list[tuple[str, str, Any]]) -> None:
    trees: list[dict[str, str]] = [{}]
    rows = []
    for operation in operations:
        after = _done(trees[-1], operation)
        if after is not None:
            name, path, more = operation
            facts = {"operation": name, "path": f"/home/{path}"} | (
                {"sha256": more} if name == "create" else {"to": f"/home/{more}"} if more else {})
            rows.append({"format": "file_audit", "arguments": json.dumps(facts), "name": "ann", "event_id": "e", "file_id": "f",
                         "happened_at": BEGIN + timedelta(seconds=len(trees))})
            trees.append(after)
    if rows:
        history = file_history(pl.DataFrame(rows), STORE.get)
        for second, tree in enumerate(trees):
            assert {path: own for path, (own, _) in at(history, second + .5).items()} == tree
