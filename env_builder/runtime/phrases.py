"""Exchange phrases among each other, wherever one stands as a whole: in sentences, names of links, fields and addresses.

In: classes of phrases of several words, a seed's order of each. Out: texts with each phrase in another one's place, and back.
No phrase may hold another, or end as one begins: then two of them never overlap in any text, and what was exchanged comes back
exactly. `separable` chooses those. A phrase may be written in small letters, as people search. Words may stand apart by a
space, by `+` or by `%20`, alike in the whole phrase.
Does not see: a phrase that is cut, written in other letters, or escaped in another way. A phrase whose apostrophe a snapshot
doubles is exchanged on the way to the agent alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_WORDS = re.compile(r"(?=[^ ]+ )[^\W_](?: ?[\w.,:;!?()/#'@$*=-])*(?<=[^\W_])")
"""Words that no way of writing escapes, but for the apostrophe in a quoted line of a snapshot."""
_GAPS = (" ", "+", "%20")


def is_phrase(text: str) -> bool:
    """Whether a text is several words, written with nothing that is escaped somewhere."""
    return _WORDS.fullmatch(text) is not None


def separable(phrases: Iterable[str]) -> set[str]:
    """Return phrases that neither overlap with another, nor with themselves, nor are a part of one, in small letters too: those
    with fewest conflicts first."""
    written = {phrase.lower(): phrase for phrase in sorted(phrases) if is_phrase(phrase)}
    texts = sorted(written)
    beginnings: dict[str, set[str]] = {}
    for text in texts:
        for end in range(1, len(text)):
            if not text[end].isalnum():
                beginnings.setdefault(text[:end], set()).add(text)
    conflicts: dict[str, set[str]] = {text: set() for text in texts}
    for text in texts:
        ends = (text[begin:] for begin in range(1, len(text)) if not text[begin - 1].isalnum())
        others = {other for end in ends for other in beginnings.get(end, ())}
        others |= {other for other in texts if other in text and other != text and re.search(
            rf"(?<![^\W_]){re.escape(other)}(?![^\W_])", text)}
        for other in others:
            conflicts[text].add(other)
            conflicts[other].add(text)
    kept: set[str] = set()
    for text in sorted(texts, key=lambda each: (len(conflicts[each]), each)):
        if text not in conflicts[text] and conflicts[text].isdisjoint(kept):
            kept.add(text)
    return {written[text] for text in kept}


def _in_small_letters(pairs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the phrases with capitals in small letters, each with the next one of those."""
    for phrase in pairs:
        if phrase != phrase.lower():
            other = pairs[phrase]
            while other == other.lower():
                other = pairs[other]
            yield phrase.lower(), other.lower()


def _any_of(phrases: Iterable[str]) -> str:
    """Return a pattern of phrases in all ways of writing, by first letter and first word: it is soon done where none begins."""
    by_letter: dict[str, dict[str, list[str]]] = {}
    for phrase in sorted(phrases):
        word, _, rest = phrase.partition(" ")
        by_letter.setdefault(word[0], {}).setdefault(word[1:], []).append(rest)
    letters = []
    for letter, words in by_letter.items():
        ways = [f"{_written(word)}(?:{'|'.join(_written(gap + rest.replace(' ', gap)) for rest in rests for gap in _GAPS)})"
                for word, rests in words.items()]
        letters.append(f"{re.escape(letter)}(?:{'|'.join(ways)})")
    return f"(?:{'|'.join(letters)})"


def _written(text: str) -> str:
    return re.escape(text).replace("'", "'{1,2}")


class PhraseExchange:
    """How one seed exchanges phrases."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        """`pairs`: phrase -> the one in its place, a permutation of separable phrases."""
        pairs = dict(_in_small_letters(pairs)) | dict(pairs)
        self._pairs = {False: pairs, True: {there: here for here, there in pairs.items()}}
        self._pattern = re.compile(rf"(?:(?<![^\W_])|(?<=\\[nrt])|(?<=%20)){_any_of(pairs)}(?![^\W_])") if pairs else None

    def shown(self, text: str, back: bool = False) -> str:
        """Return a text as the agent sees it; `back`: as the environment has it."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._other(match[0], back) if "''" not in match[0] else self._quoted(
            match[0], back), text)

    def _quoted(self, written: str, back: bool) -> str:
        """Return a phrase with apostrophes as a quoted line of a snapshot has it; what comes back has none of those."""
        return written if back else self._other(written.replace("''", "'"), back).replace("'", "''")

    def _other(self, written: str, back: bool) -> str:
        gap = next(each for each in _GAPS if each in written)
        return self._pairs[back][written.replace(gap, " ")].replace(" ", gap)
