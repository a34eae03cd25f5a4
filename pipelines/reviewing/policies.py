"""The sentences of a policy that speak of a case, for a reviewer.

Input: the texts of a policy; the words of the case: the request, the tools that were called, the last words. Output: the
sentences that share the rarest words with the case, in the policy's order. Words are compared by their first letters without
a plural s, so that "accepted" meets `accept_offer`. A sentence with an English word of duty (`DUTY`) counts more.
Does not see: what a sentence means, synonyms, and duties in other languages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

MOST = 3
"""Sentences that are shown first."""
STEM = 5
"""Letters by which two words are alike."""
SHORTEST = 4
"""Letters of a word that is compared."""
DUTY = frozenset({
    "must", "only", "never", "unless", "before", "not", "no", "else", "within", "until", "always", "cannot", "most"})
"""English words of a duty or a condition."""
DUTY_WEIGHT = 1.5
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def telling_sentences(policy: Sequence[str], words: Iterable[str]) -> list[str]:
    """Return the sentences of the policy that speak of the case, at most `MOST`; none if it has no more than that."""
    parts = [each.strip(" \t-*•#") for text in policy for each in _SENTENCE.split(text)]
    sentences = list(dict.fromkeys(each for each in parts if each))
    if len(sentences) <= MOST:
        return []
    stems = [_stems(sentence) for sentence in sentences]
    counts = Counter(stem for each in stems for stem in each)
    case = {stem for text in words for stem in _stems(text)}
    values = [sum(log(len(sentences) / counts[stem]) for stem in sorted(own & case)) * _duty(sentence)
              for sentence, own in zip(sentences, stems, strict=True)]
    best = sorted(range(len(sentences)), key=lambda place: (-values[place], place))[:MOST]
    return [sentences[place] for place in sorted(best) if values[place] > 0]


def _stems(text: str) -> set[str]:
    spaced = _CAPITAL.sub(" ", text).replace("_", " ")
    return {word.casefold()[:STEM].removesuffix("s") for word in _WORD.findall(spaced) if len(word) >= SHORTEST}


def _duty(sentence: str) -> float:
    return DUTY_WEIGHT if DUTY.intersection(map(str.casefold, _WORD.findall(sentence))) else 1.0
