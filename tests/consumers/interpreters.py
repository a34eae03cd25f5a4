"""Interpreters with a consumer's packages, made once in the user's cache: a folder for each list of pins and Python.

Packages come by `uv pip` (itself from the registry, once), from where pip is told to look (`pip config list`: index-url,
find-links), and by pip itself where that fails: pip may know more places. Torch is taken without CUDA: from find-links where a
wheel of that kind lies there, else from torch's own index.
A Python that is neither this one, nor on the PATH, nor under pyenv, is asked of `uv python`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

from filelock import FileLock

from tests.consumers.consumers import AS_OF, Consumer

UV = "uv==0.13.9"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "traceroom" / "consumers"


class Lacking(Exception):
    """An interpreter or a package that cannot be had here, in one sentence."""


def interpreter(consumer: Consumer) -> Path:
    """Python with the consumer's packages; Lacking where it cannot be made."""
    wanted = "\n".join([consumer.python, AS_OF, *sorted(set(consumer.requirements)), *consumer.overrides])
    first = min(consumer.requirements)
    home = CACHE / f"{first.replace('==', '-')}-{consumer.python}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not (home / "ready").exists():
            _make(home, consumer)
            (home / "ready").touch()
    return home / "bin" / "python"


def _make(home: Path, consumer: Consumer) -> None:
    uv = _uv()
    python, wanted = _python(uv, consumer.python), sorted(set(consumer.requirements))
    torch = any(requirement.startswith("torch==") for requirement in wanted)
    cpu = ["--torch-backend", "cpu"] if torch and not _wheel_without_cuda() else []
    instead = home / "overrides.txt"
    try:
        _run([uv, "venv", "--quiet", "--clear", "--python", python, home])
        instead.write_text("".join(f"{pin}\n" for pin in consumer.overrides), "utf-8")
        _run([uv, "pip", "install", "--quiet", "--python", home / "bin" / "python", "--exclude-newer", AS_OF, *cpu,
              "--override", instead, *wanted])
    except Lacking:
        if consumer.overrides:
            raise
        _run([python, "-m", "venv", "--clear", home])
        _run([home / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted])


def _uv() -> Path:
    """Return the program `uv`: the one on the PATH, else one from the registry."""
    found = shutil.which("uv")
    if found:
        return Path(found)
    home = CACHE / UV.replace("==", "-")
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not (home / "ready").exists():
            venv.create(home, with_pip=True, clear=True)
            _run([home / "bin" / "python", "-m", "pip", "install", "--quiet", UV])
            (home / "ready").touch()
    return home / "bin" / "uv"


def _python(uv: Path, version: str) -> Path:
    """Return an interpreter of this version (X.Y) that runs."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    named = [Path(found) for name in (f"python{version}",) if (found := shutil.which(name))]
    for candidate in (Path(sys.executable), *named, *sorted(root.glob(f"{version}.*/bin/python"), reverse=True)):
        asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    try:
        _run([uv, "python", "install", "--quiet", version])
        return Path(_run([uv, "python", "find", "--managed-python", version]).strip())
    except Lacking as error:
        raise Lacking(f"no Python {version} here, and uv cannot get one: {error}") from error


def _wheel_without_cuda() -> bool:
    places = _told().get("find-links", "").split()
    return any(Path(place).is_dir() and any(Path(place).glob("torch-*+cpu-*")) for place in places)


@cache
def _told() -> dict[str, str]:
    """Return what pip is told by its files and its environment, the latter last."""
    told = {}
    for line in subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True,
                               check=False).stdout.splitlines():
        name, _, value = line.partition("=")
        told[name.rpartition(".")[2]] = value.strip("'\"").replace("\\n", " ")
    return told | {name[4:].lower().replace("_", "-"): value for name, value in os.environ.items() if name.startswith("PIP_")}


def _run(command: list[str | Path]) -> str:
    settings = dict(os.environ)
    for theirs, ours in (("UV_FIND_LINKS", "find-links"), ("UV_DEFAULT_INDEX", "index-url")):
        if ours in _told():
            settings.setdefault(theirs, _told()[ours])
    done = subprocess.run(list(map(str, command)), env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise Lacking(f"{Path(command[0]).name} {command[1]} failed: {said[-300:]}")
    return done.stdout
