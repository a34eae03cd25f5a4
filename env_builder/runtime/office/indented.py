"""Write JSON with an indent of two, as Python's `json.dumps(value, indent=2, ensure_ascii=False)` does, in half the time.

In: a JSON value of objects with text as keys, lists, text, numbers, booleans and None. Out: its text.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

_CONSTANTS = {None: "null", True: "true", False: "false"}


def indented_json(value: Any) -> str:
    """Return a JSON value as indented text."""
    return _written(value, "\n")


def _written(value: Any, line: str) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or value is True or value is False:
        return _CONSTANTS[value]
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = line + "  "
        return "{" + inner + ("," + inner).join(
            [f"{encode_basestring(name)}: {_written(each, inner)}" for name, each in value.items()]) + line + "}"
    if isinstance(value, list | tuple):
        inner = line + "  "
        return "[" + inner + ("," + inner).join([_written(each, inner) for each in value]) + line + "]" if value else "[]"
    return json.dumps(value)
