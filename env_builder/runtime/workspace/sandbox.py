"""Run commands over a tree of files in a sandbox: the host's side.

In: a folder with a tree, changes on top of it, a command. Out: what it printed, and all changes after it. A sandbox holds
nothing between two commands: each begins from tree and changes and ends with whatever it started, so that a state is a value
that can be kept, forked and taken back.

Ways: `namespaces` (the kernel's, with a network, processes, users and a root of their own; no daemon, a few milliseconds),
`docker` (a container a command) and `process` (a copy of the tree and no isolation at all: for trusted commands only).
Standard library only.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

WORKSPACE = "/repo"
"""Where the tree lies in a sandbox."""
SITE = "/site"
"""Where packages lie in a sandbox."""
WAYS = ("namespaces", "docker", "process")
FOLDER, LINK = 0o040000, 0o120000
PROGRAMS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs of the host are searched for."""
HELP = "/traceroom"
"""Where a sandbox has what runners of tests load of ours."""
WITHIN = Path(__file__).with_name("within")
_INSIDE = Path(__file__).with_name("inside.py")
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/passwd",
           "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/mime.types")
"""What a command sees of the host, read only, where it exists."""
GRACE_S = 20.0
"""How much longer than the command its sandbox may take."""


class ChangedFile(NamedTuple):
    """A file that differs from the tree's."""

    content: bytes
    """Of a link its target."""
    mode: int
    """As git has it, with all bits of permission: 0o100644; `LINK`, `FOLDER` (an empty one)."""


Changes = Mapping[str, ChangedFile | None]
"""Path -> the file; None: gone."""


class CommandLimits(NamedTuple):
    """What a command may use."""

    seconds: float = 120.0
    memory_mb: int = 2048
    """Of private memory, each process. Address space is not limited: some runtimes reserve far more than they use."""
    processes: int = 256
    output_bytes: int = 30_000
    """The middle of longer output is left out."""
    files_mb: int = 64
    """What all changes may come to."""


class CommandResult(NamedTuple):
    """What came of a command."""

    code: int
    """Its exit code; negative: the signal that ended it."""
    output: str
    seconds: float
    timed_out: bool
    changes: dict[str, ChangedFile | None]
    """All that differs from the tree now."""
    too_much: bool = False
    """It left more than the limit: the changes are those of before."""


class SandboxUnavailable(RuntimeError):
    """No sandbox of this kind can be made here."""


class Sandbox(NamedTuple):
    """How commands are run."""

    way: str
    site: Path | None = None
    """A folder of packages, shown as `SITE`."""
    as_root: bool = False
    """Commands are root over their own files, as in many CI jobs: what file permissions forbid, they may."""
    image: str | None = None
    """Of the way `docker`: an image with python3."""
    prefix: Path | None = None
    """The folder of this machine that holds the interpreter and its library; None: that of the one that runs this."""

    def run(
        self, tree: Path, changes: Changes, command: Sequence[str], env: Mapping[str, str] | None = None,
        limits: CommandLimits | None = None, shown: Iterable[tuple[Path, str]] = (),
    ) -> CommandResult:
        """Run a command in the workspace. `shown`: more of the host, read only: (path, where).

        Raises SandboxUnavailable where this machine does not allow it.
        """
        limits = limits or CommandLimits()
        spec, payload = self.request(tree, changes, command, env, limits, shown)
        with tempfile.TemporaryDirectory(prefix="traceroom-") as root:
            answer = self._answer({**spec, "root": root}, payload, [*shown])
        return result_of(answer, changes, tree, self.way)

    def request(
        self, tree: Path, changes: Changes, command: Sequence[str], env: Mapping[str, str] | None, limits: CommandLimits,
        shown: Iterable[tuple[Path, str]] = (),
    ) -> tuple[dict[str, Any], bytes]:
        """Return what the side within is given (inside.py), but for the folder of its root: a row, contents of files."""
        ordered = sorted(changes.items(), key=lambda item: (item[1] is not None, item[0]))  # what is gone first
        spec = {
            "layout": "overlay" if self.way == "namespaces" else "copy", "command": list(command), "cwd": WORKSPACE,
            "env": self.environment(env or {}), "as_root": self.as_root, "limits": limits._asdict(),
            "tree": str(tree.absolute()), "readable": self._readable(shown), "hidden": _packages(self._prefix),
            "changes": [[path, None if file is None else file.mode, 0 if file is None else len(file.content)]
                        for path, file in ordered]}
        return spec, b"".join(file.content for _, file in ordered if file is not None)

    def started(self) -> subprocess.Popen[bytes]:
        """Start a side within that is given what it is to do over its stdin. OSError, SandboxUnavailable."""
        if self.way != "namespaces":
            raise SandboxUnavailable(f"a sandbox of the way {self.way} serves one command")
        return subprocess.Popen([sys.executable, "-I", "-S", str(_INSIDE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, env={"PATH": PROGRAMS})

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of a command: these, and nothing of the host's."""
        path = "/usr/local/bin:/usr/bin:/bin"
        search = filter(None, (env.get("PYTHONPATH"), HELP, SITE if self.site else None))
        python = {"PYTHONPATH": os.pathsep.join(search)}
        own = f"{SITE}/bin:{self._prefix / 'bin'}:{path}" if self.way != "docker" else f"{SITE}/bin:{path}"
        return {"HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC", "PATH": own, "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0", **env, **python}

    @property
    def _prefix(self) -> Path:
        return (self.prefix or Path(sys.base_prefix)).resolve()

    def _readable(self, shown: Iterable[tuple[Path, str]]) -> list[list[str]]:
        """Return what of the host is shown, each with where."""
        if self.way != "namespaces":
            return []
        system = [*_SYSTEM, *([] if str(self._prefix).startswith("/usr") else [str(self._prefix)])]
        rows = [[path, path] for path in system if os.path.lexists(path)]
        rows += [[str(self.site.absolute()), SITE]] if self.site else []
        return rows + [[str(path.absolute()), where] for path, where in [(_help(), HELP), *shown]]

    def _answer(self, spec: dict[str, object], payload: bytes, shown: list[tuple[Path, str]]) -> bytes:
        command = [sys.executable, "-I", "-S", str(_INSIDE)]
        if self.way == "docker":
            command, spec = self._container(spec, shown)
        elif self.way == "process":
            spec = self._on_host(spec)
        limits: dict[str, float] = spec["limits"]  # type: ignore[assignment]
        try:
            ran = subprocess.run(command, input=json.dumps(spec).encode() + b"\n" + payload, capture_output=True, check=False,
                                 timeout=limits["seconds"] + GRACE_S, env={"PATH": PROGRAMS})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SandboxUnavailable(f"no sandbox ({self.way}) can be made here: {error}") from error
        if ran.returncode:
            last = ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise SandboxUnavailable(f"no sandbox ({self.way}) can be made here: {''.join(last) or ran.returncode}")
        return ran.stdout

    def _on_host(self, spec: dict[str, object]) -> dict[str, object]:
        """Return what to run with the host's paths in the place of a sandbox's."""
        places = {HELP: str(_help()), **({SITE: str(self.site.absolute())} if self.site else {}),
                  WORKSPACE: f"{spec['root']}{WORKSPACE}"}

        def on_host(text: str) -> str:
            return re.sub(rf"(?<![\w/])({'|'.join(map(re.escape, places))})(?![\w-])", lambda match: places[match[1]], text)

        command, env = spec["command"], spec["env"]
        assert isinstance(command, list) and isinstance(env, dict)
        return {**spec, "command": [*map(on_host, command)], "env": {name: on_host(value) for name, value in env.items()}}

    def _container(self, spec: dict[str, object], shown: list[tuple[Path, str]]) -> tuple[list[str], dict[str, object]]:
        """Return the command that runs the side within in a container, and what that is given."""
        if self.image is None:
            raise SandboxUnavailable("a sandbox of the way docker needs an image")
        limits: dict[str, int] = spec["limits"]  # type: ignore[assignment]
        volumes = [(str(spec["tree"]), "/tree"), (str(_INSIDE), "/inside.py"), (str(_help()), HELP),
                   *((str(path.absolute()), to) for path, to in shown)]
        volumes += [(str(self.site.absolute()), SITE)] if self.site else []
        rights = [f"--cap-add={right}" for right in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")]
        command = [
            "docker", "run", "--rm", "--interactive", "--network=none", "--read-only", "--cap-drop=ALL", *rights,
            "--security-opt=no-new-privileges", f"--pids-limit={limits['processes']}", f"--memory={limits['memory_mb']}m",
            f"--tmpfs={WORKSPACE}:exec,size={2 * limits['files_mb']}m", f"--tmpfs=/tmp:exec,size={limits['files_mb']}m",
            *(f"--volume={path}:{to}:ro" for path, to in volumes), "--entrypoint=python3", self.image, "-I", "-S", "/inside.py"]
        return command, {**spec, "tree": "/tree", "root": WORKSPACE}


@cache
def _help() -> Path:
    """Return a folder with what runners load of ours, that the user of a sandbox may read: an environment's own folder is
    closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="traceroom-help-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    named = {path.name: path for path in sorted(WITHIN.iterdir()) if path.is_file()}
    for name, path in {**named, "traceroom_inside.py": _INSIDE}.items():
        (folder / name).write_bytes(path.read_bytes())
        (folder / name).chmod(0o644)
    return folder


def result_of(answer: bytes, changes: Changes, tree: Path, way: str) -> CommandResult:
    """Return the result that the side within reports. SandboxUnavailable: it could not run the command."""
    header, _, contents = answer.partition(b"\n")
    ran: dict[str, Any] = json.loads(header) if header else {"unable": "it ended before it answered"}
    if "unable" in ran:
        raise SandboxUnavailable(f"no sandbox ({way}) can be made here: {ran['unable']}")
    after = dict(changes) if ran.get("too_much") else _after(ran["changes"], contents, tree)
    return CommandResult(ran["code"], ran["output"], ran["seconds"], ran["timed_out"], after, ran.get("too_much", False))


def _after(rows: Iterable[tuple[str, int | None, int]], contents: bytes, tree: Path) -> dict[str, ChangedFile | None]:
    """Return the changes that a sandbox reports. A folder that was removed and made again empty is one whose files are gone."""
    after: dict[str, ChangedFile | None] = {}
    at = 0
    for path, mode, size in rows:
        if mode == FOLDER and path in after and (tree / path).is_dir() and not (tree / path).is_symlink():
            del after[path]
            after |= {each.relative_to(tree).as_posix(): None for each in sorted((tree / path).rglob("*"))
                      if each.is_symlink() or not each.is_dir()}
        else:
            after[path] = None if mode is None else ChangedFile(contents[at:at + size], mode)
        at += size
    return after


@cache
def _packages(prefix: Path) -> list[str]:
    """Return the folders of packages that this machine has for its Pythons: commands see those of their own site alone."""
    prefixes = {prefix, Path(sys.base_prefix).resolve(), Path("/usr/local"), Path("/usr")}
    return sorted(str(path) for each in prefixes for path in each.glob("lib/python3*/*-packages"))


@cache
def best_way() -> str:
    """Return the first way that works here without trust: namespaces, else docker.

    Raises SandboxUnavailable where none does; `process` is only taken where it is asked for.
    """
    reasons = []
    with tempfile.TemporaryDirectory(prefix="traceroom-") as tree:
        Path(tree).chmod(0o755)
        try:
            Sandbox("namespaces").run(Path(tree), {}, ["/bin/sh", "-c", "true"])
            return "namespaces"
        except SandboxUnavailable as error:
            reasons.append(str(error))
    try:
        subprocess.run(["docker", "version"], capture_output=True, check=True, timeout=10)
        return "docker"
    except (OSError, subprocess.SubprocessError) as error:
        reasons.append(f"docker: {error}")
    raise SandboxUnavailable("commands cannot be isolated here (" + "; ".join(reasons) + ")")
