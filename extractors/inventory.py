# Strings: of many thousands of files, `Path` takes longer than the disk.
# ruff: noqa: PTH100, PTH112, PTH113, PTH114, PTH118, PTH119, PTH120, PTH207
"""List the files that a run reads, and decide on those that it does not.

Input: files, folders, globs and object stores. Output: files in a fixed order, and a decision for each rejected one. A
folder called `truth` (in any case) is never read; hidden files are skipped. A folder that is one conversation of OpenHands
(`base_state.json`, and each event in a file of its own), or an unpacked export of Slack (`channels.json` and `users.json`
next to folders of files named by days), is read as one archive, whose bytes depend on names below the folder and contents only;
an export that is larger than an archive may be is read file by file. Sees names only: `extractors.reading` decides by content
whether a file is a log."""

from __future__ import annotations

import glob
import itertools
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import polars as pl

from extractors import objects
from extractors.configuration import Configuration, Source
from warehouse.errors import InputError
from warehouse.records import Decision, frame

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
    """Of a folder that is read as one archive: the names below it. If it changes, it is read again as a whole."""
    listed: Stamp | None = None
    """Its stamp from a list of objects: a request for each would take longer."""

    @property
    def place(self) -> str:
        return self.url or _printable(os.path.abspath(self.path))

    def open(self) -> BinaryIO:
        if self.members:
            return pack((name, self._member(name).open) for name in self.members)
        return objects.opened(self.url) if self.url else self.path.open("rb")

    def stamp(self) -> Stamp:
        """Return what tells that it is still the same file without reading it. Errors: OSError."""
        if self.members:
            stamps = [self._member(name).stamp() for name in self.members]
            return Stamp(sum(each.n_bytes for each in stamps), max(each.modified_ns for each in stamps))
        if self.listed:
            return self.listed
        if self.url:
            return Stamp(*objects.stamp(self.url))
        status = self.path.stat()
        return Stamp(status.st_size, status.st_mtime_ns)

    def parts(self) -> list[SourceFile]:
        """Return the files of a folder that is one log; else the file itself."""
        return [self._member(name) for name in self.members] or [self]

    def _member(self, name: str) -> SourceFile:
        return SourceFile(self.path / name, f"{self.relative}/{name}", self.source, f"{self.url}/{name}" if self.url else None)


def discover(paths: Sequence[Path | str], only: Iterable[str] = (), without: Iterable[str] = (),
             configuration: Configuration | None = None) -> tuple[list[SourceFile], pl.DataFrame]:
    """List the files below `paths` (else below the configured sources) by relative path, and decisions on rejected ones.

    `only`, `without`: names of folders to read alone, to leave out. A file that lies below two paths is read once. Errors:
    `InputError` for a path that does not exist or holds nothing."""
    configuration = configuration or Configuration()
    given = [str(path) for path in paths] or [path for source in configuration.sources for path in source.paths]
    if not given:
        raise InputError("there is nothing to read", hint="name a log file or a folder with logs")
    wanted, unwanted = frozenset(only), frozenset(without)
    by_location: dict[str, SourceFile] = {}
    rejected: dict[str, Decision] = {}
    for root in given:
        for each in _files(root):
            folders, reason = frozenset(each.relative.split("/")[:-1]), each.reason
            if reason is None and NEVER_READ in {folder.casefold() for folder in folders}:
                reason = "truth_folder"
            elif reason is None and ((wanted and not wanted & folders) or unwanted & folders):
                reason = "left_by_choice"
            if reason is not None:
                rejected.setdefault(each.relative, Decision(stage="extract", subject=each.relative, kept=False, reason=reason,
                                                            detail=f"{each.relative} {_DETAILS[reason]}."))
            else:
                by_location.setdefault(each.real, SourceFile(
                    each.path, each.relative, _source(each.real, configuration), each.url, listed=each.stamp))
    for folder, members in find_bundles(by_location).items():   # the files of one log as one
        first = by_location[f"{folder}/{members[0]}"]
        above, _, _ = first.relative.rpartition("/")
        bundle = SourceFile(
            first.path.parent, above or folder.rpartition("/")[2], first.source, folder if first.url else None, members)
        if members[0] == STATE or sum(by_location[f"{folder}/{name}"].stamp().n_bytes for name in members) < MOST_BYTES:
            for name in members:
                del by_location[f"{folder}/{name}"]
            by_location[folder] = bundle
    files = sorted(by_location.values(), key=lambda each: (each.relative, each.place))
    return files, frame(Decision, [rejected[name] for name in sorted(rejected)])


class _ListedFile(NamedTuple):
    """A file (or a folder that cannot be opened) below what was given."""

    path: Path
    relative: str
    real: str
    """Where it lies when links are followed, or its address."""
    url: str | None = None
    stamp: Stamp | None = None
    reason: str | None = None
    """Why it is left, where more than its path tells that."""


def _files(given: str) -> Iterator[_ListedFile]:
    if objects.is_url(given):
        for each in objects.below(given):
            reason = "truth_folder" if each.folder.casefold() == NEVER_READ else None
            if not any(part.startswith(".") for part in each.relative.split("/")):
                yield _ListedFile(Path(each.relative), each.relative, each.url, each.url, Stamp(*each.stamp), reason)
    elif os.path.isfile(given):
        yield _file(given, os.path.dirname(given))
    elif os.path.isdir(given):
        yield from _below(given, given)
    elif glob.has_magic(given):   # files that fit, or lie below a folder that does
        root = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), given.split("/")))
        root = root or ("/" if given.startswith("/") else ".")   # they are called by their path below it
        paths = sorted(glob.glob(given, recursive=True))
        if not paths:
            raise InputError("no file fits the pattern", given, "check the pattern")
        for path in paths:
            if os.path.isdir(path):
                yield from _below(path, root)
            elif os.path.isfile(path):
                yield _file(path, root)
    else:
        raise InputError("there is no such file or folder", given, "check the path")


def _below(folder: str, root: str) -> Iterator[_ListedFile]:
    """List the files below a folder; does not follow links to folders or out of it, and lists what cannot be opened."""
    refused: list[OSError] = []
    top = os.path.realpath(folder)
    for where, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        lies_in = os.path.realpath(where)
        for name in names:
            if not name.startswith(".") and os.path.isfile(path := os.path.join(where, name)):
                each = _file(path, root, lies_in)
                is_inside = each.real.startswith(top.rstrip(os.sep) + os.sep)
                yield each if is_inside or each.reason else each._replace(reason="link_out_of_folder")
    for error in refused:
        relative = _printable(os.path.relpath(str(error.filename), root))
        yield _ListedFile(Path(str(error.filename)), relative, relative, reason="unreadable_folder")


def _file(path: str, root: str, lies_in: str | None = None) -> _ListedFile:
    """Return a file below `root`; `lies_in`: where its folder lies when links are followed."""
    is_known = lies_in is not None and not os.path.islink(path)
    real = os.path.join(str(lies_in), os.path.basename(path)) if is_known else os.path.realpath(path)
    above = {os.path.basename(os.path.dirname(real)), os.path.basename(os.path.realpath(root))}
    reason = "truth_folder" if NEVER_READ in {name.casefold() for name in above} else None
    return _ListedFile(Path(path), _printable(os.path.relpath(path, root).replace(os.sep, "/")), real, reason=reason)


def _printable(name: str) -> str:
    """Return a name in characters alone: a file may be called by any bytes."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


_DETAILS = {"truth_folder": "is in a folder called truth, which is never read; no action needed",
            "link_out_of_folder": "is a link out of the folder, which is not followed; name the file itself to read it",
            "unreadable_folder": "is a folder that cannot be opened; check its permissions",
            "left_by_choice": "was rejected by --include or --exclude; change them to read it"}


def _source(place: str, configuration: Configuration) -> Source:
    """Return the first configured source that holds the file (one without paths holds all), else the source `main`."""
    return next((source for source in configuration.sources if not source.paths or any(
        place == root or place.startswith(root.rstrip("/") + "/") or (glob.has_magic(root) and fnmatch(place, root))
        for root in source.paths)), Source())


STATE = "base_state.json"
_EVENT = re.compile(r"event-\d+[^/]*\.json")
_LISTS = ("channels.json", "users.json", "dms.json", "groups.json", "mpims.json", "integration_logs.json")
"""Lists of an export of Slack: the first two are always there."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.json")
MOST_BYTES = 100 << 20
"""Of an export that is read as one archive; an archive may hold `containers.MOST_BYTES`."""
_IN_MEMORY = 1 << 25
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def find_bundles(places: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folders that are one log each: the names of their members below them, sorted."""
    inside: dict[str, list[str]] = {}
    for place in places:
        folder, _, name = place.rpartition("/")
        inside.setdefault(folder, []).append(name)
    members = {}
    for folder, names in inside.items():
        events = sorted(f"events/{name}" for name in inside.get(f"{folder}/events", ()) if _EVENT.fullmatch(name))
        if STATE in names and events:
            members[folder] = (STATE, *events)
        elif {*_LISTS[:2]} <= {*names}:
            days = sorted(f"{channel[len(folder) + 1:]}/{name}" for channel, own in inside.items()
                          if channel.rpartition("/")[0] == folder for name in own if _DAY.fullmatch(name))
            if days:
                members[folder] = (*(name for name in _LISTS if name in names), *days)
    return members


def pack(members: Iterable[tuple[str, Callable[[], BinaryIO]]]) -> BinaryIO:
    """Write an archive of the members in the order given: not compressed, and without times. Errors: OSError."""
    buffer = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (the caller closes it)
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, opened in members:
            info = zipfile.ZipInfo(name, _FIRST_DATE)
            info.create_system = 3   # the same bytes on every system
            with opened() as file:
                archive.writestr(info, file.read())
    buffer.seek(0)
    return cast(BinaryIO, buffer)
