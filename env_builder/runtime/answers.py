"""How an answer's text is read: as JSON where it is, and as a failure where it says so.

A call counts as failed where the log flags it, or where its answer says so in the way most tools do: the text begins with
"error", the name of an exception and a colon, a traceback, `(False, …`, an HTTP status from 400 on, or an apology that it did
not work, or is a JSON object with an `error` that is not empty, with `ok` or `success` false, with a status or code from 400
on, with the status "error" and a message, or with `errors` and no data, or it is a list or an XML element of an error alone.
Where the log has no flag, a short text that begins with "invalid", "unable to" and the like, ends with "not found", or says
"timed out", is a failure too. Does not see: a refusal in other words.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

from .caching import cached

_REQUEST = frozenset((
    "status", "headers", "body", "detail", "message", "reason", "title", "type", "code", "statusCode", "status_code", "errors",
    "data", "meta", "jsonapi", "instance"))
"""Fields of an answer that tells how a request went, and of no record."""
_NAMED = frozenset(("err", "fault", "exception", "failure"))
"""Fields that say beside fields of `_REQUEST` alone that a call failed."""
_CODES = "status", "code", "statusCode", "status_code"
_WHY = frozenset(("message", "detail", "reason", "errors"))
_REFUSED = frozenset(("error", "fail", "failure"))
_STATUS = "|".join(f"{status.value} {re.escape(status.phrase)}" for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST)
_FAILURE = re.compile(
    r"\s*(?:<?error|err\b|<?exception\b|<fault\b|[A-Za-z_.]+(?:Error|Exception)\s?:"
    r"|traceback \(most recent|\(False,|sorry,? (?:that|this|it) (?:did not|didn't|failed)"
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
        return _request_failed(parsed) or (flagged is None and _says_so(parsed))
    if isinstance(parsed, list):
        return flagged is None and len(parsed) == 1 and _is_refusal(parsed[0])
    if _FAILURE.match(content):
        return True
    return flagged is None and len(content) <= _LONGEST_REFUSAL and _LIKELY_FAILURE.match(content) is not None


def _request_failed(answer: dict[str, Any]) -> bool:
    """Return whether an object that tells of nothing but a request has a status from 400 on."""
    codes = (answer.get(name) for name in _CODES if name == "status" or not _WHY.isdisjoint(answer))
    return answer.keys() <= _REQUEST and any(type(code) is int and 400 <= code < 600 for code in codes)


def _says_so(answer: dict[str, Any]) -> bool:
    """Return whether an object says that the call failed."""
    if answer.get("error") or answer.get("ok") is False or answer.get("success") is False:
        return True
    if any(answer.get(name) for name in _NAMED) and answer.keys() <= _REQUEST | _NAMED:
        return True
    if not answer.keys() <= _REQUEST or answer.get("data"):
        return False
    status = answer.get("status")
    return bool(answer.get("errors")) or (len(answer) > 1 and isinstance(status, str) and status.lower() in _REFUSED)


def _is_refusal(element: Any) -> bool:
    """Return whether the only element of a list says that the call failed."""
    return _says_so(element) if isinstance(element, dict) else isinstance(element, str) and _FAILURE.match(element) is not None
