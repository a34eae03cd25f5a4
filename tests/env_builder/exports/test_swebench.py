"""Rows of SWE-bench: patches that git takes, and what stands in a row."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from env_builder.backends import AppSource, assemble
from env_builder.exports.kit import Kit, kit_of
from env_builder.exports.patches import git_patch
from env_builder.exports.swebench import EXPORTER
from env_builder.runtime.canonical import canonical
from env_builder.runtime.workspace.sandbox import LINK, ChangedFile
from env_builder.runtime.workspace.trees import lay_out, packed
from env_builder.shell import WorkspaceContent, WorkspaceStart
from env_builder.shell.recipe import RepositoryRecipe
from env_builder.shell.selecting import select


def text(content: str, mode: int = 0o100644) -> ChangedFile:
    return ChangedFile(content.encode(), mode)


TREE = {
    "lamp.c": text("wick\noil\nshade\n"), "old.c": text("gone\nsoon"), "crlf.txt": text("one\r\ntwo\r\nthree\r\n"),
    "end.txt": text("first\nlast"), "run.sh": text("echo\n"), "a name.txt": text("x\n"), "empty.txt": text(""),
    "picture.png": ChangedFile(b"\x89PNG\0\xff" * 40, 0o100644), "place": text("a file\n"),
    "page.txt": text("a\x0cb\x1cc\rd\u2028e\n"),
    "tests/test_lamp.py": text("assert wick\n"), "tests/test_gone.py": text("assert gone\n")}
CHANGES: dict[str, ChangedFile | None] = {
    "lamp.c": text("wick\nmore oil\nshade\n"), "old.c": None, "crlf.txt": text("one\r\n2\r\nthree\n"),
    "end.txt": text("first\nlast\n"), "run.sh": text("echo\n", 0o100755), "a name.txt": text("y"), "empty.txt": text("full\n"),
    "picture.png": ChangedFile(b"\x89PNG\0\xfe" * 30, 0o100644), "new/deep.c": text("new\n"), "void.c": text(""),
    "place": ChangedFile(b"lamp.c", LINK),
    "page.txt": text("a\x0cb\x1cc\rd\u2028f\n"), 'q"uote.c': text("z\n"), "grosse_ä.c": text("ä\n"),
    "data.bin": ChangedFile(bytes(range(256)), 0o100644)}


def applied(tree: dict[str, ChangedFile], patch: str, folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return what git makes of a tree with a patch."""
    lay_out(tree, folder)

    def git(*words: str, given: bytes | None = None) -> bytes:
        return subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=folder, input=given, check=True,
                              capture_output=True).stdout

    git("init", "-q")
    git("add", "-A", "-f")
    git("apply", "--index", "-", given=patch.encode())
    files = {}
    for line in git("ls-files", "-s", "-z").decode().split("\0")[:-1]:
        facts, _, path = line.partition("\t")
        files[path] = git("cat-file", "blob", facts.split()[1]), facts.split()[0]
    return files


def test_git_makes_of_the_tree_what_the_patch_says(tmp_path: Path) -> None:
    after = {path: file for path, file in (TREE | CHANGES).items() if file is not None}
    assert applied(TREE, git_patch(TREE, CHANGES), tmp_path / "tree") == {
        path: (file.content, f"{file.mode:o}") for path, file in after.items()}
    assert git_patch(TREE, TREE) == ""


START = {name: TREE[name] for name in ("lamp.c", "old.c", "tests/test_lamp.py", "tests/test_gone.py")}
TESTS = {"tests/test_lamp.py": text("assert wick\nassert oil\n"), "tests/test_new.py": text("assert new\n")}
RECIPE = RepositoryRecipe(minor=11, requirements=("pluggy==1.6.0 --hash=sha256:0",), env=(("PYTHONPATH", "/repo"),))
ORIGIN = {"repository": "lamp", "base_commit": "c" * 40, "dirty": json.dumps({"lamp.c": "wick\n", "notes": None}),
          "recipe_id": RECIPE.digest, "recipe": RECIPE.to_json()}


FIRST, LATER = "2026-03-02T08:00:00+00:00", "2026-03-02T08:00:00.500000+00:00"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """Return an environment of two tasks of one repository."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("tasks", "rubrics", "solutions", "verify")}
    for name, split in (("one", "train"), ("two", "held_out")):
        rows["tasks"].append({
            "task_id": name, "session_ids": [name], "split": split, "family": "fix", "goal": "It needs oil", "starts_at": None,
            "opening": [{"role": "user", "content": "It needs oil"}], "user": {"turns": ["thanks"]}, "slots": {},
            "segment_of": None, "derived_from": None, "limits": {"steps": 9, "seconds": 9.0}})
        rows["rubrics"].append({
            "format": "traceroom-rubric/1", "rubric_id": f"{name}-tests", "task_id": name, "partial": 0.5, "checks": [
                {"check_id": "tests", "kind": "verified", "role": "gate", "weight": 1.0, "description": "Tests pass.",
                 "parameters": {"part": "fail_to_pass"}}]})
        rows["solutions"].append({"task_id": name, "steps": [
            {"tool": "write", "arguments": {"path": "lamp.c", "content": "wick\nlots of oil\nshade\n"}},
            {"tool": "shell", "arguments": {"command": "rm -- old.c"}}]})
        rows["verify"].append({"task_id": name, "tests": f"{name} tests", "fail_to_pass": ["lamp::oil"],
                               "pass_to_pass": ["lamp::wick"], "known_lines": 2, "questions": None})
    content = WorkspaceContent(RECIPE.workspace_row, {"one": START, "two": START},
                               [WorkspaceStart(name, name, name, at) for name, at in (("one", FIRST), ("two", LATER))], {},
                               [{"class": "issue", "number": 1, "from": FIRST, "to": LATER, "value": {"title": "as it was"}},
                                {"class": "issue", "number": 1, "from": LATER, "to": None, "value": {"title": "two"}}])
    room, grader = tmp_path / "environments" / "code-lamp", tmp_path / "rewards" / "code-lamp"
    assemble("code-lamp", [AppSource("code", "shell", content)], rows["tasks"], rows["rubrics"], room, grader,
             rows["solutions"], secrets={
                 "apps/code/known.pack": packed({"one tests": TESTS, "two tests": TESTS}),
                 "apps/code/verify.jsonl": "".join(canonical(row) + "\n" for row in rows["verify"]).encode()})
    return kit_of(room, grader)


def test_a_row_has_what_an_evaluation_of_swe_bench_reads(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    written = EXPORTER.write(tmp_path / "to", kit._replace(origins={"one": ORIGIN}))
    (tmp_path / "again").mkdir()
    EXPORTER.write(tmp_path / "again", kit._replace(origins={"one": ORIGIN}))
    for path in (tmp_path / "to").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert kit.digest in (tmp_path / "to" / "README.md").read_text("utf-8")
    row = json.loads((tmp_path / "to" / "train.jsonl").read_text("utf-8"))
    assert (row["instance_id"], row["repo"], row["base_commit"], row["problem_statement"], row["hints_text"]) == (
        "lamp__one", "lamp", "c" * 40, "It needs oil", "thanks")
    assert (row["FAIL_TO_PASS"], row["PASS_TO_PASS"]) == ('["lamp::oil"]', '["lamp::wick"]')
    assert row["start_files"] == '{"lamp.c": "wick\\n"}'
    assert row["install_config"]["python"] == "3.11" and row["install_config"]["pip_packages"] == ["pluggy==1.6.0"]
    solved = applied(START, row["test_patch"] + row["patch"], tmp_path / "tree")
    assert {path: content.decode() for path, (content, _) in solved.items()} == {
        "lamp.c": "wick\nlots of oil\nshade\n", "tests/test_lamp.py": "assert wick\nassert oil\n",
        "tests/test_new.py": "assert new\n"}
    assert written.decisions.select("subject", "reason").rows() == [("two", "no_commit")]


def test_a_selection_of_tasks_has_nothing_of_the_others(kit: Kit, tmp_path: Path) -> None:
    room, grader = tmp_path / "to" / "environments" / "code-lamp", tmp_path / "to" / "rewards" / "code-lamp"
    select(kit.room, kit.grader, {"one"}, (room, grader))
    chosen = kit_of(room, grader)
    assert [task["task_id"] for task in chosen.tasks] == ["one"] and chosen.digest != kit.digest
    assert b"two" not in b"".join(path.read_bytes() for path in (*room.glob("apps/code/*.jsonl"), *grader.rglob("*.jsonl")))
    assert b"as it was" in (room / "apps/code/host.jsonl").read_bytes()
    select(room, grader, {"one"}, (tmp_path / "again" / "room", tmp_path / "again" / "grader"))
    assert kit_of(tmp_path / "again" / "room", tmp_path / "again" / "grader").digest == chosen.digest
