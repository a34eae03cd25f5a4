"""Interpreters with a consumer's packages, made once in the user's cache: a folder for each list of pins and Python.

Packages come by `uv pip` (itself from the registry, once), from where pip is told to look: PIP_INDEX_URL, PIP_FIND_LINKS.
Torch is taken without CUDA: from PIP_FIND_LINKS where a wheel of that kind lies there, else from torch's own index.
A Python that is neither this one, nor on the PATH, nor under pyenv, is asked of `uv python`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
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
    _run([uv, "venv", "--quiet", "--clear", "--python", _python(uv, consumer.python), home])
    torch = any(requirement.startswith("torch==") for requirement in consumer.requirements)
    cpu = ["--torch-backend", "cpu"] if torch and not _wheel_without_cuda() else []
    instead = home / "overrides.txt"
    instead.write_text("".join(f"{pin}\n" for pin in consumer.overrides), "utf-8")
    _run([uv, "pip", "install", "--quiet", "--python", home / "bin" / "python", "--exclude-newer", AS_OF, *cpu,
          "--override", instead, *sorted(set(consumer.requirements))])


def _uv() -> Path:
    """The program `uv`: the one on the PATH, else one from the registry."""
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
    """An interpreter of this version (X.Y) that runs."""
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
    places = os.environ.get("PIP_FIND_LINKS", "").split()
    return any(Path(place).is_dir() and any(Path(place).glob("torch-*+cpu-*")) for place in places)


def _run(command: list[str | Path]) -> str:
    settings = dict(os.environ)
    for theirs, ours in (("UV_FIND_LINKS", "PIP_FIND_LINKS"), ("UV_DEFAULT_INDEX", "PIP_INDEX_URL")):
        if ours in os.environ:
            settings.setdefault(theirs, os.environ[ours])
    done = subprocess.run(list(map(str, command)), env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
        raise Lacking(f"{Path(command[0]).name} {command[1]} failed: {said[-300:]}")
    return done.stdout
