"""Logs on an object store, by fsspec: `s3://bucket/prefix` and whatever other address its file systems know.

The store's address and keys come from the environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` …) or from the machine's role.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from warehouse.errors import InputError, Unavailable

_STEP = 1 << 23


def is_url(given: str) -> bool:
    """Whether it is an address, not a path."""
    return "://" in given


def below(url: str) -> Iterator[tuple[str, str]]:
    """Addresses of the objects at `url` (an object, a prefix or a glob), sorted, with their names below it.

    Errors: `Unavailable` where the extra is not installed, `InputError` where nothing is there or the store refuses.
    """
    system, path = _system(url)
    protocol = url.split("://", 1)[0]
    try:
        found = system.glob(path) if "*" in path else system.find(path.rstrip("/"))
    except (OSError, ValueError) as error:
        raise InputError(f"the object store does not answer ({error})", url, "check the address and the keys") from error
    if not found:
        raise InputError("there is no such object", url, "check the address")
    prefix = path.split("*")[0].rpartition("/")[0] if "*" in path or found == [path] else path.rstrip("/")
    for each in sorted(found):
        yield f"{protocol}://{each}", each.removeprefix(prefix).strip("/")


def opened(url: str) -> BinaryIO:
    """The object, to read its bytes. Errors: OSError."""
    system, path = _system(url)
    return cast(BinaryIO, system.open(path, "rb", block_size=_STEP))


def stamp(url: str) -> tuple[int, int]:
    """Size, and when it was last written in nanoseconds since 1970. Errors: OSError."""
    system, path = _system(url)
    found = system.info(path)
    written = found.get("LastModified") or found.get("mtime") or 0
    return int(found["size"]), int(getattr(written, "timestamp", lambda: float(written))() * 1e9)


def _system(url: str) -> tuple[Any, str]:
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise Unavailable("logs on an object store need an extra", url,
                          'install it: pip install "traceroom[s3]"') from error
    return system, str(path)
