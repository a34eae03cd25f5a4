"""A small part of JSON Schema, enough to describe rubrics: one sentence says what is wrong.

Words: `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`, `items`, `minItems`, `maxItems`, `minLength`,
`minimum`, `maximum`. `$ref` is taken as given: its reader resolves it. Whatever a full validator takes
of such schemas, this one takes too, but for numbers that are not finite.
"""

from __future__ import annotations

import math
from typing import Any

Schema = dict[str, Any]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
    "null": (type(None),)}
MOST = 2 ** 1000
"""No number is larger: one could not be reckoned with fractions."""
BOUNDS = (("minItems", "items", True), ("maxItems", "items", False), ("minLength", "characters", True))


def is_of(value: Any, kind: str) -> bool:
    """Is the value of this JSON type? A number without a fraction is an integer."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def fields(*required: str, **properties: Schema) -> Schema:
    """Return the schema of an object with these fields and no others, the `required` ones among them."""
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": properties}


def mapping(values: Schema) -> Schema:
    """Return the schema of an object with any field names and such values."""
    return {"type": "object", "additionalProperties": values}


def refusal(schema: Schema, value: Any, at: str) -> str | None:
    """Return what is wrong with `value` at the path `at`, as a sentence without its full stop, or None."""
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
        return _size(schema, value, at) or next((reason for reason in inner if reason), None)
    if isinstance(value, str):
        return _size(schema, value, at)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not (math.isfinite(value) if isinstance(value, float) else abs(value) <= MOST):
        return f"{at} must be a finite number"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{at} must be {schema['minimum']} or more, not {value}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{at} must be {schema['maximum']} or less, not {value}"
    return None


def _object(schema: Schema, value: dict[str, Any], at: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at} has no {name!r}"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, item in value.items():
        if name not in properties and others is False:
            return f"{at} has {name!r}, which is not known; there are: {', '.join(sorted(properties))}"
        inner = properties.get(name, others)
        reason = refusal(inner, item, f"{at}.{name}") if inner else None
        if reason:
            return reason
    return None


def _size(schema: Schema, value: list[Any] | str, at: str) -> str | None:
    for word, what, least in BOUNDS:
        if word in schema and (what == "items") == isinstance(value, list):
            bound = schema[word]
            if (len(value) < bound) if least else (len(value) > bound):
                return f"{at} must have {'at least' if least else 'at most'} {bound} {what}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
