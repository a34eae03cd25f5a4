"""The known solution of a Harbor task in a repository, written into /repo as an agent would.

In: `steps.json` in this module's folder, [{"tool": "write" or "shell", "arguments"}]. Standard library only; runs in the
oracle's trial alone.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

REPOSITORY = Path("/repo")


def solve(steps: Path) -> None:
    """Make the steps."""
    for step in json.loads(steps.read_text("utf-8")):
        given = step["arguments"]
        if step["tool"] == "write":
            path = REPOSITORY / given["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(given["content"], "utf-8")
        else:
            subprocess.run(["/bin/sh", "-c", given["command"]], cwd=REPOSITORY, check=True)
        print(step["tool"], given.get("path", given.get("command")))


if __name__ == "__main__":
    solve(Path(__file__).resolve().parent / "steps.json")
