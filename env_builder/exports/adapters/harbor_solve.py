"""The known solution of a Harbor task, made step by step as an agent would: through `/tools/tools.py`.

In: `steps.json` beside this module, [{"tool", "arguments"} | {"say"}]. Standard library only; runs in the oracle's trial alone.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

TOOLS = "/tools"


def solve(steps: Path) -> None:
    """Make the steps."""
    sys.path.insert(0, TOOLS)
    tools = importlib.import_module("tools")
    for step in json.loads(steps.read_text("utf-8")):
        if "say" in step:
            print("user:", tools.say(step["say"]))
        else:
            print(step["tool"], *tools.call(step["tool"], step["arguments"]))


if __name__ == "__main__":
    solve(Path(__file__).resolve().parent / "steps.json")
