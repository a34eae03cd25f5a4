"""Permute finite sets and texts of one shape with a key, without fixed points.

Input: a key, a kind, and a number below n or a text. Output: another number below n, or a text of the same shape: digits
become digits, letters letters of the same case and script, everything else stays. No two have the same image. A cipher over
the next power of two with cycle walking (Black and Rogaway 2002) gives each number a rank; its image is the number of the
next rank, so nothing stays itself. Does not hide the shape, and that equal texts are equal.

Scheme 2 takes FF1 of NIST SP 800-38G on the AES of `cryptography` as the cipher, the method of the standard that remains:
NIST withdrew FF3. Scheme 3 is the same, and its words sound alike (`sounds`). Scheme 1, of keys that were made before, takes
a Feistel network of keyed hashes. In a domain of few values (the revision of the standard asks for a million) guessing is
easy with any cipher."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from extractors.privacy.letters import alphabet_of

SCHEMES = (1, 2, 3)
_NETWORK_ROUNDS = 8
Accept = Callable[[str], bool]
Alphabet = Callable[[str, bool], str]
"""A character, and whether it is the first, to the characters that may replace it."""


class Permutation:
    """A permutation of the numbers below n for each n and tweak."""

    def __init__(self, key: bytes, kind: str, scheme: int = SCHEMES[-1]) -> None:
        own = hashlib.blake2b(kind.encode(), key=key[:64], digest_size=32).digest()
        self._cipher = FF1(own, 2) if scheme > 1 else _HashedNetwork(own)
        self._step = 1 if scheme > 1 else 2
        """A length is a multiple of it: the halves of the network are equally long."""

    def number(self, value: int, n: int, tweak: str = "") -> int:
        """Give the image of `value` among the numbers below n; if there is only one, itself."""
        if n < 2:
            return value
        length = max(2, -(-(n - 1).bit_length() // self._step) * self._step)
        given = tweak.encode("utf-8", "surrogatepass")
        rank = self._cipher.encrypt(value, length, given)
        while rank >= n:
            rank = self._cipher.encrypt(rank, length, given)
        image = self._cipher.decrypt((rank + 1) % n, length, given)
        while image >= n:
            image = self._cipher.decrypt(image, length, given)
        return image

    def shaped(self, text: str, accept: Accept | None = None, alphabet: Alphabet = alphabet_of) -> str:
        """Return the image of a text among those of its shape; among those that `accept` takes, where it takes the text."""
        alphabets = [alphabet(sign, index == 0) for index, sign in enumerate(text)]
        shape = "".join(each[:1] if each else sign for each, sign in zip(alphabets, text, strict=True))
        n, value = 1, 0
        for each, sign in zip(alphabets, text, strict=True):
            if each:
                n, value = n * len(each), value * len(each) + each.index(sign)
        while True:
            value = self.number(value, n, shape)
            made, rest = list(text), value
            for at in reversed(range(len(text))):
                if alphabets[at]:
                    rest, index = divmod(rest, len(alphabets[at]))
                    made[at] = alphabets[at][index]
            image = "".join(made)
            if accept is None or accept(image) or image == text:
                return image


class _HashedNetwork:
    """Scheme 1: a Feistel network, its rounds keyed BLAKE2 hashes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, value: int, length: int, tweak: bytes) -> int:
        half = length // 2
        high, low = value >> half, value & (1 << half) - 1
        for number in range(_NETWORK_ROUNDS):
            high, low = low, high ^ _hashed_round(self._key, tweak, number, low, half)
        return high << half | low

    def decrypt(self, value: int, length: int, tweak: bytes) -> int:
        half = length // 2
        high, low = value >> half, value & (1 << half) - 1
        for number in reversed(range(_NETWORK_ROUNDS)):
            high, low = low ^ _hashed_round(self._key, tweak, number, high, half), high
        return high << half | low


@lru_cache(1 << 16)
def _hashed_round(key: bytes, tweak: bytes, number: int, value: int, half: int) -> int:
    size = (half + 7) // 8
    message = tweak + f"\0{number}\0{half}\0{value}".encode()
    digest = hashlib.blake2b(message, key=key, digest_size=size).digest() if size <= 64 else \
        hashlib.shake_256(key + message).digest(size)
    return int.from_bytes(digest, "big") & (1 << half) - 1


_ROUNDS = 10


class _Shared(NamedTuple):
    """What the rounds of one length and tweak share."""

    sizes: tuple[int, int]
    """Values below which the left and the right half are."""
    mac: int
    """CBC-MAC over the whole blocks that are the same in all rounds."""
    rest: bytes
    """What is the same after these blocks."""
    n_bytes: int
    n_out: int
    """Sizes of a half and of what a round makes of it."""


class FF1:
    """FF1 with one key (16, 24 or 32 bytes) and radix (2 to 65536).

    A numeral string over the radix is handled as the number that it spells, the first numeral most significant."""

    def __init__(self, key: bytes, radix: int) -> None:
        self._aes = Cipher(algorithms.AES(key), modes.ECB()).encryptor()   # of single blocks: the CBC-MAC is made here
        self._radix = radix
        self._prepared = lru_cache(1 << 10)(self._prepare)

    def encrypt(self, value: int, length: int, tweak: bytes = b"") -> int:
        """Encrypt the numeral string of this length (at least 2) that spells `value`."""
        shared = self._prepared(length, tweak)
        sizes = shared.sizes
        a, b = divmod(value, sizes[1])
        for number in range(_ROUNDS):
            a, b = b, (a + self._round(number, b, shared)) % sizes[number % 2]
        return a * sizes[1] + b

    def decrypt(self, value: int, length: int, tweak: bytes = b"") -> int:
        shared = self._prepared(length, tweak)
        sizes = shared.sizes
        a, b = divmod(value, sizes[1])
        for number in reversed(range(_ROUNDS)):
            a, b = (b - self._round(number, a, shared)) % sizes[number % 2], a
        return a * sizes[1] + b

    def _prepare(self, length: int, tweak: bytes) -> _Shared:
        sizes = self._radix ** (length // 2), self._radix ** (length - length // 2)
        n_bytes = ((sizes[1] - 1).bit_length() + 7) // 8
        same = bytes((1, 2, 1)) + self._radix.to_bytes(3, "big") + bytes((_ROUNDS, length // 2 % 256))
        same += length.to_bytes(4, "big") + len(tweak).to_bytes(4, "big") + tweak + bytes((-len(tweak) - n_bytes - 1) % 16)
        whole = len(same) // 16 * 16
        return _Shared(sizes, self._mac(0, same[:whole]), same[whole:], n_bytes, 4 * ((n_bytes + 3) // 4) + 4)

    def _round(self, number: int, half: int, shared: _Shared) -> int:
        """Return what a round adds (steps 6.i to 6.iv), made from the half that stays."""
        mac = self._mac(shared.mac, shared.rest + bytes((number,)) + half.to_bytes(shared.n_bytes, "big"))
        out = mac.to_bytes(16, "big")
        for count in range(1, (shared.n_out + 15) // 16):
            out += self._aes.update((mac ^ count).to_bytes(16, "big"))
        return int.from_bytes(out[:shared.n_out], "big")

    def _mac(self, mac: int, blocks: bytes) -> int:
        for at in range(0, len(blocks), 16):
            mac = int.from_bytes(self._aes.update((mac ^ int.from_bytes(blocks[at:at + 16], "big")).to_bytes(16, "big")), "big")
        return mac
