"""Storage of a registry: a folder of this machine, or a prefix in a bucket of S3, Google Cloud Storage or Azure.

Both give the same few operations. `swap` is the one that decides: it replaces the bytes that the caller read, or reports that
another writer was first. A folder has a lock file for it, an object store its own conditional writes (create only where nothing
is stored, update only where the entity tag or generation is the one that was read). A killed process leaves a name with its old
content or its new one, never a part.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from extractors.buckets import KEYS, connect, errors_as_os
from extractors.objects import is_url
from pipelines.durable_files import sync
from warehouse.errors import InputError

_LOCK, _SWAP = ".lock", ".swap.lock"
_CHUNK = 1 << 20
DRAFT = ".draft"
"""Prefix of names that are being written; they belong to no release, and remain only where a process was killed."""


class Entry(NamedTuple):
    """The object under a name."""

    n_bytes: int
    written_at: float
    """Seconds since 1970: when it was last written, or last confirmed by a writer that needed it."""


def open_storage(address: str) -> FolderStorage | ObjectStorage:
    """Storage at a path, `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`. Raises InputError, Unavailable
    (the extra is not installed)."""
    if not is_url(address):
        return FolderStorage(Path(address))
    if address.partition("://")[0] not in KEYS:
        raise InputError("releases go into a folder or a bucket of S3, Google Cloud Storage or Azure", address,
                         "write a path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")
    return ObjectStorage(address)


class FolderStorage:
    """A folder: names (with slashes) and their bytes; equal bytes are one file (hard links, where the file system has them)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)
        """For messages."""

    def read(self, name: str) -> bytes | None:
        """Content of a name, None where nothing is stored."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Replace `before` (None: nothing) with `after`; False where something else is stored."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / _SWAP):
            if self.read(name) != before:
                return False
            with self._draft() as draft:
                draft.write_bytes(after)
                sync(draft)
                draft.replace(target)
        sync(target.parent)
        return True

    def names(self, prefix: str) -> dict[str, Entry]:
        """Everything below the folder `prefix` ('' all), sorted by name."""
        sizes = {}
        for path in sorted((self.path / prefix).rglob("*")):
            name = path.relative_to(self.path).as_posix()
            with contextlib.suppress(FileNotFoundError):
                about = path.lstat()
                if path.is_file() and not name.startswith("."):
                    sizes[name] = Entry(about.st_size, about.st_mtime)
        return sizes

    def upload(self, name: str, path: Path) -> None:
        """Store a file's bytes under a name: whole, or not at all."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)   # of the registry, that its own user alone may enter
        with self._draft() as draft:
            shutil.copyfile(path, draft)
            sync(draft)
            draft.chmod(0o400)
            draft.replace(target)

    def download(self, name: str, path: Path, most: int = sys.maxsize) -> None:
        """Copy the bytes of a name into a new file, at most a chunk more than `most`. Raises OSError."""
        with (self.path / name).open("rb") as stored, path.open("wb") as file:
            while file.tell() <= most and (chunk := stored.read(_CHUNK)):
                file.write(chunk)

    def keep(self, name: str, entry: Entry, path: Path, grace_s: float, now: float) -> None:
        """Mark a name as needed, so that no collection removes it as forgotten; `path` has the same bytes."""
        os.utime(self.path / name)

    def lay_out(self, name: str, files: dict[str, str], own: dict[str, bytes]) -> None:
        """Make the folder `name` with `own` files; of `files` (path in it -> name) as far as the storage has links for them."""
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self.path))
        try:
            for path, target in files.items():
                link = draft / path
                link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    link.hardlink_to(self.path / target)
                except OSError:  # no links here, or too many of one file
                    shutil.copyfile(self.path / target, link)
                    link.chmod(0o400)
            for path, content in own.items():
                (draft / path).write_bytes(content)
                sync(draft / path)
            draft.replace(self.path / name)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        sync(self.path)

    def has_copy(self, name: str, target: str) -> bool:
        """Whether the file `name` of a folder that was laid out has the bytes of `target`."""
        one, other = self.path / name, self.path / target
        return one.is_file() and (one.samefile(other) or one.read_bytes() == other.read_bytes())

    def remove(self, names: Iterable[str]) -> None:
        """Remove names; missing ones are ignored."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all that is in it: first it is not there, then its space is free."""
        gone = self.path / f"{DRAFT}.{name.replace('/', '.')}"
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).replace(gone)
            shutil.rmtree(gone) if gone.is_dir() else gone.unlink()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let one writer in at a time; remove drafts of killed ones."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(self.path / _LOCK):
            with FileLock(self.path / _SWAP):
                for draft in self.path.glob(f"{DRAFT}*"):
                    shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink(missing_ok=True)
            yield

    @contextlib.contextmanager
    def _draft(self) -> Iterator[Path]:
        descriptor, name = tempfile.mkstemp(prefix=DRAFT, dir=self.path)
        os.close(descriptor)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)


class ObjectStorage:
    """A prefix in a bucket, by obstore; there are no links, so a release is its list of files and the objects that it names."""

    def __init__(self, url: str) -> None:
        self.address = url.rstrip("/")
        self._obstore, self._store = connect(self.address)

    def read(self, name: str) -> bytes | None:
        return self._versioned(name)[0]

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        content, version = self._versioned(name)
        if content != before:
            return False
        try:
            with errors_as_os(self.address):
                self._obstore.put(self._store, name, after, mode="create" if before is None else version)
        except FileExistsError:
            return False
        return True

    def names(self, prefix: str) -> dict[str, Entry]:
        with errors_as_os(self.address):
            entries = [each for chunk in self._obstore.list(self._store, prefix or None) for each in chunk]
        return {each["path"]: Entry(each["size"], each["last_modified"].timestamp())
                for each in sorted(entries, key=lambda each: str(each["path"]))}

    def upload(self, name: str, path: Path) -> None:
        with errors_as_os(self.address):
            self._obstore.put(self._store, name, path)

    def download(self, name: str, path: Path, most: int = sys.maxsize) -> None:
        with errors_as_os(self.address), path.open("wb") as file:
            for chunk in self._obstore.get(self._store, name).stream():
                file.write(chunk)
                if file.tell() > most:
                    return

    def keep(self, name: str, entry: Entry, path: Path, grace_s: float, now: float) -> None:
        if now - entry.written_at > grace_s / 2:
            self.upload(name, path)

    def lay_out(self, name: str, files: dict[str, str], own: dict[str, bytes]) -> None:
        for path, content in own.items():   # the last of them makes it a release
            with errors_as_os(self.address):
                self._obstore.put(self._store, f"{name}/{path}", content)

    def has_copy(self, name: str, target: str) -> bool:
        return True   # nothing but the objects

    def remove(self, names: Iterable[str]) -> None:
        names = list(names)
        try:
            with errors_as_os(self.address):
                self._obstore.delete(self._store, names)
        except FileNotFoundError:   # one is gone already, which S3 does not report
            for name in names:
                with errors_as_os(self.address), contextlib.suppress(FileNotFoundError):
                    self._obstore.delete(self._store, name)

    def remove_folder(self, name: str) -> None:
        """Delete a release, its manifest first: without it there is no release."""
        names = sorted(self.names(name), key=lambda each: not each.endswith("/manifest.json"))
        self.remove(names[:1])
        self.remove(names[1:])

    def lock(self) -> AbstractContextManager[object]:
        return contextlib.nullcontext()

    def _versioned(self, name: str) -> tuple[bytes | None, dict[str, str]]:
        """Content of a name, and the version that a conditional write names; (None, {}) where nothing is stored."""
        try:
            with errors_as_os(self.address):
                answer = self._obstore.get(self._store, name)
                content = bytes(answer.bytes())
        except FileNotFoundError:
            return None, {}
        return content, {key: value for key in ("e_tag", "version") if (value := answer.meta[key]) is not None}
