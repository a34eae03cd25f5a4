"""Makes a small repository in a folder: commits on the main branch, an hour apart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain
from dulwich.repo import Repo

from extractors.workspaces.repository import Repository

FIRST = datetime(2026, 3, 2, tzinfo=UTC)


def commit_all(folder: Path, *commits: tuple[str, dict[str, str]]) -> None:
    """Commit each of the messages with the files that it changes."""
    folder.mkdir(exist_ok=True)
    with Repo.init(str(folder), default_branch=b"main") as repo:
        for n, (message, files) in enumerate(commits):
            for name, text in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            porcelain.add(repo, [str(folder / name) for name in files])
            at = int((FIRST + timedelta(hours=n)).timestamp())
            porcelain.commit(repo, message.encode(), author=b"A <a@example.org>", committer=b"A <a@example.org>",
                             author_timezone=0, commit_timezone=0, commit_timestamp=at, author_timestamp=at)


def repository_fixture(name: str, *commits: tuple[str, dict[str, str]]) -> Any:
    """Return a fixture `repository`, one for a module: a repository of this name with these commits, opened."""
    @pytest.fixture(scope="module", name="repository")
    def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
        folder = tmp_path_factory.mktemp("repositories") / name
        commit_all(folder, *commits)
        with Repository.open(folder) as opened:
            yield opened

    return made
