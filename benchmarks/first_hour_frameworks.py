"""How many frameworks' agents play an environment's tasks unchanged: journal and grade are the plain loop's, byte for byte.

In: an environment with its rewards (of a run of the sample's logs, if none is named) and six agents with ordinary tools of that
desk, which fail if they are really called (tests/consumers/agents). Each runs in an interpreter of its own with the framework's
real package; the model is an endpoint that plays each task's known solution (tests/consumers/scripted_model.py).
Does not see: what a real model would answer to a framework's own prompts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.consumers.frameworks import FRAMEWORKS, different, solved_tasks
from tests.consumers.interpreters import Lacking


def measure(environment: Path) -> dict[str, Any]:
    """Return {"figures": {"frameworks_unchanged", "n_frameworks", "n_framework_tasks"}, "left": framework -> what differs}."""
    task_ids, wrong = solved_tasks(environment), {}
    for framework in FRAMEWORKS:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                wrong[framework.adapter] = different(framework, environment, Path(scratch), task_ids)
            except Lacking as error:
                wrong[framework.adapter] = {"all": str(error)}
    n_unchanged = sum(not tasks for tasks in wrong.values())
    return {"figures": {"frameworks_unchanged": n_unchanged, "n_frameworks": len(wrong), "n_framework_tasks": len(task_ids)},
            "left": {name: tasks for name, tasks in wrong.items() if tasks}}
