"""Buckets of Google Cloud Storage (`gs://bucket/prefix`) and containers of Azure (`az://container/prefix`), by obstore.

In: an address. Out: the objects below it with their sizes, times and entity tags, and their bytes; also obstore's store itself,
for registries (`pipelines.releases.storage`, which may be on S3 too). Keys come from the environment or the machine's role.
"""

from __future__ import annotations

import contextlib
import errno
import io
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, BinaryIO, cast

from warehouse.errors import InputError, Unavailable

SCHEMES = ("gs", "az")
KEYS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL where the store is not Amazon's",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or a service principal",
}
"""Scheme of an address -> what to set where there are no keys."""
_METADATA = re.compile(r"/latest/(api|meta-data)|/computeMetadata/|/metadata/identity|Account must be specified")
"""In an error: a machine's role was the last source of keys, and there is none; or Azure's account is not named."""
_MISSING = re.compile(r"status code: 404")
_QUERY = re.compile(r"\?\S+")
"""The values of a request, which may hold a signature."""
_RETRIES = 4
_STEP = 1 << 23
Row = dict[str, Any]


def connect(url: str) -> tuple[Any, Any]:
    """Return obstore, and its store at an address. Raises Unavailable (the extra is not installed), InputError, OSError."""
    try:
        import obstore
        from obstore.store import from_url
    except ImportError as error:
        raise Unavailable("a bucket needs an extra", url, 'install it: pip install "traceroom[s3]"') from error
    with errors_as_os(url):
        return obstore, from_url(url, client_options={"allow_http": True}, retry_config={"max_retries": _RETRIES})


@contextlib.contextmanager
def errors_as_os(address: str) -> Iterator[None]:
    """Translate obstore's errors into OSError; FileExistsError: the condition of a write does not hold. Raises InputError where
    no keys of the store are set."""
    import obstore

    errors = obstore.exceptions
    try:
        yield
    except (errors.AlreadyExistsError, errors.PreconditionError) as error:
        raise FileExistsError(errno.EEXIST, "another writer was first", address) from error
    except errors.BaseError as error:
        if _METADATA.search(str(error)):
            raise InputError("no keys of the bucket are set", address, KEYS[address.partition("://")[0]]) from error
        number = errno.EACCES if "status code: 4" in str(error) else errno.EIO   # the first does not pass by itself
        raise OSError(number, _QUERY.sub("", str(error).strip().split("\n")[0]).rstrip("."), address) from error


class CloudBucket:
    """A bucket, with the operations of fsspec's file systems that logs need; paths begin with its name."""

    def __init__(self, url: str) -> None:
        scheme, _, path = url.partition("://")
        self.name = path.partition("/")[0]
        self._address = f"{scheme}://{self.name}"
        self._obstore, self._store = connect(self._address)

    def find(self, path: str, detail: bool = True) -> dict[str, Row]:
        """Return the objects whose name is `path` or begins with it and a slash."""
        prefix = self._key(path).strip("/")
        entries = self._listed(f"{prefix}/" if prefix else "")
        if not entries and prefix:
            with contextlib.suppress(FileNotFoundError):
                entries = {path: self.info(path)}
        return entries

    def glob(self, path: str, detail: bool = True) -> dict[str, Row]:
        """Return the objects that fit a pattern."""
        from fsspec.utils import glob_translate

        pattern = re.compile(glob_translate(path))
        fixed = re.split(r"[*?\[]", self._key(path), maxsplit=1)[0].rpartition("/")[0]
        return {name: about for name, about in self._listed(f"{fixed}/" if fixed else "").items() if pattern.match(name)}

    def info(self, path: str) -> Row:
        """Return what the store says of an object. Raises FileNotFoundError."""
        with errors_as_os(self._address):
            return self._about(self._obstore.head(self._store, self._key(path)))

    def open(self, path: str, mode: str = "rb", block_size: int = _STEP) -> BinaryIO:
        """Open an object, to read its bytes. Raises OSError."""
        with errors_as_os(self._address):
            reader = self._obstore.open_reader(self._store, self._key(path), buffer_size=block_size)
        return cast(BinaryIO, ObjectReader(reader, partial(errors_as_os, self._address)))

    def _key(self, path: str) -> str:
        return path.partition("/")[2]

    def _listed(self, prefix: str) -> dict[str, Row]:
        try:
            with errors_as_os(self._address):
                entries = [each for chunk in self._obstore.list(self._store, prefix or None) for each in chunk]
        except OSError as error:
            if _MISSING.search(str(error)):
                raise FileNotFoundError(errno.ENOENT, "there is no such bucket", self._address) from error
            raise
        return {f"{self.name}/{each['path']}": self._about(each) for each in entries}

    def _about(self, entry: Any) -> Row:
        return {"name": f"{self.name}/{entry['path']}", "type": "file", "size": entry["size"],
                "LastModified": entry["last_modified"], "ETag": entry["e_tag"]}


class ObjectReader(io.RawIOBase):
    """An open object, with its store's own errors turned into OSErrors by the context that `errors` gives."""

    def __init__(self, reader: Any, errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._reader = reader
        self._errors = errors

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._errors():
            chunk = bytes(self._reader.read(len(buffer)))
        buffer[:len(chunk)] = chunk
        return len(chunk)

    def seek(self, offset: int, whence: int = 0) -> int:
        with self._errors():
            return int(self._reader.seek(offset, whence))

    def close(self) -> None:
        self._reader.close()
        super().close()
