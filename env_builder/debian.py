"""A small base from Debian packages: Python and a shell's tools, made with mmdebstrap where no registry is reachable.

In: a suite. Out: one layer, an uncompressed tar; the same packages give the same bytes. Needs root and a Debian mirror.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from warehouse.errors import Unavailable

_EPOCH = "1767225600"
_PACKAGES = "python3-minimal,libpython3-stdlib,busybox-static"
_HOOK = 'chroot "$1" /bin/busybox --install -s /bin'


def layer(path: Path, suite: str) -> None:
    """Write the layer to `path`; Unavailable where mmdebstrap is not there or fails."""
    if shutil.which("mmdebstrap") is None:
        raise Unavailable("mmdebstrap is not installed", mend="apt-get install mmdebstrap, or name another base image")
    made = subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=extract", f"--include={_PACKAGES}", f"--extract-hook={_HOOK}", suite, str(path)],
        env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}, capture_output=True, text=True, check=False)
    if made.returncode:
        said = (made.stderr.strip().splitlines() or [""])[-1]
        raise Unavailable(f"mmdebstrap failed ({said})", suite, "it needs root and a Debian mirror that answers")
