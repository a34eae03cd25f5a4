"""Seals on what is not clean: of a run, for what waits on the disk meanwhile; of the owner, for what stays."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from pipelines.keys import keyed_hash

_SEALED = b"sealed:"


@dataclass(frozen=True)
class Seal:
    """Bytes that only this process, and its workers, can read again."""

    key: bytes = field(default_factory=lambda: AESGCM.generate_key(256), repr=False)

    def shut(self, content: bytes) -> bytes:
        """Sealed bytes."""
        nonce = os.urandom(12)
        return nonce + AESGCM(self.key).encrypt(nonce, content, None)

    def opened(self, content: bytes) -> bytes:
        """What was sealed."""
        return AESGCM(self.key).decrypt(content[:12], content[12:], None)


def is_sealed(content: bytes) -> bool:
    """Whether these are bytes that an owner sealed."""
    return content.startswith(_SEALED)


class Owner:
    """The owner's key, for what stays."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._siv = AESSIV(bytes.fromhex(keyed_hash(key, "seal", "1") + keyed_hash(key, "seal", "2")))

    def shut(self, content: bytes) -> bytes:
        """Sealed bytes; of equal ones the same (RFC 5297)."""
        return _SEALED + self._siv.encrypt(content, None) if content else content

    def opened(self, content: bytes) -> bytes | None:
        """What was sealed, None where it was sealed with another key; bytes that never were come as they are."""
        if not content.startswith(_SEALED):
            return content
        try:
            return self._siv.decrypt(content[len(_SEALED):], None)
        except InvalidTag:
            return None
