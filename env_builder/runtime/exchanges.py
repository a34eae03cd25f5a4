"""Exchange names of one class among each other, wherever they stand in a text: in sentences, addresses, paths, names of files.

In: classes of names that logs bear out (numbers and codes of entities, words of their titles, logins), secrets that the
environment made itself, years of the log, a seed. Out: texts with every name in another one's place, and back. A text is cut
into runs of letters and digits, and within these into words and numbers; each is put in the place of one of its own kind, so
the result is cut alike and what was exchanged comes back exactly. No name of a class of two and more keeps its place.
Ids of few digits are exchanged where nothing around them says that they count (short_ids.py), phrases as wholes (phrases.py).
Years move by a multiple of 28: weekdays and lengths of months stay as they are. Does not see: parts of a name, the order of
numbers, instants as seconds, years of two digits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .canonical import canonical, digest
from .phrases import PhraseExchange
from .short_ids import ShortIds

CYCLE = 28
"""Years after which weekdays and leap days come again."""
_RUN = re.compile(r"[^\W_]+")
_SPLIT_RUN = re.compile(r"([^\W_]+)")
_ESCAPED_RUN = re.compile(r"(\\(?:u[0-9a-fA-F]{4}|u[^\W_]*|.)|[^\W_]+)", re.DOTALL)
_SLUG = re.compile(r"([^\W_][\w-]*[_-])([0-9]+)")
_SLUG_IN_TEXT = re.compile(r"(?<![\w-])([^\W_][\w-]*[_-])([0-9]+)(?![\w-])")
_MOST_PARTS, _LONGEST_PART = 32768, 128
"""Parts that are kept of each direction, and characters of the longest."""
_PIECE = re.compile(r"[0-9]+|[^\W\d_]+|[^\W_]")
_LATEST = 2099
_COMPACT = re.compile(r"([0-9]{4})((?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{6})?)?)")
"""Year and month, day, time, written without marks."""


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in small letters."""
    return frozenset(piece.lower() for piece in _PIECE.findall(text) if piece.isalpha())


class NameClasses(NamedTuple):
    """What may be exchanged."""

    numbers: tuple[tuple[str, ...], ...] = ()
    """Classes of digits, those that begin with 0 apart."""
    words: tuple[tuple[str, ...], ...] = ()
    """Classes of words of two and more small letters a-z; in texts they are small, capitalised or all capitals."""
    codes: tuple[tuple[str, ...], ...] = ()
    """Classes of letters mixed with digits."""
    secrets: tuple[str, ...] = ()
    """Runs of letters and digits that are drawn again."""
    years: tuple[int, ...] = ()
    """Years in a row."""
    slugs: tuple[tuple[str, ...], ...] = ()
    """Classes of words in an address with a number of any length behind them, of which the numbers are exchanged."""
    ids: tuple[tuple[str, ...], ...] = ()
    """Classes of digits of one length, which may count elsewhere."""
    stems: tuple[str, ...] = ()
    """Small letters that stand before such digits without a gap."""
    counting: tuple[str, ...] = ()
    """Contexts in which such digits count."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Classes of phrases, all of them together separable (phrases.py)."""

    def joined(self, other: NameClasses) -> NameClasses:
        """Return the classes of two apps together."""
        return NameClasses(*(tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in self._fields))

    def to_row(self) -> dict[str, Any]:
        """Return the classes as JSON has them; secrets are no part of it."""
        return {name: [list(each) if isinstance(each, tuple) else each for each in value]
                for name, value in self._asdict().items() if name != "secrets"}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], secrets: Iterable[str] = ()) -> NameClasses:
        """Return the classes that `to_row` wrote."""
        groups = {name: tuple(tuple(each) for each in row.get(name, ())) for name in (
            "numbers", "words", "codes", "slugs", "ids", "phrases")}
        return cls(**groups, secrets=tuple(secrets), years=tuple(row.get("years", ())), stems=tuple(row.get("stems", ())),
                   counting=tuple(row.get("counting", ())))


class NameExchange:
    """How one seed exchanges the names of these classes."""

    def __init__(self, classes: NameClasses, seed: int) -> None:
        self._years = _moved_years(classes.years, seed)
        words = [tuple(word for word in each if len(word) > 1) for each in classes.words]
        pieces = _rotated(classes.numbers, seed) | _rotated(words, seed)
        self._pieces = {False: pieces, True: {there: here for here, there in pieces.items()}}
        self._years_back = {there: here for here, there in self._years.items()}
        beginnings: dict[str, dict[str, str]] = {}
        for slugs in classes.slugs:
            parts = [match.groups() for slug in slugs if (match := _SLUG.fullmatch(slug))]
            numbers = _rotated([tuple(number for _, number in parts)], seed)
            beginnings |= {beginning: numbers for beginning, _ in parts if beginning not in beginnings}
        taken = {number for each in classes.numbers for number in each} | self._years.keys() | {
            number for numbers in beginnings.values() for number in numbers}
        self._ids = ShortIds(_rotated([tuple(number for number in each if number not in taken and len(number) == len(each[0]))
                                       for each in classes.ids if each], seed), classes.stems, classes.counting)
        self._phrases = PhraseExchange(_rotated(classes.phrases, seed))
        self._slugs = {False: beginnings, True: {beginning: {there: here for here, there in numbers.items()}
                                                 for beginning, numbers in beginnings.items()}}
        """By what stands before the number: number -> the one in its place."""
        self._runs: dict[bool, dict[str, str]] = {False: {}, True: {}}
        self._shown: dict[bool, dict[str, str]] = {False: {}, True: {}}
        """Parts of texts as they were exchanged before."""
        codes = [tuple(code for code in each if self._is_whole(code)) for each in classes.codes]
        runs = _rotated(codes, seed)
        for secret in classes.secrets:
            other = digest(canonical([seed, "secret", secret]))[:max(len(secret), 4)]
            if self._is_whole(secret) and self._is_whole(other) and not {secret, other} & runs.keys():
                runs |= {secret: other, other: secret}
        self._runs = {False: runs, True: {there: here for here, there in runs.items()}}

    def shown(self, text: str, back: bool = False) -> str:
        """Return a text as the agent sees it; `back`: one of the agent's in the environment's names."""
        if back:
            text = self._ids.shown(self._numbered(self._exchanged(text, back), back), back)
            return self._phrases.shown(text, back)
        return self._exchanged(self._numbered(self._ids.shown(self._phrases.shown(text)), back), back)

    def _numbered(self, text: str, back: bool) -> str:
        """Return a text with the numbers of slugs exchanged; their words are the environment's own here."""
        slugs = self._slugs[back]
        if not slugs:
            return text
        return _SLUG_IN_TEXT.sub(lambda match: match[1] + slugs.get(match[1], {}).get(match[2], match[2]), text)

    def _exchanged(self, text: str, back: bool) -> str:
        parts = (_ESCAPED_RUN if '"' in text else _SPLIT_RUN).split(text)
        cache = self._shown[back]
        if len(cache) > _MOST_PARTS:
            cache.clear()
        try:
            return "".join([cache[part] for part in parts])
        except KeyError:
            return "".join([self._part(part, back) for part in parts])

    def _part(self, part: str, back: bool) -> str:
        """Return what stands in the place of a part, and keep it unless it is long."""
        shown = self._shown[back].get(part)
        if shown is None:
            shown = self._run(part, back)
            if len(part) <= _LONGEST_PART:
                self._shown[back][part] = shown
        return shown

    def _is_whole(self, run: str) -> bool:
        """Whether a run is exchanged as a whole alone, so that no other run can become it."""
        return _RUN.fullmatch(run) is not None and self._run(run, False) == run and self._run(run, True) == run

    def _run(self, run: str, back: bool) -> str:
        """Return what stands in a run's place; other text stays, such as what stands between runs."""
        if not run or run[0] == "\\":
            return run
        other = self._runs[back].get(run)
        if other is not None:
            return other
        pieces = self._pieces[back]
        if run.isdigit():
            return pieces.get(run) or self._dated(run, back)
        if run.isalpha():
            return _in_place(run, pieces)
        return _PIECE.sub(lambda match: _in_place(match[0], pieces), run)

    def _dated(self, run: str, back: bool) -> str:
        """Return digits with their year moved, where they are a year or a date."""
        years = self._years_back if back else self._years
        match = None if run in years else _COMPACT.fullmatch(run)
        moved = f"{years[match[1]]}{match[2]}" if match is not None and match[1] in years else years.get(run, run)
        return run if moved in self._pieces[not back] else moved


@lru_cache(maxsize=32)
def exchange_of(classes: NameClasses, seed: int) -> NameExchange:
    """Return how a seed exchanges names, shared by its episodes."""
    return NameExchange(classes, seed)


def _in_place(piece: str, pieces: Mapping[str, str]) -> str:
    """Return what stands in a word's or number's place, written as it is."""
    small = piece.lower()
    other = pieces.get(small)
    if other is None or piece == small:
        return other or piece
    return other.upper() if piece == small.upper() else other.capitalize() if piece == small.capitalize() else piece


def _rotated(classes: Iterable[tuple[str, ...]], seed: int) -> dict[str, str]:
    """Return each name with the next of its class, in an order of the seed; a name in several classes is of the first."""
    pairs: dict[str, str] = {}
    for names in classes:
        own = sorted({name for name in names if name not in pairs})
        random.Random(canonical([seed, "exchange", own])).shuffle(own)
        pairs |= dict(zip(own, own[1:] + own[:1], strict=True))
    return pairs


def _moved_years(years: Iterable[int], seed: int) -> dict[str, str]:
    """Return years in each other's place: those of the log, and as many a multiple of the cycle away."""
    own = sorted(set(years))
    if not own or own[-1] - own[0] >= CYCLE:
        return {}
    steps = [step for step in (-2 * CYCLE, -CYCLE, CYCLE, 2 * CYCLE) if own[0] + step > 1900 and own[-1] + step <= _LATEST]
    if not steps:
        return {}
    step = random.Random(canonical([seed, "years"])).choice(steps)
    moved = {str(year): str(year + step) for year in own}
    return moved | {there: here for here, there in moved.items()}
