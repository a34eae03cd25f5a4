"""Environments whose files somebody changed after they were built: `verify`, image and release say so, and no planted file is
read."""

from __future__ import annotations

import marshal
import shutil
from pathlib import Path

from env_builder import layers
from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.command_line import called
from tests.rooms import CLOSED, OPEN, TASK, write_rewards, write_room
from warehouse.errors import TraceroomError


def attack(folder: Path, share: float) -> Report:
    """Change each file, add files that the runtime might take, and ask what is built from them."""
    problems, n_tried = [], 0
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    names = [path.relative_to(room).as_posix() for path in sorted(room.rglob("*")) if path.is_file()
        and path.name not in ("manifest.json", "Dockerfile", "tasks.jsonl")]
    for name in names if share >= 0.1 else [each for each in names if "/" not in each] + names[-2:]:
        n_tried += 1
        changed = shutil.copytree(room, folder / "changed" / "environments" / "hall")
        shutil.copytree(folder / "out" / "rewards", folder / "changed" / "rewards")
        path = changed / name
        path.write_bytes(path.read_bytes().replace(CLOSED.encode(), OPEN.encode()) + b"\n")
        try:
            layers.layers_of(changed)
            problems.append(f"{name}: an image is made of it")
        except TraceroomError:
            pass
        shutil.rmtree(folder / "changed")
    planted = shutil.copytree(room, folder / "planted" / "environments" / "hall")
    shutil.copytree(folder / "out" / "rewards", folder / "planted" / "rewards")
    for name in ("world.packed", "recorded.packed"):
        index = marshal.dumps([], 2)
        (planted / name).write_bytes(len(index).to_bytes(8, "big") + index)
    for name in ("sitecustomize.py", "json.py", "rubrics.jsonl", "solutions.jsonl"):
        (planted / name).write_text("raise SystemExit('planted')\n")
    environment = Environment.load(planted)
    environment.reset(TASK)
    environment.say("Which door?")
    answer = environment.call("read_sign", {"at": "gate"})
    problems += [f"a planted file is read: {answer}"] if answer.is_error or answer.tier != "recorded" else []
    done = called("tasks", planted)
    problems += [f"tasks: {done.stderr[-200:]}"] if "mistake" in done.stderr else []
    return Report(n_tried + 7, tuple(problems))


def test_a_changed_environment_is_not_built(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
