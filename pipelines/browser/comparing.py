"""Replay trajectories of a task step by step, and compare two of them.

A trajectory is played in the task's own environment, a rollout's episode under its seed and perturbations; each step shows the
answer, its tier, the answer on record, and what changed. Two trajectories are shown line by line with the first difference, the
final state and the grades. Equal calls share a line; words alone make a difference only if nothing else does. A play is made
for each page; the environment is kept. Does not see what a real tool would answer today, or whether other words mean the same.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.apps.site import SiteState
from env_builder.runtime.canonical import canonical
from env_builder.runtime.site.browser import SiteBrowser
from extractors.formats.correction import ROLES
from pipelines.browser.changes import MOST, differences, loaded
from pipelines.browser.framed import FramedPage, framed
from pipelines.browser.picturing import StepPicture, pictures
from pipelines.browser.trajectories import TaskTrajectory, key_of
from pipelines.playing import Move, Room, graded, load, played

Row = dict[str, Any]
KINDS = {"same": "the same", "words": "other words", "answer": "other answer", "move": "another move", "only": "only here"}
"""How two steps stand to each other -> in words."""


class Line(NamedTuple):
    """A step of one trajectory next to a step of the other."""

    place: int
    first: Row | None
    second: Row | None
    kind: str
    """One of `KINDS`; `only`: the other trajectory has no step here."""
    is_first: bool = False
    """Is it the first difference?"""
    moves: Sequence[tuple[str, str | None, str | None]] = ()
    """(place, left, right) of what differs in the arguments, or in the answers to one call."""


def lines(one: Sequence[Row], other: Sequence[Row]) -> list[Line]:
    """Return the steps of two plays side by side, the first difference marked: calls that are the same stand on one line, and
    what is between them stands in its order."""
    rows: list[Line] = []
    for first, second in _pairs(one, other):
        rows.append(Line(len(rows) + 1, first, second, _kind(first, second)))
    parts = next((line.place for rank in (2, 1) for line in rows if _rank(line) == rank), 0)
    return [line._replace(is_first=line.place == parts, moves=_moves(line)) for line in rows]


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


def _kind(first: Row | None, second: Row | None) -> str:
    if first is None or second is None:
        return "only"
    if first["kind"] != second["kind"] or (first["kind"] == "call" and key_of(first) != key_of(second)):
        return "move"
    if first["kind"] == "say":
        return "same" if (first["content"], first["shown"]) == (second["content"], second["shown"]) else "words"
    return "same" if first["shown"] == second["shown"] else "answer"


def _rank(line: Line) -> int:
    """How much a line parts two trajectories: 2 by what is done or answered, 1 by what is said, 0 not at all."""
    if line.kind == "only":
        return 1 if (line.first or line.second or {})["kind"] == "say" else 2
    return {"same": 0, "words": 1}.get(line.kind, 2)


def _moves(line: Line) -> Sequence[tuple[str, str | None, str | None]]:
    first, second = line.first, line.second
    if first is None or second is None or first["kind"] != "call" or second["kind"] != "call":
        return ()
    if line.kind == "answer":
        return list(differences(loaded(first["shown"]), loaded(second["shown"])))[:MOST]
    return list(differences(first["arguments"], second["arguments"]))[:MOST] if first["tool"] == second["tool"] else ()


def first_difference(rows: Sequence[Line], one: TaskTrajectory, other: TaskTrajectory) -> str:
    """Say in a sentence where two trajectories first differ."""
    line = next((line for line in rows if line.is_first), None)
    if line is None:
        return "Both make the same moves and get the same answers."
    if _rank(line) == 1:
        return f"Both make the same calls and get the same answers; from line {line.place} on their words differ."
    worded = ", if in other words" if any(map(_rank, rows[:line.place - 1])) else ""
    before = f"Up to line {line.place - 1} both do the same{worded}. " if line.place > 1 else ""
    if line.kind == "answer":
        return f"{before}At line {line.place} both call {_called(line.first)}, and get different answers."
    names = [_brief(one.description), _brief(other.description)]
    if line.kind == "only":
        here = 0 if line.first is not None else 1
        return f"{before}At line {line.place} {names[here]} {_does(line.first or line.second)}; {names[1 - here]} does not."
    return f"{before}At line {line.place} {names[0]} {_does(line.first)}, where {names[1]} {_does(line.second)}."


def _brief(name: str) -> str:
    return name.partition(":")[0]


def _called(step: Row | None) -> str:
    return str(step["tool"]) if step else "nothing"


def _does(step: Row | None) -> str:
    assert step is not None
    return "speaks to the user" if step["kind"] == "say" else f"calls {step['tool']}"


def ends(one: Row, other: Row) -> list[Row]:
    """Return what the two plays leave otherwise: {"key", "moves", "first", "second"} of each document, and write calls
    that leave none."""
    ours, theirs, rows = one["end"]["documents"], other["end"]["documents"], list[Row]()
    for key in sorted(ours.keys() | theirs.keys()):
        begun = (ours.get(key) or theirs[key])["begun"]
        first, second = (side[key]["now"] if key in side else begun for side in (ours, theirs))
        if first != second:
            rows.append({"key": key, "moves": list(differences(first, second))[:MOST],
                          "only": None if key in ours and key in theirs else 0 if key in ours else 1})
    calls = [Counter(map(canonical, play["end"]["write_calls"])) for play in (one, other)]
    return rows + [
        {"key": call, "moves": [], "only": side} for side in (0, 1) for call in (calls[side] - calls[1 - side]).elements()]


def grade(way: TaskTrajectory, play: Row) -> Row | None:
    """Return the grade of a trajectory: of a rollout the recorded one, else the current one; None: not decided."""
    if way.is_rollout and way.about.get("checks"):
        return {name: way.about.get(name) for name in ("reward", "tally", "checks")}
    own: Row | None = play["grade"]
    return own


def checks(one: Row | None, other: Row | None) -> list[Row]:
    """Return the checks of both: {"description", "role", "first", "second"} (None: undecided), those that differ first."""
    rows: dict[str, Row] = {}
    for side, result in (("first", one), ("second", other)):
        for check in (result or {}).get("checks", ()):
            begun = {"description": check["description"], "role": check["role"], "first": None, "second": None}
            row = rows.setdefault(check["check_id"], begun)
            row[side] = check["passed"]
    return sorted(rows.values(), key=lambda row: (row["first"] == row["second"], ROLES.index(row["role"]), row["description"]))


NOT_KEPT: Row = {"tier": None, "latency_ms": None, "state_hash": None, "reward": None, "thought": None, "refused": []}
"""What is known of a move that no rollout made."""
Look = Callable[[str], tuple[str | None, str | None]]
"""Name of a document -> as the episode began, and now."""


class Replayer:
    """The environment that was opened last, kept as long as its directory is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[str, str] | None = None
        self._environment: Environment | None = None
        self._pictures: dict[tuple[str, str], list[StepPicture | None]] = {}
        """Of the trajectory that Chromium played last."""

    def play(self, path: Path, task_id: str, way: TaskTrajectory) -> tuple[list[Row], Row]:
        """(messages that the task opens with, {"steps", "grade", "end", "is_same_room"}). Raises EnvironmentBroken,
        InputError."""
        with self._lock:
            digest = (path / "manifest.json").read_text("utf-8")
            if self._key != (str(path), digest):
                self._environment, self._pictures = load(path, None), {}
                self._key = str(path), digest
            assert self._environment is not None
            environment, observation = self._environment, self._environment.reset(task_id, seed=0)
            rolled = way.about.get("content_digest")
            if way.is_rollout:   # its moves are in the room's own names, so nothing stands between them and the room
                environment = environment.replaying(task_id, way.about["seed"], way.about["perturbations"])
            return observation.messages, {
                **_played(Room(environment, observation), way.moves),
                "is_same_room": rolled in (None, json.loads(digest)["content_digest"])}

    def pictures(self, task_id: str, way: TaskTrajectory, sheets: Mapping[str, str]) -> list[StepPicture | None]:
        """Return Chromium's picture after each move of what was played last. Raises Unavailable where there is no Chromium."""
        with self._lock:
            key = task_id, way.name
            if key not in self._pictures and self._environment is not None:
                start = task_id, way.about.get("seed", 0), way.about.get("perturbations", ())
                shown, served = (self._environment.replaying(*start) for _ in range(2))
                self._pictures = {key: pictures(shown, served, way.moves, sheets)}
            return self._pictures[key]


def _played(room: Room, moves: Sequence[Move]) -> Row:
    before: Row = {"documents": {}, "write_calls": []}
    steps, look = [], room.environment.episode().look
    on = _acted_on(room, moves)
    for step in played(room, moves):
        after, look = json.loads(canonical(room.environment.difference())), room.environment.episode().look
        steps.append({**step, "changed": _moved(before, after, look), "state_hash": room.environment.state_hash(),
                      "page": _page(room), "on": on})
        before, on = after, _acted_on(room, moves[len(steps):])
    documents = {name: {"begun": loaded(look(name)[0] if look else None), "now": loaded(value)}
                 for name, value in before.get("documents", {}).items()}
    end = {"documents": documents, "write_calls": before.get("write_calls", [])}
    return {"steps": steps, "grade": graded(room), "end": end}


def _browser(room: Room) -> SiteBrowser | None:
    """Return the browser of an episode; None in an environment without a site."""
    state = room.environment._state
    return next((each.browser for each in getattr(state, "states", [state]) if isinstance(each, SiteState)), None)


def _page(room: Room) -> Callable[[Mapping[str, str]], FramedPage] | None:
    """Return what makes the page that is shown, given style sheets by path; None where none is."""
    browser = _browser(room)
    page = browser.page if browser is not None else None
    return None if browser is None or page is None else partial(framed, page, browser.view(page))


def _acted_on(room: Room, moves: Sequence[Move]) -> str | None:
    """Return the role and name of the element that the next move acts on."""
    browser = _browser(room)
    page = browser.page if browser is not None else None
    target = (moves[0].get("arguments") or {}).get("target") if moves else None
    number = page.refs.number(target) if page is not None and isinstance(target, str) else None
    if browser is None or page is None or number is None or number >= len(browser.view(page).page.tags):
        return None
    return browser.view(page).label(number)


def _moved(before: Row, after: Row, look: Look | None) -> list[Row]:
    """Return what a step changed of the room's difference: its documents, and write calls that leave none."""
    rows = []
    for name, value in after.get("documents", {}).items():
        if value != before.get("documents", {}).get(name):
            begun = look(name)[0] if look else None
            one, other = loaded(before.get("documents", {}).get(name, begun)), loaded(value)
            moves = list(differences(one, other))[:MOST] if one is not None else []
            rows.append({"key": name, "moves": moves, "after": value if isinstance(value, str) else canonical(value)})
    calls = Counter(map(canonical, after.get("write_calls", []))) - Counter(map(canonical, before.get("write_calls", [])))
    return [*rows, *({"key": "a write call that leaves no document", "moves": [], "after": call} for call in calls.elements())]


def compared_steps(way: TaskTrajectory, play: Row) -> Iterator[Row]:
    """Yield the steps of a play with what was answered where they were first made: `differs` where both are not the same.
    `shown`: what to compare with another trajectory: a rollout's answer then, else what the environment answers."""
    for place, step in enumerate(play["steps"]):
        answer = way.answers[place] if place < len(way.answers) else None
        own = step["content"] if step["kind"] == "call" else step["reply"]
        on_record = None if answer is None else answer["content"] if step["kind"] == "call" else answer["reply"]
        compared = answer is not None and (on_record is not None if step["kind"] == "call" else way.is_rollout)
        differs = compared and own != on_record
        moves = list(differences(loaded(on_record), loaded(own)))[:MOST] if differs else []
        kept = {**NOT_KEPT, **(answer if way.is_rollout and answer is not None else {})}
        yield {**step, "place": place + 1, "own": own, "recorded": on_record, "is_recorded": answer is not None,
               "differs": differs, "moves": moves, "kept": kept, "shown": on_record if way.is_rollout else own,
               "is_same_state": None if kept["state_hash"] is None else kept["state_hash"] == step["state_hash"]}
