"""One line of syslog to its parts: RFC 5424, RFC 3164, and the latter as files hold it, without the priority.

Sees an octet count in front (TCP framing), structured data with its escapes, a byte order mark before the message.
Does not see: the year of RFC 3164's time (`SyslogLine.time` is as written); headers that a relay put before a header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


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
    """The parts of a line, None where it is no syslog."""
    if (found := _NEW.match(line)) is not None and int(found[1]) <= _MOST:
        end = found.end() if found[7] == "-" else found.end() - 1
        parameters, end = _structured(line, end) if found[7] == "[" else ({}, end)
        message = line[end:].removeprefix(" ").removeprefix("\ufeff")
        return SyslogLine(int(found[1]), _stated(found[2]), _stated(found[3]), _stated(found[4]), _stated(found[6]), message,
                          parameters)
    if (found := _OLD.fullmatch(line)) is not None and int(found[1] or 0) <= _MOST:
        return SyslogLine(int(found[1]) if found[1] else None, found[2], found[3], found[4], None, found[6])
    if (found := _BARE.fullmatch(line)) is not None and int(found[1]) <= _MOST:
        return SyslogLine(int(found[1]), None, None, None, None, found[2])
    return None


def _structured(line: str, start: int) -> tuple[dict[str, dict[str, str]], int]:
    """Structured data from `start`, and where it ends; what is none of it belongs to the message."""
    elements: dict[str, dict[str, str]] = {}
    while (found := _ELEMENT.match(line, start)) is not None:
        parameters = elements.setdefault(found[1].partition("@")[0], {})
        parameters.update((name, _ESCAPE.sub(r"\1", value)) for name, value in _PARAMETER.findall(found[2]))
        start = found.end()
    return elements, start


def _stated(text: str) -> str | None:
    return None if text == "-" else text
