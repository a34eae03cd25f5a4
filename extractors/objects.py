"""Logs on an object store: `s3://bucket/prefix` and whatever other address fsspec's file systems know, by fsspec; `gs://` and
`az://` by obstore (`extractors.buckets`).

The store's address and keys come from the environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` …) or from the machine's role.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import itertools
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from extractors.buckets import SCHEMES, CloudBucket, ObjectReader
from warehouse.errors import InputError, Unavailable

_STEP = 1 << 23


def is_url(given: str) -> bool:
    """Whether it is an address, not a path."""
    return "://" in given


class StoredObject(NamedTuple):
    """An object."""

    url: str
    relative: str
    """Its name below what was given."""
    folder: str
    """Last part of the name of what was given, as far as it is no pattern: what `relative` is below."""
    stamp: tuple[int, int]
    """Size, and when it was last written in nanoseconds since 1970."""
    content: str
    """What the store itself says of its content (an entity tag), empty where it says nothing."""


def below(url: str) -> Iterator[StoredObject]:
    """List the objects at `url` (an object, a prefix or a glob), sorted. Errors: `Unavailable` (extra), `InputError`."""
    store, path = system(url)
    protocol = url.split("://", 1)[0]
    is_pattern = glob.has_magic(path)
    try:
        entries = store.glob(path, detail=True) if is_pattern else store.find(path.rstrip("/"), detail=True)
    except FileNotFoundError:
        entries = {}
    except _errors() as error:
        raise InputError(f"the object store refuses ({_first_line(error)})", url,
                         "check the address, the keys and what they may read") from error
    entries = {name: about for name, about in entries.items() if about.get("type") == "file" and not name.endswith("/")}
    if not entries:
        raise InputError("there is no such bucket or object", url, "check the address")
    if is_pattern:
        prefix = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), path.split("/")))
    else:
        prefix = path.rpartition("/")[0] if list(entries) == [path] else path.rstrip("/")
    folder = prefix.rpartition("/")[2]
    for name in sorted(entries):
        yield StoredObject(f"{protocol}://{name}", name.removeprefix(prefix).strip("/"), folder, _stamp(entries[name]),
                    str(entries[name].get("ETag") or ""))


def opened(url: str) -> BinaryIO:
    """Open the object, to read its bytes. Errors: OSError."""
    with refusals():
        store, path = system(url)
        return cast(BinaryIO, io.BufferedReader(ObjectReader(store.open(path, "rb", block_size=_STEP), refusals), _STEP))


def stamp(url: str) -> tuple[int, int]:
    """Size, and when it was last written in nanoseconds since 1970. Errors: OSError."""
    with refusals():
        store, path = system(url)
        return _stamp(store.info(path))


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turn a store's own errors into OSError."""
    try:
        yield
    except OSError:
        raise
    except _errors() as error:
        raise OSError(errno.EIO, _first_line(error)) from error


def _errors() -> tuple[type[Exception], ...]:
    """Return what a store's library raises; of those that are not installed, nothing can come."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return OSError, ValueError
    return OSError, ValueError, BotoCoreError, ClientError


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error)
    return text.strip().split("\n")[0].rstrip(".") or type(error).__name__


def _stamp(about: dict[str, Any]) -> tuple[int, int]:
    written = about.get("LastModified") or about.get("mtime") or 0
    seconds = written.timestamp() if hasattr(written, "timestamp") else float(written)
    return int(about["size"]), int(seconds * 1e9)


def system(url: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it. Raises Unavailable where the extra is not installed."""
    scheme, _, path = url.partition("://")
    if scheme in SCHEMES:
        return CloudBucket(url), path
    try:
        import fsspec

        store, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise Unavailable("an object store needs an extra", url,
                          'install it: pip install "traceroom[s3]"') from error
    return store, str(path)
