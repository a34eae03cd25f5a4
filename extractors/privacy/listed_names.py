"""Replace names and accounts of people whom a directory lists, where a value has a part of a name alone, or an account.

In: what each whole name and each account became, and values before and after pseudonymisation. Out: the values, in which a
first or last name that still stands there became that of the pseudonym, and an account is the same wherever it stands. Sees:
words with a capital that are a part of a listed name; texts that are an account; accounts of letters and digits inside texts.
Does not see: nicknames; parts that are words of every day (`May`, `Stone`), which would change what a text says. Of a part that
several people share, the pseudonym is that of one of them: always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from extractors.privacy.letters import is_plain

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ID = re.compile(r"(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]+")


class ListedNames:
    """Parts of listed names and accounts, and what they became."""

    def __init__(self, pairs: Iterable[tuple[str, str]], accounts: Mapping[str, str]) -> None:
        """`pairs`: (whole name, whole pseudonym); `accounts`: account -> its pseudonym, or itself."""
        self._accounts = {account: made for account, made in accounts.items() if account != made}
        self._parts: dict[str, str] = {}
        for name, pseudonym in sorted(pairs):
            parts, new = _WORD.findall(name), _WORD.findall(pseudonym)
            for index, part in enumerate(parts) if len(parts) == len(new) else ():
                if len(part) > 1 and part not in new and not is_plain(part.lower()):
                    self._parts.setdefault(part, new[index])

    def replaced(self, before: Any, after: Any) -> Any:
        """Return a JSON value without the names and accounts that it had before. `after`: pseudonymised, of the same shape."""
        if isinstance(before, str) and before in self._accounts:
            return self._accounts[before]
        return self._within(after, self._parts.keys() & {word for text in strings_of(before) for word in _WORD.findall(text)})

    def _within(self, value: Any, words: set[str]) -> Any:
        if isinstance(value, str):
            if value in self._accounts:
                return self._accounts[value]
            text = _ID.sub(lambda match: self._accounts.get(match[0], match[0]), value)
            return _WORD.sub(lambda match: self._parts[match[0]] if match[0] in words else match[0], text) if words else text
        if isinstance(value, list):
            return [self._within(each, words) for each in value]
        if isinstance(value, dict):
            return {self._within(key, words): self._within(each, words) for key, each in value.items()}
        return value


def strings_of(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, keys of objects included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_of(each)
