"""Other spellings of a chunk of text: encoded for an address on the web, or words written together.

In: a chunk. Out: how it reads, and the way back; its parts. What it does not see: base64, and other codes that no sign tells.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

_JOINT = re.compile(r"[._@+%'’-]+")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_MOST = 8
"""Parts of a chunk of which runs are looked at."""


def encoded(chunk: str) -> tuple[str, Callable[[str], str]] | None:
    """How a chunk reads that is encoded for an address on the web, and how to encode such a text again; None: it is not."""
    if "%" in chunk and _ENCODED.search(chunk):
        plus = "+" in chunk and "%20" not in chunk and "%40" not in chunk
        plain = unquote(chunk.replace("+", " ") if plus else chunk)
        return plain, lambda text: quote(text, safe="+").replace("%20", "+" if plus else "%20")
    if "+" in chunk and "@" not in chunk and chunk.replace("+", "").isalpha():
        return chunk.replace("+", " "), lambda text: text.replace(" ", "+")
    return None


def runs(chunk: str) -> Iterator[tuple[int, int]]:
    """Where runs of neighbouring parts stand in a chunk, the longest first; not the whole."""
    joints = [match.span() for match in _JOINT.finditer(chunk)]
    begins, ends = [0, *(end for _, end in joints)], [*(start for start, _ in joints), len(chunk)]
    n = len(begins)
    if 1 < n <= _MOST:
        for size in range(n - 1, 0, -1):
            for first in range(n - size + 1):
                yield begins[first], ends[first + size - 1]


def camel(word: str) -> list[str]:
    """The words that are written together in one, each with a capital: `AnnLee`."""
    cuts = [at for at in range(1, len(word)) if word[at].isupper() and word[at - 1].islower()]
    return [word[start:end] for start, end in zip([0, *cuts], [*cuts, len(word)], strict=True)]


def composed(text: str) -> str:
    """The text with letters and their accents in one sign (Unicode's form C)."""
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
