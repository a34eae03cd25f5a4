"""End states: what an episode changed, in a form that can be compared.

In: a difference {"documents": {name: JSON text or None}, "acts": [[tool, canonical arguments]]}.
Out: (documents by their meaning, acts counted), and what one end state lacks of another.
Sees: values, not the order of keys or of writes, and not how a number was written (1 is 1.0).
Does not see: arguments of acts that a rubric masks because they are free text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .canonical import canonical

EndState = tuple[dict[str, str | None], Mapping[tuple[str, str], int]]


def end_state(difference: Mapping[str, Any], parameters: Mapping[str, Any]) -> EndState:
    """Documents by name in a normal form, acts counted.

    Of `parameters`: "masked" (tool -> names of arguments that do not count), "aside" (tools that change nothing that
    counts: notes and hand-overs).
    """
    masked, aside = parameters.get("masked", {}), parameters.get("aside", ())
    documents = {name: _meaning(text) for name, text in difference.get("documents", {}).items()}
    made = [(tool, arguments) for tool, arguments in difference.get("acts", ()) if tool not in aside]
    return documents, Counter((tool, _masked(arguments, tuple(masked.get(tool, ())))) for tool, arguments in made)


def unreached(wanted: EndState, found: EndState) -> list[list[str]]:
    """What of `wanted` is not in `found`: names of documents, and acts with their arguments, sorted."""
    documents = [["document", name] for name, value in wanted[0].items()
                 if name not in found[0] or found[0][name] != value]
    acts = [["act", tool, arguments] for (tool, arguments), times in wanted[1].items()
            if found[1].get((tool, arguments), 0) < times]
    return sorted(documents) + sorted(acts)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    if type(one) is type(other) and isinstance(one, str | int):
        return bool(one == other)
    return canonical(_plain(one)) == canonical(_plain(other))


@lru_cache(maxsize=4096)
def _masked(arguments: str, names: tuple[str, ...]) -> str:
    if not names:
        return _meaning(arguments) or ""
    value = json.loads(arguments)
    return canonical(_plain({name: part for name, part in value.items() if name not in names}))


@lru_cache(maxsize=4096)
def _meaning(text: str | None) -> str | None:
    """One text for all JSON texts of one value; what is no JSON stands for itself."""
    if text is None:
        return None
    try:
        return canonical(_plain(json.loads(text)))
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    """`value` with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
