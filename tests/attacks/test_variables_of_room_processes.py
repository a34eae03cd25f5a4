"""What an environment's process inherits: keys in variables, customised Pythons, open files; it gets none, and runs no other
code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from env_builder.process import start_process
from tests.attacks.report import Report
from tests.rooms import TASK, write_room

SECRETS = {"TRACEROOM_KEY": "the-key-of-pseudonyms", "TRACEROOM_MODEL_KEY": "the-key-of-the-model",
    "AWS_SECRET_ACCESS_KEY": "the-key-of-the-bucket",
           "TRACEROOM_GRADE_TOKEN": "the-token-of-the-grader"}


def attack(folder: Path, share: float) -> Report:
    """Start a process among hostile variables, and look at it from outside as its user may."""
    room, planted = write_room(folder / "hall"), folder / "planted"
    evil = folder / "evil"
    evil.mkdir()
    for name in ("sitecustomize", "usercustomize", "json", "random", "startup"):
        (evil / f"{name}.py").write_text(f"open({str(planted)!r}, 'a').write({name!r})\n")
    problems = []
    with pytest.MonkeyPatch.context() as patch, (folder / "secret").open("w+") as opened:
        os.set_inheritable(opened.fileno(), False)
        for name, value in {**SECRETS, "PYTHONPATH": str(evil), "PYTHONSTARTUP": str(evil / "startup.py"),
            "PYTHONUSERBASE": str(evil),
                            "PYTHONINSPECT": "1", "PYTHONBREAKPOINT": "startup.run"}.items():
            patch.setenv(name, value)
        with start_process(room, TASK) as process:
            identity = process.transport.process_id  # type: ignore[attr-defined]
            inherited = Path(f"/proc/{identity}/environ").read_bytes()
            problems += [f"it has {name}" for name, value in SECRETS.items() if value.encode() in inherited]
            files = {str(each.readlink()) for each in Path(f"/proc/{identity}/fd").iterdir()}
            problems += [f"it has {name} open" for name in files if str(folder) in name and str(room) not in name]
            command = Path(f"/proc/{identity}/cmdline").read_bytes().decode()
            problems += [f"its command names {value}" for value in SECRETS.values() if value in command]
            problems += [] if process.call("read_sign", {"at": "gate"}).is_error is False else ["it does not answer"]
    problems += [f"it ran {planted.read_text()}"] if planted.exists() else []
    return Report(len(SECRETS) + 6, tuple(problems))


def test_a_rooms_process_inherits_nothing(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
