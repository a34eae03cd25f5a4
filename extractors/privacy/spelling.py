"""Names that are misspelt: a rare word within one edit of a name that is known in the same session.

In: a text, and names of five letters or more. Out: the text with the name's pseudonym in the word's place. One edit: a letter
more, less or other, or two that changed places (Damerau 1964). Candidates by deletions (Garbe's SymSpell). What it does not
see: two mistakes in one word; short names.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

from extractors.privacy.pseudonyms import Pseudonyms

LEAST = 5
_WORD = re.compile(r"[^\W\d_]{4,}")


def mended(text: str, names: frozenset[str], rare: Set[str], pseudonyms: Pseudonyms) -> str:
    """The text with its misspelt names replaced."""
    near = _near(names)
    if not near or rare.isdisjoint(_WORD.findall(text.lower())):
        return text

    def replaced(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word not in rare or near.get(word) == word:
            return found[0]
        name = next((near[each] for each in (word, *_shorter(word)) if each in near and _is_one_edit(word, near[each])), None)
        return pseudonyms.word(name if found[0].islower() else name.upper() if found[0].isupper() else name.title()
                               ) if name else found[0]

    return _WORD.sub(replaced, text)


@lru_cache(1 << 8)   # the names of a session are asked for with each of its texts
def _near(names: frozenset[str]) -> dict[str, str]:
    """Names, and what is left of them without one letter -> the name."""
    near: dict[str, str] = {}
    for name in sorted(names):
        if len(name) >= LEAST:
            for each in (name, *_shorter(name)):
                near.setdefault(each, name)
    return near


def _shorter(word: str) -> list[str]:
    return [word[:at] + word[at + 1:] for at in range(len(word))]


def _is_one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[at:], other[at:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
