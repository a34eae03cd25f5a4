"""Find values that stand in one record with somebody's address, and the addresses of logs.

In: texts with an e-mail address: JSON (also inside strings of JSON) as a tree, anything else by what is written around the
address. Out: (field, value, local part of the address). A record is an object, with the objects that it holds directly. Does
not see: a value and an address in different rows or columns of one text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from extractors.privacy.fields import EMAIL

_AROUND = 300
"""Characters before and after an address in which its record is looked for, where a text is no JSON."""
_DEEPEST = 12
_LONGEST = 60


class Neighbour(NamedTuple):
    """A value in one record with an address."""

    field: str
    value: str
    local: str


def beside_addresses(text: str, read: Callable[[str], Iterator[tuple[str, str]]]) -> Iterator[Neighbour]:
    """Yield what stands beside the addresses in a text; `read` reads the fields of one that is no JSON."""
    begins = text.lstrip()[:1]
    if begins in ("{", "["):
        try:
            yield from _in_tree(orjson.loads(text), 0)
            return
        except orjson.JSONDecodeError:
            pass
    for match in EMAIL.finditer(text):
        around = text[max(0, match.start() - _AROUND):match.end() + _AROUND]
        start, end = match.start() - max(0, match.start() - _AROUND), len(around)
        opened = max(around.rfind("{", 0, start), around.rfind("\n\n", 0, start), -1)
        closed = min((at for at in (around.find("}", start), around.find("\n\n", start)) if at >= 0), default=end)
        for field, value in read(around[opened + 1:closed + 1]):
            if _is_short(value):
                yield Neighbour(field, value, match[0].partition("@")[0])


def _in_tree(node: Any, depth: int) -> Iterator[Neighbour]:
    if depth > _DEEPEST:
        return
    if isinstance(node, dict):
        strings = list(_strings(node))
        emails = [value.strip() for _, value in strings if "@" in value and EMAIL.fullmatch(value.strip())]
        for email in emails[:3]:
            for field, value in strings:
                if _is_short(value):
                    yield Neighbour(field, value, email.partition("@")[0])
        for value in node.values():
            yield from _in_tree(value, depth + 1)
    elif isinstance(node, list):
        for value in node:
            yield from _in_tree(value, depth + 1)
    elif isinstance(node, str) and "@" in node and node.lstrip()[:1] in ("{", "["):
        try:
            yield from _in_tree(orjson.loads(node), depth + 1)
        except orjson.JSONDecodeError:
            return


def _strings(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of an object, and of those that it holds."""
    for field, value in node.items():
        if isinstance(value, str):
            yield field, value
        elif isinstance(value, list):
            yield from ((field, each) for each in value if isinstance(each, str))
        elif isinstance(value, dict):
            for inner, each in value.items():
                if isinstance(each, str):
                    yield (f"{field} {inner}" if inner in ("name", "full") else inner), each


def _is_short(value: str) -> bool:
    return 1 < len(value) <= _LONGEST and "@" not in value
