"""Tokens of a server's clients: those that its environment lists, or those of a file as it is now.

In: `TRACEROOM_SERVE_TOKENS`, or the file that `TRACEROOM_SERVE_TOKENS_FILE` names, one token a line. Out: the number of the
client that a token is of. A file is read again when it has changed, so a token is added or withdrawn while the server runs: a
withdrawn one is refused from the next request on. A file that cannot be read, or that holds a token that is too short or none,
changes nothing, and the server says so once: a file that is just being written opens and closes nothing.

Imports the standard library, and of ours only modules that do so too.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from warehouse.errors import InputError

TOKENS, TOKENS_FILE = "TRACEROOM_SERVE_TOKENS", "TRACEROOM_SERVE_TOKENS_FILE"
LEAST_TOKEN = 16
"""Characters of a token that somebody chose."""
_Version = tuple[int, int, int]


class ClientTokens:
    """Tokens of clients; none: a request needs no token."""

    def __init__(self, tokens: Sequence[str] = (), file: str | None = None) -> None:
        """InputError if a token is too short, or the file cannot be read or has no token."""
        self.file = file
        self._is_drawn = False
        self._numbers: dict[str, int] = {}
        """Every token that there has been -> its client's number, which no other one gets."""
        self._version = _version_of(file) if file else None
        self._tokens = self._numbered(_tokens_in(file) if file else _checked(tokens, TOKENS))

    @classmethod
    def of_environment(cls) -> Self:
        """Return those that the environment's variables give."""
        if file := os.environ.get(TOKENS_FILE):
            return cls(file=str(Path(file).absolute()))
        return cls([token for token in map(str.strip, os.environ.get(TOKENS, "").split(",")) if token])

    @classmethod
    def drawn(cls) -> Self:
        """Return one new token."""
        made = cls([secrets.token_urlsafe()])
        made._is_drawn = True
        return made

    def for_clients(self) -> str:
        """Describe what clients send: a token that was drawn here, as nobody else has it, or where the others are."""
        return self.values[0] if self._is_drawn else f"TOKEN, one of {self.file or TOKENS}"

    @property
    def values(self) -> tuple[str, ...]:
        """Tokens that are valid now."""
        if self.file and (version := _version_of(self.file)) != self._version:
            self._version = version
            try:
                self._tokens = self._numbered(_tokens_in(self.file))
                print(f"{len(self._tokens)} tokens were read from {self.file}", file=sys.stderr, flush=True)
            except InputError as error:
                print(f"{error} (the tokens stay as they were)", file=sys.stderr, flush=True)
        return self._tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def client(self, token: bytes) -> int | None:
        """Return the number of the client whose token it is, None if it is nobody's; each is compared, so that time tells
        nothing."""
        values = self.values
        matches = [hmac.compare_digest(token, own.encode()) for own in values]
        return self._numbers[values[matches.index(True)]] if any(matches) else None

    def _numbered(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        for token in tokens:
            self._numbers.setdefault(token, len(self._numbers))
        return tokens


def _version_of(file: str) -> _Version | None:
    try:
        stat = os.stat(file)  # noqa: PTH116  each request asks; a path object takes three times as long
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _tokens_in(file: str) -> tuple[str, ...]:
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text"
        raise InputError(f"the file of tokens cannot be read ({reason})", file, f"correct {TOKENS_FILE}") from error
    tokens = tuple(dict.fromkeys(token for token in map(str.strip, lines) if token))
    if not tokens:
        raise InputError("the file has no token", file, "write one token a line")
    return _checked(tokens, file)


def _checked(tokens: Sequence[str], where: str) -> tuple[str, ...]:
    short = next((token for token in tokens if len(token) < LEAST_TOKEN or not token.isascii()), None)
    if short is not None:
        raise InputError(f"a token has {len(short)} characters", where,
                         f"choose tokens of {LEAST_TOKEN} ASCII characters or more")
    return tuple(tokens)
