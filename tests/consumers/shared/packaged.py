"""A package built as it stands: its own wheel, unpacked where only this program sees it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from telling import WORK


def installed(source: Path) -> Path:
    """Return the folder that holds the package's wheel, unpacked; on the path of this program and of those that it starts."""
    site = WORK / "site"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(WORK / "wheels")], cwd=source,
                   check=True, stdout=sys.stderr)
    (wheel,) = (WORK / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    sys.path.insert(0, str(site))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return site
