"""What else stands for a person: values of their own record that are nobody else's.

In: the warehouse and the identifier that was given. Out: e-mail addresses and telephone numbers of the documents that are kept
under the identifier, and their name with the numbers of the same document (a post code, a birthday): who is called so and has
one of these numbers is taken for the person. A name alone is not: others have it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from extractors.privacy.fields import kind_of_field
from warehouse.store import Store

_MAIL = re.compile(r"[^\s\"'<>@,;]+@[^\s\"'<>@,;]+\.[a-z]{2,}", re.IGNORECASE)
_PHONE = re.compile(r"\+?\(?\d[\d ().-]{6,}\d")
_NAMED = re.compile(r"name", re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,}(?:-\d+)*")

_DOCUMENTS = """
    select distinct value from mart.facts where lower(key) in (select unnest($keys))
    union select coalesce(after, before) from core.row_changes
    where lower(json_extract_string(coalesce(key, after, before), '$.*')[1]) in (select unnest($keys))
"""
"""Of rows that changed the key, or where none is logged the first column, tells whose they are."""
_ELSEWHERE = """
    select 1 from mart.facts where contains(value, $value) and not list_has_any([lower(key)], $keys)
    and not exists (select 1 from unnest($keys) as known(each) where contains(lower(value), each))
    and entity_class in (select entity_class from mart.facts where lower(key) in (select unnest($keys))) limit 1
"""


class Known(NamedTuple):
    """What the person's own documents tell."""

    values: list[str]
    """E-mail addresses and telephone numbers, sorted."""
    names: list[str]
    """Words of their name, in lower case; all of them are needed."""
    numbers: list[str]
    """Numbers that go with the name."""

    def speaks(self, text: str) -> bool:
        """Does a text have the whole name and one of the numbers?"""
        words = set(re.findall(r"[^\W_]+", text.lower()))
        return len(self.names) > 1 and words.issuperset(self.names) and any(
            re.search(rf"(?<!\w){re.escape(number)}(?!\w)", text) for number in self.numbers)


def known_of(store: Store, forms: list[str]) -> Known:
    """What the documents under the person's identifier tell, in whatever form it is stored."""
    rows = store.read(_DOCUMENTS, keys=[form.lower() for form in forms])
    values, names, numbers = set[str](), dict[str, None](), dict[str, None]()
    for text in rows["value"].drop_nulls().sort():
        for path, leaf in _leaves(_document(text)):
            if _MAIL.fullmatch(leaf) or _is_phone(path, leaf):
                values.add(leaf)
            elif _NAMED.search(path) and path.count("/") <= 2 and re.fullmatch(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*", leaf):
                names |= dict.fromkeys(re.findall(r"[^\W_]+", leaf.lower()))
            elif _NUMBER.fullmatch(leaf):
                numbers[leaf] = None
    shared = _of_others(store, [form.lower() for form in forms], values)
    return Known(sorted(values - shared), list(names), list(numbers))


def _is_phone(path: str, leaf: str) -> bool:
    """A telephone number by its field, or by the sign before it: a date or a price has as many digits."""
    says = kind_of_field(path.rpartition("/")[2]) == "phone" or leaf.startswith(("+", "("))
    return says and _PHONE.fullmatch(leaf) is not None and sum(map(str.isdigit, leaf)) >= 8


def _of_others(store: Store, keys: list[str], values: set[str]) -> set[str]:
    """Values that another document of the same class has too: a family's number, an address of a whole office."""
    return {value for value in values if store.read(_ELSEWHERE, keys=keys, value=value).height}


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, text) of what a document holds, not of the things in its lists: those may be other people."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}/{key}")
    elif isinstance(value, str):
        yield path, value
