"""The owner's key: what pseudonyms and hashes of people are made with, and what is kept of the logs is sealed with.

In: the environment. Out: 32 bytes, from TRACEROOM_KEY, else from the file that TRACEROOM_KEY_FILE names, else from the file
`traceroom/key` in the user's configuration folder, which is made where there is none. It never lies beside the data: who has
the key can tell whom a pseudonym stands for, and who loses it gets other pseudonyms from the same logs.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from warehouse.errors import InputError

KEY, KEY_FILE = "TRACEROOM_KEY", "TRACEROOM_KEY_FILE"
_LEAST = 16
"""Characters that a key has at least: a shorter one can be tried out."""
_PURPOSE = b"traceroom owner key"
_MEND = f"give {_LEAST} random characters or more (openssl rand -hex 32)"


def owner_key(environ: Mapping[str, str], said: Callable[[str], None]) -> bytes:
    """The owner's key, 32 bytes. A key that is made is `said` in one sentence.

    Raises InputError where the key is too short, or its file cannot be read or made.
    """
    if given := environ.get(KEY):   # empty: as containers get what nobody set
        return _derived(given.strip(), KEY)
    if named := environ.get(KEY_FILE):
        return _derived(_read(Path(named)), named)
    path = _own_file(environ)
    if not path.exists():
        _make(path, said)
    return _derived(_read(path), str(path))


def keyed_hash(key: bytes, kind: str, text: str) -> str:
    """HMAC-SHA-256 (RFC 2104) of a text as something of this kind, 64 hexadecimal digits: without the key it says nothing, and
    the hash of one kind says nothing of the same text's hash as another."""
    return hmac.new(key, f"{kind}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _own_file(environ: Mapping[str, str]) -> Path:
    """Where a key lies that nobody named (XDG base directories)."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return (Path(folder) if folder.startswith("/") else home / ".config") / "traceroom" / "key"


def _make(path: Path, said: Callable[[str], None]) -> None:
    """A new key that only its owner can read; of two runs that make one at once, the first one's stays."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            os.link(beside, path)   # whole, or not at all
            said(f"A key for pseudonyms was made in {path}; keep it: without it the same logs give other pseudonyms.")
        except FileExistsError:
            pass
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()
    except OSError as error:
        raise InputError(f"no key can be made here ({error.strerror})", str(path), (
            f"set {KEY}, or name a file of yours by {KEY_FILE}")) from error


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"the key cannot be read ({why})", str(path), f"correct {KEY_FILE}, or set {KEY}") from error


def _derived(secret: str, where: str) -> bytes:
    if len(secret) < _LEAST:
        raise InputError(f"the key has {len(secret)} characters", where, _MEND)
    return hmac.new(_PURPOSE, secret.encode(), hashlib.sha256).digest()
