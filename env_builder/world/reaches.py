"""Acts that change what a tool shows of things that they do not name.

In: calls of one service in order, and which of them are looks. Out: of each two looks of one session at one place, which acts
were between that share no word with it, and in what the looks differ; where every session starts from the same state, also of a
first look and what sessions saw that had not acted. Sees: acts of one's own session. Does not see: which of several such
places an act changes: it may be any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from env_builder.runtime.relevance import act_names, ids_in, names
from env_builder.world.betweens import Between, Place, Sight, differing
from env_builder.world.calls import LoggedCall

FEWEST_CHANGED = 2
"""Looks that differ after an act that does not name them, from which it reaches them; one may be chance."""


class _Look(NamedTuple):
    """A look, its place, what it showed, and the acts of its session before."""

    call: LoggedCall
    place: Place
    content: str
    acts: list[LoggedCall]


class Unnamed:
    """The pairs of looks of one service without an act between that names their place."""

    def __init__(self, calls: list[LoggedCall], sight: Sight, acting: frozenset[str], shared: bool) -> None:
        self._sight = sight
        looks = list(_looks(calls, sight, acting))
        self._pairs = [*_again(looks), *(() if shared else _against_usual(looks))]

    def at_all(self) -> list[Between]:
        """Return those without an act that names the place, or what it shows, in its arguments or its answer."""
        return [_between(before, look, look.acts) for before, look, words in self._without_arguments()
                if words.union(ids_in(before), ids_in(look.content)).isdisjoint(_named(look.acts))]

    def by_answers(self) -> list[Between]:
        """Return those with an act that names the place in its answer, and none that does so in its arguments."""
        return [_between(before, look, acts) for before, look, words in self._without_arguments()
                if (acts := [act for act in look.acts if not words.isdisjoint(ids_in(act.content))])]

    def _without_arguments(self) -> Iterator[tuple[str, _Look, frozenset[str]]]:
        """Yield the pairs without an act that names the place in its arguments, and the words that would."""
        for before, look in self._pairs:
            words = self._sight.names_of(look.place, look.call)
            acts = [act for act in look.acts if act.tool != look.call.tool]
            if "" not in words and all(words.isdisjoint(names(act.arguments)) for act in acts):
                yield before, look._replace(acts=acts), words


def _named(acts: list[LoggedCall]) -> frozenset[str]:
    return frozenset[str]().union(*(act_names(act.arguments, act.content) for act in acts))


def _between(before: str, look: _Look, acts: list[LoggedCall]) -> Between:
    return Between(look.place[-2], False, frozenset(act.tool for act in acts), differing(before, look.content))


def _looks(calls: list[LoggedCall], sight: Sight, acting: frozenset[str]) -> Iterator[_Look]:
    """Yield the looks of tools that surely do nothing. Looks of a session that no act divides share one list of acts."""
    session_id, acts = "", list[LoggedCall]()
    for call in calls:
        if call.session_id != session_id:
            session_id, acts = call.session_id, []
        place, content = sight.look(call, ())
        if place is not None and call.tool not in acting:
            yield _Look(call, place, content, acts)
        if call.tool in acting and not call.failed:
            acts = [*acts, call]


def _again(looks: list[_Look]) -> Iterator[tuple[str, _Look]]:
    """Yield what the look before it in its session showed, and each look with the acts since."""
    last: dict[tuple[str, Place], _Look] = {}
    for look in looks:
        before = last.get((look.call.session_id, look.place))
        if before is not None:
            yield before.content, look._replace(acts=look.acts[len(before.acts):])
        last[look.call.session_id, look.place] = look


def _against_usual(looks: list[_Look]) -> Iterator[tuple[str, _Look]]:
    """Yield what most sessions saw there that had not acted, and each first look of a session that had."""
    fresh: dict[Place, Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, Place], _Look] = {}
    for look in looks:
        first.setdefault((look.call.session_id, look.place), look)
    for look in first.values():
        if not look.acts:
            fresh[look.place][look.content] += 1
    for look in first.values():
        usual = fresh[look.place].most_common(1)[0][0] if look.place in fresh else None
        if look.acts and usual is not None and (look.content == usual or look.content not in fresh[look.place]):
            yield usual, look


def often_changed(betweens: list[Between]) -> set[tuple[str, str]]:
    """Return (act, place) of all that stood between looks that differ often enough."""
    counts = Counter((act, between.place) for between in betweens if between.changed for act in between.tools)
    return {pair for pair, n in counts.items() if n >= FEWEST_CHANGED}
