"""Lines of free text to templates: the Drain algorithm (He, Zhu, Zheng, Lyu: "Drain: An Online Log Parsing Approach with
Fixed Depth Tree", ICWS 2017), in two passes, so that the order of the lines does not matter.

In: the messages of one file, or of one piece of a large one. Out: for each its template and its variables
(`login of <*> took <*> ms`, `{"of": "ann-1", "took": "12"}`).
First, what looks like a value is masked: every run of letters, digits and signs that holds a digit, and hexadecimal words.
Then the different masked messages, sorted, go down Drain's tree: by their number of words, then by their first two words that
are no values, to a group whose template shares at least half of its words; words that differ become `<*>`. At last each
message is named by the template that its group ended with.
What it sees: words between blanks. What it does not see: that messages with different numbers of words are one statement (a
name of two words); that a word without a digit is a value where it is among the first two, one of few, or stands alone; and
messages of other files or pieces: the same statement can have another template there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MASK = "<*>"
_VALUE = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:[^\s/:@"'<>]+@[^\s,;()\[\]{}"'<>|]*"""
    r"""|(?<![^\s=,;()\[\]{}"'<>|:])[^\s=,;()\[\]{}"'<>|:]*\d(?:[^\s=,;()\[\]{}"'<>|:]|:(?=[\w\[]))*"""
    r"""|(?<![\w<*])(?:[0-9a-f]{8,}|[0-9A-F]{8,})(?!\w)""", re.ASCII)
_WORD = re.compile(r"[^\W\d_][\w.-]*")
_MOST_CHILDREN = (100, 20)
"""How many different words may lead on, for the first and the second word that lead down the tree."""
_SIMILAR = 0.5
_MOST_WORDS = 200
"""A longer message is told by its first words; the rest is one value."""


class Named(NamedTuple):
    """What a message is an instance of."""

    template: str
    variables: dict[str, str]


@dataclass
class _Group:
    """A log group of Drain: messages of one template."""

    words: list[str]

    def similarity(self, words: Sequence[str]) -> tuple[float, int]:
        """Share of words that are the template's own, then how many of its places are open; values on both sides say
        nothing (the paper counts them as equal words, its authors' program as different ones)."""
        same = values = 0
        for own, word in zip(self.words, words, strict=True):
            if own == word:
                same += own != MASK
                values += own == MASK
        n_words = len(words) - values
        return (same / n_words if n_words else 1.0), self.words.count(MASK)

    def take(self, words: Sequence[str]) -> None:
        """Open the places where the message differs."""
        self.words = [own if own == word else MASK for own, word in zip(self.words, words, strict=True)]


class _Tree:
    """Drain's tree over a set of masked messages: the number of words, then the first words, then groups.

    Where more different words than `_MOST_CHILDREN` lead on from one place, all go by the mask, whichever came first: Drain
    lets the first ones through.
    """

    def __init__(self, shapes: Iterable[tuple[str, ...]]) -> None:
        self._leaves: dict[tuple[str, ...], list[_Group]] = {}
        fixed = {shape: [word for word in shape if MASK not in word] for shape in shapes}
        self._ways: dict[tuple[str, ...], tuple[str, ...]] = {shape: (str(len(shape)),) for shape in fixed}
        for depth, most in enumerate(_MOST_CHILDREN):
            below: dict[tuple[str, ...], set[str]] = {}
            for shape, way in self._ways.items():
                below.setdefault(way, set()).update(fixed[shape][depth:depth + 1])
            for shape, way in self._ways.items():
                words = fixed[shape][depth:depth + 1] if len(below[way]) <= most else []
                self._ways[shape] = (*way, *(words or [MASK]))

    def group_of(self, shape: tuple[str, ...]) -> _Group:
        """The group that the message belongs to from now on."""
        groups = self._leaves.setdefault(self._ways[shape], [])
        best, score = None, (0.0, 0)
        for group in groups:
            if (found := group.similarity(shape)) > score:
                best, score = group, found
        if best is None or score[0] < _SIMILAR:
            best = _Group(list(shape))
            groups.append(best)
        else:
            best.take(shape)
        return best


class _Plan(NamedTuple):
    """How a masked message's variables are read: the template, and which word holds which."""

    template: str
    places: list[tuple[int, tuple[str, ...], bool]]
    """(word, names of its variables, whether the word as a whole is the variable)."""


def named(messages: Iterable[str]) -> list[Named]:
    """Template and variables of each message, in the order given; the template depends on the set of messages alone."""
    split = [_words(message) for message in messages]
    masked = [tuple(_masked(words)) for words in split]
    plans = _plans(set(masked))
    return [_named(words, plans[shape]) for words, shape in zip(split, masked, strict=True)]


def _words(message: str) -> list[str]:
    return message.split(None, _MOST_WORDS)


def _masked(words: list[str]) -> list[str]:
    """The words with their values masked; a long message's rest is one value."""
    text = _VALUE.sub(MASK, " ".join(words[:_MOST_WORDS]))
    return text.split(" ") + [MASK] * (len(words) - _MOST_WORDS)


def _plans(shapes: set[tuple[str, ...]]) -> dict[tuple[str, ...], _Plan]:
    tree = _Tree(shapes)
    groups = [(shape, tree.group_of(shape)) for shape in sorted(shapes) if shape]
    # a group may have opened since: what its template says at the end counts for all
    return {(): _Plan("", [])} | {shape: _plan(shape, group.words) for shape, group in groups}


def _plan(shape: tuple[str, ...], template: list[str]) -> _Plan:
    places: list[tuple[int, tuple[str, ...], bool]] = []
    taken: dict[str, int] = {}
    before = "value"
    for number, (own, word) in enumerate(zip(template, shape, strict=True)):
        n_masks = own.count(MASK)
        if n_masks:
            inner = _WORD.findall(own.replace(MASK, " "))
            names = tuple(_name(inner[-1] if inner else before, taken) for _ in range(n_masks))
            places.append((number, names, own == MASK or own != word))
        elif (found := _WORD.findall(own)):
            before = found[-1]
    return _Plan(" ".join(template), places)


def _name(word: str, taken: dict[str, int]) -> str:
    """Name of a variable: the word before it, with a number from the second on."""
    taken[word] = taken.get(word, 0) + 1
    return word if taken[word] == 1 else f"{word}_{taken[word]}"


def _named(words: list[str], plan: _Plan) -> Named:
    variables: dict[str, str] = {}
    for number, names, whole in plan.places:
        if whole:
            variables[names[0]] = words[number]
        else:
            variables.update(zip(names, _VALUE.findall(words[number]), strict=False))
    return Named(plan.template, variables)
