"""Canonical JSON: one text for one value, so that equal things have equal bytes and digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from json import encoder
from typing import Any

from .kept import Kept


def _encoding(style: dict[str, Any]) -> Callable[[Any], str]:
    """What `json.dumps` does with these options. The standard library makes its encoder in C anew for each text; here it is
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


canonical = _encoding({"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, "allow_nan": False})
"""JSON text of a value with sorted keys and no spaces; numbers as Python's json writes them."""

_STYLED = Kept(_encoding)


def written(value: Any) -> str | None:
    """The same, None where it cannot be written: a number that is not finite cannot, nor what is nested too deep."""
    try:
        return canonical(value)
    except (ValueError, TypeError, RecursionError):
        return None


def styled(value: Any, style: dict[str, Any]) -> str:
    """JSON text of a value as `json.dumps` writes it with these options; a style's encoder is kept: it may not change."""
    return _STYLED(style)(value)


def digest(text: str | bytes) -> str:
    """sha256 of the text's UTF-8 bytes, as 64 hex digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()
