"""A keyed permutation without fixed points of any finite set, and of the texts of one shape.

In: a key, a kind, a number below n (or a text). Out: another number below n (a text of the same shape): digits become digits,
letters letters of the same case and script, everything else stays. Two have never the same image. A Feistel network over the
next power of four with cycle walking (Black and Rogaway 2002), its rounds keyed hashes; x becomes the successor of its rank, so
nothing stays itself. What it does not hide: the shape, and that equal texts are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

from extractors.privacy.letters import alphabet_of

_FORTH = range(8)
"""Rounds."""
_BACK = range(7, -1, -1)
Accept = Callable[[str], bool]


class Permutation:
    """A permutation of the numbers below n for each n and tweak."""

    def __init__(self, key: bytes, kind: str) -> None:
        self._key = hashlib.blake2b(kind.encode(), key=key[:64], digest_size=32).digest()

    def number(self, value: int, n: int, tweak: str = "") -> int:
        """The image of `value` among the numbers below n; where there is only one, itself."""
        if n < 2:
            return value
        half = max(1, ((n - 1).bit_length() + 1) // 2)
        return self._walk((self._walk(value, n, half, tweak, True) + 1) % n, n, half, tweak, False)

    def shaped(self, text: str, accept: Accept | None = None) -> str:
        """The image of a text among those of its shape; among those that `accept` takes, where it takes the text."""
        alphabets = [alphabet_of(sign, index == 0) for index, sign in enumerate(text)]
        shape = "".join(each[:1] if each else sign for each, sign in zip(alphabets, text, strict=True))
        n, value = 1, 0
        for each, sign in zip(alphabets, text, strict=True):
            if each:
                n, value = n * len(each), value * len(each) + each.index(sign)
        while True:
            value = self.number(value, n, shape)
            made = _spelled(text, alphabets, value)
            if accept is None or accept(made) or made == text:
                return made

    def _walk(self, value: int, n: int, half: int, tweak: str, forth: bool) -> int:
        while True:
            value = self._network(value, half, tweak, forth)
            if value < n:
                return value

    def _network(self, value: int, half: int, tweak: str, forth: bool) -> int:
        mask, key = (1 << half) - 1, self._key
        left, right = value >> half, value & mask
        if forth:
            for number in _FORTH:
                left, right = right, left ^ (_round(key, tweak, number, right, half) & mask)
        else:
            for number in _BACK:
                left, right = right ^ (_round(key, tweak, number, left, half) & mask), left
        return left << half | right


@lru_cache(1 << 16)
def _round(key: bytes, tweak: str, number: int, value: int, half: int) -> int:
    size = (half + 7) // 8
    told = f"{tweak}\0{number}\0{half}\0{value}".encode("utf-8", "surrogatepass")
    if size <= 64:
        return int.from_bytes(hashlib.blake2b(told, key=key, digest_size=size).digest())
    return int.from_bytes(hashlib.shake_256(key + told).digest(size))


def _spelled(text: str, alphabets: list[str], value: int) -> str:
    signs: list[str] = []
    for each, sign in zip(reversed(alphabets), reversed(text), strict=True):
        if each:
            value, index = divmod(value, len(each))
            signs.append(each[index])
        else:
            signs.append(sign)
    return "".join(reversed(signs))
