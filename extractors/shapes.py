"""What the values at one path of many records look like: times, ids, words for roles, long text, JSON objects …

In: records (or elements of lists in them). Out: `Column`s. Sees values alone; `extractors.proposing` weighs the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from extractors.formats.chat import text
from extractors.formats.instants import microseconds
from extractors.formats.mapped_words import FINE, kind_of, role_of
from extractors.formats.scope import opened

_SINCE, _UNTIL = 946_684_800_000_000, 4_102_444_800_000_000
_MOST_COLUMNS, _DEEP = 300, 6
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,79}")
_ID = re.compile(r"[^\s{}\[\]]{1,100}")
_FLAGS = frozenset(("true", "false", "yes", "no", "y", "n", "0", "1", "t", "f"))
_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
_FAILING = frozenset(("error", "err", "failed", "failure", "fail", "timeout", "timed_out", "denied", "rejected", "exception",
                      "cancelled", "canceled", "aborted", "ko", "not_ok", "invalid"))
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass
class Column:
    """The values at one path."""

    path: str
    n_items: int
    held: dict[int, Any] = field(default_factory=dict)
    """Values that are there and not empty, by item."""

    @cached_property
    def values(self) -> list[Any]:
        """Values in order of the items."""
        return list(self.held.values())

    @property
    def depth(self) -> int:
        """How deep it lies in the value that holds it."""
        return self.path.replace("^.", "").count(".")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of its name, in small letters, without those of what holds it."""
        return words_of(self.path.rpartition(".")[2])

    @cached_property
    def outer_words(self) -> tuple[str, ...]:
        """Words of the names of what holds it."""
        return words_of(self.path.rpartition(".")[0])

    @cached_property
    def presence(self) -> float:
        """Share of the items that have it."""
        return len(self.held) / max(self.n_items, 1)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each value comes."""
        return Counter(each if isinstance(each, str) else orjson.dumps(each, default=str).decode() for each in self.values)

    @cached_property
    def repeats(self) -> bool:
        """Whether values come again."""
        return len(self.counts) < len(self.values)

    @cached_property
    def is_outer(self) -> bool:
        """Whether it stands around the items, not in them."""
        return self.path.startswith("^.")

    def share(self, test: Callable[[Any], bool]) -> float:
        """Share of the values for which `test` holds; 0 where there are none."""
        return sum(map(test, self.values)) / len(self.values) if self.values else 0.0

    @cached_property
    def is_text(self) -> bool:
        """Whether all values are text."""
        return bool(self.values) and all(isinstance(each, str) for each in self.values)

    @cached_property
    def mean_words(self) -> float:
        """Words a value, of text that spells no JSON."""
        texts = [str(text(each)[0]) if isinstance(each, list) else each for each in self.values
                 if isinstance(each, (str, list) if self.is_parts else str) and each[:1] not in ("{", "[")]
        return sum(len(each.split()) for each in texts) / len(texts) if texts else 0.0

    @cached_property
    def is_time(self) -> bool:
        """Whether nearly all values are instants of our age."""
        return bool(self.values) and self.share(_is_time) >= 0.9

    @cached_property
    def is_scalar_id(self) -> bool:
        """Whether nearly all values could be ids: short, without spaces, no times, no fractions."""
        return not self.is_time and self.share(_is_id) >= 0.95

    @cached_property
    def is_objects(self) -> bool:
        """Whether most values are objects, or text that spells one."""
        return self.share(lambda each: isinstance(opened(each), dict)) >= 0.7

    @cached_property
    def is_names(self) -> bool:
        """Whether nearly all values look like names of functions."""
        return self.share(lambda each: isinstance(each, str) and _NAME.fullmatch(each) is not None) >= 0.9

    @cached_property
    def is_flag(self) -> bool:
        """Whether all values are true or false, in one notation or another."""
        return self.share(lambda each: str(each).lower() in _FLAGS) == 1

    @cached_property
    def is_parts(self) -> bool:
        """Whether most values are lists of parts that say something."""
        return self.share(lambda each: isinstance(each, list) and any(
            isinstance(part, dict) and isinstance(part.get("text"), str) for part in each)) > 0.5

    @cached_property
    def is_number(self) -> bool:
        """Whether all values are numbers, or text that spells them."""
        return bool(self.values) and all(_number(each) is not None for each in self.values)

    @cached_property
    def mean(self) -> float:
        """Mean of the numbers."""
        numbers = [number for each in self.values if (number := _number(each)) is not None]
        return sum(numbers) / len(numbers) if numbers else 0.0

    @cached_property
    def is_status(self) -> bool:
        """Whether the values are words for how something went, or numbers of HTTP."""
        return self.share(_is_status_word) >= 0.8 or self.is_http_status

    @cached_property
    def is_http_status(self) -> bool:
        """Whether the values are status codes of HTTP."""
        return self.is_number and self.share(lambda each: 100 <= (_number(each) or 0) < 600) == 1

    @cached_property
    def is_methods(self) -> bool:
        """Whether the values are methods of HTTP."""
        return self.share(lambda each: isinstance(each, str) and each.upper() in _METHODS) >= 0.9

    @cached_property
    def is_targets(self) -> bool:
        """Whether the values are paths or addresses."""
        return self.share(lambda each: isinstance(each, str) and re.match(r"/|https?://", each) is not None) >= 0.9

    @cached_property
    def role_share(self) -> float:
        """Share of the values that are words for a role."""
        return self.share(lambda each: isinstance(each, str) and role_of(each, {}) is not None)

    @cached_property
    def kind_share(self) -> float:
        """Share of the values that are words for a kind of record."""
        return self.share(lambda each: isinstance(each, str) and kind_of(each, {}) is not None)


def words_of(name: str) -> tuple[str, ...]:
    """Words of a name: `userSaid_at` is user, said, at."""
    return tuple(each.lower() for each in _PARTS.findall(name))


def columns(items: Iterable[tuple[Any, ...]]) -> list[Column]:
    """Columns of items; each is a value and those around it, innermost first. Of what is around, scalars alone count."""
    taken = list(items)
    found: dict[str, Column] = {}
    for number, values in enumerate(taken):
        for level, value in enumerate(values):
            _collect("^." * level, "", value, number, len(taken), found, 0)
    return list(found.values())


def _collect(prefix: str, path: str, value: Any, number: int, n_items: int, found: dict[str, Column], depth: int) -> None:
    if path:
        if value in (None, ""):
            return
        if prefix and isinstance(value, (dict, list)):
            pass
        elif (key := prefix + path) in found or len(found) < _MOST_COLUMNS:
            found.setdefault(key, Column(key, n_items)).held.setdefault(number, value)
    inner = opened(value)
    if isinstance(inner, dict) and depth < _DEEP:
        for key, each in inner.items():
            _collect(prefix, f"{path}.{key}" if path else str(key), each, number, n_items, found, depth + 1)
    elif not path and not isinstance(inner, list) and inner is not None:
        found.setdefault(f"{prefix}.", Column(f"{prefix}.", n_items)).held[number] = inner


def is_yes(word: str) -> bool:
    """Whether a flag in words is set."""
    return word.lower() in ("true", "yes", "y", "1", "t")


def _is_time(value: Any) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 9.4e8:
        return False
    if isinstance(value, str) and value.isdecimal() and len(value) < 9:
        return False
    instant = microseconds(value)
    return instant is not None and _SINCE < instant < _UNTIL


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return _ID.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _is_status_word(value: Any) -> bool:
    return isinstance(value, str) and (value.strip().lower() in FINE or value.strip().lower() in _FAILING)
