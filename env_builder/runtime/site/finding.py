"""Search the lines of a snapshot, with the lines around each match and those that it is part of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL).findall
_LONGEST = 300
_AROUND = 3


def compiled(text: str) -> re.Pattern[str] | str:
    """Return a regular expression, written with or without slashes and flags; or the sentence that says what is wrong."""
    match = re.fullmatch(r"/(.*)/([a-z]*)", text, re.DOTALL)
    pattern, flags = (match[1], re.IGNORECASE if "i" in match[2] else 0) if match else (text, 0)
    if may_be_slow(pattern):
        return "the regular expression is too long, or repeats what repeats; give a simpler one"
    try:
        return re.compile(pattern, flags)
    except re.error as error:
        return f"invalid regular expression {pattern!r}: {error}"


def may_be_slow(pattern: str) -> bool:
    """Whether a regular expression could take forever: it repeats what repeats or has a choice, or refers back, or is long."""
    if len(pattern) > _LONGEST or re.search(r"\\[1-9]|\(\?P=", pattern):
        return True
    open_groups = [False]
    tokens = _TOKENS(pattern)
    for token, following in zip(tokens, [*tokens[1:], ""], strict=False):
        if token == "(":
            open_groups.append(False)
        elif token == ")" and len(open_groups) > 1:
            repeats = open_groups.pop()
            if repeats and following[:1] in ("*", "+", "{"):
                return True
            open_groups[-1] = open_groups[-1] or repeats
        elif token[0] in "|*+?" or (token[0] == "{" and len(token) > 1):
            open_groups[-1] = True
    return False


def windows_around(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[list[str]]:
    """Yield windows of lines around those numbers, each below the lines that it is part of."""
    windows: list[list[int]] = []
    for number in numbers:
        start, stop = max(0, number - _AROUND), min(len(lines), number + _AROUND + 1)
        if windows and start <= windows[-1][1]:
            windows[-1][1] = stop
        else:
            windows.append([start, stop])
    for start, stop in windows:
        outer, depth = [], indent(lines[start])
        for number in range(start - 1, -1, -1):
            if indent(lines[number]) < depth:
                outer.append(lines[number])
                depth = indent(lines[number])
        yield [*reversed(outer), *lines[start:stop]]


def subtree(lines: Sequence[str], start: int) -> list[str]:
    """Return a line with those that are part of it, moved to the left edge."""
    depth = indent(lines[start])
    stop = next((number for number in range(start + 1, len(lines)) if indent(lines[number]) <= depth), len(lines))
    return [line[depth:] for line in lines[start:stop]]


def indent(line: str) -> int:
    """Return how many spaces a line begins with."""
    return len(line) - len(line.lstrip(" "))
