"""Two ways through a task side by side: line by line, where they first part, how the world ends, and what each earns.

In: two ways as they were played (`replays.py`); of a rollout stands what it was answered then. Out: lines, a sentence on the
first difference, rows on the two ends and on the checks. Moves that are alike stand on one line; what is said is one thing in
other words, so words alone part two ways only where nothing else does. Sees: moves, answers, documents, checks. Does not see:
whether other words mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from pipelines.browser.changes import MOST, differences, loaded
from pipelines.browser.ways import Way, key_of

Row = dict[str, Any]
KINDS = {"same": "the same", "words": "other words", "answer": "other answer", "move": "another move", "only": "only here"}
"""How two steps stand to each other -> in words."""


class Line(NamedTuple):
    """A step of one way beside a step of the other."""

    place: int
    left: Row | None
    right: Row | None
    kind: str
    """One of `KINDS`; `only`: the other way has no step here."""
    is_first: bool = False
    """Is it the first difference?"""
    moves: Sequence[tuple[str, str | None, str | None]] = ()
    """(place, left, right) of what differs in the arguments, or in the answers to one call."""


def lines(one: Sequence[Row], other: Sequence[Row]) -> list[Line]:
    """The steps of two plays side by side, the first difference marked: calls that are the same stand on one line, and what is
    between them stands in its order."""
    found: list[Line] = []
    for left, right in _pairs(one, other):
        found.append(Line(len(found) + 1, left, right, _kind(left, right)))
    parts = next((line.place for rank in (2, 1) for line in found if _rank(line) == rank), 0)
    return [line._replace(is_first=line.place == parts, moves=_moves(line)) for line in found]


def _pairs(one: Sequence[Row], other: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    places = [[place for place, step in enumerate(steps) if step["kind"] == "call"] for steps in (one, other)]
    keys = [[key_of(steps[place]) for place in own] for steps, own in zip((one, other), places, strict=True)]
    begins = 0, 0
    for block in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks():
        for n in range(block.size):
            ends = places[0][block.a + n], places[1][block.b + n]
            yield from zip_longest(one[begins[0]:ends[0]], other[begins[1]:ends[1]])
            yield one[ends[0]], other[ends[1]]
            begins = ends[0] + 1, ends[1] + 1
    yield from zip_longest(one[begins[0]:], other[begins[1]:])


def _kind(left: Row | None, right: Row | None) -> str:
    if left is None or right is None:
        return "only"
    if left["kind"] != right["kind"] or (left["kind"] == "call" and key_of(left) != key_of(right)):
        return "move"
    if left["kind"] == "say":
        return "same" if (left["content"], left["shown"]) == (right["content"], right["shown"]) else "words"
    return "same" if left["shown"] == right["shown"] else "answer"


def _rank(line: Line) -> int:
    """How much a line parts two ways: 2 by what is done or answered, 1 by what is said, 0 not at all."""
    if line.kind == "only":
        return 1 if (line.left or line.right or {})["kind"] == "say" else 2
    return {"same": 0, "words": 1}.get(line.kind, 2)


def _moves(line: Line) -> Sequence[tuple[str, str | None, str | None]]:
    left, right = line.left, line.right
    if left is None or right is None or left["kind"] != "call" or right["kind"] != "call":
        return ()
    if line.kind == "answer":
        return list(differences(loaded(left["shown"]), loaded(right["shown"])))[:MOST]
    return list(differences(left["arguments"], right["arguments"]))[:MOST] if left["tool"] == right["tool"] else ()


def says(found: Sequence[Line], one: Way, other: Way) -> str:
    """Where the two ways part, in a sentence."""
    line = next((line for line in found if line.is_first), None)
    if line is None:
        return "Both make the same moves and get the same answers."
    if _rank(line) == 1:
        return f"Both make the same calls and get the same answers; from line {line.place} on they say other things."
    worded = ", if in other words" if any(map(_rank, found[:line.place - 1])) else ""
    before = f"Up to line {line.place - 1} both do the same{worded}. " if line.place > 1 else ""
    if line.kind == "answer":
        return f"{before}At line {line.place} both call {_called(line.left)}, and are answered otherwise."
    names = [_brief(one.says), _brief(other.says)]
    if line.kind == "only":
        here = 0 if line.left is not None else 1
        return f"{before}At line {line.place} {names[here]} {_does(line.left or line.right)}; {names[1 - here]} does not."
    return f"{before}At line {line.place} {names[0]} {_does(line.left)}, where {names[1]} {_does(line.right)}."


def _brief(name: str) -> str:
    return name.partition(":")[0]


def _called(step: Row | None) -> str:
    return str(step["tool"]) if step else "nothing"


def _does(step: Row | None) -> str:
    assert step is not None
    return "speaks to the user" if step["kind"] == "say" else f"calls {step['tool']}"


def ends(one: Row, other: Row) -> list[Row]:
    """What the two plays leave otherwise: {"key", "moves", "left", "right"} of each document, and acts that leave none."""
    left, right, found = one["end"]["documents"], other["end"]["documents"], list[Row]()
    for key in sorted(left.keys() | right.keys()):
        begun = (left.get(key) or right[key])["begun"]
        first, second = (side[key]["now"] if key in side else begun for side in (left, right))
        if first != second:
            found.append({"key": key, "moves": list(differences(first, second))[:MOST],
                          "only": None if key in left and key in right else 0 if key in left else 1})
    acts = [Counter(map(canonical, play["end"]["acts"])) for play in (one, other)]
    return found + [
        {"key": act, "moves": [], "only": side} for side in (0, 1) for act in (acts[side] - acts[1 - side]).elements()]


def grade(way: Way, play: Row) -> Row | None:
    """What a way earns: a rollout what it was given then, else what the room gives now; None: nobody can say."""
    if way.is_rollout and way.about.get("checks"):
        return {name: way.about.get(name) for name in ("reward", "tally", "checks")}
    found: Row | None = play["grade"]
    return found


def checks(one: Row | None, other: Row | None) -> list[Row]:
    """The checks of both: {"says", "role", "left", "right"} (passed, not, None: nobody can say), those that part first."""
    found: dict[str, Row] = {}
    for side, told in (("left", one), ("right", other)):
        for check in (told or {}).get("checks", ()):
            begun = {"says": check["says"], "role": check["role"], "left": None, "right": None}
            row = found.setdefault(check["check_id"], begun)
            row[side] = check["passed"]
    order = ("gate", "score", "penalty", "shaping", "diagnostic")
    return sorted(found.values(), key=lambda row: (row["left"] == row["right"], order.index(row["role"]), row["says"]))
