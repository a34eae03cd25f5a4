"""How a line of a text log begins: with a time, a level, both, or as if it went on with the line before.

In: a line. Out: its `Shape`, None where no record begins so. Sees ISO times (also with a comma, slashes, in brackets), the
Common Log Format's time, calendar times with a year, glog's letter and time, seconds since 1970 with a fraction, and level
words. A time without a date counts where a level word follows. Does not see: levels in other languages.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    """What a line begins with."""

    time: str | None
    level: str | None
    rest: str
    pairs: bool
    """Whether the line is `name=value` pairs."""


_LEVEL = r"TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|FINE|PANIC|LOG|AUDIT"
_TIME = re.compile(
    r"[\[(]?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
    r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \d{4}"
    r"|1\d{9}\.\d{3,9})[\])]?(?=[\s:|,-]|$)[\s:|,-]*(?:[FP] |(?:std(?:out|err)) [FP] )?", re.ASCII)
_CLOCK = re.compile(rf"\[?(\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?[\s|-]+(?=\S{{0,40}}\s?\[?(?:{_LEVEL})\b)", re.ASCII)
_GLOG = re.compile(r"([IWEF])(\d{4} \d\d:\d\d:\d\d\.\d{6})\s+", re.ASCII)
_GLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_LEADING_LEVEL = re.compile(rf"[\[(<]?({_LEVEL})[\])>]?(?:[\s:|]+|$)", re.ASCII)
_ANY_LEVEL = re.compile(r"[\[(<]?(" + _LEVEL + r")[\])>]?[\s:|]+", re.ASCII | re.IGNORECASE)
_PAIRS = re.compile(r'(?:[A-Za-z_@][\w.@-]*=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+|$)){3}', re.ASCII)
_GOES_ON = re.compile(r"\s|Caused by|Traceback|\.\.\. \d+ more|[)}\]]|\w+(?:\.\w+)*(?:Error|Exception|Warning)\b")
_TARGET = re.compile(r"/|\*$|[A-Za-z][A-Za-z0-9+.-]{1,20}://")


def shape_of(line: str) -> Shape | None:
    """The shape of a line that begins a record, None where none begins so."""
    if line[:1].isspace():
        return None
    if (found := _TIME.match(line)) is not None:
        level = _ANY_LEVEL.match(line, found.end())
        rest = line[level.end() if level else found.end():]
        return Shape(_mended(found[1]), level[1].upper() if level else None, rest, _PAIRS.match(rest) is not None)
    if (found := _GLOG.match(line)) is not None:
        return Shape(None, _GLOG_LEVELS[found[1]], line[found.end():], False)
    if (found := _CLOCK.match(line)) is not None:
        level = _ANY_LEVEL.match(line, found.end())
        return Shape(None, level[1].upper() if level else None, line[level.end() if level else found.end():], False)
    if _PAIRS.match(line) is not None:
        return Shape(None, None, line, True)
    if (found := _LEADING_LEVEL.match(line)) is not None:
        return Shape(None, found[1], line[found.end():], False)
    return None


def goes_on(line: str) -> bool:
    """Whether a line that begins no record looks like one that goes on with the line before: a traceback's, an indented one."""
    return _GOES_ON.match(line) is not None


def is_target(text: str) -> bool:
    """Whether a text is what a request asks for: a path, an address, `*`."""
    return _TARGET.match(text) is not None


def _mended(time: str) -> str:
    """Log4j's colon before the milliseconds as a point."""
    return time[:19] + "." + time[20:] if len(time) > 20 and time[19] == ":" else time
