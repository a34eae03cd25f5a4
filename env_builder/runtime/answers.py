"""How an answer's text is read: as JSON where it is, and as a failure where it says so.

A call counts as failed where the log flags it, or where its answer says so in the way most tools do: the text begins with
"error", a traceback, `(False, …`, an HTTP status from 400 on, or an apology that it did not work, or is a JSON object with an
`error` field, with `ok` or `success` false, or with a status from 400 on. Where the log has no flag, a short text that begins
with "invalid", "unable to" and the like, ends with "not found", or says "timed out", is a failure too. Does not see: a refusal
in other words.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

from .caching import cached

_REQUEST = frozenset(("status", "headers", "body", "detail", "message", "reason", "title", "type"))
_STATUS = "|".join(f"{status.value} {re.escape(status.phrase)}" for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST)
_FAILURE = re.compile(
    r"\s*(?:error|err\b|exception\b|traceback \(most recent|\(False,|sorry,? (?:that|this|it) (?:did not|didn't|failed)"
    rf"|HTTP(?:/[\d.]+)? [45]\d\d\b|{_STATUS})", re.IGNORECASE)
_LIKELY_FAILURE = re.compile(
    r"\s*(?:fail(?:ed|ure)\b|unable to\b|could not\b|invalid\b|(?:permission|access) denied|forbidden\b|unauthori[sz]ed\b"
    r"|not found\b)|.*\b(?:not found[.!]?\s*$|timed out\b)", re.IGNORECASE)
_LONGEST_REFUSAL = 200
"""Characters of a text that is searched for the weaker signs of a failure."""


UNKNOWN_VALUE = "\0unknown "
"""How the value of a field begins that a call changed in an unknown way; the rest tells which call did."""
_MARK = "\\u0000unknown "
"""The same in JSON text."""


def is_partial(text: str) -> bool:
    """Return whether a document's JSON text has fields whose value is unknown."""
    return _MARK in text


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


@cached(4096)
def _parsed(text: str) -> Any:
    return parse(text)


def failed(content: str, parsed: Any, flagged: bool | None = None) -> bool:
    """Did the call fail? `flagged`: the log's own word, None where it says nothing."""
    if flagged:
        return True
    if isinstance(parsed, dict):
        status = parsed.get("status")
        refused = type(status) is int and 400 <= status < 600 and parsed.keys() <= _REQUEST
        says_so = "error" in parsed or parsed.get("ok") is False or parsed.get("success") is False
        return refused or (flagged is None and says_so)
    if _FAILURE.match(content):
        return True
    return flagged is None and len(content) <= _LONGEST_REFUSAL and _LIKELY_FAILURE.match(content) is not None
