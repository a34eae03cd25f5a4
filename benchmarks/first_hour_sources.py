"""From how many platforms logs are pulled with the same events as from the dump, also after a kill in the middle of a page.

Each platform is replayed by a server on loopback (tests/sources/replays.py) and pulled by its own client in another process,
which is killed, continued, limited in its rate and repeated (tests/sources/test_platforms.py). Does not see: the platforms
themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sources.replays import REPLAYS

ROOT = Path(__file__).resolve().parent.parent
WANTED = ("langfuse", "langsmith", "phoenix", "mlflow", "braintrust", "logfire", "weave", "openai")
_TEST = "tests/sources/test_platforms.py::test_a_killed_pull_continues_and_gives_the_events_of_the_dump"


def measure() -> dict[str, Any]:
    """Return {"figures": {"live_sources", "n_sources"}, "left": platform -> the last line of what went wrong}."""
    wrong = {name: reason for name in WANTED if (reason := _tried(name) if name in REPLAYS else "it is not read")}
    return {"figures": {"live_sources": len(WANTED) - len(wrong), "n_sources": len(WANTED)}, "left": wrong}


def _tried(name: str) -> str:
    """Return the empty text if the events are the dump's, else why not; a skipped test counts as none."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--all", "-n", "0", "-rs", "-p", "no:cacheprovider", f"{_TEST}[{name}]"], cwd=ROOT,
        capture_output=True, text=True, check=False, env={**os.environ, "TRACEROOM_CONSUMERS": "all"})
    if done.returncode == 0 and "SKIPPED" not in done.stdout:
        return ""
    return (done.stdout.strip().splitlines() or ["?"])[-1][:300]
