"""Where a registry lies: a folder of this machine, or a bucket that speaks S3.

Both give the same few operations. `swap` is the one that decides: it puts new bytes in the place of those that the caller
saw, or says that somebody else was first. In a folder a lock file stands behind it, in a bucket the store's own conditional
writes (`If-Match`, `If-None-Match`: S3 since 2024, MinIO, Ceph, R2). Whatever is killed leaves a name with its old content or
its new one, never a part.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from filelock import FileLock

from extractors import objects
from warehouse.errors import InputError

_LOCK, _SWAP = ".lock", ".swap.lock"
DRAFT = ".draft"
"""What names begin with that are being written; they are nobody's, and stay behind only where somebody was killed."""

_NO_KEYS = ("NoCredentialsError", "PartialCredentialsError")
"""What botocore calls it."""
_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL where the store is not Amazon's"


class Entry(NamedTuple):
    """What lies under a name."""

    n_bytes: int
    written_at: float
    """Seconds since 1970: when it was last written, or last found to be there already by somebody who needed it."""


class Place(Protocol):
    """Names (with slashes) and their bytes."""

    where: str
    """Its address, for people."""

    def read(self, name: str) -> bytes | None:
        """What lies there, None where nothing does."""

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Put `after` in the place of `before` (None: of nothing); False where something else lies there."""

    def names(self, prefix: str) -> dict[str, Entry]:
        """Everything below the folder `prefix` ('' all), sorted by name."""

    def upload(self, name: str, path: Path) -> None:
        """A file's bytes under a name: whole, or not at all."""

    def download(self, name: str, path: Path) -> None:
        """The bytes of a name into a new file. Raises OSError."""

    def keep(self, name: str, entry: Entry, path: Path, grace_s: float, now: float) -> None:
        """Say that what lies there is needed, so that nobody takes it for forgotten; `path` has the same bytes."""

    def lay_out(self, name: str, files: dict[str, str], own: dict[str, bytes]) -> None:
        """Make the folder `name` with `own` files; of `files` (path in it -> name) as far as the place has links for them."""

    def laid(self, name: str, target: str) -> bool:
        """Has the file `name` of a folder that was laid out the bytes of `target`?"""

    def remove(self, names: Iterable[str]) -> None:
        """Take names away; what is not there is no matter."""

    def remove_folder(self, name: str) -> None:
        """Take a folder away with all that is in it: first it is not there, then its space is free."""

    def held(self) -> AbstractContextManager[object]:
        """Keep others who write or collect away, as far as the place can."""


def place_of(address: str) -> Place:
    """The place at an address: a path, or `s3://bucket/prefix`. Raises InputError, Unavailable (the extra is not there)."""
    if not objects.is_url(address):
        return Folder(Path(address))
    if not address.startswith("s3://"):
        raise InputError("releases go into a folder or a bucket that speaks S3", address, "write a path, or s3://bucket/prefix")
    return Bucket(address)


class Folder:
    """A folder; equal bytes are one file with several names in it (hard links, where the file system has them)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path / _SWAP):
            if self.read(name) != before:
                return False
            with self._draft() as draft:
                draft.write_bytes(after)
                _settled(draft)
                draft.replace(target)
        _settled(target.parent)
        return True

    def names(self, prefix: str) -> dict[str, Entry]:
        found = {}
        for path in sorted((self.path / prefix).rglob("*")):
            name = path.relative_to(self.path).as_posix()
            with contextlib.suppress(FileNotFoundError):
                about = path.lstat()
                if path.is_file() and not name.startswith("."):
                    found[name] = Entry(about.st_size, about.st_mtime)
        return found

    def upload(self, name: str, path: Path) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)   # of the registry, that its own user alone may enter
        with self._draft() as draft:
            shutil.copyfile(path, draft)
            _settled(draft)
            draft.chmod(0o444)
            draft.replace(target)

    def download(self, name: str, path: Path) -> None:
        shutil.copyfile(self.path / name, path)

    def keep(self, name: str, entry: Entry, path: Path, grace_s: float, now: float) -> None:
        os.utime(self.path / name)

    def lay_out(self, name: str, files: dict[str, str], own: dict[str, bytes]) -> None:
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self.path))
        try:
            for path, target in files.items():
                place = draft / path
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    place.hardlink_to(self.path / target)
                except OSError:  # no links here, or too many of one file
                    shutil.copyfile(self.path / target, place)
                    place.chmod(0o444)
            for path, content in own.items():
                (draft / path).write_bytes(content)
                _settled(draft / path)
            draft.replace(self.path / name)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _settled(self.path)

    def laid(self, name: str, target: str) -> bool:
        one, other = self.path / name, self.path / target
        return one.is_file() and (one.samefile(other) or one.read_bytes() == other.read_bytes())

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def remove_folder(self, name: str) -> None:
        gone = self.path / f"{DRAFT}.{name.replace('/', '.')}"
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).replace(gone)
            shutil.rmtree(gone) if gone.is_dir() else gone.unlink()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """One at a time; what somebody who was killed left half written is taken away."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(self.path / _LOCK):
            with FileLock(self.path / _SWAP):
                for left in self.path.glob(f"{DRAFT}*"):
                    shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
            yield

    @contextlib.contextmanager
    def _draft(self) -> Iterator[Path]:
        descriptor, name = tempfile.mkstemp(prefix=DRAFT, dir=self.path)
        os.close(descriptor)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)


class Bucket:
    """A prefix in a bucket; there are no links, so a release is its list of files and the objects that it names."""

    def __init__(self, url: str) -> None:
        self.where = url.rstrip("/")
        self._system, self._path = objects.system(self.where)

    def read(self, name: str) -> bytes | None:
        try:
            with self._told():
                return bytes(self._system.cat_file(self._key(name)))
        except FileNotFoundError:
            return None

    def swap(self, name: str, before: bytes | None, after: bytes) -> bool:
        condition = {"IfNoneMatch": "*"}
        if before is not None:
            try:
                with self._told():
                    tag = self._system.info(self._key(name), refresh=True)["ETag"]
            except FileNotFoundError:
                return False
            if self.read(name) != before:
                return False
            condition = {"IfMatch": tag}
        bucket, _, key = self._key(name).partition("/")
        try:
            with self._told():
                self._system.call_s3("put_object", Bucket=bucket, Key=key, Body=after, **condition)
        except OSError:
            if self.read(name) == before:   # it was not for somebody else that it failed
                raise
            return False
        return True

    def names(self, prefix: str) -> dict[str, Entry]:
        with self._told():
            found = self._system.find(self._key(prefix).rstrip("/"), detail=True)
        below = len(self._path.rstrip("/")) + 1
        return {name[below:]: Entry(int(about["size"]), about["LastModified"].timestamp())
                for name, about in sorted(found.items())}

    def upload(self, name: str, path: Path) -> None:
        with self._told():
            self._system.put_file(str(path), self._key(name))

    def download(self, name: str, path: Path) -> None:
        with self._told():
            self._system.get_file(self._key(name), str(path))

    def keep(self, name: str, entry: Entry, path: Path, grace_s: float, now: float) -> None:
        if now - entry.written_at > grace_s / 2:
            self.upload(name, path)

    def lay_out(self, name: str, files: dict[str, str], own: dict[str, bytes]) -> None:
        for path, content in own.items():   # the last of them makes it a release
            with self._told():
                self._system.pipe_file(self._key(f"{name}/{path}"), content)

    def laid(self, name: str, target: str) -> bool:
        return True   # nothing but the objects

    def remove(self, names: Iterable[str]) -> None:
        if keys := [self._key(name) for name in names]:
            with self._told(), contextlib.suppress(FileNotFoundError):
                self._system.rm(keys)

    def remove_folder(self, name: str) -> None:
        """The manifest first: without it a release is none."""
        found = sorted(self.names(name), key=lambda each: not each.endswith("/manifest.json"))
        self.remove(found[:1])
        self.remove(found[1:])

    def held(self) -> AbstractContextManager[object]:
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """The store's own errors are told as OSError. Raises InputError where no keys of it are set."""
        try:
            with objects.refusals():
                yield
        except OSError as error:
            if error.__cause__ is None or type(error.__cause__).__name__ not in _NO_KEYS:
                raise
            raise InputError("no keys of the bucket are set", self.where, _KEYS) from error.__cause__

    def _key(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


def _settled(path: Path) -> None:
    """On the disk, so that a machine that loses its power keeps it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


