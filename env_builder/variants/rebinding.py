"""Re-binding: a task's words and its known way, about other things of the same kind, at another instant.

In: tasks whose known-good session did just what its words ask for, and the world. Out: new sessions about other things: the
words with the counterparts of what they name (`counterparts.py`), the calls with those of their arguments, played in the room
as of the start of another task on the same side of the split. Accepted only where every call is answered and the acts change
what those of the donor changed.
The thing that the first act is about is exchanged, by one whose document has the same values in fields that take few; things
that its document names follow. None of them may belong to sessions on another side of the split.
Sees: documents of things. Does not see: values that no document holds (a new address): they stay as they were.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import Room
from env_builder.variants.binding import Unbound
from env_builder.variants.counterparts import Counterparts, texts_of
from env_builder.variants.failures import PROOFS, PROVEN, Derived, Known, acts_wanted, same_acts
from env_builder.variants.moves import ACTS, Move, Play
from env_builder.variants.ways import Touched, touched_by

TRIES = 3
"""Instances that are tried for each that is asked for."""
MOST = 60
"""Things that are looked at for each donor."""
INSTANTS = 4
"""Instants at which a thing is looked for."""
_FEW = 0.05
"""Share of a class's things from which on a field's value is one of few."""
_SEVERAL = 0.3
"""Share of the named things of a class that sessions on several sides name, from which on it is a class that all share."""

Row = dict[str, Any]
Argument = tuple[str, str]
"""(tool, name of the argument)."""


class Donor(NamedTuple):
    """A task that lends its words and its way."""

    task: Row
    starts_at: str | None
    begun: Room
    moves: list[Move]
    session_id: str
    sure: float


Offer = tuple[Donor, tuple[str, str], str]
"""A donor, the thing that it is about, and one that may stand in its place."""


class Things:
    """The things of one service's world: what classes they are of, which sides of the split name them, and when tasks begin."""

    def __init__(self, known: Known, names: Iterator[tuple[str, str]], sides: Mapping[str, str],
                 instants: Mapping[str, list[str | None]]) -> None:
        self.keys: dict[str, list[str]] = defaultdict(list)
        found: dict[str, list[str]] = defaultdict(list)
        for kind, key in sorted(names, key=lambda name: digest(canonical(name))):
            self.keys[kind].append(key)
            found[key].append(kind)
        self.classes = {key: tuple(kinds) for key, kinds in found.items()}
        self.instants = instants
        self._sides: dict[str, set[str]] = defaultdict(set)
        for session_id, side in sides.items():
            for move in known.moves.get(session_id, ()):
                for text in texts_of(move.arguments):
                    self._sides[text].add(side)
        self._shared = {kind for kind, keys in self.keys.items() if _often([len(self._sides[key]) for key in keys])}

    def leaks(self, document: str, key: str, side: str) -> bool:
        """Does the thing, or one that its document names, belong to sessions on another side?"""
        for text in {key, *texts_of(parsed(document))}:
            if any(kind not in self._shared for kind in self.classes.get(text, ())) and self._sides[text] - {side}:
                return True
        return False


def rebound(
    known: Known, donors: list[Donor], things: Things, said: frozenset[Argument], n: int
) -> Iterator[tuple[Row, Derived | Unbound]]:
    """At most `n` new tasks out of the donors of one family, and why others that were tried are none."""
    made = 0
    offers = (_offers(known, donor, things) for donor in donors)
    for donor, root, other in islice(_in_turn(offers, TRIES * n), TRIES * n):
        if made == n:
            return
        task, there = _task(known, donor, things, root, other)
        try:
            yield _instance(known, donor, things, task, there, root, other, _free(known, donor, said))
            made += 1
        except Unbound as unbound:
            yield task, unbound


def _in_turn(offers: Iterator[Iterator[Offer]], n: int) -> Iterator[Offer]:
    """One offer of each donor, then another one of each, `n` times at most."""
    kept = []
    for each in offers:
        kept.append(each)
        yield from islice(each, 1)
    for _ in range(n):
        for each in kept:
            yield from islice(each, 1)


def _offers(known: Known, donor: Donor, things: Things) -> Iterator[Offer]:
    """The donor, the thing that it is about, and one that may stand in its place."""
    root = _root(known, donor, things) if _usable(known, donor) else None
    if root is not None:
        yield from ((donor, root, other) for other in _others(donor, things, *root))


def said_only(known: Known, donors: Iterable[Donor]) -> frozenset[Argument]:
    """Arguments of acts whose values mostly stand in no answer before: they are free, and stay as they were said."""
    counts: Counter[tuple[Argument, bool]] = Counter()
    for donor in donors:
        shown: list[str] = []
        for move in donor.moves:
            if move.arguments is not None and known.effects.get(move.tool) in ACTS:
                for name, value in move.arguments.items():
                    counts.update(((move.tool, name), any(text in answer for answer in shown)) for text in texts_of(value))
            elif move.arguments is not None:
                shown.append(move.text)
    return frozenset(argument for argument, _ in counts if counts[argument, False] > counts[argument, True])


def _free(known: Known, donor: Donor, said: frozenset[Argument]) -> frozenset[str]:
    return frozenset(
        text for move in donor.moves if known.effects.get(move.tool) in ACTS for name, value in (move.arguments or {}).items()
        if (move.tool, name) in said for text in texts_of(value))


def _often(n_sides: list[int]) -> bool:
    named = [n for n in n_sides if n]
    return sum(n > 1 for n in named) > _SEVERAL * len(named)


def _usable(known: Known, donor: Donor) -> bool:
    """Did its good session do just what its words ask for, in ways that are proven?"""
    try:
        wanted = acts_wanted(known, donor.task["family"], donor.session_id, donor.begun)
    except Unbound:
        return False
    proven = (known.proven.get(act.tool, (0, 0)) for act in wanted)
    return all(n >= PROOFS and right >= PROVEN * n for n, right in proven) and same_acts(known, donor.moves, wanted)


def _root(known: Known, donor: Donor, things: Things) -> tuple[str, str] | None:
    """The thing that the first act is about."""
    for move in donor.moves:
        if move.arguments is not None and known.effects.get(move.tool) in ACTS and not move.failed:
            for text in texts_of(move.arguments):
                for kind in things.classes.get(text, ()):
                    if donor.begun.document((kind, text)) is not None:
                        return kind, text
    return None


def _others(donor: Donor, things: Things, kind: str, key: str) -> list[str]:
    """Other things of the class that are like it, and no other side's, by their hash."""
    keys = things.keys[kind]
    first = int(digest(donor.task["task_id"])[:8], 16) % len(keys)
    ordered = [keys[(first + place) % len(keys)] for place in range(min(MOST, len(keys)))]
    alike = _alike(donor, kind, key, [other for other in ordered if other != key])
    return [other for other in alike
            if not things.leaks(donor.begun.document((kind, other)) or "", other, donor.task["split"])]


def _alike(donor: Donor, kind: str, key: str, others: list[str]) -> list[str]:
    """Those whose documents have the same values in fields that take few, as far as the donor's instant shows them."""
    mine = _single(donor.begun.document((kind, key)))
    documents = {other: _single(donor.begun.document((kind, other))) for other in others}
    counts = Counter((name, value) for fields in documents.values() for name, value in fields.items())
    few = [(name, value) for name, value in mine.items() if counts[name, value] >= max(2, _FEW * len(others))]
    return [other for other, fields in documents.items() if fields and all(fields.get(name) == value for name, value in few)]


def _single(document: str | None) -> dict[str, str]:
    value = parsed(document) if document else None
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _task(known: Known, donor: Donor, things: Things, root: tuple[str, str], other: str) -> tuple[Row, Room]:
    """The new task, not yet about what it is to be about, and its room."""
    sided = things.instants[donor.task["split"]]
    mark = digest(canonical([donor.task["task_id"], *root, other]))
    places = [int(mark[8 * place:8 * place + 8], 16) % len(sided) for place in range(INSTANTS)]
    rooms = [known.begun(sided[place], frozenset()) for place in places]
    there = next((room for room in rooms if room.document((root[0], other)) is not None), rooms[0])
    instant = there.view.instant
    task = donor.task | {"task_id": digest(f"rebound {mark}")[:16], "session_ids": [], "good_session_ids": []}
    starts_at = instant and datetime.fromisoformat(instant)
    return task | {"starts_at": starts_at}, there


def _instance(known: Known, donor: Donor, things: Things, task: Row, there: Room, root: tuple[str, str], other: str,
              free: frozenset[str]) -> tuple[Row, Derived]:
    (kind, key), document = root, there.document((root[0], other))
    if document is None:
        raise Unbound("not_known_then", f"What {other} was at {there.view.instant} is not known.")
    if things.leaks(document, other, task["split"]):
        raise Unbound("would_leak", f"{other}, or what its document names, belongs to sessions on another side of the split.")
    named = frozenset(text for move in donor.moves for text in texts_of(move.arguments))
    pairs = Counterparts(donor.begun, there, things.classes, free)
    if not pairs.add(kind, key, other, named):
        raise Unbound("no_counterpart", f"Not all that {key} names has a counterpart around {other}.")
    try:
        goal, slots = pairs.reworded(task["goal"]), pairs.exchanged(json.loads(task["slots"]))
        moves = [_moved(move, pairs) for move in donor.moves if not move.failed]
    except LookupError as error:
        raise Unbound("no_counterpart", f"{error.args[0]!r} has no counterpart around {other}, or several.") from None
    play = _played(known, donor, there, moves)
    done = Derived(play.moves, play.room.difference(), donor.session_id, donor.sure)
    return task | {"goal": goal, "slots": canonical(slots)}, done


def _moved(move: Move, pairs: Counterparts) -> Move:
    """The move about the other things; words of the agent that name something without a counterpart are left unsaid."""
    if move.arguments is not None:
        return move._replace(arguments=pairs.exchanged(move.arguments))
    if move.role not in ("user", "assistant"):
        return move
    try:
        return move._replace(text=pairs.reworded(move.text))
    except LookupError:
        if move.role == "user":
            raise
        return move._replace(text="")


def _played(known: Known, donor: Donor, there: Room, moves: list[Move]) -> Play:
    """The calls in the new room. Raises Unbound where one is not answered, or changes other things than the donor's."""
    first, play = Play(donor.begun), Play(there)
    old = [move for move in donor.moves if not move.failed]
    for before, move in zip(old, moves, strict=True):
        if move.arguments is None:
            if move.text:
                play.say(move)
            continue
        acting = known.effects.get(move.tool) in ACTS
        if not acting and known.effects.get(move.tool) not in ("read", "pure", "constant"):
            continue
        states = first.room, play.room
        first.call(before.tool, before.arguments or {})
        if not play.call(move.tool, move.arguments, move.requestor):
            raise Unbound("does_not_play", f"{move.tool} {canonical(move.arguments)[:200]} is refused, or not answered.")
        if acting and _kinds(touched_by(states[0], first.room)) != _kinds(touched_by(states[1], play.room)):
            raise Unbound("changes_other_things", f"{move.tool} changes other things than it did in the donor's session.")
    return play


def _kinds(touched: Touched) -> set[tuple[str, str]]:
    return set(touched)
