"""What families are called, and goals as sentences to read: from the names of tools and the users' own words.

In: goals, and the tools of each service. Out: a name and a sentence for each family, and a sentence for each goal. A kind that
tools name is called by them; another by its most typical words: those that are frequent in the kind and rare outside it.
Sentences are the users' words without greetings, values of slots marked. Sees: words of any script that has spaces between
them. Does not see: meaning; a kind whose users all say little is told by little.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from math import log
from typing import NamedTuple

import polars as pl

from extractors.tasks.wording import (
    called,
    cleaned,
    filled,
    general,
    marked,
    opening_of,
    pieces_of,
    shortened,
    spoken,
    with_values,
    without_values,
)
from extractors.tasks.words import masked, split_words
from warehouse.records import FamilyName, Sentence, frame

LONGEST_NAME = 60
"""Signs of a name."""

_LOOKED_AT = 200
"""Goals of a kind, the most typical first, among whose first sentences its name is looked for."""

_EVEN, _LENGTH = 6, 0.75
"""What words tell of a kind is divided by their number and the one, to the power of the other: short texts before long ones."""

_USUAL = 0.1
"""Share of a kind's goals from which on a word is no one thing's name."""

_OFTEN = 3
"""A short beginning of fewer goals than this is no greeting."""

_WORD = re.compile(r"[^\W_]+")


class Goal(NamedTuple):
    """A goal as it is named."""

    goal_id: str
    words: str
    slots: dict[str, str | list[str]]
    distinct: list[str]
    """Its different words, numbers masked."""


class Kind(NamedTuple):
    """The goals of one kind."""

    service: str
    kind: str
    tools: tuple[str, ...]
    """Tools that name it; empty: its words do."""
    slots: dict[str, str]
    """Slot -> what it is called, of all its goals."""
    goals: list[Goal]
    """Most typical first."""
    weights: Mapping[str, float]
    """Word -> how much it speaks of the kind."""
    usual: frozenset[str]
    """Words that many of its goals hold."""
    openings: frozenset[str]
    """Short beginnings that say nothing, of the whole service."""

    def said(self, goal: Goal) -> str | None:
        """A goal's words in one line; None where nobody put it into words, so that its words are the tools that were called."""
        silent = self.tools and set(self.tools) <= set(goal.words.split(", "))
        return None if silent else cleaned(goal.words, self.openings)


class Names(NamedTuple):
    """What is called how."""

    families: pl.DataFrame
    """Frame of `FamilyName`, by service and family."""
    sentences: pl.DataFrame
    """Frame of `Sentence`, by goal_id."""


def names_of(goals: pl.DataFrame, tools: pl.DataFrame) -> Names:
    """Names and sentences of all families and goals, made from words and names of tools alone.

    `goals`: frame of `Goal`; `tools`: frame of service, tool. Does not depend on the order of rows.
    """
    taken: dict[str, set[str]] = defaultdict(set)
    named, sentences = {}, []
    for kind in kinds_in(goals, tools):
        name = _name(kind, taken[kind.service])
        named[kind.kind] = FamilyName(
            service=kind.service, family=kind.kind, kinds=[kind.kind], name=name, sentence=_typical(kind, name))
        sentences += [Sentence(goal_id=goal.goal_id, sentence=_told(kind, goal, name)) for goal in kind.goals]
    return Names(families_of(goals, named), frame(Sentence, sentences).sort("goal_id"))


def kinds_in(goals: pl.DataFrame, tools: pl.DataFrame) -> list[Kind]:
    """The kinds of `goals`, by service and kind; arguments as in `names_of`."""
    known = {service: set(names) for service, names in tools.group_by("service").agg(pl.col("tool").unique()).iter_rows()}
    rows = goals.sort("service", "kind", "goal_id").with_columns(
        split_words(masked(pl.col("goal"))).list.unique(maintain_order=True).alias("distinct"))
    by_service: dict[str, dict[tuple[str, str], list[Goal]]] = defaultdict(lambda: defaultdict(list))
    for service, kind, label, goal_id, words, slots, distinct in rows.select(
            "service", "kind", "asks", "goal_id", "goal", "slots", "distinct").iter_rows():
        by_service[service][kind, label].append(Goal(goal_id, words, json.loads(slots), distinct))
    return [kind for service, own in by_service.items() for kind in _of_service(service, own, known.get(service, set()))]


def _of_service(service: str, by_kind: Mapping[tuple[str, str], list[Goal]], tools: set[str]) -> Iterable[Kind]:
    openings = _openings(by_kind.values())
    whole = Counter(word for own in by_kind.values() for goal in own for word in goal.distinct)
    n_whole = sum(map(len, by_kind.values()))
    for (kind, label), own in by_kind.items():
        counts = Counter(word for goal in own for word in goal.distinct)
        weights = _weights(counts, len(own), whole, n_whole)
        usual = frozenset(word for word, n in counts.items() if n > _USUAL * len(own))
        ordered = sorted(own, key=partial(_rank, weights))
        slots = called(sorted({slot for goal in own for slot in goal.slots}), label)
        yield Kind(service, kind, _named_by(label, tools), slots, ordered, weights, usual, openings)


def _openings(kinds: Iterable[list[Goal]]) -> frozenset[str]:
    """Short beginnings of goals of several kinds."""
    n_goals: Counter[str] = Counter()
    n_kinds: Counter[str] = Counter()
    for own in kinds:
        begins = Counter(opening_of(goal.words) for goal in own)
        n_goals.update(begins)
        n_kinds.update(begins.keys())
    return frozenset(begins for begins, n in n_goals.items() if begins and n >= _OFTEN and n_kinds[begins] > 1)


def _weights(own: Counter[str], n: int, whole: Counter[str], n_whole: int) -> dict[str, float]:
    """Word -> how much it speaks of the kind: its share there, times the logarithm of how much more frequent it is there."""
    if n == n_whole:
        return {word: times / n for word, times in own.items()}
    shares = {word: ((times + 0.5) / (n + 1), (whole[word] - times + 0.5) / (n_whole - n + 1)) for word, times in own.items()}
    return {word: inside * log(inside / outside) for word, (inside, outside) in shares.items() if inside > outside}


def _worth(words: Iterable[str], weights: Mapping[str, float]) -> float:
    """How typical different words are of a kind."""
    told = [weights.get(word, 0.0) for word in words]
    worth: float = sum(told) / (len(told) + _EVEN) ** _LENGTH
    return round(worth, 9)


def _rank(weights: Mapping[str, float], goal: Goal) -> tuple[float, str, str]:
    return -_worth(goal.distinct, weights), goal.words, goal.goal_id


def _named_by(label: str, tools: set[str]) -> tuple[str, ...]:
    """The tools that a label names one after another, empty where it says something else."""
    left, found = label, []
    while left:
        first = max((tool for tool in tools if left == tool or left.startswith(f"{tool} ")), key=len, default=None)
        if first is None:
            return ()
        found.append(first)
        left = left[len(first):].lstrip()
    return tuple(found)


def _name(kind: Kind, taken: set[str]) -> str:
    """Its tools, or else its most typical first sentence that names no other kind of the service."""
    if kind.tools:
        return " + ".join(map(spoken, kind.tools))
    said = {piece for goal in kind.goals[:_LOOKED_AT] for piece in pieces_of(goal.words, kind.openings)[:1]}
    ranked = sorted((len(name) > LONGEST_NAME, -_worth(sorted(set(_WORD.findall(piece.lower()))), kind.weights), name)
                    for piece in said for name in [general(piece, kind.usual.__contains__).rstrip(" .!,;:")])
    for *_, name in ranked:
        if (short := shortened(name, LONGEST_NAME)) not in taken:
            taken.add(short)
            return short
    return shortened(cleaned(kind.goals[0].words), LONGEST_NAME) or "without words"


def _typical(kind: Kind, name: str) -> str:
    """The most typical goal's words, with slots named and what is its own alone left out."""
    goal = kind.goals[0]
    said = kind.said(goal)
    if said is None:
        return " ".join([name, *(f"{{{slot}}}" for slot in sorted(kind.slots.values()))])
    return general(marked(said, goal.slots, without_values(kind.slots)), kind.usual.__contains__)


def _told(kind: Kind, goal: Goal, name: str) -> str:
    """A goal's words with its slots marked; of a routine without words its name, and then its slots."""
    said = kind.said(goal)
    if said is not None:
        return marked(said, goal.slots, with_values(kind.slots))
    return " ".join([name, *(filled(kind.slots[slot], value) for slot, value in sorted(goal.slots.items()))])


def families_of(goals: pl.DataFrame, named: Mapping[str, FamilyName]) -> pl.DataFrame:
    """Frame of `FamilyName`: `named`, kind -> what it is called, and families of several kinds by the names of these."""
    of_session = goals.sort("session_id", "place").group_by("service", "family", "session_id", maintain_order=True).agg(
        "kind", (pl.col("begins").n_unique() == 1).alias("together"))
    rows = dict(named)
    first = of_session.sort("service", "family", "session_id").unique("family", keep="first", maintain_order=True)
    for service, family, kinds, together in first.select("service", "family", "kind", "together").iter_rows():
        if family not in rows:
            rows[family] = _joined(service, family, kinds if together else list(dict.fromkeys(kinds)), named)
    return frame(FamilyName, list(rows.values())).sort("service", "family")


def _joined(service: str, family: str, kinds: list[str], named: Mapping[str, FamilyName]) -> FamilyName:
    """A family of several goals; what a model wrote of all its kinds, it wrote of the family."""
    times = Counter(kinds)
    writers = {named[kind].written_by for kind in times}
    return FamilyName(
        service=service, family=family, kinds=kinds,
        name=" + ".join(named[kind].name if n == 1 else f"{named[kind].name} ({n}×)" for kind, n in times.items()),
        sentence=" / ".join(named[kind].sentence for kind in times),
        written_by=writers.pop() if len(writers) == 1 else None)
