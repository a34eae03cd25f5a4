"""Messages that lie flat in attributes, one value a key (`prefix.0.content`, `prefix.0.tool_calls.1.name`), to nested values.

Indices sort as numbers. Sees JSON text inside contents where it is a list of typed parts.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import Row


def nested(flat: Row) -> Any:
    """Values by dotted path as objects in objects; objects whose keys are all numbers become lists."""
    root: Row = {}
    for path, value in flat.items():
        place = root
        *heads, last = path.split(".")
        for head in heads:
            inner = place.get(head)
            if not isinstance(inner, dict):
                inner = place[head] = {}
            place = inner
        place[last] = expanded(value)
    return _with_lists(root)


def expanded(value: Any) -> Any:
    """The value with dotted keys of objects inside it taken apart."""
    if isinstance(value, list):
        return [expanded(each) for each in value]
    if isinstance(value, dict):
        return nested(value)
    return value


def listed(value: Any) -> list[Any]:
    """A list as it is, None as an empty one, anything else as the only element."""
    return value if isinstance(value, list) else [] if value is None or value == {} else [value]


def typed_parts(content: Any) -> Any:
    """The list of parts that a content holds as JSON text, else the content."""
    if isinstance(content, str) and content.startswith("[{") and content.rstrip().endswith("}]"):
        try:
            found = orjson.loads(content)
        except orjson.JSONDecodeError:
            return content
        if all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in found):
            return found
    return content


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return [_with_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _with_lists(each) for key, each in value.items()}
