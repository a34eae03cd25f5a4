"""Pieces of work in, what most of them agree on out, and which of them break it: how far each did what it was asked.

Asks that use the same words are one kind of work. Where at least four of a kind show it, and four of five others agree, these
are laws: that a kind of form is posted or a file taken; that the ask names the entity of the form, or the value
that is set; that the month asked for is that of the folder; that all that the list offered was taken, that what was filed is
what is listed in the note, after the last file was moved. A piece that breaks a law of its kind did not do what it was asked;
one that breaks none did, unless somebody complained. Without an ask, or without a kind, nothing is judged. Where logs hold no
asks at all, work that did the same is of one kind: then a whole piece of work is a goal of its own (`is_whole`).
Does not see: values that no ask names, whether a law is right where most do it wrong, an answer that is wrong in words alone.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from env_builder.runtime.clock import MONTHS
from env_builder.site.work import PieceOfWork

LEAST, SHARE = 4, 0.8
"""So many pieces of a kind must show a law, and so large a share of the others must agree."""
_ALIKE = 0.35
"""Asks less alike than this (cosine of rare words) are of no common kind."""
_NEAREST = 3
_LEAST_WEIGHT = 0.05
"""What a word weighs that stands in asks of all kinds alike."""
_MENTION = re.compile(r"<?@[\w.-]+>?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MONTHS = {name: number for number, month in enumerate(MONTHS, 1)
           for name in (month.casefold(), month[:3].casefold(), month[:4].casefold())}
_MONTH_IN_WORDS = re.compile(rf"(?i)\b({'|'.join(_MONTHS)})\.?(?: +\d{{1,2}}(?:st|nd|rd|th)?)?,? +(\d{{4}})\b")
_MONTH_IN_NUMBERS = re.compile(r"(?<!\d)(\d{4})[-/_.](0[1-9]|1[0-2])(?!\d)")
_NUMBERED = re.compile(r"[^\W\d_]+(\d+)")
_DAY_FIRST = re.compile(rf"(?i)(?<!\d)(\d{{1,2}})(?:st|nd|rd|th)?\s+({'|'.join(_MONTHS)})\.?,?\s+(\d{{4}})(?!\d)")
_MONTH_FIRST = re.compile(rf"(?i)\b({'|'.join(_MONTHS)})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})(?!\d)")
_DAY_IN_NUMBERS = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_COMPLAINT = re.compile(
    r"(?i)\b(wrong|missing|not (right|correct|what)|isn'?t|didn'?t|(check|look|try) again|please (check|fix|redo))\b")
Law = tuple[str, ...]


class WorkVerdict(NamedTuple):
    """How far a piece of work did what it was asked."""

    is_right: bool | None
    """None: nothing tells."""
    kind: int | None
    """Number of its kind of work."""
    broken: tuple[Law, ...]
    n_laws: int
    complaint: bool

    @property
    def is_whole(self) -> bool:
        """Return whether it did all that its kind of work does, without a complaint: what it did is a goal of its own."""
        return self.kind is not None and not self.broken and not self.complaint


class WorkKinds:
    """Kinds of work and their laws."""

    def __init__(self, pieces: Sequence[PieceOfWork]) -> None:
        self.pieces = list(pieces)
        self._facts = _facts_of(self.pieces)
        self.kinds = self._kinds()

    def verdicts(self) -> list[WorkVerdict]:
        """Return a verdict for each piece, judged by the others."""
        members: dict[int, list[int]] = defaultdict(list)
        for index, kind in enumerate(self.kinds):
            if kind is not None:
                members[kind].append(index)
        return [self._verdict(index, kind, members.get(kind, []) if kind is not None else [])
                for index, kind in enumerate(self.kinds)]

    def _verdict(self, index: int, kind: int | None, members: Sequence[int]) -> WorkVerdict:
        piece = self.pieces[index]
        complaint = any(_COMPLAINT.search(reply.text) for reply in piece.replies)
        if kind is None:
            return WorkVerdict(None, None, (), 0, complaint)
        others = [self._facts[other] for other in members if other != index]
        laws = [law for law in sorted({law for facts in others for law in facts}) if _holds(law, others)]
        own = self._facts[index]
        broken = tuple(law for law in laws if not own.get(law, law[0] != "does"))
        is_right = False if broken else None if complaint or not laws or piece.ask is None else True
        return WorkVerdict(is_right, kind, broken, len(laws), complaint)

    def _kinds(self) -> list[int | None]:
        """Return the number of the kind of each piece: with an ask by what most of the alike did, else by what it did."""
        with_ask = [index for index, piece in enumerate(self.pieces) if piece.ask is not None]
        has_asks = len(with_ask) >= LEAST
        did = _signatures({index: facts for index, facts in enumerate(self._facts)
                           if not has_asks or self.pieces[index].ask is not None})
        numbers = {signature: number for number, (signature, n) in enumerate(sorted(
            Counter(did.values()).items(), key=lambda item: (-item[1], sorted(item[0])))) if n >= LEAST and signature}
        kinds: list[int | None] = [None] * len(self.pieces)
        if not has_asks:
            return [numbers.get(did[index]) for index in range(len(self.pieces))]
        vectors = _vectors([_words(piece) for piece in self.pieces],
                           [numbers.get(did[index]) if index in did else None for index in range(len(self.pieces))])
        for index in with_ask:
            scores: dict[int, list[float]] = defaultdict(list)
            for other in with_ask:
                number = numbers.get(did[other])
                if other != index and number is not None:
                    scores[number].append(_cosine(vectors[index], vectors[other]))
            best = {number: sum(sorted(each)[-_NEAREST:]) / _NEAREST for number, each in scores.items()}
            number = max(best, key=lambda each: (best[each], -each), default=None)
            if number is not None and best[number] >= _ALIKE:
                kinds[index] = number
        return kinds


def _holds(law: Law, others: Sequence[Mapping[Law, bool]]) -> bool:
    values = [facts[law] for facts in others if law in facts]
    n = len(others) if law[0] == "does" else len(values)
    return len(values) >= LEAST and sum(values) >= SHARE * n


def _facts_of(pieces: Sequence[PieceOfWork]) -> list[dict[Law, bool]]:
    common = _common_labels(pieces)
    return [dict(_facts(piece, common)) for piece in pieces]


def _facts(piece: PieceOfWork, common: Mapping[str, frozenset[str]]) -> Iterator[tuple[Law, bool]]:
    """Yield what may be a law, and whether this piece keeps it."""
    ask = _MENTION.sub(" ", piece.ask.text).casefold() if piece.ask is not None else None
    kinds = [write.kind for write in piece.writes] + [f"take {each.route}" for each in piece.downloads]
    yield from ((("does", kind), True) for kind in dict.fromkeys(kinds))
    for kind in dict.fromkeys(write.kind for write in piece.writes):
        writes = [write for write in piece.writes if write.kind == kind]
        if ask is not None and writes[0].entity:
            yield ("asked", kind, "entity"), all(_is_named(ask, {
                *map(_number_behind, write.entity), *write.entity, *(write.labels - common.get(kind, frozenset()))})
                for write in writes)
        for name in sorted({name for write in writes for name in write.values}):
            if writes[0].is_update:
                yield ("does", kind, name), True
            if ask is not None:
                yield ("asked", kind, name), _is_named(
                    ask, {writes[-1].values.get(name, ""), writes[-1].choices.get(name, "")})
    if piece.downloads:
        yield from _filing(piece, ask)
    if piece.filed and piece.notes:
        names = sorted(path.rpartition("/")[2] for path in piece.filed)
        text = "\n".join(note.text for note in piece.notes)
        yield ("listed",), all(name in text for name in names) and len(_listed(text, names)) == len(names)
        yield ("listed last",), piece.last_filed_at is None or piece.notes[-1].at >= piece.last_filed_at


def _filing(piece: PieceOfWork, ask: str | None) -> Iterator[tuple[Law, bool]]:
    months = set(months_in(ask or ""))
    taken = {each.entity for each in piece.downloads if each.entity}
    offered = {entity: set(months_in(words)) for each in piece.downloads for entity, words in each.offered.items()}
    if taken and offered:
        is_dated = months and all(offered.values())
        yield ("all taken",), taken == {entity for entity, own in offered.items() if not is_dated or own & months}
    saved = [each for each in piece.downloads if each.saved]
    if saved:
        yield ("does", "file"), any(each.filed for each in saved)
        filed = [each for each in saved if each.filed]
        yield ("named",), all(part in (each.filed or "").rpartition("/")[2] for each in filed for part in each.entity)
    folders = {path.rpartition("/")[0] for path in piece.filed}
    if months and folders:
        of_folders = [set(months_in(folder)) for folder in folders]
        if any(of_folders):
            yield ("month", "folder"), all(each == months for each in of_folders)
        of_names = [set(months_in(path.rpartition("/")[2])) for path in piece.filed]
        if any(of_names):
            yield ("month", "name"), all(each == months for each in of_names)
    urls = [piece.session.requests[each.request_index].url for each in piece.downloads]
    of_urls = [each for url in urls if (each := set(months_in(url)))]
    if months and of_urls:
        yield ("month", "address"), all(each == months for each in of_urls)


def _number_behind(entity: str) -> str:
    """Return the number of a name such as `card12`, an empty text of others: people ask for card 12."""
    match = _NUMBERED.fullmatch(entity)
    return match[1] if match else ""


def _listed(text: str, names: Sequence[str]) -> set[str]:
    """Return words of a text that end as the names of files do."""
    endings = {name.rpartition(".")[2].casefold() for name in names if "." in name}
    words = (word.strip(".,;:()`*'\"") for word in text.split())
    return {word for word in words if "." in word and word.rpartition(".")[2].casefold() in endings}


def months_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield (year, month) of months that a text names, in words (English) or numbers."""
    for word, year in _MONTH_IN_WORDS.findall(text):
        yield int(year), _MONTHS[word.casefold()]
    for year, month in _MONTH_IN_NUMBERS.findall(text):
        yield int(year), int(month)


def days_in(text: str) -> set[date]:
    """Return the days that a text names, in English words or as ISO days."""
    days = [(int(year), _MONTHS[word.casefold()[:3]], int(day)) for day, word, year in _DAY_FIRST.findall(text)]
    days += [(int(year), _MONTHS[word.casefold()[:3]], int(day)) for word, day, year in _MONTH_FIRST.findall(text)]
    days += [(int(year), int(month), int(day)) for year, month, day in _DAY_IN_NUMBERS.findall(text)]
    return {date(year, month, day) for year, month, day in days
            if year and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]}


def _is_named(ask: str, names: Iterable[str]) -> bool:
    return any(name and re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", ask) for name in names)


def _common_labels(pieces: Sequence[PieceOfWork]) -> dict[str, frozenset[str]]:
    """Return for each kind of form the labels that several entities share: they name none of them."""
    entities: dict[str, dict[str, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
    for piece in pieces:
        for write in piece.writes:
            for label in write.labels:
                entities[write.kind][label].add(write.entity)
    return {kind: frozenset(label for label, entities in labels.items() if len(entities) > 1)
            for kind, labels in entities.items()}


def _words(piece: PieceOfWork) -> Counter[str]:
    if piece.ask is None:
        return Counter()
    return Counter(word.casefold() for word in _WORD.findall(_MENTION.sub(" ", piece.ask.text)))


def _vectors(bags: Sequence[Counter[str]], kinds: Sequence[int | None]) -> list[dict[str, float]]:
    """Return unit vectors of words that several asks have; those count most of which asks of few kinds are made.

    So what is asked for weighs more than what it is about: titles and names stand in asks of all kinds."""
    spread = Counter(word for bag in bags for word in bag)
    total = Counter(kind for kind in kinds if kind is not None)
    of_word: dict[str, Counter[int]] = defaultdict(Counter)
    for bag, kind in zip(bags, kinds, strict=True):
        if kind is not None:
            for word in bag:
                of_word[word][kind] += 1
    weights = {word: math.log(1 + len(bags) / n) * _weight(of_word[word], total) for word, n in spread.items() if n >= _NEAREST}
    vectors = []
    for bag in bags:
        vector = {word: weights[word] for word in bag if word in weights}
        norm = math.sqrt(sum(value * value for value in vector.values())) or 1.0
        vectors.append({word: value / norm for word, value in vector.items()})
    return vectors


def _weight(counts: Counter[int], total: Counter[int]) -> float:
    """Return how much a word tells of the kind: the divergence of its kinds from all, each counted as if met a little more."""
    n, n_all = counts.total(), max(total.total(), 1)
    shares = [((counts[kind] + n_of / n_all) / (n + 1), n_of / n_all) for kind, n_of in total.items()]
    return _LEAST_WEIGHT + sum(share * math.log(share / expected) for share, expected in shares)


def _signatures(facts: Mapping[int, Mapping[Law, bool]]) -> dict[int, frozenset[Law]]:
    """Return what each piece did: with the fields that it changed, where enough pieces changed the same, else without."""
    full = {index: frozenset(law for law in each if law[0] == "does") for index, each in facts.items()}
    n = Counter(full.values())
    return {index: each if n[each] >= LEAST else frozenset(law for law in each if len(law) == 2)
            for index, each in full.items()}


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(value * other[word] for word, value in one.items() if word in other)
