"""Lines of text logs: how one begins (with a time, a level, both, or as if it went on), syslog's parts, an access log's fields.

`Shape`, None where no record begins so: sees ISO times (also with a comma, slashes, in brackets), the Common Log Format's time,
calendar times with a year, glog's letter and time, seconds since 1970 with a fraction, and level words. A time without a date
counts where a level word follows. Does not see: levels in other languages.

`SyslogLine`: RFC 5424, RFC 3164, and the latter without the priority, as files hold it. Sees an octet count in front (TCP
framing), structured data with its escapes, a byte order mark before the message. Does not see: the year of RFC 3164's time
(`SyslogLine.time` is as written); headers that a relay put before a header.

`AccessFields`: Common, Combined, and Combined with `name=value` pairs behind. Sees nginx' escapes (`\\xHH`, `\\"`), quotes that
a server left as they were, and `-` for nothing. A request field that holds no request (a TLS hello, nothing at all) leaves
method and path None. Does not see: whether the time is the request's begin (Apache) or its end (nginx), other columns' orders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from extractors.formats.instants import clf


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
    """Return the shape of a line that begins a record, None where none begins so."""
    if line[:1].isspace():
        return None
    if (match := _TIME.match(line)) is None and (glog := _GLOG.match(line)) is not None:
        return Shape(None, _GLOG_LEVELS[glog[1]], line[glog.end():], False)
    if (behind := match or _CLOCK.match(line)) is not None:
        level = _ANY_LEVEL.match(line, behind.end())
        rest, word = line[(level or behind).end():], level[1].upper() if level else None
        if match is None:
            return Shape(None, word, rest, False)
        time = match[1]
        if time[19:20] == ":":   # log4j's colon before the milliseconds
            time = f"{time[:19]}.{time[20:]}"
        return Shape(time, word, rest, _PAIRS.match(rest) is not None)
    if _PAIRS.match(line) is not None:
        return Shape(None, None, line, True)
    if (match := _LEADING_LEVEL.match(line)) is not None:
        return Shape(None, match[1], line[match.end():], False)
    return None


def goes_on(line: str) -> bool:
    """Whether a line that begins no record reads like one that goes on with the line before: a traceback's, an indented one."""
    return _GOES_ON.match(line) is not None


def is_target(text: str) -> bool:
    """Whether a text is what a request asks for: a path, an address, `*`."""
    return _TARGET.match(text) is not None


@dataclass(frozen=True, slots=True)
class SyslogLine:
    """What a line states; `-` is None."""

    priority: int | None
    time: str | None
    host: str | None
    application: str | None
    message_id: str | None
    message: str
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    """Structured data: name of the element (without its enterprise number) -> its parameters."""

    @property
    def severity(self) -> int | None:
        """0 (emergency) to 7 (debug)."""
        return None if self.priority is None else self.priority % 8


_NEW = re.compile(r"(?:\d{1,6} )?<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) (\S+) (-|\[)", re.ASCII)
_OLD = re.compile(
    r"(?:\d{1,6} )?(?:<(\d{1,3})>)?"
    r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) "
    r"(\S+) ([^\s:\[]{1,64})(?:\[([^\]]*)\])?: ?(.*)", re.ASCII | re.S)
_BARE = re.compile(r"<(\d{1,3})>(.*)", re.ASCII | re.S)
_ELEMENT = re.compile(r'\[([^ =\]"]{1,64})((?: [^ =\]"]+="(?:[^"\\\]]|\\.)*")*)\]', re.S)
_PARAMETER = re.compile(r' ([^ =\]"]+)="((?:[^"\\\]]|\\.)*)"', re.S)
_ESCAPE = re.compile(r'\\(["\\\]])')
_MOST = 191


def syslog_of(line: str) -> SyslogLine | None:
    """Return the parts of a line, None where it is no syslog."""
    if (match := _NEW.match(line)) is not None and int(match[1]) <= _MOST:
        elements: dict[str, dict[str, str]] = {}
        end = match.end() if match[7] == "-" else match.end() - 1
        while match[7] == "[" and (element := _ELEMENT.match(line, end)) is not None:
            parameters = elements.setdefault(element[1].partition("@")[0], {})
            parameters.update((name, _ESCAPE.sub(r"\1", value)) for name, value in _PARAMETER.findall(element[2]))
            end = element.end()
        time, host, application, message_id = (None if match[i] == "-" else match[i] for i in (2, 3, 4, 6))
        message = line[end:].removeprefix(" ").removeprefix("\ufeff")
        return SyslogLine(int(match[1]), time, host, application, message_id, message, elements)
    if (match := _OLD.fullmatch(line)) is not None and int(match[1] or 0) <= _MOST:
        return SyslogLine(int(match[1]) if match[1] else None, match[2], match[3], match[4], None, match[6])
    if (match := _BARE.fullmatch(line)) is not None and int(match[1]) <= _MOST:
        return SyslogLine(int(match[1]), None, None, None, None, match[2])
    return None


class AccessFields(NamedTuple):
    """What an access log's line states."""

    host: str
    user: str | None
    logged_at: int | None
    """Microseconds since 1970 UTC."""
    method: str | None
    path: str | None
    """Without the query."""
    query: str
    status: int | None
    n_bytes: int | None
    referer: str | None
    agent: str | None
    extras: str
    """What stands behind the fields of the Combined format."""


_BEFORE = re.compile(r'(\S{1,256}) \S{1,256} ([^"]{1,256}?) \[([^]]{1,64})] "', re.ASCII).match
_TURN = re.compile(r'(?<!\\)" (\d{3}|-) (\d+|-)(?= |$)', re.ASCII).search
_ANSWER = re.compile(r" (\d{3}|-) (\d+|-) ?", re.ASCII).fullmatch
_REQUEST = re.compile(r"([A-Za-z]{1,20}) ([^ ]+)(?: HTTP/[\d.]+)?", re.ASCII).fullmatch
_ESCAPED = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.S)
_LONG = 256
_COMBINED, _COMMON = 7, 3
_make = tuple.__new__


def fields_of(line: str) -> AccessFields | None:
    """Return the fields of a line, None where it is no line of an access log.

    A line without escapes falls apart at its quotes, three times quicker than by a regular expression.
    """
    parts = line.split('"')
    if len(parts) in (_COMBINED, _COMMON) and "\\" not in line and (fields := _fields(parts)) is not None:
        return fields
    before = _BEFORE(line)   # escapes, or quotes that nobody escaped: where the status stands tells
    turn = _TURN(line, before.end()) if before is not None else None
    if before is None or turn is None:
        return None
    method, path, query = _request_of(line[before.end():turn.start()])
    referer, agent, extras = _behind(line[turn.end():])
    return AccessFields(before[1], None if before[2] == "-" else before[2], clf(before[3]), method, path, query,
                        _number(turn[1]), _number(turn[2]), _stated(referer), _stated(agent), extras)


def _fields(parts: list[str]) -> AccessFields | None:
    before = parts[0].split(" ", 3)
    answer = _answer(parts[2]) if len(parts[2]) < _LONG else None
    if answer is None or len(before) < 4 or before[3][:1] != "[" or before[3][-2:] != "] ":
        return None
    if len(parts) != _COMMON and parts[4] != " ":
        return None
    method, path, query = _request(parts[1]) if len(parts[1]) < _LONG else _request_of(parts[1])
    referer, agent, extras = (None, None, "") if len(parts) == _COMMON else (parts[3], parts[5], parts[6])
    return _make(AccessFields, (
        before[0], None if before[2] == "-" else before[2], clf(before[3][1:-2]), method, path, query, *answer,
        None if referer in _NOTHING else referer, None if agent in _NOTHING else agent, extras))


def _behind(rest: str) -> tuple[str, str, str]:
    """Return referer, agent and what follows them. The agent ends at the first quote behind which quotes come in pairs."""
    end = rest.find('" "', 2)
    if not rest.startswith(' "') or end < 0:
        return "", "", rest
    at, n_quotes = end + 3, rest.count('"', end + 3)
    while (at := rest.find('"', at)) >= 0:
        n_quotes -= 1
        if n_quotes % 2 == 0 and rest[at - 1] != "\\" and rest[at + 1:at + 2] in ("", " "):
            return rest[2:end], rest[end + 3:at], rest[at + 1:]
        at += 1
    return "", "", rest


@lru_cache(maxsize=65536)
def _answer(text: str) -> tuple[int | None, int | None] | None:
    match = _ANSWER(text)
    return None if match is None else (_number(match[1]), _number(match[2]))


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def unescaped(text: str) -> str:
    """Text with a server's escapes undone: `\\x22` to a quote, `\\xc3\\xbc` to an umlaut, `\\\\` to a backslash."""
    def byte(match: re.Match[bytes]) -> bytes:
        if match[1] is not None:
            return bytes.fromhex(match[1].decode())
        return {b"n": b"\n", b"t": b"\t", b"r": b"\r"}.get(match[2], match[2])
    return text if "\\" not in text else _ESCAPED.sub(byte, text.encode("utf-8", "replace")).decode("utf-8", "replace")


def _request_of(request: str) -> tuple[str | None, str | None, str]:
    """Return method, path and query of the request field; None, None and nothing where it holds no request."""
    match = _REQUEST(unescaped(request))
    if match is None:
        return None, None, ""
    path, _, query = match[2].partition("?")
    return match[1], path, query


_request = lru_cache(maxsize=65536)(_request_of)


_NOTHING = ("-", "", None)


def _stated(text: str) -> str | None:
    return None if text in _NOTHING else unescaped(text)
