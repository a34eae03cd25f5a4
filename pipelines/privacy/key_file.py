"""Where the owner's key lies where no variable names it.

In: the environment. Out: a path. Reads no key (pipelines/privacy/keys.py does).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def own_key_file(environ: Mapping[str, str]) -> Path:
    """Return the key's file in the user's configuration folder."""
    folder = environ.get("XDG_CONFIG_HOME", "")  # XDG base directories
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return (Path(folder) if folder.startswith("/") else home / ".config") / "traceroom" / "key"
