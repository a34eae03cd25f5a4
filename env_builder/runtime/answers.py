"""How an answer's text is read: as JSON where it is, and as a failure where it says so.

A call counts as failed where the log flags it, or where its answer says so in the way most tools do: the text begins with
"error", or is a JSON object with an `error` field, or a request's answer {"status", "body"} with a status from 400 on.
Does not see: a refusal in other words.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

_REQUEST = frozenset(("status", "headers", "body"))


def parse(content: str) -> Any:
    """Return the content as JSON object or list, or None."""
    if content[:1] not in ("{", "["):
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


class Document(str):
    """The text of a document of the world, which is parsed once: every caller gets the same value."""

    __slots__ = ("_value",)
    _value: Any

    @classmethod
    def of(cls, text: str, value: Any) -> Document:
        document = cls(text)
        document._value = value
        return document

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Elsewhere it is a text like any other."""
        return str, (str(self),)

    @property
    def value(self) -> Any:
        """Return the JSON object or list, or None; callers must not change it."""
        try:
            return self._value
        except AttributeError:
            self._value = parse(self)
            return self._value


def parsed(text: str) -> Any:
    """Parse the text, or return the cached value: every caller gets the same one, so none may change it."""
    return text.value if type(text) is Document else _parsed(text)


@lru_cache(4096)
def _parsed(text: str) -> Any:
    return parse(text)


def failed(content: str, parsed: Any, flagged: bool | None = None) -> bool:
    """Did the call fail? `flagged`: the log's own word, None where it says nothing."""
    if flagged is not None:
        return flagged
    if isinstance(parsed, dict):
        status = parsed.get("status")
        return "error" in parsed or (type(status) is int and 400 <= status < 600 and parsed.keys() <= _REQUEST)
    return content[:5].lower() == "error"
