"""Re-binding: a task's words and its known solution, about other entities of the same class, at another instant.

In: tasks whose known-good session did just what its words ask for, and the world. Out: new sessions about other entities,
played as of the start of another task of the same split: words and arguments with the counterparts of what they name. A
counterpart is what stands at the same place (field by name, element of a list by index) of the other entity's document, and of
documents that it names. Accepted only where every call is answered and the write calls change what those of the donor changed.
The entity of the first write call is exchanged for one whose document has the same values in fields that take few; none may
belong to sessions of another split. Sees: documents. Does not see: values that no document holds (a new address): they stay as
they were; of two equal values with different counterparts, which is meant.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import Name
from env_builder.variants.failures import Derived, ServiceModel, Unbound, acts_wanted, same_acts
from env_builder.variants.moves import ACTS, Move, PlayedSession, text_of, texts_of, touched_by, whole_word

TRIES = 3
"""Instances that are tried for each that is asked for."""
MOST = 60
"""Records that are looked at for each donor."""
INSTANTS = 4
"""Instants at which a record is looked for."""
_FEW = 0.05
"""Share of a class's records from which on a field's value is one of few."""
_SEVERAL = 0.3
"""Share of the named records of a class that sessions on several sides name, from which on it is a class that all share."""

Row = dict[str, Any]
Argument = tuple[str, str]
"""(tool, name of the argument)."""


class Donor(NamedTuple):
    """A task that lends its words and its solution."""

    task: Row
    begun: EpisodeState
    moves: list[Move]
    session_id: str
    sure: float


Offer = tuple[Donor, tuple[str, str], str]
"""A donor, the record that it is about, and one that may stand in its place."""


class EntityPool:
    """Records of one service: their classes, which sides of the split name them, and when tasks begin."""

    def __init__(self, model: ServiceModel, names: Iterator[tuple[str, str]], sides: Mapping[str, str],
                 instants: Mapping[str, list[str | None]]) -> None:
        self.keys: dict[str, list[str]] = defaultdict(list)
        keys_of: dict[str, list[str]] = defaultdict(list)
        for kind, key in sorted(names, key=lambda name: digest(canonical(name))):
            self.keys[kind].append(key)
            keys_of[key].append(kind)
        self.classes = {key: tuple(kinds) for key, kinds in keys_of.items()}
        self.instants = instants
        self._sides: dict[str, set[str]] = defaultdict(set)
        for session_id, side in sides.items():
            for move in model.moves.get(session_id, ()):
                for text in texts_of(move.arguments):
                    self._sides[text].add(side)
        n_sides = {kind: [n for key in keys if (n := len(self._sides[key]))] for kind, keys in self.keys.items()}
        self._shared = {kind for kind, named in n_sides.items() if sum(n > 1 for n in named) > _SEVERAL * len(named)}

    def leaks(self, document: str, key: str, side: str) -> bool:
        """Return whether the entity, or one that its document names, belongs to sessions of another split."""
        return any(
            self._sides[text] - {side} and any(kind not in self._shared for kind in self.classes.get(text, ()))
            for text in {key, *texts_of(parsed(document))})


def rebound(
    model: ServiceModel, donors: list[Donor], pool: EntityPool, literal: frozenset[Argument], n: int
) -> Iterator[tuple[Row, Derived | Unbound]]:
    """At most `n` new tasks out of the donors of one family, and why others that were tried are none."""
    made = 0
    offers = [_offers(model, donor, pool) for donor in donors]
    in_turn = (offer for _ in range(TRIES * n) for each in offers for offer in islice(each, 1))
    for donor, root, other in islice(in_turn, TRIES * n):
        if made == n:
            return
        sided = pool.instants[donor.task["split"]]
        mark = digest(canonical([donor.task["task_id"], *root, other]))
        places = [int(mark[8 * place:8 * place + 8], 16) % len(sided) for place in range(INSTANTS)]
        rooms = [model.begun(sided[place], frozenset()) for place in places]
        there = next((state for state in rooms if state.document((root[0], other)) is not None), rooms[0])
        instant = there.view.instant
        task = donor.task | {"task_id": digest(f"rebound {mark}")[:16], "session_ids": [], "succeeded_session_ids": [],
                             "starts_at": instant and datetime.fromisoformat(instant)}
        free = frozenset(
            text for move in donor.moves if model.effects.get(move.tool) in ACTS
            for name, value in (move.arguments or {}).items() if (move.tool, name) in literal for text in texts_of(value))
        try:
            yield _instance(model, donor, pool, task, there, root, other, free)
            made += 1
        except Unbound as unbound:
            yield task, unbound


def _offers(model: ServiceModel, donor: Donor, pool: EntityPool) -> Iterator[Offer]:
    """Yield what may stand in the place of the record that the donor's first write call is about."""
    moves = donor.moves if _usable(model, donor) else []
    names = (
        (kind, text) for move in moves if model.effects.get(move.tool) in ACTS and not move.failed
        for text in texts_of(move.arguments) for kind in pool.classes.get(text, ()))
    root = next((name for name in names if donor.begun.document(name) is not None), None)
    if root is not None:
        yield from ((donor, root, other) for other in _others(donor, pool, *root))


def said_only(model: ServiceModel, donors: Iterable[Donor]) -> frozenset[Argument]:
    """Arguments of acts whose values mostly stand in no answer before: they are free, and stay as they were said."""
    counts: Counter[tuple[Argument, bool]] = Counter()
    for donor in donors:
        shown: list[str] = []
        for move in donor.moves:
            if move.arguments is not None and model.effects.get(move.tool) in ACTS:
                for name, value in move.arguments.items():
                    counts.update(((move.tool, name), any(text in answer for answer in shown)) for text in texts_of(value))
            elif move.arguments is not None:
                shown.append(move.text)
    return frozenset(argument for argument, _ in counts if counts[argument, False] > counts[argument, True])


def _usable(model: ServiceModel, donor: Donor) -> bool:
    """Did its good session do just what its words ask for, in ways that are proven?"""
    try:
        wanted = acts_wanted(model, donor.task["family"], donor.session_id, donor.begun)
    except Unbound:
        return False
    return all(model.is_proven.get(act.tool, False) for act in wanted) and same_acts(model, donor.moves, wanted)


def _others(donor: Donor, pool: EntityPool, kind: str, key: str) -> list[str]:
    """Other records of the class that are like it, and no other side's, by their hash."""
    keys = pool.keys[kind]
    first = int(digest(donor.task["task_id"])[:8], 16) % len(keys)
    ordered = [keys[(first + place) % len(keys)] for place in range(min(MOST, len(keys)))]
    others = [other for other in ordered if other != key]
    mine = _single(donor.begun.document((kind, key)))
    documents = {other: _single(donor.begun.document((kind, other))) for other in others}
    counts = Counter((name, value) for fields in documents.values() for name, value in fields.items())
    few = [(name, value) for name, value in mine.items() if counts[name, value] >= max(2, _FEW * len(others))]
    alike = [other for other, fields in documents.items() if fields and all(fields.get(name) == value for name, value in few)]
    return [other for other in alike if not pool.leaks(donor.begun.document((kind, other)) or "", other, donor.task["split"])]


def _single(document: str | None) -> dict[str, str]:
    value = parsed(document) if document else None
    return {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _instance(
    model: ServiceModel, donor: Donor, pool: EntityPool, task: Row, there: EpisodeState, root: Name, other: str,
    free: frozenset[str],
) -> tuple[Row, Derived]:
    (kind, key), document = root, there.document((root[0], other))
    if document is None:
        raise Unbound("not_known_then", f"What {other} was at {there.view.instant} is not known.")
    if pool.leaks(document, other, task["split"]):
        raise Unbound("would_leak", f"{other}, or what its document names, belongs to sessions in another split.")
    named = frozenset(text for move in donor.moves for text in texts_of(move.arguments))
    pairs = Counterparts(donor.begun, there, pool.classes, free)
    if not pairs.add(kind, key, other, named):
        raise Unbound("no_counterpart", f"Not all that {key} names has a counterpart around {other}.")
    try:
        goal, slots = pairs.reworded(task["goal"]), pairs.exchanged(json.loads(task["slots"]))
        moves = [_moved(move, pairs) for move in donor.moves if not move.failed]
    except LookupError as error:
        raise Unbound("no_counterpart", f"{error.args[0]!r} has no counterpart around {other}, or several.") from None
    play = _played(model, donor, there, moves)
    done = Derived(play.moves, play.state.difference(), donor.session_id, donor.sure)
    return task | {"goal": goal, "slots": canonical(slots)}, done


def _moved(move: Move, pairs: Counterparts) -> Move:
    """Return the move about the other records; words of the agent that name something without a counterpart are left unsaid."""
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


def _played(model: ServiceModel, donor: Donor, there: EpisodeState, moves: list[Move]) -> PlayedSession:
    """Make the calls. Raises Unbound where one is not answered, or changes other records than the donor's."""
    first, play = PlayedSession(donor.begun), PlayedSession(there)
    old = [move for move in donor.moves if not move.failed]
    for before, move in zip(old, moves, strict=True):
        if move.arguments is None:
            if move.text:
                play.moves.append(move)
            continue
        acting = model.effects.get(move.tool) in ACTS
        if not acting and model.effects.get(move.tool) not in ("read", "pure", "constant"):
            continue
        states = first.state, play.state
        first.call(before.tool, before.arguments or {})
        if not play.call(move.tool, move.arguments, move.requestor):
            raise Unbound("does_not_play", f"{move.tool} {canonical(move.arguments)[:200]} is refused, or not answered.")
        if acting and touched_by(states[0], first.state).keys() != touched_by(states[1], play.state).keys():
            raise Unbound("changes_other_things", f"{move.tool} changes other things than it did in the donor's session.")
    return play


_SHORTEST = 2


class Counterparts:
    """Values of the documents around one record, and what they are around another."""

    def __init__(
        self, here: EpisodeState, there: EpisodeState, classes: Mapping[str, tuple[str, ...]], free: frozenset[str]
    ) -> None:
        """`classes`: record -> classes that have one of that name; `free`: values that stay as they are."""
        self._here, self._there, self._classes, self._free = here, there, classes, free
        self._pairs: dict[str, set[str]] = {}
        self._fixed: dict[str, str] = {}
        self.named: set[str] = set()
        """All values of the documents on this side."""
        self.pool: dict[Name, Name] = {}
        """Record -> its counterpart."""

    def add(self, kind: str, one: str, other: str, named: frozenset[str]) -> bool:
        """Take in two records, and those of `named` that their documents name. False where one of them is not known."""
        if (kind, one) in self.pool:
            return self.pool[kind, one] == (kind, other)
        first, second = self._here.document((kind, one)), self._there.document((kind, other))
        if first is None or second is None:
            return False
        self.pool[kind, one] = (kind, other)
        self.named.add(one)
        self._fixed[one] = other
        before = set(self._pairs)
        self._walk(parsed(first), parsed(second))
        return all(
            self.add(inner, value, next(iter(self._pairs[value])), named)
            for value in sorted(set(self._pairs) - before)
            if value in named and value not in self._fixed and len(self._pairs[value]) == 1
            for inner in self._classes.get(value, ()))

    def of(self, value: str) -> str | None:
        """Return the counterpart of a value, itself where no document holds it; None where there is none, or several."""
        if value not in self.named or value in self._free:
            return value
        others = {self._fixed[value]} if value in self._fixed else self._pairs.get(value, set())
        return next(iter(others)) if len(others) == 1 else None

    def reworded(self, text: str) -> str:
        """Return the text with the counterparts of all values that are words of it. Raises LookupError where one has none."""
        values = (value for value in self.named | self._free if len(value) >= _SHORTEST and value in text)
        there = sorted(values, key=lambda value: (-len(value), value))
        if not there:
            return text

        def exchanged(match: re.Match[str]) -> str:
            other = self.of(match[0])
            if other is None:
                raise LookupError(match[0])
            return other

        return re.sub("|".join(map(whole_word, there)), exchanged, text)

    def exchanged(self, value: Any) -> Any:
        """Return a JSON value with the counterparts of its single values. Raises LookupError where one has none."""
        if isinstance(value, dict):
            return {name: self.exchanged(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.exchanged(inner) for inner in value]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        other = self.of(text)
        if other is None:
            raise LookupError(text)
        return other if isinstance(value, str) else json.loads(other)

    def _walk(self, one: Any, other: Any) -> None:
        if isinstance(one, dict):
            self._named(one, other if isinstance(other, dict) else {})
        elif isinstance(one, list):
            for place, value in enumerate(one):
                self._walk(value, other[place] if isinstance(other, list) and place < len(other) else None)
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            alike = isinstance(other, str | int | float) and not isinstance(other, bool) and isinstance(one, str) == isinstance(
                other, str)
            self._pair(text_of(one), text_of(other) if alike else None)

    def _named(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        """Fields by name; names that only one side has (records that are filed under their names) by their place."""
        own, others = [name for name in one if name not in other], [name for name in other if name not in one]
        for name in one:
            if name in other:
                self._walk(one[name], other[name])
        for place, name in enumerate(own):
            there = others[place] if place < len(others) else None
            self._pair(name, there)
            self._walk(one[name], None if there is None else other[there])

    def _pair(self, one: str, other: str | None) -> None:
        self.named.add(one)
        if other is not None:
            self._pairs.setdefault(one, set()).add(other)
