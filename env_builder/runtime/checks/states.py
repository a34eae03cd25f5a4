"""Checks of the end state: `state`, `untouched`, `must_not_write`.

See what the episode changed, as the grader's own replay reached it; not in which order, nor what free text says.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ..ends import EndState, beyond, end_state, unreached
from ..schemas import fields, mapping
from .kind import Found, Kind, Loose, Parameters, Schema, Seen, clip

TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
LOOSE: dict[str, Schema] = {
    "masked": {**mapping(TEXTS), "description": "tool -> names of arguments that are free text and do not count"},
    "aside": {**TEXTS, "description": "tools whose acts do not count: notes and hand-overs"},
}
PAIRS: Schema = {"type": "array", "items": {**TEXTS, "minItems": 2, "maxItems": 2}}
DIFFERENCE = fields(
    "documents", "acts", documents=mapping({"type": ["string", "null"]}), acts=PAIRS, made=PAIRS, volatile={"type": "object"})
ACCEPTED: Schema = {"type": "array", "items": DIFFERENCE, "description": "differences, each an end state that is right"}
ENDS = fields("accepted", accepted=ACCEPTED, **LOOSE)
NO_CHANGE = fields(**LOOSE)


class Ends(NamedTuple):
    """Accepted end states."""

    loose: Loose
    accepted: list[EndState]
    sizes: list[int]
    """Of each, how many documents and acts it has, at least 1."""


def _ends(parameters: Parameters) -> Ends:
    loose = Loose.of(parameters)
    accepted = [end_state(wanted, loose.parameters) for wanted in parameters["accepted"]]
    return Ends(loose, accepted, [len(documents) + len(acts) or 1 for documents, acts in accepted])


def _state(ends: Ends, seen: Seen) -> Found:
    found = seen.end(ends.loose)
    if len(ends.accepted) == 1 and not seen.leaned:
        left = unreached(ends.accepted[0], found)
        return Found(not left, {"reached": [] if left else [0], "missing": clip(left)}, False, 1 - len(left) / ends.sizes[0])
    lefts = [unreached(wanted, found) for wanted in ends.accepted]
    reached = [index for index, left in enumerate(lefts) if not left]
    share = max((1 - len(left) / size for left, size in zip(lefts, ends.sizes, strict=True)), default=0.0)
    swayed = _leans(ends.loose, seen) and not all(_surely_missing(left, seen) for left in lefts)
    return Found(bool(reached), {"reached": reached, "missing": clip(min(lefts, key=len, default=[]))}, swayed, share)


def _surely_missing(left: list[list[str]], seen: Seen) -> bool:
    """Is something not there, whatever the unknown answers were: a document that no such act can touch, another tool's act?

    A document that the episode changed before and that such an act names is none of these: what was changed once can be again.
    """
    leaned = {row["tool"] for row in seen.leaned}
    again = _named_again(seen)
    look = seen.episode.look
    return any(
        look is not None and look(item[1])[1] is not None and item[1] not in again
        if item[0] == "document" else item[1] not in leaned for item in left)


def _named_again(seen: Seen) -> set[str]:
    """Documents that the episode changed and an unknown act names; all that it changed where one is too deep to be read."""
    changed = set(seen.episode.difference.get("documents", ()))
    try:
        named = "\n".join(json.dumps(row["arguments"], ensure_ascii=False) for row in seen.leaned)
    except RecursionError:
        return changed
    return {name for name in changed if name.partition("/")[2] in named}


def _untouched(ends: Ends, seen: Seen) -> Found:
    """The values of documents that an end state names are the matter of the check `state`."""
    found, accepted = seen.end(ends.loose), ends.accepted
    if len(accepted) == 1 and not seen.leaned:
        more = beyond(found, accepted[0])
        return Found(not more, {"beyond": clip(more)})
    if len(accepted) > 1:
        accepted = [wanted for wanted in accepted if not unreached(wanted, found)] or accepted
    least = [beyond(found, wanted) for wanted in accepted]
    passed = not all(least)
    swayed = _leans(ends.loose, seen) and (passed or not too_many_acts(ends, found))
    return Found(passed, {"beyond": clip(min(least, key=len) if least else [])}, swayed)


def too_many_acts(ends: Ends, found: EndState) -> bool:
    """Acts only ever add up: one too many stays one too many, whatever the unknown answers were."""
    return all(unreached(({}, found[1]), ({}, wanted[1])) for wanted in ends.accepted)


def _must_not_write(loose: Loose, seen: Seen) -> Found:
    found = seen.end(loose)
    changed = unreached(found, ({}, {}))
    return Found(not changed, {"changed": clip(changed)}, _leans(loose, seen) and not found[1])


def _leans(loose: Loose, seen: Seen) -> bool:
    return bool(seen.leaned) and seen.leans(loose.parameters.get("aside", ()))


KINDS: dict[str, Kind] = {
    "state": Kind("Every document and act of one accepted end state is there, in whatever order.", ENDS, _state, _ends),
    "untouched": Kind("Nothing changed beyond the accepted end state that was reached (beyond every one where none was).",
                      ENDS, _untouched, _ends),
    "must_not_write": Kind("Nothing changed.", NO_CHANGE, _must_not_write, Loose.of),
}
