"""Failures as tasks: a session that went wrong still had a goal, and the way that good sessions went reaches it.

In: a session's goals with the arguments that their words ask for, its moves, and the ways of its service. Out: the moves of a
session that did it, played in the room as of the failed one's beginning. It goes along with the failed session (its looks, its
words, its right acts) until that does something else; what is left to do is then done.
Accepted only where every call is answered, each act changes what such acts of good sessions changed and nothing else, and the
end is none that a failed session of the task reached: then the log says that it is not right, or that the outcome is not.
Sees: acts that goals name, and acts that belong to nearly every good session of the family. Does not see: what is asked between
the lines, tasks whose right answer is to refuse or to tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.rewards.witness import ends_alike
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import Room
from env_builder.runtime.world import View
from env_builder.variants.binding import Bound, Shown, Unbound, bind, in_order
from env_builder.variants.counterparts import texts_of
from env_builder.variants.moves import ACTS, Arguments, Move, Play
from env_builder.variants.ways import Form, Sources, Way, touched_by

_READS = ("read", "pure", "constant")
_DEEPEST = 3
"""Looks that lead to looks, at most."""
PROOFS, N_PROOFS = 3, 40
"""Good sessions that it takes to prove a way, and that are looked at, by their hash."""
PROVEN = 0.9
"""Share of them that must have done just what their words lead to."""


class Goal(NamedTuple):
    """One goal of a session (`mart.goals`)."""

    asks: str
    slots: dict[str, Any]


class Known(NamedTuple):
    """What is known of one service."""

    room: Room
    """Its room, empty."""
    effects: Mapping[str, str]
    """Tool -> effect."""
    ways: Mapping[str, Way]
    sources: Sources
    looks: Mapping[str, tuple[Form, ...]]
    """Tool that only looks -> forms of its arguments in good sessions."""
    proven: Mapping[str, tuple[int, int]]
    """Tool that acts -> good sessions that were asked for it, and how many of them did just what `acts_wanted` says."""
    routine: Mapping[str, tuple[str, ...]]
    """Family -> tools that act in nearly all its good sessions, whatever is asked."""
    goals: Mapping[str, list[Goal]]
    """Session -> its goals in order."""
    moves: Mapping[str, list[Move]]

    def begun(self, starts_at: str | None, session_ids: frozenset[str]) -> Room:
        """The room as of an instant, in the view of sessions."""
        return self.room.fork(View(starts_at, session_ids))


class Wanted(NamedTuple):
    """An act that is to be done."""

    tool: str
    arguments: Arguments
    form: Form
    looks: tuple[tuple[str, Arguments], ...]
    """What has to be looked up first, beyond what the session looked up."""


class Derived(NamedTuple):
    """A session that nobody logged."""

    moves: list[Move]
    difference: dict[str, Any]
    lent_by: str
    """Good session that its way is from."""
    sure: float
    """Share of good sessions that its way leads to what they did (Laplace: one more that it does, one that it does not)."""


def derive(known: Known, family: str, session_id: str, begun: Room) -> Derived:
    """The session `session_id` as it should have gone, from the room `begun`. Raises Unbound, with why it cannot be told."""
    moves = known.moves.get(session_id, [])
    wanted = acts_wanted(known, family, session_id, begun)
    counts = {act.tool: known.proven.get(act.tool, (0, 0)) for act in wanted}
    for tool, (n, n_right) in counts.items():
        if n < PROOFS or n_right < PROVEN * n:
            raise Unbound("way_not_proven", f"Of {n} good sessions, {n_right} did with {tool} what their words lead to.")
    until = _until(known, moves, wanted)
    play = Play(begun)
    left = _along(known, play, moves[:until], wanted)
    for move in _later(moves, until, wanted):
        play.say(move)
    for act in left:
        _do(known, play, act)
    sure = min((n_right + 1) / (n + 2) for n, n_right in counts.values())
    return Derived(play.moves, play.room.difference(), wanted[0].form.session_id, sure)


def ended_so(derived: Derived, ends: Iterator[dict[str, Any]]) -> bool:
    """Did one of `ends` (differences) end like the derived session?"""
    return any(ends_alike(derived.difference, end, {}) for end in ends)


def end_of(known: Known, moves: list[Move], begun: Room) -> dict[str, Any]:
    """What the logged acts of a session change in its room."""
    room = begun.fork()
    for move in moves:
        if move.arguments is not None and known.effects.get(move.tool) in ACTS:
            room.call(move.tool, move.arguments)
    return room.difference()


def proofs(known: Known, of_session: Mapping[str, tuple[str, Room]]) -> dict[str, tuple[int, int]]:
    """`Known.proven`, from good sessions: (family, its room as it begins). What was done unasked counts against."""
    seen: dict[str, list[bool]] = defaultdict(list)
    for session_id, (family, begun) in sorted(of_session.items(), key=lambda item: digest(item[0])):
        tools = {goal.asks for goal in known.goals.get(session_id, ()) if goal.asks in known.ways}
        if all(len(seen[tool]) >= N_PROOFS for tool in tools):
            continue
        done = _done(known, known.moves.get(session_id, []))
        try:
            wanted = acts_wanted(known, family, session_id, begun)
        except Unbound:
            continue
        told = [(act.tool, act.arguments) for act in wanted]
        unasked = {tool for tool, _ in done} - {tool for tool, _ in told}
        for tool in tools:
            seen[tool].append(not unasked and _acts_of(tool, told) == _acts_of(tool, done))
    return {tool: (len(right), sum(right)) for tool, right in seen.items()}


def same_acts(known: Known, moves: list[Move], wanted: list[Wanted]) -> bool:
    """Did a session do what is wanted, and nothing else?"""
    return sorted(_plain(*act) for act in _done(known, moves)) == sorted(_plain(act.tool, act.arguments) for act in wanted)


def _done(known: Known, moves: list[Move]) -> list[tuple[str, Arguments]]:
    return [(move.tool, move.arguments) for move in moves
            if move.arguments is not None and not move.failed and known.effects.get(move.tool) in ACTS]


def _acts_of(tool: str, acts: list[tuple[str, Arguments]]) -> list[str]:
    return sorted(_plain(*act) for act in acts if act[0] == tool)


def acts_wanted(known: Known, family: str, session_id: str, begun: Room) -> list[Wanted]:
    """The acts that a session's goals ask for, in order, and those of the routine after them. Raises Unbound."""
    moves, goals = known.moves.get(session_id, []), known.goals.get(session_id, [])
    asked = [(goal.asks, goal.slots) for goal in goals if known.effects.get(goal.asks) in ACTS]
    if not asked:
        raise Unbound("nothing_to_change", "Its goals name no act; what it should have been told is not known.")
    merged = {path: value for goal in goals for path, value in goal.slots.items()}
    asked += [(tool, merged) for tool in known.routine.get(family, ())]
    found = [(move.tool, move.text) for move in moves if not move.failed and known.effects.get(move.tool) in _READS]
    words = " ".join(move.text for move in moves if move.role == "user")
    return [_act(known, tool, in_order(slots, words, found), found, begun) for tool, slots in asked]


def _act(known: Known, tool: str, slots: dict[str, Any], found: Shown, begun: Room) -> Wanted:
    if tool not in known.ways:
        raise Unbound("no_known_way", f"No good session used {tool}.")
    search = Search(known, slots, found, begun)
    bound = search.bound(tool, known.ways[tool].forms, slots)
    return Wanted(tool, *bound, tuple(search.made))


class Search:
    """Finds arguments; what the session did not look up is looked up where good sessions did, and noted in `made`."""

    def __init__(self, known: Known, slots: dict[str, Any], found: Shown, begun: Room) -> None:
        self._known, self._slots, self._found, self._begun = known, slots, found, begun
        self._depth = 0
        self.made: list[tuple[str, Arguments]] = []

    def bound(self, tool: str, forms: tuple[Form, ...], slots: dict[str, Any]) -> Bound:
        """Arguments of a call. Raises Unbound."""
        return bind(tool, forms, slots, self._known.sources, self._shown)

    def _shown(self, tool: str) -> Shown:
        there = [each for each in self._found if each[0] == tool]
        if there or tool not in self._known.looks or self._depth >= _DEEPEST:
            return there
        self._depth += 1
        try:
            self._look(tool)
        except Unbound:
            pass
        finally:
            self._depth -= 1
        return [each for each in self._found if each[0] == tool]

    def _look(self, tool: str) -> None:
        for form in self._known.looks[tool]:
            given = {name: self._slots[name] for name in form.names if name in self._slots}
            bound = self.bound(tool, (form,), given)
            play = Play(self._begun)
            if play.call(tool, bound.arguments):
                self.made.append((tool, bound.arguments))
                self._found = self._found + play.shown()
                return


def _until(known: Known, moves: list[Move], wanted: list[Wanted]) -> int:
    """How far to go along with the session: up to its first wrong act, or to its last call where it left something undone."""
    todo = [_plain(act.tool, act.arguments) for act in wanted]
    last = 0
    for index, move in enumerate(moves):
        if move.arguments is None or move.failed:
            continue
        if known.effects.get(move.tool) in ACTS:
            done = _plain(move.tool, move.arguments)
            if done not in todo:
                return index
            todo.remove(done)
        last = index + 1
    return last if todo else len(moves)


def _along(known: Known, play: Play, moves: list[Move], wanted: list[Wanted]) -> list[Wanted]:
    """Go along with the session; gives what is left to do."""
    left = list(wanted)
    for move in moves:
        if move.arguments is None:
            play.say(move)
        elif move.failed:
            continue
        elif known.effects.get(move.tool) in ACTS:
            act = next(act for act in left if _plain(*act[:2]) == _plain(move.tool, move.arguments))
            left.remove(act)
            _do(known, play, act._replace(arguments=move.arguments), move.requestor)
        elif known.effects.get(move.tool) in _READS:
            play.call(move.tool, move.arguments, move.requestor)
    return left


def _do(known: Known, play: Play, act: Wanted, requestor: str | None = None) -> None:
    """Make an act, after the looks that it takes. Raises Unbound where the room does not bear it out."""
    for tool, arguments in act.looks:
        play.call(tool, arguments)
    before = play.room
    if not play.call(act.tool, act.arguments, requestor):
        said = play.room.fork().call(act.tool, act.arguments)
        raise Unbound("does_not_play", f"{act.tool} {canonical(act.arguments)[:200]} is answered {said.content[:100]!r}.")
    if not known.ways[act.tool].fits(touched_by(before, play.room)):
        raise Unbound("changes_other_things", f"{act.tool} changes what it never changed in good sessions, or less.")


def _later(moves: list[Move], until: int, wanted: list[Wanted]) -> Iterator[Move]:
    """What the user said later on that an act needs: nobody can do without it."""
    heard = " ".join(move.text for move in moves[:until] if move.role == "user").lower()
    needed = {text.lower() for act in wanted for text in texts_of(act.arguments)}
    missing = {text for text in needed if text not in heard}
    said = [move for move in moves[until:] if move.role == "user"]
    last = max((place for place, move in enumerate(said) if any(text in move.text.lower() for text in missing)), default=-1)
    yield from said[:last + 1]


def _plain(tool: str, arguments: Arguments) -> str:
    """An act's text whatever the order in its lists."""
    return canonical([tool, _unordered(arguments)])


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unordered(inner) for name, inner in value.items()}
    return sorted((_unordered(inner) for inner in value), key=canonical) if isinstance(value, list) else value
