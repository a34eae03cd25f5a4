"""Which tool of a workspace a recorded call stands for, so that how long it took and how often it failed by itself is known.

In: turns of coding sessions, and the command that runs a repository's tests. Out: the same turns, each call under the name of
the workspace's tool that does the like: `read`, `search`, `edit`, `write`, `test`, `shell`.

Sees: calls that show, change or run (frames.py); commands that begin the program which runs the tests. Does not see: tests that
run behind another program (`tox`, `make check`): they count as `shell`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

import polars as pl

from extractors.workspaces.frames import CommandRun, FileEdit, FileLines, Frame, commands_of, frames

EFFECTS = {"read": "read", "search": "read", "test": "read", "edit": "update", "write": "update", "shell": "unknown"}
"""Tool of a workspace -> what it does to the files; a command may do anything."""
_STARTERS = frozenset(("sh", "bash", "env", "time", "uv", "poetry", "pipenv", "hatch", "pdm", "npx", "run", "exec", "-m"))
_SEVERAL = frozenset(("npm", "yarn", "pnpm", "node", "go", "cargo", "make", "dotnet", "mvn", "gradle"))
"""Programs that say by their next word what they do."""


def as_workspace_tools(turns: pl.DataFrame, test: Sequence[str]) -> pl.DataFrame:
    """Return the turns with the names of a workspace's tools; calls of other tools are left out.

    `turns`: columns of `core.turns`; `test`: the words of the command that runs the tests.
    """
    names = [tool_of(frames(*call), test) if kind == "call" else None for kind, *call in turns.select(
        "kind", "arguments", "content", "is_error").iter_rows()]
    named = turns.with_columns(pl.Series("tool", names, dtype=pl.String))
    return named.filter((pl.col("kind") != "call") | pl.col("tool").is_not_null())


def tool_of(call: Sequence[Frame], test: Sequence[str]) -> str | None:
    """Return the tool that does what a call did, given as its frames; None where it did nothing that is known."""
    command = next((frame for frame in call if isinstance(frame, CommandRun)), None)
    if command is not None:
        runner = _program(test)
        return "test" if any(_program(words) == runner for words in commands_of(command.command) or ()) else "shell"
    edit = next((frame for frame in call if isinstance(frame, FileEdit)), None)
    if edit is not None:
        return "write" if edit.patch is None and edit.before is None and edit.line is None else "edit"
    shown = [frame for frame in call if isinstance(frame, FileLines)]
    if shown:
        return "read" if len(shown) == 1 and len(shown[0].lines) > 1 else "search"
    return None


def _program(words: Sequence[str]) -> tuple[str, ...]:
    """Return what a command begins: the program behind what starts it, with its next word where that says what it does."""
    rest = [word for word in words if "=" not in word.partition("/")[0]]
    while rest and (rest[0] in _STARTERS or posixpath.basename(rest[0]).startswith("python")) and len(rest) > 1:
        rest = rest[1:]
    name = posixpath.basename(rest[0]) if rest else ""
    return (name, *rest[1:2]) if name in _SEVERAL else (name,)
