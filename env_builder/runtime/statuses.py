"""Answers that go with what the session was shown last of a field: `status` rules (docs/behaviour.md).

In: a rule, a call, and the session's calls before it. Out: the answer, or None. Whatever tool showed the field last tells its
value: a level, a mode, a line that many tools end with. The rule has the answers that sessions on record got to this call at
this value, and after as many calls of its own, each with the document that it shows if the call may have changed that.
Sees: fields of an object, and lines with a name before a colon. Does not see: values that only several fields together tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from .answers import parse
from .caching import cached
from .canonical import canonical, digest
from .precedents import LENGTH, PastCalls
from .records import ToolAnswer

_LINE = re.compile(r"\s*([^\W\d_][\w '-]{0,40}): (\S.*)")


class Status(NamedTuple):
    """A field's value as the session was shown it last."""

    value: str
    between: frozenset[str]
    """Tools that were called since then."""
    tool: str
    """The one that showed it."""

    def words(self, by_tool: bool) -> list[str]:
        return [self.value, self.tool] if by_tool else [self.value]


@cached(16384)
def fields_shown(content: str) -> dict[str, str]:
    """Return the fields that an answer shows, with their values as text; not to be changed."""
    value = parse(content)
    if isinstance(value, dict):
        scalars = {name: item for name, item in value.items() if isinstance(item, str | int | float)}
        return {name: item if isinstance(item, str) else canonical(item) for name, item in scalars.items()}
    matches = map(_LINE.fullmatch, content.splitlines())
    return {match[1]: match[2] for match in matches if match is not None}


def statuses(past: PastCalls, shown_by: Collection[str] = ()) -> Iterator[tuple[str, Status]]:
    """Yield each field that the session was shown, with its latest value. `shown_by`: tools that show it; where nobody knows
    what one of them answered, nothing before it counts."""
    between: frozenset[str] = frozenset()
    names: set[str] = set()
    for call in (call for call in reversed(past) if not call.failed):
        if call.content is None and call.tool in shown_by:
            return
        fields = {} if call.content is None else fields_shown(call.content)
        yield from ((name, Status(value, between, call.tool)) for name, value in fields.items() if name not in names)
        names.update(fields)
        between |= {call.tool}


def situation(tool: str, key: str, words: list[str], past: PastCalls) -> str:
    """Return the digest of a question at a value, after as many calls of its tool that worked. `words`: the value, and the tool
    that showed it where that matters."""
    n_calls = sum(call.tool == tool and not call.failed for call in past)
    return digest(canonical([key, words, n_calls]))[:LENGTH]


def status_answer(rule: dict[str, Any], tool: str, key: str, past: PastCalls) -> ToolAnswer | None:
    """Return what sessions on record were answered at the field's value, None where it is not known."""
    status = next((each for name, each in statuses(past, rule["shown_by"]) if name == rule["field"]), None)
    if status is None or not status.between <= set(rule["passes"]):
        return None
    place = rule["situations"].get(situation(tool, key, status.words(rule["by_tool"]), past))
    if place is None:
        return None
    content, is_error, shown = rule["answers"][place]
    return ToolAnswer(content, is_error, "derived", () if shown is None else (((shown[0], shown[1]), shown[2]),))
