"""Canonical JSON: one text for one value, so that equal values have equal bytes and digests; and what is made of values once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from json import encoder
from typing import Any, Generic, TypeVar

V = TypeVar("V")
MOST = 16384
"""Values of which a cache keeps what was made."""


class IdentityCache(Generic[V]):
    """A function of JSON lists and objects that keeps what it made of each, by identity; all is dropped when it is too much."""

    def __init__(self, make: Callable[[Any], V]) -> None:
        self._make = make
        self._made: dict[int, tuple[Any, V]] = {}
        """Identity -> the value itself, which so lives as long, and what was made of it."""

    def __call__(self, value: Any) -> V:
        kept = self._made.get(id(value))
        if kept is None or kept[0] is not value:
            if len(self._made) >= MOST:
                self._made.clear()
            kept = self._made[id(value)] = (value, self._make(value))
        return kept[1]


def _encoding(style: dict[str, Any]) -> Callable[[Any], str]:
    """Encode as `json.dumps` does with these options. The standard library makes its encoder in C for each text; here it is
    made once, where the options are such as it takes."""
    options = json.JSONEncoder(**style)
    make = getattr(encoder, "c_make_encoder", None)
    if make is None or options.indent is not None:
        return options.encode
    texts = encoder.encode_basestring_ascii if options.ensure_ascii else encoder.encode_basestring
    encode = make(  # without a memory of what it is in: what holds itself is nested too deep
        None, options.default, texts, None, options.key_separator, options.item_separator, options.sort_keys,
        options.skipkeys, options.allow_nan)
    return lambda value: "".join(encode(value, 0))


_canonical = _encoding({"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, "allow_nan": False})
_text = encoder.encode_basestring
UNWRITABLE = (ValueError, TypeError, RecursionError)
"""What `canonical` raises of what is no JSON value."""


def canonical(value: Any) -> str:
    """JSON text of a value with sorted keys and no spaces; numbers as Python's json writes them. Raises UNWRITABLE."""
    if type(value) is dict and len(value) == 1:  # one argument that is a text, as most calls have
        ((name, text),) = value.items()
        if type(name) is str and type(text) is str:
            return f"{{{_text(name)}:{_text(text)}}}"
    return _canonical(value)


def written(value: Any) -> str | None:
    """Return the canonical text, None if there is none: a number that is not finite has none, nor what is nested too deep."""
    try:
        return canonical(value)
    except UNWRITABLE:
        return None


encoding = IdentityCache(_encoding)
"""What `json.dumps` does with these options, kept: they may not change."""


def styled(value: Any, style: dict[str, Any]) -> str:
    """JSON text of a value as `json.dumps` writes it with these options."""
    return encoding(style)(value)


def digest(text: str | bytes) -> str:
    """sha256 of the text's UTF-8 bytes, as 64 hex digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()
