"""Replace names of people whom a directory lists, where a text has a part of the name alone.

In: what each whole name became, and texts before and after pseudonymisation. Out: the texts, in which a first or last name that
still stands there became that of the pseudonym. Sees: words with a capital that are a part of a listed name. Does not see:
nicknames; parts that are words of every day (`May`, `Stone`), which would change what a text says. Of a part that several
people share, the pseudonym is that of one of them: always the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from extractors.privacy.letters import is_plain

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class ListedNames:
    """Parts of listed names, and what they became."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """`pairs`: (whole name, whole pseudonym)."""
        self._parts: dict[str, str] = {}
        for name, pseudonym in sorted(pairs):
            parts, new = _WORD.findall(name), _WORD.findall(pseudonym)
            for index, part in enumerate(parts) if len(parts) == len(new) else ():
                if len(part) > 1 and part not in new and not is_plain(part.lower()):
                    self._parts.setdefault(part, new[index])

    def replaced(self, before: str, after: str) -> str:
        """Return `after` without parts of listed names that `before` has too."""
        words = self._parts.keys() & set(_WORD.findall(before))
        if not words:
            return after
        return _WORD.sub(lambda match: self._parts[match[0]] if match[0] in words else match[0], after)
