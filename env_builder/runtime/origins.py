"""Where a file's bytes first came from: one text for one origin, the same in files of logs and in those of an episode."""

from __future__ import annotations

from .canonical import canonical


def origin_text(app: str, url: str, content_hash: str | None) -> str:
    """Return the origin of bytes that an app delivered at an address; `content_hash`: their sha256, None if it is unknown."""
    return canonical({"app": app, "sha256": content_hash, "url": url})
