"""A pull from a replayed platform as a process that is killed in the middle of a page, and what its files tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from extractors.inventory import discover
from extractors.reading import read
from tests.command_line import ROOT, environ
from tests.sources.replays import Replay
from tests.sources.server import PlatformServer

_IDS = ("event_id", "record_id", "file_id")
_TOLD = ("message", "reasoning", "call", "result", "feedback")


@dataclass(frozen=True)
class Puller:
    """A configuration with one source, and the interpreter that pulls it."""

    folder: Path
    replay: Replay
    server: PlatformServer
    python: str = sys.executable

    @property
    def config(self) -> Path:
        return self.folder / "traceroom.toml"

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox" / "desk"

    def add(self) -> None:
        """Add the source, three records a page."""
        done = self.run("add", "desk", self.replay.platform, "--url", self.server.url, *self.replay.options)
        assert done.returncode == 0, done.stderr
        text = self.config.read_text("utf-8")
        self.config.write_text(text.replace("[sources.pull]\n", "[sources.pull]\npage_size = 3\n"), "utf-8")

    def run(self, command: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a `sources` command to its end."""
        return subprocess.run(self._command(command, *arguments), capture_output=True, text=True, timeout=200, check=False,
                              cwd=self.folder, env=self._environ(**settings))

    def pull(self, *arguments: str) -> dict[str, Any]:
        """Pull, and return what the command prints."""
        done = self.run("pull", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        row: dict[str, Any] = json.loads(done.stdout)[0]
        return row

    def kill_while_hanging(self, page: int) -> None:
        """Pull until the server hangs in the middle of this page, then kill the process."""
        self.server.hang_at = page
        with subprocess.Popen(self._command("pull"), cwd=self.folder, env=self._environ(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            is_hanging = self.server.is_hanging.wait(60)
            process.send_signal(signal.SIGKILL)
            errors = process.communicate()[1]
        assert is_hanging and process.returncode == -signal.SIGKILL, errors
        self.server.hang_at = None

    def _command(self, command: str, *arguments: str) -> list[str]:
        return [self.python, "-P", "-m", "pipelines", "sources", command, *arguments, "--config", str(self.config)]

    def _environ(self, **settings: str) -> dict[str, str]:
        return environ(**self.replay.credentials) | {"PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "")} | settings

    def files(self) -> list[Path]:
        """Return the files that a run would read."""
        return sorted(path for path in self.inbox.glob("*") if not path.name.startswith("."))

    def spooled(self) -> Iterator[Path]:
        """Return the pages that wait to be published."""
        return self.inbox.glob(".pages/*/*.jsonl")


def events_of(folder: Path, told_only: bool = False) -> pl.DataFrame:
    """Return the events that a folder tells, without ids; `told_only`: what is said and done."""
    events = pl.concat([read(each).events for each in discover([folder])[0]])
    if told_only:
        events = events.filter(pl.col("kind").is_in(_TOLD)).select(
            "session_id", "kind", "role", "tool", "name", "content", "arguments", "is_error", "call_id", "happened_at", "model")
        return events.sort(pl.all())
    columns = [name for name in events.columns if name not in _IDS]
    return events.select(columns).sort(pl.all())


def write_dump(folder: Path, replay: Replay) -> Path:
    """Write what somebody would download."""
    folder.mkdir()
    for name, rows in replay.dump.items():
        (folder / name).write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    return folder
