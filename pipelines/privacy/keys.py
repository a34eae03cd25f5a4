"""The owner's key: pseudonyms and hashes of people are made with it, and stored parts of the logs are encrypted with it.

In: the environment. Out: 32 bytes, from TRACEROOM_KEY, else from the file that TRACEROOM_KEY_FILE names, else from the file
`traceroom/key` in the user's configuration folder, which is created if there is none. It is never stored beside the data: who
has the key can tell whom a pseudonym stands for, and who loses it gets other pseudonyms from the same logs. Its text states
the scheme of its pseudonyms, so warehouses keep theirs: `traceroom-key-3:` before the secret for FF1 with names that sound
alike, `traceroom-key-2:` for FF1, nothing for the first.

`Seal` and `Owner` encrypt what is not pseudonymised: of a run, for data that waits on the disk; of the owner, for what stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from extractors.privacy import Pseudonyms
from pipelines.privacy.key_file import own_key_file
from warehouse.errors import InputError

KEY, KEY_FILE = "TRACEROOM_KEY", "TRACEROOM_KEY_FILE"
_LEAST = 16
"""Length of the shortest key: a shorter one can be guessed."""
_PURPOSE = b"traceroom owner key"
_SCHEMES = {"traceroom-key-2:": 2, "traceroom-key-3:": 3}
"""What stands before a key -> the scheme of its pseudonyms; a key without it is of scheme 1."""
_NEWEST = "traceroom-key-3:"
_HINT = f"give {_LEAST} random characters or more (openssl rand -hex 32)"


class OwnerKey(NamedTuple):
    """A key, and the scheme of its pseudonyms."""

    secret: bytes
    """32 bytes."""
    scheme: int = 1
    """As `extractors.privacy.permuting` numbers them; 1: the key states none, as those made before schemes were numbered."""


def owner_key(environ: Mapping[str, str], notify: Callable[[str], None]) -> OwnerKey:
    """Read the owner's key, or make one; `notify` gets a sentence about a key that is made. Raises InputError where the key is
    too short, or its file cannot be read or made."""
    if given := environ.get(KEY):   # empty: as containers get what is not set
        return _derived(given.strip(), KEY)
    if named := environ.get(KEY_FILE):
        return _derived(_read(Path(named)), named)
    path = own_key_file(environ)
    if not path.exists():
        _make(path, notify)
    return _derived(_read(path), str(path))


def keyed_hash(key: bytes, kind: str, text: str) -> str:
    """Return the HMAC-SHA-256 (RFC 2104) of a text as something of this kind, 64 hexadecimal digits: meaningless without the
    key, and unrelated to the same text's hash as another kind."""
    return hmac.new(key, f"{kind}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _make(path: Path, notify: Callable[[str], None]) -> None:
    """Write a new key that only its owner can read; of two concurrent runs, the first one's key stays."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{_NEWEST}{secrets.token_hex(32)}\n")
        try:
            os.link(draft, path)   # whole, or not at all
            notify(f"A key for pseudonyms was created in {path}; keep it: without it the same logs give other pseudonyms.")
        except FileExistsError:
            pass
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
    except OSError as error:
        raise InputError(f"cannot create a key ({error.strerror})", str(path),
                         f"set {KEY}, or name a file of yours by {KEY_FILE}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"cannot read the key ({why})", str(path), f"correct {KEY_FILE}, or set {KEY}") from error


def _derived(text: str, where: str) -> OwnerKey:
    prefix = next((each for each in _SCHEMES if text.startswith(each)), "")
    secret = text.removeprefix(prefix)
    if len(secret) < _LEAST:
        raise InputError(f"the key has {len(secret)} characters", where, _HINT)
    return OwnerKey(hmac.new(_PURPOSE, secret.encode(), hashlib.sha256).digest(), _SCHEMES.get(prefix, 1))


_SEALED = b"sealed:"


@dataclass(frozen=True)
class Seal:
    """Encryption with a key that only this process and its workers have."""

    key: bytes = field(default_factory=lambda: AESGCM.generate_key(256), repr=False)

    def encrypt(self, content: bytes) -> bytes:
        """Encrypt bytes."""
        nonce = os.urandom(12)
        return nonce + AESGCM(self.key).encrypt(nonce, content, None)

    def decrypt(self, content: bytes) -> bytes:
        """Decrypt bytes."""
        return AESGCM(self.key).decrypt(content[:12], content[12:], None)


def is_sealed(content: bytes) -> bool:
    """Whether an owner encrypted these bytes."""
    return content.startswith(_SEALED)


class Owner:
    """Encryption with the owner's key, for data that stays."""

    def __init__(self, key: OwnerKey) -> None:
        self.key, self.scheme = key
        self._siv = AESSIV(bytes.fromhex(keyed_hash(self.key, "seal", "1") + keyed_hash(self.key, "seal", "2")))

    def pseudonyms(self) -> Pseudonyms:
        """Return the pseudonyms that this key makes."""
        return Pseudonyms(self.key, self.scheme)

    def encrypt(self, content: bytes) -> bytes:
        """Encrypt bytes; equal bytes give equal results (RFC 5297)."""
        return _SEALED + self._siv.encrypt(content, None) if content else content

    def decrypt(self, content: bytes) -> bytes | None:
        """Decrypt bytes; None if the key was another one; bytes that are not encrypted are returned as they are."""
        if not is_sealed(content):
            return content
        try:
            return self._siv.decrypt(content[len(_SEALED):], None)
        except InvalidTag:
            return None
