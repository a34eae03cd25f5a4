"""An interpreter with Ray beside our own packages, in the versions that are locked here; made once in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]


def ray_interpreter() -> Path:
    """Return it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "traceroom" / "ray-2.60"
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            locked = [line.split(" ")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line[:60]]
            (folder / "locked.txt").write_text("\n".join(each for each in locked if each and each[0] not in "# "))
            subprocess.run([python, "-m", "pip", "install", "--quiet", "-c", folder / "locked.txt", "ray>=2.60,<3"], check=True)
            (folder / "done").touch()
    return python


def with_our_packages() -> str:
    """Return a PYTHONPATH by which it also imports what this interpreter does."""
    return os.pathsep.join([str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))])
