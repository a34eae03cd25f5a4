"""Patterns of calls: which steps of a journal a check speaks of.

In: patterns as docs/rewards.md describes them, and an episode. Out: the places of the steps that match. An argument is a name,
or a JSON pointer (RFC 6901) if it begins with a slash. Values are compared (1 is 1.0, true is not 1); nothing is ever a
pattern.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..canonical import canonical
from ..ends import same, unquoted
from ..schemas import TYPES, fields, is_of, mapping
from .kind import EpisodeView, Parameters, Row, Schema

TOOLS: Schema = {"type": ["string", "array", "null"], "items": {"type": "string"}}
SOURCE = fields("tool", "at", tool=TOOLS, arguments={"type": "object"}, at={"type": "string"}, each={"type": "string"})
BOUND: Schema = {"type": ["number", "string"]}
CONSTRAINT = fields(
    one_of={"type": "array"}, none_of={"type": "array"}, at_least=BOUND, at_most=BOUND, above=BOUND, below=BOUND,
    type={"enum": sorted(TYPES)}, contains={}, given={"type": "boolean"}, same_as=SOURCE)
PATTERN = fields(
    tool=TOOLS, arguments={"type": "object"}, where=mapping(CONSTRAINT), effect={"enum": ["read", "write"]},
    outcome={"enum": ["done", "tried", "failed", "any"]},
    say={"type": ["boolean", "array"], "items": {"type": "string", "minLength": 1}})
PATTERNS: Schema = {"type": "array", "items": PATTERN}
ABSENT = object()


class Pattern(NamedTuple):
    """A pattern, read once."""

    written: Parameters
    tools: frozenset[str] | None
    """None: any."""
    named: list[tuple[str, Any]]
    where: list[tuple[str, Parameters]]
    effect: str | None
    outcome: str
    """`tried`: done, or a write without an answer here, that may have been done: no grade depends on whether it was."""
    phrases: list[str] | None
    """Phrases of words of the agent, empty: any words; None: it speaks of calls."""
    tool: str | None
    """The one tool that it speaks of, where it speaks of calls of one that were done."""
    every: str | None
    """The same, where it speaks of all of these whatever their arguments."""
    key: str
    """What is written, as text: equal patterns match the same steps."""

    def matches(self, row: Row, view: EpisodeView, place: int | None = None) -> bool:
        """Is it a call of this tool with such arguments, whatever became of it? `place`: where it stands in the journal."""
        tool = row.get("tool")
        if self.phrases is not None or (self.tools is not None and tool not in self.tools):
            return False
        if self.effect is not None and (tool in view.episode.writes) != (self.effect == "write"):
            return False
        return self.fits(row, view, place)

    def fits(self, row: Row, view: EpisodeView, place: int | None = None) -> bool:
        """Has a call of this tool such arguments?"""
        given = row.get("arguments")
        if not isinstance(given, dict):
            return not self.named and not self.where
        for name, value in self.named:
            if name not in given or not (same(given[name], value) or same(unquoted(given[name]), unquoted(value))):
                return False
        return not self.where or all(
            holds(constraint, found_at(given, name), view, place) for name, constraint in self.where)


def pattern_of(written: Parameters) -> Pattern:
    """Return the pattern that a rubric writes. ValueError where it says neither `tool` nor `say`, or both."""
    if ("tool" in written) == ("say" in written):
        raise ValueError("a pattern must name either `tool` or `say`")
    phrases = written.get("say")
    if phrases is False or (phrases is not None and set(written) != {"say"}):
        raise ValueError("a pattern of words is {\"say\": true} or {\"say\": [phrases]}")
    tool = written.get("tool")
    tools = None if tool is None else frozenset([tool] if isinstance(tool, str) else tool)
    plain = None if phrases is None else [] if phrases is True else [" ".join(each.casefold().split()) for each in phrases]
    done_by_one = isinstance(tool, str) and "effect" not in written and written.get("outcome", "done") == "done"
    one = tool if done_by_one else None
    named, where = list(written.get("arguments", {}).items()), list(written.get("where", {}).items())
    every = None if named or where else one
    outcome = written.get("outcome", "done")
    return Pattern(written, tools, named, where, written.get("effect"), outcome, plain, one, every, canonical(written))


def matching(pattern: Pattern, view: EpisodeView) -> list[tuple[int, Row]]:
    """(place, row) of the steps that match, in order."""
    journal = view.episode.journal
    return [(place, journal[place]) for place in places_of(pattern, view)]


def places_of(pattern: Pattern, view: EpisodeView) -> list[int]:
    """Places of the steps that match, in order: looked for once an episode, and not to be changed."""
    if pattern.every is not None:
        return view.done.get(pattern.every, [])
    places = view.matched.get(pattern.key)
    if places is None:
        places = view.matched[pattern.key] = _matching(pattern, view)
    return places


def _matching(pattern: Pattern, view: EpisodeView) -> list[int]:
    journal = view.episode.journal
    if pattern.tool is not None:
        return [at for at in view.done.get(pattern.tool, ()) if pattern.fits(journal[at], view, at)]
    if pattern.phrases is not None:
        plain = ((at, " ".join(text.casefold().split())) for at, text in view.messages)
        return [at for at, text in plain if not pattern.phrases or any(map(text.__contains__, pattern.phrases))]
    if pattern.outcome in ("failed", "any"):
        failed = pattern.outcome == "failed"
        candidates = [at for at, row in view.calls if not failed or (row.get("is_error") and row.get("tier") != "unknown")]
    elif pattern.tools is not None:
        candidates = sorted([at for tool, places in view.done.items() if tool in pattern.tools for at in places])
    else:
        candidates = view.trace
    if pattern.outcome == "tried":
        candidates = [at for at in candidates if not view.was_refused(journal[at])]
    return [at for at in candidates if pattern.matches(journal[at], view, at)]


def found_at(value: Any, at: str) -> Any:
    """Return what stands at an argument's name or a JSON pointer, ABSENT where nothing does."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in at.split("/")[1:]] if at[:1] == "/" else [at] if at else []
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 9 and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def holds(constraint: Parameters, value: Any, view: EpisodeView, place: int | None) -> bool:
    """Return whether a constraint holds of a value (ABSENT: of none). `place`: before which step answers count; None: all."""
    if value is ABSENT:
        return constraint.get("given") is False
    return all(_TESTS[word](value, bound, view, place) for word, bound in constraint.items())


def _ordered(value: Any, bound: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Numbers by size, texts by alphabet; nothing else has an order."""
    numbers = is_of(value, "number") and is_of(bound, "number")
    return (numbers or (isinstance(value, str) and isinstance(bound, str))) and holds(value, bound)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    return isinstance(value, list) and any(same(item, part) for item in value)


def _same_as(value: Any, source: Parameters, view: EpisodeView, place: int | None) -> bool:
    tool = source["tool"]
    tools = None if tool is None else [tool] if isinstance(tool, str) else tool
    for at, row in view.calls:
        if place is not None and at >= place:
            break
        given = row.get("arguments")
        if (tools is None or row["tool"] in tools) and not row.get("is_error") and isinstance(row.get("content"), str) and all(
                isinstance(given, dict) and name in given and same(given[name], wanted)
                for name, wanted in source.get("arguments", {}).items()):
            value_at = found_at(view.answer(row), source["at"])
            listed = "each" in source and isinstance(value_at, list)
            items = [found_at(item, source["each"]) for item in value_at] if listed else [value_at]
            if any(item is not ABSENT and same(item, value) for item in items):
                return True
    return False


_TESTS: dict[str, Callable[[Any, Any, EpisodeView, int | None], bool]] = {
    "one_of": lambda value, values, *_: any(same(value, one) for one in values),
    "none_of": lambda value, values, *_: not any(same(value, one) for one in values),
    "at_least": lambda value, bound, *_: _ordered(value, bound, operator.ge),
    "at_most": lambda value, bound, *_: _ordered(value, bound, operator.le),
    "above": lambda value, bound, *_: _ordered(value, bound, operator.gt),
    "below": lambda value, bound, *_: _ordered(value, bound, operator.lt),
    "type": lambda value, kind, *_: is_of(value, kind),
    "contains": lambda value, part, *_: _contains(value, part),
    "given": lambda _, given, *__: bool(given),
    "same_as": _same_as,
}
