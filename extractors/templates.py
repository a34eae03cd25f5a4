"""Find templates of free text: the Drain algorithm (He, Zhu, Zheng, Lyu: "Drain: An Online Log Parsing Approach with Fixed
Depth Tree", ICWS 2017), in two passes, so that the order of lines does not matter.

Input: the messages of a file or a chunk. Output: for each its template and variables (`login of <*> took <*> ms`,
`{"of": "ann-1", "took": "12"}`). Values (runs of characters with a digit, hexadecimal words) are masked. The sorted masked
messages go down Drain's tree, by number of words and first two plain words, to a group that shares half of its words; words
that differ become `<*>`. Where eight templates differ in one word only, it becomes `<*>` too. Does not see: that messages of
different lengths are one statement, that a word without a digit is a value if it is rare or alone; other files and chunks,
which may have another template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MASK = "<*>"
_VALUE = re.compile(
    r"""\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@"'<>]*:[^\s/:@"'<>]+@[^\s,;()\[\]{}"'<>|]*"""
    r"""|(?<![^\s=,;()\[\]{}"'<>|:])[^\s=,;()\[\]{}"'<>|:]*\d(?:[^\s=,;()\[\]{}"'<>|:]|:(?=[\w\[]))*"""
    r"""|(?<![\w<*])(?:[0-9a-f]{8,}|[0-9A-F]{8,})(?!\w)""", re.ASCII)
_WORD = re.compile(r"[^\W\d_][\w.-]*")
_MOST_CHILDREN = (100, 20)
"""How many different words may lead on, for the first and the second word that lead down the tree."""
_SIMILAR = 0.5
_MOST_WORDS = 200
"""A longer message is told by its first words; the rest is one value."""


_MANY, _PLAIN = 8, 2
"""So many templates that differ in one word only, and share so many plain words, are one."""


class TemplateMatch(NamedTuple):
    """What a message is an instance of."""

    template: str
    variables: dict[str, str]


@dataclass
class _Group:
    """A log group of Drain: messages of one template."""

    words: list[str]

    def similarity(self, words: Sequence[str]) -> tuple[float, int]:
        """Return the share of the template's own words, and its number of masks. Masks on both sides do not count
        (in the paper as equal words, in its authors' program as different ones)."""
        own_words = [own for own, word in zip(self.words, words, strict=True) if own == word]
        n_values = own_words.count(MASK)
        n_words = len(words) - n_values
        return ((len(own_words) - n_values) / n_words if n_words else 1.0), self.words.count(MASK)


class _Tree:
    """Drain's tree over masked messages: number of words, first words, groups.

    Where more than `_MOST_CHILDREN` words lead on, all go by the mask; Drain lets the first ones through."""

    def __init__(self, shapes: Iterable[tuple[str, ...]]) -> None:
        self._leaves: dict[tuple[str, ...], list[_Group]] = {}
        fixed = {shape: [word for word in shape if MASK not in word] for shape in shapes}
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {shape: (str(len(shape)),) for shape in fixed}
        for depth, most in enumerate(_MOST_CHILDREN):
            below: dict[tuple[str, ...], set[str]] = {}
            for shape, path in self._paths.items():
                below.setdefault(path, set()).update(fixed[shape][depth:depth + 1])
            for shape, path in self._paths.items():
                words = fixed[shape][depth:depth + 1] if len(below[path]) <= most else []
                self._paths[shape] = (*path, *(words or [MASK]))

    def group_of(self, shape: tuple[str, ...]) -> _Group:
        groups = self._leaves.setdefault(self._paths[shape], [])
        best, score = None, (0.0, 0)
        for group in groups:
            if (similarity := group.similarity(shape)) > score:
                best, score = group, similarity
        if best is None or score[0] < _SIMILAR:
            best = _Group(list(shape))
            groups.append(best)
        else:   # the places where the message differs open
            best.words = [own if own == word else MASK for own, word in zip(best.words, shape, strict=True)]
        return best


class _Plan(NamedTuple):
    """How a masked message's variables are read: the template, and which word holds which."""

    template: str
    places: list[tuple[int, tuple[str, ...], bool]]
    """(word, names of its variables, whether the word as a whole is the variable)."""


def named(messages: Iterable[str]) -> list[TemplateMatch]:
    """Template and variables of each message, in the order given; the template depends on the set of messages alone."""
    split = [message.split(None, _MOST_WORDS) for message in messages]
    masked = []
    for words in split:   # a long message's rest is one value
        text = _VALUE.sub(MASK, " ".join(words[:_MOST_WORDS]))
        masked.append((*text.split(" "), *[MASK] * (len(words) - _MOST_WORDS)))
    tree = _Tree(masked)
    groups = [(shape, tree.group_of(shape)) for shape in sorted(set(masked)) if shape]
    _open_values([group for _, group in groups])
    # a group may have opened since: what its template says at the end counts for all
    plans = {(): _Plan("", [])} | {shape: _plan(shape, group.words) for shape, group in groups}
    matches = []
    for words, shape in zip(split, masked, strict=True):
        variables: dict[str, str] = {}
        for number, names, whole in plans[shape].places:
            values = [words[number]] if whole else _VALUE.findall(words[number])
            variables.update(zip(names, values, strict=False))
        matches.append(TemplateMatch(plans[shape].template, variables))
    return matches


def _open_values(groups: Iterable[_Group]) -> None:
    """Open a place where many templates differ that are else equal: its words are values."""
    own = list({id(group): group for group in groups}.values())
    opening = True
    while opening:
        opening = False
        alike: dict[tuple[int, tuple[str, ...]], list[_Group]] = {}
        for group in own:
            for place, word in enumerate(group.words):
                rest = (*group.words[:place], MASK, *group.words[place + 1:])
                if word != MASK and sum(MASK not in each for each in rest) >= _PLAIN:
                    alike.setdefault((place, rest), []).append(group)
        for (place, rest), members in sorted(alike.items()):
            if len({group.words[place] for group in members}) >= _MANY:
                for group in members:
                    if (*group.words[:place], MASK, *group.words[place + 1:]) == rest:   # not opened elsewhere in this round
                        group.words, opening = list(rest), True


def _plan(shape: tuple[str, ...], template: list[str]) -> _Plan:
    places: list[tuple[int, tuple[str, ...], bool]] = []
    taken: Counter[str] = Counter()
    before = "value"
    for number, (own, word) in enumerate(zip(template, shape, strict=True)):
        n_masks = own.count(MASK)
        if n_masks:
            inner = _WORD.findall(own.replace(MASK, " "))
            name = inner[-1] if inner else before   # the word before it, with a number from the second on
            numbers = range(taken[name] + 1, taken[name] + n_masks + 1)
            taken[name] += n_masks
            places.append((number, tuple(name if n == 1 else f"{name}_{n}" for n in numbers), own == MASK or own != word))
        elif (words := _WORD.findall(own)):
            before = words[-1]
    return _Plan(" ".join(template), places)
