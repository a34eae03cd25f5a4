"""Types of acts: what kind of thing was done, coarse and fine.

In: acts and their words. Out: for each act a coarse type (its verb, and whether it answers) and a fine one (also where, to
which value, and in which wording).
Sees: places with many acts, values that recur, and wordings: texts of one verb that share half of their usual words.
Does not see: meaning; two wordings of one request are two types.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from extractors.work.events import WorkEvent
from extractors.work.words import ActWords, text_words

_MANY = 0.01
"""A place with this share of a verb's acts is one that tells what kind of act it is."""
_USUAL = 4
"""A word is usual for a verb if this many of its threads have it."""
_ALIKE = 0.5
"""Share of their usual words that texts of one wording have in common."""
_KINDS_OF_VALUE = 12
"""A field with at most so many values tells by them what kind of act it is."""
_FEW = 6
"""A fine type with fewer acts is not told apart from the coarser one."""


class ActType(NamedTuple):
    """The type of an act."""

    coarse: str
    fine: str


def act_types(events: Sequence[WorkEvent], words: Sequence[ActWords], company: frozenset[str]) -> list[ActType]:
    """Return the types of acts. `company`: the addresses of its people."""
    places = _places(events)
    values = _telling_values(events)
    wordings = _wordings(events)
    steps: list[list[str]] = []
    begun: set[str] = set()
    for event, place, wording in zip(events, places, wordings, strict=True):
        coarse = event.verb + (" in answer" if event.thread in begun and event.verb.endswith("created") else "")
        begun.add(event.thread)
        outside = "" if not event.actor or event.actor in company or "@" not in event.actor else " from outside"
        value = " ".join(f"{change.field}={change.after}" for change in event.changes
                         if (event.verb, change.field) in values and isinstance(change.after, str))
        first = coarse + outside
        second = f"{first} @{place} {value}"
        steps.append([first, second, f"{second} ~{wording}"])
    counts = Counter(step for each in steps for step in set(each))
    return [ActType(each[0], next((step for step in reversed(each) if counts[step] >= _FEW), each[0])) for each in steps]


def _places(events: Sequence[WorkEvent]) -> list[str]:
    """Return for each act the place that tells what kind of act it is, or the class of its place."""
    of = {f"{event.record[0]}:{event.record[1]}": event.place for event in events if event.place}
    places = []
    for event in events:
        place = event.place
        while of.get(place):
            place = of[place]
        places.append(place)
    counts = Counter((event.verb, place) for event, place in zip(events, places, strict=True))
    verbs = Counter(event.verb for event in events)
    return [place if counts[event.verb, place] >= max(_FEW, _MANY * verbs[event.verb]) else place.split(":")[0]
            for event, place in zip(events, places, strict=True)]


def _telling_values(events: Sequence[WorkEvent]) -> set[tuple[str, str]]:
    """Return the (verb, field) whose few values recur."""
    contents: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for event in events:
        for change in event.changes:
            if isinstance(change.after, str):
                contents[event.verb, change.field][change.after] += 1
    return {key for key, counts in contents.items()
            if len(counts) <= _KINDS_OF_VALUE and counts.total() >= _FEW * len(counts)}


def _wordings(events: Sequence[WorkEvent]) -> list[int]:
    """Return for each act the number of its wording within its verb; -1: it has no words."""
    texts = [frozenset(word for text in event.texts for word in text_words(text)) for event in events]
    usual = _usual_words(events, texts)
    leaders: dict[str, list[frozenset[str]]] = defaultdict(list)
    at: Mapping[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    leader_of: dict[tuple[str, frozenset[str]], int] = {}
    numbers = []
    for event, text in zip(events, texts, strict=True):
        verb = event.verb
        short = frozenset(word for word in text if word in usual[verb])
        if (verb, short) not in leader_of:
            leader_of[verb, short] = _leader(short, leaders[verb], at[verb]) if short else -1
        numbers.append(leader_of[verb, short])
    return numbers


def _usual_words(events: Sequence[WorkEvent], texts: Sequence[frozenset[str]]) -> dict[str, frozenset[str]]:
    threads: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for event, text in zip(events, texts, strict=True):
        for word in text:
            threads[event.verb][word].add(event.ref)
    return {verb: frozenset(word for word, refs in result.items() if len(refs) >= _USUAL and not word[0].isdigit())
            for verb, result in threads.items()} | {event.verb: frozenset() for event in events if event.verb not in threads}


def _leader(text: frozenset[str], leaders: list[frozenset[str]], at: dict[str, list[int]]) -> int:
    """Return the number of the first text of this wording, which may be this one."""
    shared = Counter(number for word in text for number in at[word])
    best, score = -1, 0.0
    for number, both in shared.items():
        alike = both / (len(text) + len(leaders[number]) - both)
        if (alike, -number) > (score, -best):
            best, score = number, alike
    if score >= _ALIKE:
        return best
    leaders.append(text)
    for word in text:
        at[word].append(len(leaders) - 1)
    return len(leaders) - 1
