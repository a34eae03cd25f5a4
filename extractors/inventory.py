# Strings: of many thousands of files, `Path` takes longer than the disk.
# ruff: noqa: PTH100, PTH112, PTH113, PTH114, PTH118, PTH119, PTH120, PTH207
"""Which files a run reads, and which it leaves alone.

In: files, folders, globs and `s3://` addresses. Out: the files to read in a fixed order, and a verdict for each that is left.
A folder called `truth` (in any case) is never read; hidden files are passed over. A folder whose files are one log (see
`extractors.bundles`) is one file. Sees names of files and folders only: whether a file is a log is seen from its content, in
`extractors.reading`.
"""

from __future__ import annotations

import glob
import itertools
import os
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
    listed: Stamp | None = None
    """Its stamp where a list of objects told it: to ask for each would take longer."""

    @property
    def place(self) -> str:
        """Where it lies, for people and for the ledger."""
        return self.url or _told(os.path.abspath(self.path))

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
        if self.listed:
            return self.listed
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
        for each in _files(root):
            reason = each.reason or _left(each.relative, wanted, unwanted)
            if reason is not None:
                left.setdefault(each.relative, _verdict(each.relative, reason))
            else:
                found.setdefault(each.real, SourceFile(
                    each.path, each.relative, _source(each.real, configuration), each.url, listed=each.stamp))
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


class _Found(NamedTuple):
    """A file (or a folder that cannot be opened) below what was given."""

    path: Path
    relative: str
    real: str
    """Where it lies when links are followed, or its address."""
    url: str | None = None
    stamp: Stamp | None = None
    reason: str | None = None
    """Why it is left, where more than its path tells that."""


def _files(given: str) -> Iterator[_Found]:
    """Files below what was given (a file, a folder, a glob, an address)."""
    if objects.is_url(given):
        for each in objects.below(given):
            reason = "truth_folder" if each.folder.casefold() == NEVER_READ else None
            if not any(part.startswith(".") for part in each.relative.split("/")):
                yield _Found(Path(each.relative), each.relative, each.url, each.url, Stamp(*each.stamp), reason)
    elif os.path.isfile(given):
        yield _file(given, os.path.dirname(given))
    elif os.path.isdir(given):
        yield from _below(given, given)
    elif glob.has_magic(given):
        yield from _fitting(given)
    else:
        raise InputError("there is no such file or folder", given, "check the path")


def _fitting(pattern: str) -> Iterator[_Found]:
    """Files that fit a pattern, or lie below a folder that does; they are called by their path below its first part that is
    no pattern."""
    root = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.split("/")))
    root = root or ("/" if pattern.startswith("/") else ".")
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise InputError("no file fits the pattern", pattern, "check the pattern")
    for each in found:
        if os.path.isdir(each):
            yield from _below(each, root)
        elif os.path.isfile(each):
            yield _file(each, root)


def _below(folder: str, root: str) -> Iterator[_Found]:
    """Files of a folder and its folders; links to folders are not followed, what cannot be opened is told."""
    refused: list[OSError] = []
    for where, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        lies_in = os.path.realpath(where)
        for name in names:
            if not name.startswith(".") and os.path.isfile(path := os.path.join(where, name)):
                yield _file(path, root, lies_in)
    for error in refused:
        relative = _told(os.path.relpath(str(error.filename), root))
        yield _Found(Path(str(error.filename)), relative, relative, reason="unreadable_folder")


def _file(path: str, root: str, lies_in: str | None = None) -> _Found:
    """A file below `root`; `lies_in`: where its folder lies when links are followed."""
    is_known = lies_in is not None and not os.path.islink(path)
    real = os.path.join(str(lies_in), os.path.basename(path)) if is_known else os.path.realpath(path)
    above = {os.path.basename(os.path.dirname(real)), os.path.basename(os.path.realpath(root))}
    reason = "truth_folder" if NEVER_READ in {name.casefold() for name in above} else None
    return _Found(Path(path), _told(os.path.relpath(path, root).replace(os.sep, "/")), real, reason=reason)


def _told(name: str) -> str:
    """A name in characters alone: a file may be called by any bytes."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def _left(relative: str, only: frozenset[str], without: frozenset[str]) -> str | None:
    folders = frozenset(relative.split("/")[:-1])
    if NEVER_READ in {folder.casefold() for folder in folders}:
        return "truth_folder"
    if (only and not only & folders) or without & folders:
        return "left_by_choice"
    return None


_DETAILS = {"truth_folder": "is in a folder called truth, which is never read; nothing to mend",
            "unreadable_folder": "is a folder that cannot be opened; check its permissions",
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
