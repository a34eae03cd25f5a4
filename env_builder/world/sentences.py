"""The template that a tool's sentences have in common: what stands in all of them is text, what differs is read as values.

In: different answers of one tool, each of one line. Out: the pieces of `runtime.sentences`, or None. Words that stand in every
answer in one order are its frame; between them stands a value, a list of values, or what is only there now and then. A slot is
called by the words before it, so that one field has one name whatever else is there.
Sees: one frame for all answers of a tool; lists with one kind of element; parts that are left out, and parts that begin with
another word. Does not see: words in another order, and values that hold the words of the frame.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import reduce
from itertools import pairwise
from typing import Any

from env_builder.runtime.sentences import ITEM, NoSentence, Piece, names_of, needed_by, read_sentence, write_sentence

FEWEST = 5
"""Different sentences below which no template is taken."""
FEWEST_SLOTS = 2
"""Values of a sentence below which it tells of no record."""
FEWEST_WORDS = 2
"""Words that all sentences share at least."""
MOST_COMPARED = 400
LONGEST = 2000
MOSTLY = 0.95
"""Share of the sentences that the template must give back; and of those of one half, by the template of the other."""
EVEN = 0.8
"""Share of the later elements of lists that must look like first ones."""
FEW = 4
"""Ways in which a part of the sentence may go on."""
OPTIONAL = {"one_of", "flag"}
"""Fields of pieces that may stand next to a value: they begin with words of their own."""
BETWEEN = (", ", "; ", " / ", " | ")
_TOKEN = re.compile(r"\w+(?:[-.@:/'’]\w+)*|[^\w\s]")
_WORD = re.compile(r"[^\W\d_]+")


def find(texts: Iterable[str]) -> list[Piece] | None:
    """Return the template of these different answers; None where they have none, or half of them do not bear it out."""
    sentences = sorted(texts)
    if len(sentences) < FEWEST or any("\n" in text or not text or len(text) > LONGEST for text in sentences):
        return None
    pieces = _named(_mined(sentences))
    halves = (sentences[::2], sentences[1::2])
    others = [(_named(_mined(one)), other) for one, other in (halves, halves[::-1])] if len(sentences) >= 2 * FEWEST else []
    good = all(_tells(each, own) for each, own in ((pieces, sentences), *others))
    return pieces if good and pieces is not None else None


def _tells(pieces: list[Piece] | None, texts: list[str]) -> bool:
    """Return whether the template gives nearly all these sentences back, and is enough of one."""
    if pieces is None or len(names_of(pieces)) < FEWEST_SLOTS or sum(
            len(_WORD.findall(piece)) for piece in pieces if isinstance(piece, str)) < FEWEST_WORDS:
        return False
    return sum(_gives_back(pieces, text) for text in texts) >= MOSTLY * len(texts)


def _gives_back(pieces: list[Piece], text: str) -> bool:
    try:
        return write_sentence(read_sentence(text, pieces), pieces) == text
    except NoSentence:
        return False


def _mined(texts: list[str]) -> list[Piece]:
    """Return the pieces that all these texts share; slots have no names yet."""
    frame = reduce(_common, map(_tokens, texts[:: max(1, len(texts) // MOST_COMPARED)]))
    gaps = [gap for text in texts if (gap := _between(text, frame)) is not None]
    if len(gaps) < MOSTLY * len(texts):
        return [_slot(texts)]
    columns = [list(column) for column in zip(*gaps, strict=True)]
    pieces: list[Piece] = []
    for place, column in enumerate(columns):
        before, after = _edges(column)
        inner = [value[len(before): len(value) - len(after)] for value in column]
        pieces += [before, *_part(inner), after, *([frame[place]] if place < len(frame) else [])]
    return _joined(pieces)


def _tokens(text: str) -> list[str]:
    """Return the words and signs of a text that may belong to its frame: none with a digit."""
    return [token for token in _TOKEN.findall(text) if not any(map(str.isdigit, token))]


def _common(one: list[str], other: list[str]) -> list[str]:
    """Return a longest sequence of tokens that both have in this order."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) - 1, -1, -1):
        for j in range(len(other) - 1, -1, -1):
            same = one[i] == other[j]
            lengths[i][j] = lengths[i + 1][j + 1] + 1 if same else max(lengths[i + 1][j], lengths[i][j + 1])
    common, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            common.append(one[i])
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return common


def _between(text: str, frame: list[str]) -> list[str] | None:
    """Return what stands before, between and after the tokens of the frame, each at its first place but a last sign."""
    spans = [(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    gaps, end, place = [], 0, 0
    for position, token in enumerate(frame):
        if position == len(frame) - 1 and spans and spans[-1][0] == token and text.endswith(token):
            place = len(spans) - 1
        while place < len(spans) and spans[place][0] != token:
            place += 1
        if place == len(spans):
            return None
        gaps.append(text[end:spans[place][1]])
        end = spans[place][2]
        place += 1
    return [*gaps, text[end:]]


def _edges(values: list[str]) -> tuple[str, str]:
    """Return the blanks that stand before and after all the values; all of a value that is always the same."""
    if len(set(values)) == 1:
        return values[0], ""
    blanks = [value[:len(value) - len(value.lstrip())] for value in values]
    before = blanks[0] if len(set(blanks)) == 1 else ""
    ends = [value[len(before):][len(value[len(before):].rstrip()):] for value in values]
    return before, ends[0] if len(set(ends)) == 1 else ""


def _part(values: list[str]) -> list[Piece]:
    """Return what stands at one place: nothing, a list, something now and then, several ways to go on, or a value."""
    different = sorted(set(values))
    if len(different) == 1:
        return [different[0]] if different[0] else []
    return _listed(different) or _now_and_then(different) or _ways(different) or _with_tail(different) or [_slot(different)]


def _listed(values: list[str]) -> list[Piece]:
    """Return the list of which the values are, elements alike between the same signs."""
    for between in BETWEEN:
        several = [value for value in values if between in value]
        elements = sorted({element for value in several for element in value.split(between)})
        if len(several) < 2 or len(elements) < FEWEST or "" in elements or not _is_even(several, between):
            continue
        item = _mined(elements)
        if any(not isinstance(piece, str) and "one_of" in piece for piece in item) or not all(
                _gives_back(_named(item) or [], element) for element in elements):
            continue
        item = _named(item) or []
        odd = [value for value in values if not all(_gives_back(item, each) for each in value.split(between))]
        if len(odd) <= 1:
            return [{"name": "", "item": item, "between": between, "empty": odd[0] if odd else None}]
    return []


def _is_even(several: list[str], between: str) -> bool:
    """Return whether later elements look like first ones: else it is no list, but a value with something behind it."""
    firsts = {_shape(value.split(between)[0]) for value in several}
    later = [_shape(element) for value in several for element in value.split(between)[1:]]
    return sum(shape in firsts for shape in later) >= EVEN * len(later)


def _shape(text: str) -> str:
    """Return how the text is made of words, numbers and signs."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*", "a", text))


def _with_tail(values: list[str]) -> list[Piece]:
    """Return a value and the part behind it that is there or not, which begins with a word of its own."""
    counts = Counter(token for value in values for token in set(_tokens(value)) if _WORD.fullmatch(token))
    first = {token: min(value.find(token) for value in values if token in value) for token in counts}
    for token, n in sorted(counts.items(), key=lambda item: (-item[1], first[item[0]], item[0])):
        if n < FEWEST or n > len(values) - FEWEST:
            continue
        split = [re.fullmatch(rf"(.*?\w)(\W+{re.escape(token)}\b.*)", value) for value in values]
        tails = sorted({match.group(2) for match in split if match})
        heads = sorted({match.group(1) if match else value for value, match in zip(values, split, strict=True)})
        tail = _mined(tails) if tails else []
        if tail and isinstance(tail[0], str) and token in tail[0] and names_of(tail) and not any(
                token in _tokens(head) for head in heads):
            return [*_part(heads), {"one_of": [tail, []]}]
    return []


def _now_and_then(values: list[str]) -> list[Piece]:
    """Return the part that is there or not; one that is always the same is a flag."""
    if "" not in values:
        return []
    part = _mined([value for value in values if value])
    if len(part) == 1 and isinstance(part[0], str) and _WORD.search(part[0]):
        return [{"name": "", "flag": part[0]}]
    return [{"one_of": [part, []]}] if any(isinstance(piece, str) and _WORD.search(piece) for piece in part) else []


def _ways(values: list[str]) -> list[Piece]:
    """Return the ways in which the sentence goes on, by their first words; [] where those are values themselves."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for value in values:
        by_first[(_TOKEN.findall(value) or [""])[0]].append(value)
    if not 1 < len(by_first) <= FEW or any(any(map(str.isdigit, first)) for first in by_first):
        return []
    ways = [_mined(own) for _, own in sorted(by_first.items())]
    slots = Counter(len(needed_by(way)) for way in ways)
    tells = any(len(own) >= FEWEST and len(names_of(way)) > 0 and any(isinstance(piece, str) for piece in way)
                for way, (_, own) in zip(ways, sorted(by_first.items()), strict=True))
    return [{"one_of": ways}] if tells and slots[0] <= 1 else []


def _slot(values: list[str]) -> Piece:
    """Return the slot of these values: whole numbers, numbers with so many places, or texts."""
    places = {len(value.partition(".")[2]) for value in values if re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", value)}
    is_number = len(places) == 1 and all(re.fullmatch(r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?", value) for value in values)
    return {"name": "", "number": places.pop() if is_number else None}


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with texts beside each other as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    return joined


def _named(pieces: list[Piece]) -> list[Piece] | None:
    """Return the pieces with a name for each slot; None where two values stand beside each other."""
    if any(not isinstance(one, str) and not isinstance(other, str) and OPTIONAL.isdisjoint({*one, *other})
           for one, other in pairwise(pieces)):
        return None
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return [{**pieces[0], "name": ITEM}]
    return _with_names(pieces, Counter(), "")


def _with_names(pieces: list[Piece], taken: Counter[str], before: str) -> list[Piece]:
    named: list[Piece] = []
    for place, piece in enumerate(pieces):
        if isinstance(piece, str):
            named.append(piece)
            before = _words(piece) or before
            continue
        if "one_of" in piece:
            counts = [taken.copy() for _ in piece["one_of"]]
            ways = zip(piece["one_of"], counts, strict=True)
            named.append({"one_of": [_with_names(way, count, before) for way, count in ways]})
            taken = reduce(Counter.__or__, counts)
            continue
        others = [other for other in pieces[place + 1:] if isinstance(other, str)]
        following = next((words for other in others if (words := _words(other))), "")
        name = _words(piece["flag"]) if "flag" in piece else before or following or "value"
        taken[name] += 1
        named.append({**piece, "name": name if taken[name] == 1 else f"{name} {taken[name]}"})
    return named


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))


def template(texts: Iterable[str]) -> dict[str, Any] | None:
    """Return the notation of these different answers; None where they are no sentences of one template."""
    pieces = find(texts)
    return None if pieces is None else {"kind": "sentence", "pieces": pieces, "frame": ["", ""]}
