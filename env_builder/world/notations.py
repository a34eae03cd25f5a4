"""Which notation each tool of a service answers in, and its calls with answers as JSON text.

In: a service's calls. A notation is taken where it gives back nearly all of a tool's different structured answers byte for
byte, so that a tool of three answers may have one and prose has none. Where two notations share a service's answers, each day
or release in one of them, the times of all its tools together tell which is in force when.
Single lines with a colon are sentences where these have a template, else fields if few names stand before the colon.
Does not see: two notations that alternate within a period, and what `runtime.notations` does not read.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby, pairwise, product
from typing import Any

from env_builder.runtime.answers import parse, parsed
from env_builder.runtime.notations import Notation, read, read_in, write
from env_builder.world.calls import LoggedCall, calls_by_tool
from env_builder.world.history import instant
from env_builder.world.sentences import template

MOSTLY = 0.95
"""Share of a tool's different structured answers that a notation must give back."""
FEWEST = 3
"""Different answers of a tool below which no notation is taken."""
PART = 0.1
"""Share of the answers from which on a notation may be one of two."""
SWITCHES = 0.2
"""Changes between two notations, of those expected by chance, up to which each has periods of its own."""
WIDTH = 80
"""Columns at which writers of YAML fold long texts."""
_ESCAPE = re.compile(r'"[^"\n]*\\[xu]')
"""A text in double quotes with an escaped letter."""
BARE = ("", "")
FRAMES = (("(True, ", ")"), BARE)
"""What may stand before and after the answers of a service; framed ones are tried first, as a frame may be read as a value."""
PLAIN: tuple[dict[str, Any], ...] = tuple(
    {"separators": separators, "ensure_ascii": is_ascii} for separators in ((", ", ": "), (",", ":"))
    for is_ascii in (True, False))
"""How JSON is written that documents hold as it is."""
Notations = dict[str, list[list[Any]]]
"""Tool -> [until, notation] in order of time; None: as it is."""


def find(calls: list[LoggedCall], starts: Mapping[str, datetime | None]) -> Notations:
    """Return the notations of the tools that have one. `starts`: when each session began."""
    answers = dict(sorted(calls_by_tool(call for call in calls if not call.failed).items()))
    by_tool: Notations = {}
    pairs: dict[str, tuple[Notation, Notation | None]] = {}
    for tool, own in answers.items():
        texts = sorted({call.content for call in own})
        pair = _two(texts)
        if pair is not None:
            pairs[tool] = pair
        elif (notation := _of(texts)) is not None:
            by_tool[tool] = [[None, notation]]
    if not pairs:
        return by_tool
    periods = _periods(
        [(call, _is_read(call.content, one)) for tool, (one, _) in pairs.items() for call in answers[tool]], starts)
    for tool, (one, other) in pairs.items() if periods else ():
        by_tool[tool] = [[until, one if is_first else other] for until, is_first in periods]
    return by_tool


def applied(calls: list[LoggedCall], notations: Notations) -> list[LoggedCall]:
    """Return the calls with answers that worked as JSON text, where their tool has a notation that gives them back."""
    return [call if call.failed or call.tool not in notations else _read(call, notations[call.tool]) for call in calls]


def _read(call: LoggedCall, notations: list[list[Any]]) -> LoggedCall:
    content = read_in(call.content, notations, instant(call.called_at))
    return call if content == call.content else call._replace(content=content, parsed=parse(content))


def _of(texts: list[str]) -> Notation | None:
    """Return the notation of a tool's different answers that worked; None: they are read as they are."""
    framed = _framed(texts)
    if framed is not None:
        return framed
    structured = [text for text in texts if _is_structured(text)]
    if len(structured) >= FEWEST and not all(_is_plain(text) for text in structured):
        notation = next((notation for notation in _candidates(structured) if _gives_back(notation, structured)), None)
        if notation is not None and not _are_lines(texts, notation):
            return notation
        if notation is not None:   # a colon in a sentence makes no field
            n_fields = len({text.partition(": ")[0] for text in texts})
            return template(texts) or (notation if 2 * n_fields <= len(texts) else None)
    return None if any(parsed(text) is not None for text in texts) else template(texts)


def _framed(texts: list[str]) -> Notation | None:
    """Return the notation of JSON between characters that are the same in nearly all answers, such as the line of a status."""
    frames = Counter(frame for text in texts if (frame := _around_json(text)) is not None)
    frame, n = max(sorted(frames.items()), key=lambda each: each[1]) if frames else (BARE, 0)
    if n < FEWEST or n < MOSTLY * len(texts) or frame == BARE:
        return None
    styles = ({"kind": "json", "indent": None, "ascii": style["ensure_ascii"], "separators": list(style["separators"]),
               "end": "", "frame": list(frame)} for style in PLAIN)
    return next((notation for notation in styles if _gives_back(notation, texts)), None)


def _around_json(text: str) -> tuple[str, str] | None:
    """Return what stands before and after the JSON value in a text, None where none does."""
    starts = [place for sign in "{[" if (place := text.find(sign)) >= 0]
    end = max(text.rfind(sign) for sign in "}]") + 1
    if not starts or parse(text[min(starts):end]) is None:
        return None
    return text[:min(starts)], text[end:]


def _are_lines(texts: list[str], notation: Notation) -> bool:
    """Return whether these are single lines, which may as well be sentences with a colon."""
    return notation["kind"] in ("yaml", "lines") and not any("\n" in text or text[:1] in "{[" for text in texts)


def _gives_back(notation: Notation, texts: list[str]) -> bool:
    unread = [text for text in texts if not _is_read(text, notation)]
    return len(unread) <= (1 - MOSTLY) * len(texts) and all(parsed(text) is None for text in unread)


def _is_read(text: str, notation: Notation) -> bool:
    """Return whether it is given back: by its value, as JSON that stays as it is, or as a framed text that has no parts."""
    inner = read(text, notation)
    is_bare = notation["frame"] == list(BARE)
    return (parse(inner) is not None or not (is_bare or _is_structured(inner))) and write(inner, notation) == text


def _two(texts: list[str]) -> tuple[Notation, Notation | None] | None:
    """Return two notations that share the answers, the one in a frame first; None where no two do."""
    for frame in FRAMES[:-1]:
        inside = [text for text in texts if text.startswith(frame[0]) and text.endswith(frame[1])]
        outside = [text for text in texts if text not in set(inside)]
        if min(len(inside), len(outside)) < PART * len(texts) or not inside:
            continue
        one = next((each for each in _candidates(inside) if each["frame"] == list(frame) and all(
            _is_read(text, each) for text in inside)), None)
        if one is not None:
            other = {**one, "frame": list(BARE)}
            return one, other if any(_is_read(text, other) for text in outside) else None
    return None


def _periods(
    moments: list[tuple[LoggedCall, bool]], starts: Mapping[str, datetime | None]
) -> list[tuple[str | None, bool]]:
    """Return (until, whether the first notation is in force) in order of time; [] where the two have no periods.

    One is in force from the beginning of the first session that shows it, as far as no answer speaks for the other.
    """
    timed = sorted((at, instant(starts.get(call.session_id)) or at, is_first) for call, is_first in moments
                   if (at := instant(call.called_at)) is not None)
    share = sum(is_first for _, _, is_first in timed) / len(timed) if timed else 0.0
    runs = [(is_first, list(run)) for is_first, run in groupby(timed, key=lambda each: each[2])]
    if not 0 < share < 1 or len(runs) - 1 > SWITCHES * 2 * share * (1 - share) * len(timed):
        return []
    firsts = [(before[-1][0], min(start for _, start, _ in after), after[0][0]) for (_, before), (_, after) in pairwise(runs)]
    ends = [start if start > last else at for last, start, at in firsts]
    return [(until, is_first) for (is_first, _), until in zip(runs, [*ends, None], strict=True)]


def _is_structured(text: str) -> bool:
    return parsed(text) is not None or text[:1] in "{[(" or "\n" in text.strip() or ": " in text[:61]


def _is_plain(text: str) -> bool:
    value = parsed(text)
    return value is not None and any(json.dumps(value, **style) == text for style in PLAIN)


def _candidates(texts: list[str]) -> Iterator[Notation]:
    """Yield the notations that the texts may be in, the strictest first."""
    last = texts[0].endswith("\n")
    for frame in map(list, FRAMES):
        for indent in (2, 4, 1, "\t"):
            yield from ({"kind": "json", "indent": indent, "ascii": is_ascii, "end": "\n" if last else "", "frame": frame}
                        for is_ascii in (False, True))
        yield {"kind": "literal", "tuples": _tuple_places(texts, frame), "frame": frame}
    escapes = ({}, {"ascii": True}) if any(_ESCAPE.search(text) for text in texts) else ({},)
    for dash, days, escape in product((0, 2), (False, True), escapes):
        yield from ({"kind": "yaml", "dash": dash, "days": days, "width": width, "last": last, "frame": list(BARE), **escape}
                    for width in (WIDTH, 0))
    for single in (True, False):
        for separator in (",", ";", "\t", "|"):
            yield from ({"kind": "table", "separator": separator, "end": end, "single": single, "last": last,
                         "frame": list(BARE)} for end in ("\n", "\r\n"))
        yield {"kind": "markdown", "single": single, "last": last, "frame": list(BARE)}
    yield {"kind": "lines", "last": last, "frame": list(BARE)}


def _tuple_places(texts: list[str], frame: list[str]) -> list[list[str]]:
    """Return the places at which tuples stand in the literals."""
    places: set[tuple[str, ...]] = set()
    for text in texts:
        if not (text.startswith(frame[0]) and text.endswith(frame[1])):
            continue
        try:
            places.update(_tuples(ast.literal_eval(text[len(frame[0]):len(text) - len(frame[1])]), ()))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return sorted(map(list, places))


def _tuples(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, tuple):
        yield place
    items = value.items() if isinstance(value, Mapping) else (("*", each) for each in value) if isinstance(
        value, list | tuple) else ()
    for name, each in items:
        yield from _tuples(each, (*place, str(name)))
