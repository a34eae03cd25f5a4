"""Packages of a recipe: resolved as of a day with hashes, and installed into a folder whose bytes are the same each time.

Stands on the program uv. Only wheels are taken, so that nothing of a package runs while it is installed. Does not see: packages
that are only given as source, by address or by path; indexes that do not say when a file was uploaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

_SECONDS = 600.0
_PYTHON_SCRIPT = re.compile(rb"\A#!(?:[^\n]*python[^\n]*\n|/bin/sh\n'''exec' [^\n]*\n' '''\n)")
_RECORDS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_HEADER = b"#!/usr/bin/env python3\n"
_PLACES = (".pyenv/versions/3.*/bin/python3.*", ".local/share/uv/python/cpython-3.*/bin/python3.*")
"""Where people keep several versions of Python, below the home folder."""
_OWN_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")


class Unresolvable(Exception):
    """No set of packages satisfies these requirements, or they cannot be installed."""


class NoInstaller(RuntimeError):
    """The program uv is not here."""


class Interpreter(NamedTuple):
    """A Python that is installed here."""

    minor: int
    """Of Python 3."""
    path: Path
    """The program."""

    @property
    def prefix(self) -> Path:
        """The folder that holds it with its library."""
        return self.path.parent.parent


@cache
def interpreters() -> tuple[Interpreter, ...]:
    """Return each version of Python 3 that is installed here: the running one first, then the newest."""
    own = Interpreter(sys.version_info.minor, Path(sys.base_prefix).resolve() / "bin" / f"python3.{sys.version_info.minor}")
    others: dict[int, Interpreter] = {}
    for path in sorted(each for place in _PLACES for each in Path.home().glob(place)):
        match = re.fullmatch(r"python3\.(\d+)", path.name)
        if match is not None and path.is_file():
            others[int(match[1])] = Interpreter(int(match[1]), path.resolve())
    others.pop(own.minor, None)
    return own, *(others[minor] for minor in sorted(others, reverse=True))


def resolved(requirements: Iterable[str], python: Interpreter, until: datetime) -> tuple[str, ...]:
    """Return a version with hashes of every package that these requirements need, none uploaded later than `until`.

    Raises Unresolvable, NoInstaller.
    """
    text = _uv(
        ["pip", "compile", "-", "--generate-hashes", "--no-header", "--no-annotate", "--only-binary", ":all:", "--quiet",
         "--python", str(python.path), "--exclude-newer", until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")],
        "\n".join(requirements) + "\n")
    rows = re.sub(r"\s*\\\n\s*", " ", text)
    return tuple(sorted(" ".join([line.split(" ")[0], *sorted(line.split(" ")[1:])])
                        for line in rows.splitlines() if "==" in line))


def install(requirements: Sequence[str], python: Interpreter, folder: Path) -> None:
    """Install resolved packages into a new folder, without compiled files and traces of where or when. Raises Unresolvable."""
    folder.mkdir(parents=True)
    if requirements:
        _uv(["pip", "install", "--target", str(folder), "--require-hashes", "--no-deps", "--only-binary", ":all:", "--quiet",
             "--link-mode", "copy", "--python", str(python.path), "-r", "-"], "\n".join(requirements) + "\n")
    for path in sorted(folder.rglob("*")):
        if path.name in _RECORDS and path.parent.suffix == ".dist-info":
            path.unlink()
        elif path.name == "__pycache__":
            shutil.rmtree(path)
        elif path.parent == folder / "bin" and path.is_file():
            content = path.read_bytes()
            path.write_bytes(_PYTHON_SCRIPT.sub(_HEADER, content, count=1))
            path.chmod(0o755)
    (folder / ".lock").unlink(missing_ok=True)


def installer() -> str | None:
    """Return the program uv: the one that is installed beside this interpreter, else the one on the path."""
    own = Path(sys.executable).parent / "uv"
    return str(own) if own.is_file() else shutil.which("uv")


def _uv(arguments: list[str], text: str = "") -> str:
    program = installer()
    if program is None:
        raise NoInstaller("finding the packages of a repository needs the program uv: pip install 'traceroom[code]'")
    env = {name: each for name, each in os.environ.items() if name not in _OWN_VARIABLES}
    try:
        ran = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False, env=env,
                             timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unresolvable(f"uv did not end well: {error}") from error
    if ran.returncode:
        raise Unresolvable(" ".join(ran.stderr.split())[:600])
    return ran.stdout
