"""What a tool was given and what it gave, out of the wrappings that tracing stores them in.

In: input and output of a tool's span, as a value or as JSON text. Out: arguments, a result. Sees Python's notation
(`{'a': None}`) in arguments, and messages of a tool (LangChain's, OpenAI's) as results. A result is kept as it was logged.
Does not see: what an object was that Python printed otherwise.
"""

from __future__ import annotations

import ast
from typing import Any

import orjson

from extractors.formats.format import Row
from extractors.formats.message_parts import loaded, told, written


def arguments(value: Any) -> Any:
    """Arguments of a tool's run: out of `{"input": …}`, and of Python's notation where it is used."""
    inner = literal(loaded(value))
    if isinstance(inner, dict) and len(inner) == 1 and isinstance(inner.get("input"), (str, dict)):
        found = literal(loaded(inner["input"]))
        return found if isinstance(found, dict) else inner
    if isinstance(inner, dict) and set(inner) == {"args", "kwargs"} and not inner["args"]:
        return inner["kwargs"]
    return inner


def result(value: Any) -> Row:
    """Result of a tool's run: `content`, and `call_id`, `is_error` where a tool's message says them."""
    inner = loaded(value)
    if isinstance(inner, dict) and len(inner) == 1 and (key := next(iter(inner))) in ("output", "result", "outputs"):
        value = inner[key]
        inner = loaded(value)
    if isinstance(inner, dict) and (inner.get("lc") == 1 or inner.get("type") == "tool" or inner.get("role") == "tool"):
        parts = told(inner, "tool")
        if len(parts) == 1 and parts[0]["kind"] == "result":
            return parts[0]
    return {"content": written(value)}


def literal(value: Any) -> Any:
    """A structure that Python's notation spells (`{'a': None}`); anything else as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        found = ast.literal_eval(value)
        orjson.dumps(found)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value
    return found if isinstance(found, (dict, list)) else value
