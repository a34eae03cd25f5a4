"""The command line as people call it: a process of its own, or within this one where the process is not what is tested
(it need not load everything anew then)."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import screen
from pipelines.cli import main

ROOT = Path(__file__).resolve().parent.parent
WIDTH = "200"


def environ(**settings: str) -> dict[str, str]:
    """Return the environment of a call: ours, wide enough for whole sentences, on no instance of Dagster."""
    kept = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    return kept | {"COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)} | settings


def process(*arguments: str | Path, cwd: Path = ROOT, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end as a process."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
        env=environ(**settings), timeout=500, check=False)


def called(*arguments: str | Path, typed: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    """Call the command line within this process, from its parsing to its exit code; settings are of the environment."""
    argv = ["traceroom", *map(str, arguments)]
    said, told = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        for name in os.environ.keys() - environ().keys():
            patch.delenv(name)
        for name, value in environ(**settings).items():
            patch.setenv(name, value)
        for name, size in (("_width", int(os.environ["COLUMNS"])), ("_height", 50)):   # it read them when it was made
            patch.setattr(screen.console, name, size)
        patch.setattr(sys, "argv", argv)
        patch.setattr(sys, "stdin", io.StringIO(typed))
        code: object = 0
        try:
            main()
        except SystemExit as left:
            code = left.code or 0
    out, errors = (stream.buffer.getvalue().decode() for stream in (said, told))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(argv, code if isinstance(code, int) else 1, out, errors)
