"""Interpreters with packages that cannot be, or need not be, beside the rest: made once, in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from filelock import FileLock

from pipelines.serving import openenv_server


def with_openenv() -> Path:
    """Python with `openenv`, and `fastmcp`, which it brings."""
    return openenv_server.interpreter(print)


def with_package(package: str) -> Path:
    """Python with this one package and what it needs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "traceroom" / f"{package.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        if not (home / "ready").exists():
            venv.create(home, with_pip=True)
            subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", package], check=True)
            (home / "ready").touch()
    return home / "bin" / "python"
