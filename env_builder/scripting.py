"""The script of a task's user, mined from its session: what it tells, when, and what makes it tell that.

In: the words, calls and answers of each task's session in order. Out: the `user` row of each task (docs/environment.md).
Sees: the agent's question before each turn of the user; which arguments of later calls a turn gave first, and by that which
words ask for the same in other sessions of the service; what was confirmed, and what of a like form was ever shown.
Does not see: what a user would have said to questions that nobody asked, and facts told in words alone that no call took up.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import log
from typing import Any, NamedTuple

from env_builder.runtime.asking import chooses, confirms, granted, question, shape, stated, telling
from env_builder.runtime.relevance import leaves
from env_builder.runtime.words import Fact
from warehouse.records import Remember, anew

LEAST_PATIENCE = 6
"""Answers in a row that tell nothing new after which a user leaves, at the least."""
SHORTEST_VALUE = 2
LEAST_TIMES, LEAST_SHARE = 3, 0.3
"""Questions with a word that were answered by an argument's value, and their share of those with it: then it asks for that."""
LEAST_GRANTED, MOST_AGREED = 0.7, 50
"""Share of the questions for a yes with a word that got one, for a word of what is agreed to; and how many are kept."""
UNHEARD = 1.0
"""Weight of a word of an argument's name that no question holds."""
MOST_SEEN = 500
"""Facts that are kept of what was shown: what else has the form of what the user wants."""

_TOKEN = re.compile(r"[^\W_]+(?:[_\-.@][^\W_]+)*")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DAY = re.compile(r"\d{4}(-\d{2}-\d{2})")


class Talk(NamedTuple):
    """A task's session, parted where its user speaks."""

    opening: list[str]
    """Words of the user before the agent's first move."""
    turns: list[str]
    heard: list[list[str]]
    """What the agent said before each turn, since the one before; and after the last."""
    given: list[tuple[int, str, str]]
    """(turns told before the call, argument's name, its value) of each value of the agent's calls."""
    shown: list[str]
    """Texts of arguments and answers."""


class Turned(NamedTuple):
    """What one turn of a talk is."""

    when: str
    words: frozenset[str]
    """Telling words of the question before it."""
    slots: frozenset[str]
    """Names of the arguments that it was the first to give."""
    tells: list[Fact]
    learnt: list[Fact]
    grants: bool
    """Does it begin with a yes?"""


class Read(NamedTuple):
    """What a talk holds, whatever others say."""

    turned: list[Turned]
    given: frozenset[str]
    """Names of the arguments that its opening was the first to give."""
    wants: list[Fact]
    """What the user asks for, sorted."""
    seen: list[Fact]
    """What else of the same forms was said or shown."""


class Vocabulary(NamedTuple):
    """Which words ask for what, learnt from the talks of a service."""

    n_questions: int
    n_of: Counter[str]
    """Questions with a word."""
    words_of: dict[str, frozenset[str]]
    """Argument's name -> words that ask for it."""
    agreed: list[str]
    """Words of questions for a yes that nearly all got one, sorted."""

    def weighed(self, words: frozenset[str], slots: Iterable[str]) -> dict[str, float]:
        """These words and those that ask for these arguments, with their weight: the rarer the more."""
        asking = words.union(*(self.words_of.get(slot, _words(slot)) for slot in slots))
        return {word: round(log(1 + self.n_questions / (1 + self.n_of[word])), 2) if self.n_of[word] else UNHEARD
                for word in sorted(asking)}


def user_rows(
    talks: Mapping[str, Talk], vocabulary: Vocabulary | None = None, remember: Remember = anew
) -> dict[str, dict[str, Any]]:
    """The `user` row of each task of one service; {"turns": []} alone where the user says no more than the opening.

    `vocabulary`: learnt from other talks; then what the agent said in these here is not taken to ask for anything.
    """
    read = {name: _read(*remember(["talk", *talk], partial(_reading, talk))) for name, talk in talks.items()}
    known = vocabulary or vocabulary_of(one.turned for one in read.values())
    return {name: _row(talk, read[name], known, vocabulary is None) for name, talk in talks.items()}


def _reading(talk: Talk) -> list[Any]:
    """A `Read` as JSON value."""
    turned = _turned(talk)
    wants = _wants(talk, turned)
    return [[[one.when, sorted(one.words), sorted(one.slots), one.tells, one.learnt, one.grants] for one in turned],
            sorted(_first_given(talk, 0, "\n".join(talk.opening))), sorted(wants), _seen(talk, wants)]


def _read(turned: list[list[Any]], given: list[str], wants: list[Fact], seen: list[Fact]) -> Read:
    return Read([Turned(when, frozenset(words), frozenset(slots), *rest) for when, words, slots, *rest in turned],
                frozenset(given), wants, seen)


def learn(talks: Iterable[Talk]) -> Vocabulary:
    """Which words ask for what in these talks."""
    return vocabulary_of(map(_turned, talks))


def vocabulary_of(turned: Iterable[Sequence[Turned]]) -> Vocabulary:
    """The same, of talks whose turns are known."""
    n, n_of = 1, Counter[str]()
    by_slot: dict[str, Counter[str]] = defaultdict(Counter)
    confirming, granting = Counter[str](), Counter[str]()
    for one in (each for found in turned for each in found):
        n += 1
        confirming.update(one.words if one.when == "confirmed" else ())
        granting.update(one.words if one.when == "confirmed" and one.grants else ())
        n_of.update(one.words)
        for slot in one.slots:
            by_slot[slot].update(one.words)
    usual = {word for word, times in granting.items() if times >= LEAST_TIMES and times >= LEAST_GRANTED * confirming[word]}
    agreed = sorted(sorted(usual, key=lambda word: (-granting[word], word))[:MOST_AGREED])
    return Vocabulary(n, n_of, {slot: _words(slot) | {
        word for word, times in found.items() if times >= LEAST_TIMES and times >= LEAST_SHARE * n_of[word]}
        for slot, found in by_slot.items()}, agreed)


def _row(talk: Talk, read: Read, known: Vocabulary, own: bool) -> dict[str, Any]:
    if not talk.turns:
        return {"turns": []}
    script = []
    for one, heard in zip(read.turned, talk.heard, strict=False):
        asks = known.weighed(one.words if own else frozenset(), one.slots) if one.when != "unasked" else {}
        script.append({"heard": heard, "when": one.when if asks or one.when == "confirmed" else "unasked", "asks": asks,
                       "tells": [list(fact) for fact in one.tells], "learnt": [list(fact) for fact in one.learnt]})
    yes = {"agreed": known.agreed} if any(one.when == "confirmed" for one in read.turned) else {}
    return {"turns": talk.turns, "script": script, "after": talk.heard[-1], **yes,
            "asks": known.weighed(frozenset(), read.given),
            "wants": [list(fact) for fact in read.wants], "seen": [list(fact) for fact in read.seen],
            "patience": LEAST_PATIENCE + _longest(not one.tells for one in read.turned)}


def _turned(talk: Talk) -> list[Turned]:
    """What each turn of the talk is."""
    own = set(_stated(talk.opening))
    told: set[Fact] = set()
    before = "\n".join(talk.opening)
    found = []
    for place, (text, heard) in enumerate(zip(talk.turns, talk.heard, strict=False)):
        told |= _stated(heard)
        asked = question("\n".join(heard))
        facts, before = stated(text), "\n".join((before, *heard))
        slots = _first_given(talk, place + 1, text, before)
        tells = sorted(facts - own - told) + [("argument", slot) for slot in sorted(slots)]
        learnt = sorted(fact for fact in (facts & told) - own if fact[0] in ("id", "date"))
        yes_or_no = bool(asked) and confirms(asked) and not chooses(asked) and granted(text) is not None
        when = "confirmed" if yes_or_no else "asked" if asked else "unasked"
        found.append(Turned(when, telling(asked), slots, tells, learnt, granted(text) is True))
        own |= facts
        before = f"{before}\n{text}"
    return found


def _first_given(talk: Talk, n_told: int, text: str, before: str = "") -> frozenset[str]:
    """Names of the arguments of later calls whose value the text gives and nobody gave before."""
    small, old = text.casefold(), before.casefold()
    return frozenset(name for at, name, value in talk.given
                     if at >= n_told and _holds(small, value) and not _holds(old, value))


def _holds(text: str, value: str) -> bool:
    at = text.find(value)
    return at >= 0 and not text[at - 1:at].isalnum() and not text[at + len(value):at + len(value) + 1].isalnum()


def _wants(talk: Talk, turned: list[Turned]) -> set[Fact]:
    """What the user asks for: facts of its own words, and of what it said yes to."""
    granting = [words for one, text, heard in zip(turned, talk.turns, talk.heard, strict=False)
                if one.when == "confirmed" and granted(text) for words in heard[-1:]]
    return {fact for fact in _stated([*talk.opening, *talk.turns, *granting]) if shape(fact)}


def _seen(talk: Talk, wants: set[Fact]) -> list[Fact]:
    """What else of the same shapes was said or shown in the session."""
    shapes = {shape(fact) for fact in wants}
    said = _stated([words for heard in talk.heard for words in heard])
    seen = {fact for fact in said.union(*map(_shown, talk.shown)) if shape(fact) in shapes}
    return sorted(seen - wants)[:MOST_SEEN]


@lru_cache(4096)
def _shown(text: str) -> frozenset[Fact]:
    """Ids and days of a text of a tool."""
    ids = {("id", word.casefold()) for word in _TOKEN.findall(text) if len(word) >= 4 and any(sign.isdigit() for sign in word)}
    return frozenset(ids | {("date", f"-{day}") for day in _DAY.findall(text)})


def _stated(texts: Sequence[str]) -> frozenset[Fact]:
    return frozenset().union(*map(stated, texts))


def _longest(flags: Any) -> int:
    """Length of the longest run of true ones."""
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


@lru_cache(4096)
def _words(name: str) -> frozenset[str]:
    """Telling words of an argument's name."""
    return telling(_CAPITAL.sub(" ", name).replace("_", " "))


def values_of(arguments: str) -> list[tuple[str, str]]:
    """(name, value) of the scalars of a call's arguments, in small letters; of a list's elements the list's name."""
    read = json.loads(arguments)
    pairs = read.items() if isinstance(read, dict) else ()
    found = ((name, leaf) for name, value in pairs for leaf in leaves(value) if isinstance(leaf, str | int | float))
    return [(name, value) for name, leaf in found for value in [str(leaf).casefold()] if len(value) >= SHORTEST_VALUE]
