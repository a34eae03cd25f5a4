"""Which tools run programs or edit files: what they are given is a program and no value that a reward could want word for word.

In: turns. Out: the sessions whose work such tools do. A tool runs programs if most of its calls have a text among their
arguments that is a command line (operators, flags, a list that begins with a shell), a patch, or several lines of code. One
that others beside it edit files with is not needed: a service whose sessions mostly use a shell works on files.

Sees: POSIX command lines, unified diffs and the patches of coding agents, indented or bracketed lines of most programming
languages. Does not see: queries in SQL, prose with code in it, commands of one word.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from env_builder.runtime.relevance import leaves

MOST_CALLS = 0.5
"""Share of a tool's calls that are given a program, from which it runs programs."""
FEWEST_CALLS = 3
MOST_SESSIONS = 0.5
"""Share of a service's sessions that call such tools, from which all of its sessions work on files."""
FEWEST_LINES = 3
LONGEST = 20_000
"""Characters of a text that are looked at."""
_SHELLS = frozenset(("sh", "bash", "zsh", "cmd", "powershell", "pwsh", "python", "python3", "node"))
_OPERATOR = re.compile(r"&&|\|\||\s\|\s\w|\$\(|\d?>&\d|\s>{1,2}\s|<<\s*['\"]?\w")
_FLAG = re.compile(r"^\s*[\w./-]+(?:\s+[\w./:@=-]+)*\s+--?[a-zA-Z]")
_PATCH = re.compile(r"^(?:\*\*\* (?:Begin Patch|Update File|Add File|Delete File)|diff --git |@@ |--- a/|\+\+\+ b/)",
                    re.MULTILINE)
_WORD = re.compile(r"[^\s&|$<>]*")
"""A text that is no program, whatever it is: one word without any sign of a shell."""
_CODE_LINE = re.compile(
    r"[{}();:]\s*$|^\s*(?:def|class|import|from|return|if|for|while|const|let|var|func|fn|public|private|use|end|@\w+)\b.*"
    r"|^\s+\S.*[=(\[]|^\s*(?://|#!|/\*)")


def sessions_that_run_programs(turns: pl.DataFrame) -> dict[str, str]:
    """Return session -> a tool that runs programs there."""
    calls = turns.filter((pl.col("kind") == "call") & pl.col("arguments").is_not_null()).select(
        "service", "session_id", "tool", "arguments").sort("service", "session_id", "tool")
    n_calls, n_programs = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    sessions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for service, session_id, tool, arguments in calls.iter_rows():
        n_calls[service, tool] += 1
        n_programs[service, tool] += _is_given_program(arguments)
        sessions[service][session_id].add(tool)
    running: dict[str, str] = {}
    for service, tools_of in sessions.items():
        tools = {tool for (own, tool), n in n_calls.items()
                 if own == service and n >= FEWEST_CALLS and n_programs[own, tool] > MOST_CALLS * n}
        using = {name: min(tools & own) for name, own in tools_of.items() if tools & own}
        if len(using) >= MOST_SESSIONS * len(tools_of) and using:
            using = dict.fromkeys(tools_of, min(tools)) | using
        running |= using
    return running


@lru_cache(maxsize=1 << 14)
def _is_given_program(arguments: str) -> bool:
    return holds_program(json.loads(arguments))


def holds_program(arguments: Any) -> bool:
    """Whether one of a call's arguments is a command line, a patch or code."""
    return any(map(_is_shell, _lists(arguments))) or any(
        is_program(leaf[:LONGEST]) for leaf in leaves(arguments) if isinstance(leaf, str))


def is_program(text: str) -> bool:
    """Whether a text is a command line, a patch or several lines of code."""
    if _WORD.fullmatch(text):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    if _PATCH.search(text):
        return True
    if len(lines) < FEWEST_LINES and any(_OPERATOR.search(line) or _FLAG.search(line) for line in lines):
        return True
    return len(lines) >= FEWEST_LINES and sum(bool(_CODE_LINE.search(line)) for line in lines) > MOST_CALLS * len(lines)


def _is_shell(values: list[Any]) -> bool:
    return len(values) > 1 and isinstance(values[0], str) and values[0].rsplit("/", 1)[-1] in _SHELLS


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _lists(each)
