"""Arguments that a tool's declared schema forbids: a `validate` rule, as data.

    required    arguments that must be given
    types       argument -> JSON types that it may have (integer is a number too)
    values      argument -> the values that it may have
    messages    [{kind, names, pieces, form, numbers}, …]: how the tool words such a refusal; `names`: of which arguments that
                was seen, null: of any. `pieces` as of a `text` rule, over `name`, `value`, `expected` and `tool`

Where arguments break the schema in a way whose wording was never seen, or in several ways at once, nobody knows: no rule
answers. A null is not judged: it is often as good as nothing.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .linked import Untold
from .texts import filled

Schema = dict[str, Any]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
    "null": (type(None),)}
KINDS = ("required", "types", "values")


class Broken(NamedTuple):
    """One thing that the schema forbids."""

    kind: str
    name: str
    value: Any
    expected: str


def broken(schema: Schema, arguments: dict[str, Any]) -> list[Broken]:
    """All that the schema forbids in these arguments."""
    found = [Broken("required", name, None, "") for name in schema["required"] if name not in arguments]
    for name in sorted(arguments):
        value = arguments[name]
        if value is None:
            continue
        if name in schema["types"] and not any(is_of(value, kind) for kind in schema["types"][name]):
            found.append(Broken("types", name, value, " or ".join(schema["types"][name])))
        elif name in schema["values"] and value not in schema["values"][name]:
            found.append(Broken("values", name, value, ", ".join(map(str, schema["values"][name]))))
    return found


def is_of(value: Any, kind: str) -> bool:
    """Is the value of this JSON type? A number without a fraction is an integer."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def slots(one: Broken, tool: str) -> dict[str, Any]:
    """What the tool's words may repeat."""
    value = one.value if isinstance(one.value, str) else json.dumps(one.value)
    return {"name": one.name, "value": value, "expected": one.expected, "tool": tool}


def invalid(rule: Schema, tool: str, arguments: dict[str, Any]) -> str | None:
    """The tool's words where the arguments break its schema, None where they do not. Raises Untold."""
    found = broken(rule, arguments)
    if not found:
        return None
    for message in rule["messages"] if len(found) == 1 else ():
        if message["kind"] == found[0].kind and (message["names"] is None or found[0].name in message["names"]):
            text = filled(message, {}, slots(found[0], tool))
            if text is not None:
                return text
    raise Untold
