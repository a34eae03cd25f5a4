"""Starts: the commit a session began at, or the reason why it is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain
from dulwich.repo import Repo

from extractors.workspaces.frames import Frame, frames
from extractors.workspaces.repository import Repository
from extractors.workspaces.starts import Checkout, NoStart, StartCommit, start_of
from tests.extractors.workspaces.commits import FIRST, commit_all
from warehouse.errors import InputError

VERSIONS = [{"src/a.py": "x = 1\n", "README.md": "Ask jo@example.org\n"}, {"src/a.py": "x = 2\ny = 3\n"},
            {"src/b.py": "z = 1\n"}, {"src/a.py": "x = 4\ny = 3\n"}]
"""Files that each commit changed, an hour apart."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repository")
    commit_all(path, *((f"change {n}", files) for n, files in enumerate(VERSIONS)))
    return path


@pytest.fixture(scope="module")
def repository(folder: Path) -> Iterator[Repository]:
    with Repository.open(folder) as opened:
        yield opened


def ids(repository: Repository) -> list[str]:
    return [commit.commit_id for commit in reversed(repository.history(repository.branch("main") or ""))]


def seen(*calls: tuple[Any, str]) -> list[Frame]:
    return [each for arguments, content in calls for each in frames(json.dumps(arguments), content, False)]


def start(repository: Repository, *calls: tuple[Any, str], hours: float = 9, commit: str | None = None,
          branch: str | None = "main") -> StartCommit | NoStart:
    return start_of(Checkout(FIRST + timedelta(hours=hours), commit, branch), seen(*calls), repository)


READ_B = ({"file_path": "/home/u/app/src/b.py"}, "     1→z = 1")


def read_a(text: str) -> tuple[Any, str]:
    return {"file_path": "/home/u/app/src/a.py"}, text


def test_the_last_commit_of_the_branch_at_that_time_is_the_start(repository: Repository) -> None:
    assert start(repository, READ_B, hours=2.5) == StartCommit(ids(repository)[2], "branch")
    assert start(repository, READ_B, hours=2.5, branch=None) == StartCommit(ids(repository)[2], "time")


def test_what_the_log_or_git_states_counts_first(repository: Repository) -> None:
    commits = ids(repository)
    stated = start(repository, READ_B, commit=commits[2][:9])
    assert stated == StartCommit(commits[2], "said", (commits[3],))
    logged = ({"command": "git log --oneline -3"}, f"{commits[2][:7]} change 2\n{commits[1][:7]} change 1\n")
    assert start(repository, logged, READ_B) == stated
    of_a_path = ({"command": "git log --oneline -3 -- src/a.py"}, f"{commits[1][:7]} change 1\n")
    assert start(repository, of_a_path, READ_B) == StartCommit(commits[3], "branch", (commits[2],))


def test_a_checkout_behind_its_branch_is_seen_by_its_files(repository: Repository) -> None:
    assert start(repository, read_a("x = 2\ny = 3\n")) == StartCommit(ids(repository)[2], "files", (ids(repository)[1],))
    edited = ({"file_path": "/home/u/app/src/a.py", "old_string": "x = 2\n", "new_string": "x = 9\n"}, "")
    assert start(repository, edited, read_a("x = 9\ny = 3\n")) == StartCommit(
        ids(repository)[2], "files", (ids(repository)[1],))


def test_a_start_that_contradicts_what_was_seen_is_none(repository: Repository) -> None:
    part = ({"file_path": "/home/u/app/src/a.py", "offset": 2, "limit": 1}, "     2→y = 7")
    made = start(repository, READ_B, part)
    assert isinstance(made, NoStart) and made.reason == "start_contradicts" and "src/a.py" in made.detail


def test_a_file_that_is_so_in_no_commit_is_laid_over_it(repository: Repository) -> None:
    assert start(repository, READ_B, read_a("x = 5\n")) == StartCommit(
        ids(repository)[3], "branch", (), {"src/a.py": "x = 5\n"})
    listed = ({"command": "git status --short"}, " M src/a.py\n?? notes.txt\n")
    assert start(repository, listed, READ_B, hours=2.5) == StartCommit(
        ids(repository)[2], "branch", (), {"src/a.py": None, "notes.txt": None})


def test_what_follows_a_switch_is_no_evidence(repository: Repository) -> None:
    switch = ({"command": "git checkout HEAD~3"}, "")
    assert start(repository, READ_B, switch, read_a("x = 1\n")) == StartCommit(
        ids(repository)[3], "branch", (ids(repository)[2],))


def test_what_privacy_replaced_contradicts_nothing(repository: Repository) -> None:
    readme = ({"file_path": "/home/u/app/README.md"}, "     1→Ask kim.lee@example.com")
    made = start(repository, readme, read_a("x = 2\ny = 3\n"))
    assert isinstance(made, StartCommit) and (made.commit_id, made.how, made.dirty) == (ids(repository)[2], "files", {})


def test_a_session_of_another_repository_has_no_start(repository: Repository) -> None:
    made = start(repository, ({"file_path": "/srv/other/main.go"}, "package main"))
    assert isinstance(made, NoStart) and made.reason == "not_of_the_repository"


def test_a_bundle_and_a_bare_clone_are_the_same_repository(folder: Path, repository: Repository, tmp_path: Path) -> None:
    porcelain.clone(str(folder), str(tmp_path / "app.git"), bare=True).close()
    with Repo(str(folder)) as repo, (tmp_path / "app.bundle").open("wb") as file:
        from dulwich.bundle import create_bundle_from_repo, write_bundle
        write_bundle(file, create_bundle_from_repo(repo))
    for path in (tmp_path / "app.git", tmp_path / "app.bundle"):
        with Repository.open(path) as opened:
            assert opened.name == "app" and list(opened.commits) == list(repository.commits)
            assert opened.branch("main") == repository.branch("main")


def test_files_are_looked_up_listed_and_compared(repository: Repository) -> None:
    first, _, third, last = (repository.commits[each] for each in ids(repository))
    assert repository.paths == {"src/a.py", "src/b.py", "README.md"}
    assert [repository.file(first, path) is not None for path in ("src/a.py", "src/b.py", "src", "README.md/x")] == [
        True, False, False, False]
    assert list(repository.changes(first.tree_id, last.tree_id)) == ["src/a.py", "src/b.py"]
    assert repository.changes(third.tree_id, last.tree_id) == {
        "src/a.py": (repository.file(third, "src/a.py"), repository.file(last, "src/a.py"))}
    assert repository.changes(last.tree_id, last.tree_id) == {}
    assert list(repository.changes(None, first.tree_id)) == ["README.md", "src/a.py"]


@pytest.mark.parametrize("content", [b"", b"# v2 git bundle\n", b"# v2 git bundle\n0 refs/heads/x\n\nPACK", b"PK\3\4"])
def test_what_is_no_repository_is_refused_with_a_hint(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.bundle").write_bytes(content)
    for path in (tmp_path / "x.bundle", tmp_path, tmp_path / "none"):
        with pytest.raises(InputError) as raised:
            Repository.open(path)
        assert raised.value.hint


def test_a_branch_that_the_repository_lacks_began_on_the_main_line(folder: Path, tmp_path: Path) -> None:
    porcelain.clone(str(folder), str(tmp_path / "app")).close()
    with Repo(str(tmp_path / "app")) as repo:
        porcelain.branch_create(repo, "other")
        porcelain.update_head(repo, "other")
        (tmp_path / "app" / "c.py").write_text("c\n")
        porcelain.add(repo, [str(tmp_path / "app" / "c.py")])
        at = int((FIRST + timedelta(hours=5)).timestamp())
        porcelain.commit(repo, b"aside", author=b"A <a@example.org>", committer=b"A <a@example.org>", author_timezone=0,
                         commit_timezone=0, commit_timestamp=at, author_timestamp=at)
    with Repository.open(tmp_path / "app") as repository:
        last = repository.branch("main") or ""
        assert repository.main == last
        made = start(repository, READ_B, branch="fix/my-own")
        assert isinstance(made, StartCommit) and (made.commit_id, made.how) == (last, "time")
