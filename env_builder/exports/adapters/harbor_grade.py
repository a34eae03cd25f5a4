"""The verifier of a Harbor task: the journal that was collected from the agent's container, replayed and graded.

    python3 harbor_grade.py JOURNAL FOLDER      writes FOLDER/reward.json and FOLDER/findings.json

In: the kit beside this module (grader included), which the agent's container never had. An episode that nobody can score gets
no reward file, so that the trial is an error and not a 0. Standard library only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

try:
    from . import play
except ImportError:  # run as a file, from its own folder alone
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import play  # type: ignore[import-not-found,no-redef]


def grade(directory: Path, journal: Path, out: Path) -> int:
    """0 once the reward is written; 3 where there is none. What lies there before is removed: the verifier's alone counts."""
    remove_reward(out)
    room = play.open(directory)
    (task,) = room.tasks
    rows = json.loads(journal.read_text("utf-8"))
    return write_reward(room, room.grade(task["task_id"], rows if isinstance(rows, list) else []), out)


def remove_reward(out: Path) -> None:
    """Remove what somebody else wrote in the reward's place."""
    for name in ("reward.json", "reward.txt", "findings.json"):
        (out / name).unlink(missing_ok=True)


def write_reward(room: Any, result: Any, out: Path) -> int:
    """Write the findings, and the reward where there is one. 0; 3 without a reward."""
    (task,) = room.tasks
    findings = [check._asdict() for check in result.checks]
    accepted = {"digest": room.digest, "task_id": task["task_id"], "reward": result.reward, "checks": findings}
    (out / "findings.json").write_text(json.dumps(accepted, ensure_ascii=False, indent=1, default=str) + "\n", "utf-8")
    print(result)
    if result.reward is None:
        return 3
    (out / "reward.json").write_text(json.dumps({"reward": result.reward}) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(grade(Path(__file__).resolve().parent, Path(sys.argv[1]), Path(sys.argv[2])))
