"""Answer the tools of a notebook: shipped into environments, standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..apps import App, AppState, Result, Start

ARGUMENTS = {"read_line": {"key"}, "write_line": {"key", "text"}}


class NotebookApp(App):
    """A notebook of lines."""

    answers = frozenset(ARGUMENTS)
    writes = frozenset(("write_line",))

    def __init__(self, name: str, lines: list[dict[str, Any]]) -> None:
        self.name = name
        self._lines = lines

    def reset(self, start: Start) -> NotebookState:
        """Begin with the lines that were there at the instant."""
        known = {line["key"]: line["text"] for line in self._lines
                 if start.instant is None or line["since"] is None or line["since"] <= start.instant}
        return NotebookState(known, known)


class NotebookState(AppState):
    """One episode: the lines at the start and now, neither changed in place."""

    def __init__(self, start: dict[str, str], now: dict[str, str]) -> None:
        self._start, self._now = start, now

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        """Read or write a line."""
        if arguments.keys() != ARGUMENTS.get(tool) or not all(isinstance(value, str) for value in arguments.values()):
            return Result(f"invalid arguments of {tool}", True, "derived")
        name = arguments["key"]
        if tool == "read_line":
            return Result(self._now.get(name, "no such line"), name not in self._now, "derived")
        others = {other: text for other, text in self._now.items() if other != name}
        self._now = others | {name: arguments["text"]} if arguments["text"] else others
        return Result("done", False, "derived")

    def snapshot(self) -> dict[str, str]:
        """Return the lines now."""
        return self._now

    def restore(self, snapshot: dict[str, str]) -> None:
        """Return to earlier lines."""
        self._now = snapshot

    def fork(self) -> NotebookState:
        """Return the same lines."""
        return NotebookState(self._start, self._now)

    def difference(self) -> dict[str, Any]:
        """Return the lines that differ from the start."""
        names = {name for name in self._start.keys() | self._now.keys() if self._start.get(name) != self._now.get(name)}
        return {"documents": {f"line/{name}": self.read(("line", name))[1] for name in sorted(names)}, "write_calls": []}

    def read(self, name: tuple[str, str]) -> tuple[str | None, str | None]:
        """Return a line at the start and now."""
        before, after = self._start.get(name[1]), self._now.get(name[1])
        return (None if before is None else json.dumps(before), None if after is None else json.dumps(after))

    def may_write(self, tool: str) -> bool:
        """Return whether the tool writes."""
        return tool == "write_line"


def load(folder: Path, row: Mapping[str, Any]) -> NotebookApp:
    """Load a notebook from the app's folder."""
    return NotebookApp(row["name"], json.loads((folder / "lines.json").read_text("utf-8")))
