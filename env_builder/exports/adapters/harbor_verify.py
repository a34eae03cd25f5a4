"""The verifier of a Harbor task in a repository: a container of its own, which the agent's files reach as one file of changes.

    python3 harbor_verify.py CHANGES FOLDER      as root: writes FOLDER/reward.json and FOLDER/findings.json

In: the kit in this module's folder (grader included), which only root may read here. The kit's own verifier grades, with a
sandbox that is this container: tests run as a user of their own, on a clean tree with what counts of the changes, and this
process, which never loads any of it, compares answers. Before a test runs the folder of rewards is closed to that user; when it
has ended, all its processes are ended and what it wrote is removed, and only then anything is written. An episode that nobody
can score gets no reward file, so that the trial is an error and not a 0. Standard library only.

Does not see: what a patched runner reports of tests without questions (`forgeable`): signs of that leave it unscored.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
try:
    from . import play
    from .harbor_grade import remove_reward, write_reward
    from .harbor_repository import end_all
except ImportError:  # run as a file, from its own folder alone
    sys.path.insert(0, str(HERE))
    import play  # type: ignore[import-not-found,no-redef]
    from harbor_grade import remove_reward, write_reward  # type: ignore[import-not-found,no-redef]
    from harbor_repository import end_all  # type: ignore[import-not-found,no-redef]

USER = 10002
"""Who runs tests, as the kit's runtime has it."""
REPOSITORY, SITE, LOGS = Path("/repo"), Path("/site"), Path("/logs")
WRITABLE = (REPOSITORY, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
CLOSED = (LOGS, Path("/tests"), Path("/changes"))
_GRACE_S = 20.0


def verify(directory: Path, changes: Path, out: Path) -> int:
    """Return 0 once the reward is written; 3 where there is none."""
    remove_reward(out)
    for folder in (*CLOSED, directory):
        if folder.is_dir():
            folder.chmod(0o700)
    tempfile.tempdir = str(directory / "scratch")   # clean trees are laid out where tests cannot reach them
    room = play.open(directory)
    (task,) = room.tasks
    app = room._environment.apps[0]
    sandbox = importlib.import_module(f"{type(app).__module__.rpartition('.')[0]}.sandbox")
    site = SITE if SITE.is_dir() else None
    app.recipe.__dict__.update(site=site, sandbox=_inside_this_container(sandbox)("docker", site))
    row = {"kind": "call", "tool": f"{app.prefix}shell", "arguments": {"command": "true"}, "content": "", "is_error": False,
           "tier": "derived", "left": json.loads(changes.read_text("utf-8"))}
    result = room.grade(task["task_id"], [row, {"kind": "finish"}])
    _clear()
    if LOGS.is_dir():
        LOGS.chmod(0o755)
    return write_reward(room, result, out)


def _inside_this_container(sandbox: Any) -> Any:
    """Return the runtime's sandbox, which runs commands in this container as another user."""
    class ContainerSandbox(sandbox.Sandbox):
        def _answer(self, spec: dict[str, Any], payload: bytes, shown: list[tuple[Path, str]]) -> bytes:
            if spec["as_root"] or os.geteuid() != 0:
                raise sandbox.SandboxUnavailable("tests run as another user than their judge, who is root")
            _clear()
            given = json.dumps({**spec, "layout": "copy", "root": sandbox.WORKSPACE}).encode() + b"\n" + payload
            program = str(Path(sandbox.__file__).with_name("inside.py"))
            try:
                ran = subprocess.run(
                    [sys.executable, "-I", "-S", "-B", program], input=given, stdout=subprocess.PIPE, check=True,
                    timeout=spec["limits"]["seconds"] + _GRACE_S, env={"PATH": sandbox.PROGRAMS})
            except (OSError, subprocess.SubprocessError) as error:
                raise sandbox.SandboxUnavailable(f"the tests cannot be run here: {error}") from error
            finally:
                _clear()
            return ran.stdout

    return ContainerSandbox


def _clear() -> None:
    """End what tests began, and remove what they left."""
    end_all(USER)
    for folder in WRITABLE:
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.lstat().st_uid == USER or folder == REPOSITORY:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


if __name__ == "__main__":
    sys.exit(verify(HERE, Path(sys.argv[1]), Path(sys.argv[2])))
