"""The manual's own lines, run as they stand: commands and what they print, files to save, Python.

In: a page. A block `console` holds commands (`$ …`) and what they print; in it `…` stands for any text of a line, and a line
`…` for any lines. Where the line before a block ends in "`NAME`:" the block is a file of that name. A block whose output ends
in `^C` is ended as a person would, once it has printed what is shown. Blanks count as one.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n?```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S)
_NAMED = re.compile(r"`([^`]+)`:$")
WIDTH = "120"
PACKAGES = "packages"
"""Where packages of a page are installed."""
SECONDS = 300
PATIENCE_S = 5


class Block(NamedTuple):
    """A code block of a page."""

    language: str
    text: str
    file: str | None
    """Name to save it under, where the page says one."""


class Command(NamedTuple):
    """A command of a page, and what it is said to print."""

    line: str
    shown: list[str]
    stopped: bool
    """Is it ended by Ctrl-C?"""


def blocks(page: Path) -> list[Block]:
    """All fenced blocks, in order."""
    found = []
    for match in _BLOCK.finditer(page.read_text("utf-8")):
        named = _NAMED.search(match["before"].rstrip())
        found.append(Block(match["language"], match["text"], named[1] if named else None))
    return found


def commands(text: str) -> list[Command]:
    """Return the commands of a `console` block."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, *shown = part.rstrip().split("\n")
        while line.endswith("\\"):
            line = f"{line[:-1]}{shown.pop(0)}"
        stopped = shown[-1:] == ["^C"]
        found.append(Command(line, shown[:-1] if stopped else shown, stopped))
    return found


def shell(folder: Path) -> dict[str, str]:
    """Return makes `./traceroom` and `.venv/bin` of a folder this checkout's, but that packages are installed into the folder.
    Gives the environment of its commands; in it stands the key that the tests' runs were made with."""
    python = f'exec "{sys.executable}"'
    pip = f'{python} -m pip install --quiet --no-index --no-deps --no-build-isolation --target "{folder / PACKAGES}" "$@"'
    for name, does in (("traceroom", f'{python} -P -m pipelines "$@"'), (
            ".venv/bin/python", f'if [ "$1 $2 $3" = "-m pip install" ]; then shift 3; {pip}; fi\n{python} "$@"')):
        script = folder / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n{does}\n")
        script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items()
            if name == "TRACEROOM_KEY" or not name.startswith(("TRACEROOM_", "DAGSTER_", "PYTEST"))}
    return {**kept, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1",
            "XDG_CONFIG_HOME": str(folder / ".config"),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder / PACKAGES)))}


def run(command: Command, folder: Path, environ: dict[str, str]) -> None:
    """Run it as it stands; AssertionError where it fails or prints something else."""
    process = subprocess.Popen(["sh", "-c", f"exec {command.line}" if command.stopped else command.line], cwd=folder, text=True,
                               env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        printed = _until(process, command, folder) if command.stopped else process.communicate(timeout=SECONDS)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert command.stopped or process.returncode == 0, f"$ {command.line}\n{printed}"
    assert agrees(command.shown, printed), f"$ {command.line}\nprints\n{printed}\nand not\n" + "\n".join(command.shown)


def _until(process: subprocess.Popen[str], command: Command, folder: Path) -> str:
    """Return what it prints until it has printed what is shown."""
    lines: list[str] = []
    ends = time.monotonic() + SECONDS
    assert process.stdout
    while not agrees(command.shown, "".join(lines)) and time.monotonic() < ends:
        line = process.stdout.readline()
        if not line:
            break
        lines.append(line)
    while process.poll() is None and time.monotonic() < ends:   # as a person: again, where it was still starting
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=PATIENCE_S)
    return "".join(lines)


def agrees(shown: list[str], printed: str) -> bool:
    """Is what is printed what is shown? Nothing shown: whatever it is."""
    if not shown:
        return True
    wanted = [re.sub(r"\s+", " ", line).strip() for line in shown]
    parts = [r"(?:[^\n]*\n)*?" if line == "…" else re.escape(line).replace("…", r"[^\n]*?") + r"\n" for line in wanted if line]
    plain = "\n".join(filter(None, (re.sub(r"[ \t]+", " ", line).strip() for line in printed.splitlines())))
    return re.fullmatch("".join(parts), f"{plain}\n") is not None


def play(page: Path, folder: Path) -> int:
    """Everything that a page tells to do, in order, in a folder; gives how many commands and pieces of Python were run."""
    environ, n = shell(folder), 0
    for block in blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command in commands(block.text):
                run(command, folder, environ)
                n += 1
    return n
