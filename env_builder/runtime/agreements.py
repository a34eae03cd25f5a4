"""Arguments of a reader that must agree with the record that another one names: a surname, a postcode, an address.

A `document` rule's `agrees` are [argument, path of the record, how it holds the argument]. A call that does not agree is not
answered by the rule: what the service says then is a refusal's matter. Sees: scalars outside lists. Does not see: what the
record does not show (a secret).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]
Agreement = tuple[str, Path, str]


def _equal(given: str, value: str) -> bool:
    return given == value


def _ends(given: str, value: str) -> bool:
    return value.endswith(given) and not value[:-len(given)][-1:].isalnum()


def _begins(given: str, value: str) -> bool:
    return value.startswith(given) and not value[len(given):][:1].isalnum()


_HOLDS = {"equal": _equal, "ends": _ends, "begins": _begins}
WAYS = ("equal", "ends", "begins", "equal_folded", "ends_folded", "begins_folded")
"""From the strictest on."""


def holds(how: str, given: Any, value: Any) -> bool:
    """Return whether a record's value holds what was given: as a whole, or with its last or first words; `_folded`: in any case
    and without blanks around."""
    one, other = str(given), str(value)
    name, folded, _ = how.partition("_folded")
    if folded:
        one, other = one.strip().casefold(), other.strip().casefold()
    return bool(one) and value is not None and _HOLDS[name](one, other)


def agree(agreements: Iterable[Sequence[Any]], arguments: Mapping[str, Any], document: Any) -> bool:
    """Return whether the arguments agree with the record."""
    return all(name in arguments and holds(how, arguments[name], _leaf(document, path)) for name, path, how in agreements)


def _leaf(document: Any, path: Iterable[str]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document
