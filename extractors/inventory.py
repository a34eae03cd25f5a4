"""Which files a run reads, and which it leaves alone.

In: files and folders. Out: the files to read in a fixed order, and a verdict for each that is left.
A folder called `truth` (in any case) is never read; hidden files are passed over. Sees names of files and folders only:
whether a file is a log is seen from its content, in `extractors.reading`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from extractors.configuration import Configuration, Source
from warehouse.errors import InputError
from warehouse.records import Verdict, frame

NEVER_READ = "truth"


@dataclass(frozen=True)
class SourceFile:
    """A file to read."""

    path: Path
    relative: str
    """Its path below the folder that was given (its name where the file itself was given), with `/`."""
    source: Source = field(default_factory=Source)


def discover(paths: Sequence[Path | str], only: Iterable[str] = (), without: Iterable[str] = (),
             configuration: Configuration | None = None) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files below `paths` (else below the configured sources), sorted by relative path, and verdicts on those left.

    `only`, `without`: names of folders (any component below the given path) to read alone, to leave out. A file that
    lies below two given paths is read once. Errors: `InputError` for a path that does not exist or holds nothing.
    """
    configuration = configuration or Configuration()
    given = [Path(path) for path in paths] or [Path(path) for source in configuration.sources for path in source.paths]
    if not given:
        raise InputError("there is nothing to read", mend="name a log file or a folder with logs")
    wanted, unwanted = frozenset(only), frozenset(without)
    found: dict[Path, SourceFile] = {}
    left: dict[str, Verdict] = {}
    for root in given:
        for path, relative in _files(root):
            reason = "truth_folder" if _is_truth(root) else _left(relative, wanted, unwanted)
            if reason is not None:
                left.setdefault(relative, _verdict(relative, reason))
            else:
                real = path.resolve()
                found.setdefault(real, SourceFile(path, relative, _source(real, configuration)))
    files = sorted(found.values(), key=lambda each: (each.relative, str(each.path)))
    return files, frame(Verdict, [left[name] for name in sorted(left)])


def content_id(source: str, content: bytes) -> str:
    """Id of a file: sha256 over its source's name and its content."""
    digest = hashlib.sha256(source.encode() + b"\0")
    digest.update(content)
    return digest.hexdigest()


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    if root.is_file():
        yield root, root.name
    elif root.is_dir():
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in relative.parts):
                yield path, relative.as_posix()
    else:
        raise InputError("there is no such file or folder", str(root), "check the path")


def _is_truth(root: Path) -> bool:
    """Whether what was given is itself a folder that is never read, or a file right in one."""
    return (root.resolve().parent if root.is_file() else root.resolve()).name.casefold() == NEVER_READ


def _left(relative: str, only: frozenset[str], without: frozenset[str]) -> str | None:
    folders = frozenset(relative.split("/")[:-1])
    if NEVER_READ in {folder.casefold() for folder in folders}:
        return "truth_folder"
    if (only and not only & folders) or without & folders:
        return "left_by_choice"
    return None


_DETAILS = {"truth_folder": "is in a folder called truth, which is never read; nothing to mend",
            "left_by_choice": "was left out by --only or --without; change them to read it"}


def _verdict(relative: str, reason: str) -> Verdict:
    return Verdict(stage="extract", subject=relative, kept=False, reason=reason, detail=f"{relative} {_DETAILS[reason]}.")


def _source(path: Path, configuration: Configuration) -> Source:
    """The first configured source that holds `path`; one without paths holds all; else the source `main`."""
    for source in configuration.sources:
        roots = [Path(each) for each in source.paths]
        if not roots or any(path == root or root in path.parents for root in roots):
            return source
    return Source()
