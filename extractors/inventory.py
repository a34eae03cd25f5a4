"""Which files a run reads, and which it leaves alone.

In: files, folders, globs and `s3://` addresses. Out: the files to read in a fixed order, and a verdict for each that is left.
A folder called `truth` (in any case) is never read; hidden files are passed over. A folder whose files are one log (see
`extractors.bundles`) is one file. Sees names of files and folders only: whether a file is a log is seen from its content, in
`extractors.reading`.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO, NamedTuple

import polars as pl

from extractors import bundles, objects
from extractors.configuration import Configuration, Source
from warehouse.errors import InputError
from warehouse.records import Verdict, frame

NEVER_READ = "truth"


class Stamp(NamedTuple):
    """A file's size and when it was last written: a file with the same stamp at the same place is taken for the same."""

    n_bytes: int
    modified_ns: int


@dataclass(frozen=True)
class SourceFile:
    """A file to read."""

    path: Path
    relative: str
    """Its path below the folder that was given (its name where the file itself was given), with `/`."""
    source: Source = field(default_factory=Source)
    url: str | None = None
    """Where it lies on an object store (`s3://…`); its path is then a name alone."""
    members: tuple[str, ...] = ()
    """Of a folder that is read as one archive: the names below it. It is told anew as a whole whenever it has changed."""

    @property
    def place(self) -> str:
        """Where it lies, for people and for the ledger."""
        return self.url or str(self.path)

    def open(self) -> BinaryIO:
        """The file, opened to read its bytes. Errors: OSError."""
        if self.members:
            return bundles.packed((name, self._member(name).open) for name in self.members)
        return objects.opened(self.url) if self.url else self.path.open("rb")

    def stamp(self) -> Stamp:
        """What tells that it is still the same file without reading it. Errors: OSError."""
        if self.members:
            stamps = [self._member(name).stamp() for name in self.members]
            return Stamp(sum(each.n_bytes for each in stamps), max(each.modified_ns for each in stamps))
        if self.url:
            return Stamp(*objects.stamp(self.url))
        found = self.path.stat()
        return Stamp(found.st_size, found.st_mtime_ns)

    def _member(self, name: str) -> SourceFile:
        return SourceFile(self.path / name, f"{self.relative}/{name}", self.source, f"{self.url}/{name}" if self.url else None)


def discover(paths: Sequence[Path | str], only: Iterable[str] = (), without: Iterable[str] = (),
             configuration: Configuration | None = None) -> tuple[list[SourceFile], pl.DataFrame]:
    """Files below `paths` (else below the configured sources), sorted by relative path, and verdicts on those left.

    `only`, `without`: names of folders (any component below the given path) to read alone, to leave out. A file that
    lies below two given paths is read once. Errors: `InputError` for a path that does not exist or holds nothing.
    """
    configuration = configuration or Configuration()
    given = [str(path) for path in paths] or [path for source in configuration.sources for path in source.paths]
    if not given:
        raise InputError("there is nothing to read", mend="name a log file or a folder with logs")
    wanted, unwanted = frozenset(only), frozenset(without)
    found: dict[str, SourceFile] = {}
    left: dict[str, Verdict] = {}
    for root in given:
        for path, relative, url in _files(root):
            reason = "truth_folder" if _is_truth(path, relative) else _left(relative, wanted, unwanted)
            if reason is not None:
                left.setdefault(relative, _verdict(relative, reason))
            else:
                real = url or str(path.resolve())
                found.setdefault(real, SourceFile(path, relative, _source(real, configuration), url))
    files = sorted(_together(found), key=lambda each: (each.relative, each.place))
    return files, frame(Verdict, [left[name] for name in sorted(left)])


def _together(found: dict[str, SourceFile]) -> list[SourceFile]:
    """The files that were found, by where they really lie; those of one log as one."""
    for folder, members in bundles.bundles(found).items():
        state = found[f"{folder}/{bundles.STATE}"]
        above, _, _ = state.relative.rpartition("/")
        for name in members:
            del found[f"{folder}/{name}"]
        found[folder] = SourceFile(
            state.path.parent, above or folder.rpartition("/")[2], state.source, folder if state.url else None, members)
    return list(found.values())


def _files(given: str) -> Iterator[tuple[Path, str, str | None]]:
    """Files below what was given (a file, a folder, a glob, an address): path, path below it, and address."""
    if objects.is_url(given):
        yield from ((Path(relative), relative, url) for url, relative in objects.below(given))
        return
    root = Path(given)
    if root.is_file():
        yield root, root.name, None
    elif root.is_dir():
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in relative.parts):
                yield path, relative.as_posix(), None
    elif glob.has_magic(given):
        found = sorted(glob.glob(given, recursive=True))  # noqa: PTH207 (a pattern with folders of any depth, absolute or not)
        if not found:
            raise InputError("no file fits the pattern", given, "check the pattern")
        for each in found:
            yield from _files(each)
    else:
        raise InputError("there is no such file or folder", given, "check the path")


def _is_truth(path: Path, relative: str) -> bool:
    """Whether what was given is itself a folder that is never read, or a file right in one."""
    root = path.resolve().parents[relative.count("/")] if path.exists() else path.parent
    return root.name.casefold() == NEVER_READ


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


def _source(place: str, configuration: Configuration) -> Source:
    """The first configured source that holds the file at `place`; one without paths holds all; else the source `main`."""
    for source in configuration.sources:
        if not source.paths or any(_holds(root, place) for root in source.paths):
            return source
    return Source()


def _holds(root: str, place: str) -> bool:
    return place == root or place.startswith(root.rstrip("/") + "/") or (glob.has_magic(root) and fnmatch(place, root))
