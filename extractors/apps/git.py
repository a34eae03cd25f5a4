"""Git repositories as bundles: the commits of the main line, and the text of every file at each of them.

Sees: the main line's commits by their first parents, in their order; a commit applies from its committer's time on, never
before the one it follows. Does not see: when a commit was pushed; other branches. Needs the extra `code` (dulwich).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from extractors.apps.version import BEGINNING, PRESENT, AppRow, AppVersion, CompanyApp, ExportFile, UnreadPart, all_of
from extractors.workspaces.repository import Commit, Repository, TreeFile
from warehouse.errors import InputError
from warehouse.records import RecordKind

FILE, COMMIT = "file", "commit"
_AUTHOR = re.compile(r"^(.*?)\s*<([^>]*)>$")


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file is a bundle."""
    return file.content.startswith((b"# v2 git bundle", b"# v3 git bundle"))


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of the files of each repository."""
    for file in files:
        try:
            repository = Repository.of_bundle(file.content, file.name.removesuffix(".bundle"), file.path)
        except InputError as error:
            yield UnreadPart(file.path, "", "unreadable_repository", f"{error}")
            continue
        yield from _commits(repository, file.path)


def _main_line(repository: Repository) -> list[Commit]:
    """Return the commits of the main line, the first one first."""
    line, tip = [], repository.main
    while tip is not None and (commit := repository.commits.get(tip)) is not None:
        line.append(commit)
        tip = commit.parents[0] if commit.parents else None
    return line[::-1]


def _commits(repository: Repository, path: str) -> Iterator[AppVersion]:
    before: str | None = None
    at = BEGINNING
    for number, commit in enumerate(_main_line(repository)):
        at = max(at, int(commit.at.timestamp() * 1_000_000))
        for name, (_, new) in repository.changes(before, commit.tree_id).items():
            yield from _file(repository, f"{repository.name}:{name}", new, at, number, f"{path}#{commit.commit_id}")
        yield from _commit(repository, commit, at, number, f"{path}#{commit.commit_id}")
        before = commit.tree_id


def _commit(repository: Repository, commit: Commit, at: int, number: int, record: str) -> Iterator[AppVersion]:
    match = _AUTHOR.match(commit.author)
    email = match[2].casefold() if match else None
    fields = [("message", commit.message.rstrip("\n")), ("author", match[1] if match else commit.author), ("email", email),
              ("authored", None if commit.authored is None else commit.authored.timestamp())]
    yield from all_of(COMMIT, f"{repository.name}@{commit.commit_id}", fields, at, sequence=number, actor=email, record=record)


def _file(repository: Repository, key: str, new: TreeFile | None, at: int, number: int, record: str) -> Iterator[AppVersion]:
    if new is None:
        yield AppVersion(FILE, key, PRESENT, False, at, number, None, BEGINNING, record)
        return
    text = repository.text(new.blob_id)
    yield AppVersion(FILE, key, PRESENT, True, at, number, None, BEGINNING, record)
    yield AppVersion(FILE, key, "text" if text is not None else "blob", new.blob_id if text is None else text, at, number, None,
                     BEGINNING, record)


APP = CompanyApp("git", claims, read, rank=28, kinds=(
    RecordKind(COMMIT, texts=("message",), follows=("authored",)),
    RecordKind(FILE, texts=("text",), part_of=COMMIT),
))
