"""Describe the values at one path of many records: times, ids, roles, long text, JSON objects, and the name's meaning.

Input: records, or elements of lists in them. Output: `Column`s, whether a column may be one of our fields, and points for it.
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
from extractors.formats.values import opened

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
class RecordColumn:
    """The values at one path."""

    path: str
    n_items: int
    by_item: dict[int, Any] = field(default_factory=dict)
    """Values that are there and not empty, by item."""

    @cached_property
    def values(self) -> list[Any]:
        return list(self.by_item.values())

    @property
    def depth(self) -> int:
        return self.path.replace("^.", "").count(".")

    @cached_property
    def words(self) -> tuple[str, ...]:
        return words_of(self.path.rpartition(".")[2])

    @cached_property
    def outer_words(self) -> tuple[str, ...]:
        return words_of(self.path.rpartition(".")[0])

    @cached_property
    def presence(self) -> float:
        return len(self.by_item) / max(self.n_items, 1)

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(each if isinstance(each, str) else orjson.dumps(each, default=str).decode() for each in self.values)

    @cached_property
    def repeats(self) -> bool:
        return len(self.counts) < len(self.values)

    @cached_property
    def is_outer(self) -> bool:
        return self.path.startswith("^.")

    def share(self, test: Callable[[Any], bool]) -> float:
        return sum(map(test, self.values)) / len(self.values) if self.values else 0.0

    @cached_property
    def is_text(self) -> bool:
        return bool(self.values) and all(isinstance(each, str) for each in self.values)

    @cached_property
    def mean_words(self) -> float:
        """Words a value, of text that spells no JSON."""
        texts = [str(text(each)[0]) if isinstance(each, list) else each for each in self.values
                 if isinstance(each, (str, list) if self.is_parts else str) and each[:1] not in ("{", "[")]
        return sum(len(each.split()) for each in texts) / len(texts) if texts else 0.0

    @cached_property
    def is_time(self) -> bool:
        return bool(self.values) and self.share(_is_time) >= 0.9

    @cached_property
    def is_scalar_id(self) -> bool:
        """Whether nearly all values could be ids: short, without spaces, no times, no fractions."""
        return not self.is_time and self.share(lambda each: _ID.fullmatch(each) is not None if isinstance(each, str) else
                                               isinstance(each, int) and not isinstance(each, bool)) >= 0.95

    @cached_property
    def is_objects(self) -> bool:
        return self.share(lambda each: isinstance(opened(each), dict)) >= 0.7

    @cached_property
    def is_short(self) -> bool:
        """Whether nearly all values are as short as a name or an id."""
        return self.share(lambda each: isinstance(each, int) or (
            isinstance(each, str) and len(each) <= 60 and len(each.split()) <= 3)) >= 0.95

    @cached_property
    def is_names(self) -> bool:
        return self.share(lambda each: isinstance(each, str) and _NAME.fullmatch(each) is not None) >= 0.9

    @cached_property
    def is_flag(self) -> bool:
        return self.share(lambda each: str(each).lower() in _FLAGS) == 1

    @cached_property
    def is_parts(self) -> bool:
        """Whether most values are lists of parts that say something."""
        return self.share(lambda each: isinstance(each, list) and any(
            isinstance(part, dict) and isinstance(part.get("text"), str) for part in each)) > 0.5

    @cached_property
    def is_number(self) -> bool:
        return bool(self.values) and all(_number(each) is not None for each in self.values)

    @cached_property
    def mean(self) -> float:
        numbers = [number for each in self.values if (number := _number(each)) is not None]
        return sum(numbers) / len(numbers) if numbers else 0.0

    @cached_property
    def is_status(self) -> bool:
        """Whether the values are words for how something went, or numbers of HTTP."""
        return self.is_http_status or self.share(
            lambda each: isinstance(each, str) and (each.strip().lower() in FINE or each.strip().lower() in _FAILING)) >= 0.8

    @cached_property
    def is_http_status(self) -> bool:
        return self.is_number and self.share(lambda each: 100 <= (_number(each) or 0) < 600) == 1

    @cached_property
    def is_methods(self) -> bool:
        return self.share(lambda each: isinstance(each, str) and each.upper() in _METHODS) >= 0.9

    @cached_property
    def is_targets(self) -> bool:
        return self.share(lambda each: isinstance(each, str) and re.match(r"/|https?://", each) is not None) >= 0.9

    @cached_property
    def role_share(self) -> float:
        return self.share(lambda each: isinstance(each, str) and role_of(each, {}) is not None)

    @cached_property
    def kind_share(self) -> float:
        return self.share(lambda each: isinstance(each, str) and kind_of(each, {}) is not None)


def words_of(name: str) -> tuple[str, ...]:
    """Words of a name: `userSaid_at` is user, said, at."""
    return tuple(each.lower() for each in _PARTS.findall(name))


def columns(items: Iterable[tuple[Any, ...]]) -> list[RecordColumn]:
    """Columns of items; each is a value and those around it, innermost first. Of what is around, scalars alone count."""
    taken = list(items)
    by_path: dict[str, RecordColumn] = {}

    def collect(prefix: str, path: str, value: Any, number: int, depth: int) -> None:
        if path:
            if value in (None, ""):
                return
            is_held = prefix + path in by_path or len(by_path) < _MOST_COLUMNS
            if is_held and not (prefix and isinstance(value, (dict, list))):
                column = by_path.setdefault(prefix + path, RecordColumn(prefix + path, len(taken)))
                column.by_item.setdefault(number, value)
        inner = opened(value)
        if isinstance(inner, dict) and depth < _DEEP:
            for key, each in inner.items():
                collect(prefix, f"{path}.{key}" if path else str(key), each, number, depth + 1)
        elif not path and not isinstance(inner, list) and inner is not None:
            by_path.setdefault(f"{prefix}.", RecordColumn(f"{prefix}.", len(taken))).by_item[number] = inner

    for number, values in enumerate(taken):
        for level, value in enumerate(values):
            collect("^." * level, "", value, number, 0)
    return list(by_path.values())


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


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None
