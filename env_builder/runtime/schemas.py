"""A small part of JSON Schema, enough to describe rubrics: one sentence says what is wrong.

Words: `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`, `items`, `minItems`, `maxItems`, `minLength`,
`minimum`, `maximum`. `$ref` is taken as given: what it stands for is read by whoever meets it. Whatever a full validator takes
of such schemas, this one takes too, but for numbers that are not finite.
"""

from __future__ import annotations

import math
from typing import Any

from .validation import is_of

Schema = dict[str, Any]
BOUNDS = (("minItems", "items", True), ("maxItems", "items", False), ("minLength", "characters", True))


def fields(*required: str, **properties: Schema) -> Schema:
    """Schema of an object with these fields and no others, the `required` ones among them."""
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": properties}


def mapping(values: Schema) -> Schema:
    """Schema of an object whatever its fields' names, with such values."""
    return {"type": "object", "additionalProperties": values}


def refusal(schema: Schema, value: Any, at: str) -> str | None:
    """What is wrong with `value`, found at `at`, as a sentence without its full stop; None where nothing is."""
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds
    if named and not any(is_of(value, kind) for kind in named):
        return f"{at} must be {' or '.join(named)}, not {_shown(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} is {_shown(value)}; there are: {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        return _object(schema, value, at)
    if isinstance(value, list):
        items = schema.get("items") or {}
        inner = (refusal(items, item, f"{at}[{index}]") for index, item in enumerate(value if items else ()))
        return _size(schema, value, at) or next((found for found in inner if found), None)
    if isinstance(value, str):
        return _size(schema, value, at)
    return _number(schema, value, at)


def _object(schema: Schema, value: dict[str, Any], at: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at} has no {name!r}"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, item in value.items():
        if name not in known and others is False:
            return f"{at} has {name!r}, which is not known; there are: {', '.join(sorted(known))}"
        inner = known.get(name, others)
        found = refusal(inner, item, f"{at}.{name}") if inner else None
        if found:
            return found
    return None


def _size(schema: Schema, value: list[Any] | str, at: str) -> str | None:
    for word, what, least in BOUNDS:
        if word in schema and (what == "items") == isinstance(value, list):
            bound = schema[word]
            if (len(value) < bound) if least else (len(value) > bound):
                return f"{at} must have {'at least' if least else 'at most'} {bound} {what}"
    return None


def _number(schema: Schema, value: Any, at: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f"{at} must be a finite number"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{at} must be {schema['minimum']} or more, not {value}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{at} must be {schema['maximum']} or less, not {value}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
