"""How many connections and files a server may hold open: as many as the system lets this process."""

from __future__ import annotations

import contextlib

MOST = 65_536


def allow_open_files() -> None:
    """Raise this process's own limit up to what the system allows it, where it has such limits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
