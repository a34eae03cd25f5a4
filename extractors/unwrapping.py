"""Steps from a value of a file to the records inside it: what is under a key, in text, in cells, in typed values.

In: a JSON value. Out: the values inside it, none where the step does not fit it. Facts of an envelope (session, user, service,
trace, time) go with the record, where it states none of the kind.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from extractors.content import Records, head_of, records_of
from extractors.formats.envelope import IDENTITY, SERVICE, SESSION, TIME, TRACE
from extractors.formats.instants import microseconds
from extractors.formats.values import parsed_json
from extractors.notations import Unparsed

_STATIC = (SESSION, TRACE, SERVICE, IDENTITY)
_TIME_NAME = re.compile(r"time|date|^ts$|_ts$|_at$|created|^at$|[a-z]At$", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_OTHER_TIME = re.compile(r"updat|modif|expir|delet|ingest|valid|export|start|end|dur|out|zone", re.IGNORECASE)
"""Names of times that are not when a record was written."""
_MOST_VALUES = 5000
"""Values that are looked through for a notation."""
_DEEPEST_TIME = 3
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+(?:[eE][+-]?\d+)?)?")
_NAMES = ("id", "version")
"""Ends of columns' names whose numbers count nothing."""
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
_MEMBER_LAYOUTS = ("lines", "document", "table")
_DATE, _LONGS, _REALS = "$date", ("$numberInt", "$numberLong"), ("$numberDouble", "$numberDecimal")
_TEXTS = ("$oid", "$uuid", "$symbol", "$minKey", "$maxKey")
_ATTRIBUTES = frozenset(("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"))


def spelled(value: Any) -> Any:
    """Return an object or a list as it is, or as text or base64 of text spells it; None for anything else."""
    if isinstance(value, dict | list):
        return value
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text[:1] in ("{", "["):
        inner = parsed_json(text)
        return inner if isinstance(inner, dict | list) else None
    if _BASE64.fullmatch(text) and len(text) % 4 == 0:
        try:
            content = base64.b64decode(text, validate=True)
        except binascii.Error:
            return None
        return spelled(content) if content.lstrip()[:1] in (b"{", b"[") else None
    return None


class Step(ABC):
    """One step inwards."""

    @property
    def is_many(self) -> bool:
        """Whether one value may hold several."""
        return False

    @property
    def description(self) -> str:
        """Say what the step opens, for people; empty where nobody asks."""
        return ""

    @abstractmethod
    def apply(self, value: Any) -> list[Any]:
        """Return the values inside one; none where the step does not fit it."""


@dataclass(frozen=True)
class Under(Step):
    """What an object holds under a key: an object, or each element of a list."""

    key: str
    has_lists: bool = False

    @property
    def is_many(self) -> bool:
        return self.has_lists

    def facts_of(self, value: dict[str, Any], name: str) -> tuple[str, ...]:
        """Return what a field beside the key is read as: a fact of the records that do not state it, or nothing."""
        inner = spelled(value.get(self.key))
        records = [inner] if isinstance(inner, dict) else inner or []
        return ("a fact of its records",) if any(
            _facts({name: value[name]}, each, isinstance(inner, dict)) for each in records if isinstance(each, dict)) else ()

    def apply(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            return []
        inner = spelled(value.get(self.key))
        around = {name: each for name, each in value.items() if name != self.key}
        if isinstance(inner, dict):
            return [_with_facts(around, inner, with_time=True)]
        return [_with_facts(around, _object(each), with_time=False) for each in inner or ()]


@dataclass(frozen=True)
class Elements(Step):
    """The elements of a list."""

    @property
    def is_many(self) -> bool:
        return True

    def apply(self, value: Any) -> list[Any]:
        return [_object(each) for each in value] if isinstance(value, list) else []


@dataclass(frozen=True)
class Each(Step):
    """The elements of all lists that an object holds: a list for each partition, say."""

    @property
    def is_many(self) -> bool:
        return True

    @staticmethod
    def fits(value: dict[str, Any]) -> bool:
        """Return whether an object holds lists of objects with the same keys, and nothing else."""
        firsts = [each[0] for each in value.values() if isinstance(each, list) and each and isinstance(each[0], dict)]
        return len(firsts) == len(value) and all(each.keys() == firsts[0].keys() for each in firsts)

    def apply(self, value: Any) -> list[Any]:
        lists = value.values() if isinstance(value, dict) else ()
        return [each for inner in lists if isinstance(inner, list) for each in inner]


@dataclass(frozen=True)
class Entries(Step):
    """The objects that an object holds under a name each, which is their session where they name none."""

    @property
    def is_many(self) -> bool:
        return True

    @staticmethod
    def fits(value: dict[str, Any]) -> bool:
        """Return whether an object holds several objects with a key in common, and nothing else."""
        return len(value) > 1 and all(isinstance(each, dict) for each in value.values()) and bool(
            set.intersection(*(set(each) for each in value.values())))

    @property
    def description(self) -> str:
        return "an object for each name"

    def apply(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            return []
        return [each if isinstance(each, dict) and "id" in each else _with_facts({"session_id": name}, each, with_time=False)
                for name, each in value.items()]


@dataclass(frozen=True)
class Tail(Step):
    """The JSON object with which a line of text ends."""

    @property
    def description(self) -> str:
        return "JSON at the end of each line"

    def apply(self, value: Any) -> list[Any]:
        if not isinstance(value, str) or (at := value.find("{")) < 0:
            return []
        inner = parsed_json(value[at:].strip())
        return [inner] if isinstance(inner, dict) else []


@dataclass(frozen=True)
class Members(Step):
    """The records of an archive's files, in the order of their names."""

    is_one: bool = False
    """Whether only one of the files holds records."""

    @property
    def is_many(self) -> bool:
        return True

    @classmethod
    def of(cls, members: dict[str, bytes]) -> Members:
        """Return the step for an archive."""
        return cls(sum(_records_in(content) is not None for content in members.values()) == 1)

    @property
    def description(self) -> str:
        return "files of an archive"

    def apply(self, value: Any) -> list[Any]:
        values: list[Any] = []
        for name in sorted(value) if isinstance(value, dict) else ():
            if (records := _records_in(value[name])) is None:
                values.append(Unparsed(f"the archive's file {name} holds no records"))
                continue
            for index in range(len(records.contents)):
                inner, problem, _ = records.value(index)
                values.append(inner if problem is None else Unparsed(f"{name}: {problem}"))
        return values


def _records_in(content: Any) -> Records | None:
    """Return the records of an archive's file, None where it is no file of records."""
    try:
        head = head_of(content) if isinstance(content, bytes) else None
    except ValueError:
        return None
    if head is None or head.layout not in _MEMBER_LAYOUTS:
        return None
    return records_of(content, head.layout, document=head.document if head.layout != "lines" else None)


@dataclass(frozen=True)
class Columns(Step):
    """The rows of BigQuery's API: values in the order of a schema's fields."""

    @property
    def is_many(self) -> bool:
        return True

    @staticmethod
    def fits(value: dict[str, Any]) -> bool:
        """Return whether an object holds a schema, and rows of values."""
        schema, rows = value.get("schema"), value.get("rows")
        return isinstance(schema, dict) and isinstance(schema.get("fields"), list) and isinstance(rows, list) and bool(
            rows) and isinstance(rows[0], dict) and isinstance(rows[0].get("f"), list)

    @property
    def description(self) -> str:
        return "rows of a schema"

    def apply(self, value: Any) -> list[Any]:
        if not isinstance(value, dict) or not self.fits(value):
            return []
        return [_of_schema(value["schema"]["fields"], row) for row in value["rows"]]


def _of_schema(fields: list[Any], row: Any) -> Any:
    cells = row.get("f") if isinstance(row, dict) else None
    if not isinstance(cells, list):
        return row
    return {field.get("name"): _of_field(field, cell) for field, cell in zip(fields, cells, strict=False)
            if isinstance(field, dict)}


def _of_field(field: dict[str, Any], cell: Any) -> Any:
    value = cell.get("v") if isinstance(cell, dict) else cell
    if isinstance(value, list):
        return [_of_field(field, each) for each in value]
    if isinstance(value, dict) and isinstance(field.get("fields"), list):
        return _of_schema(field["fields"], value)
    kind = field.get("type")
    if kind in ("INTEGER", "INT64", "FLOAT", "FLOAT64", "BOOLEAN", "BOOL", "JSON", "TIMESTAMP") and isinstance(value, str):
        return parsed_json(value, value)
    return value


@dataclass(frozen=True)
class Cells(Step):
    """A row whose cells spell JSON and, in the columns that hold nothing else, numbers; without its empty cells."""

    numbers: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    """Columns whose texts are in JSON's quotes."""
    texts: tuple[str, ...] = ()
    """Columns of text, some of which spells objects."""
    empty: tuple[str, ...] = ()
    """Columns that hold nothing."""

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> Cells | None:
        """Return the step for rows, None where no cell is text or empty."""
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row[name] for row in rows if row.get(name) not in (None, "")] for name in names}
        if not any(each is None or isinstance(each, str | bytes) for row in rows for each in row.values()):
            return None
        return cls(
            tuple(name for name, cells in columns.items() if cells and (
                name == "id" or not name.lower().endswith(_NAMES)) and all(map(_is_number, cells))),
            tuple(name for name, cells in columns.items() if cells and all(map(_is_quoted, cells))),
            tuple(name for name, cells in columns.items() if any(map(_is_object, cells)) and not all(
                isinstance(spelled(each), dict | list) for each in cells)),
            tuple(name for name, cells in columns.items() if not cells))

    @property
    def description(self) -> str:
        return "cells opened"

    def apply(self, value: Any) -> list[Any]:
        if not isinstance(value, dict):
            return []
        return [{name: self._cell(name, each) for name, each in value.items()
                 if each not in (None, "") or name in self.empty}]

    def _cell(self, name: str, value: Any) -> Any:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if not isinstance(value, str):
            return value
        if value == "":
            return None
        if value[:1] in ("{", "["):
            inner = spelled(value) if name not in self.texts or not _is_object(value) else None
            return value if inner is None else inner
        if name in self.quoted or (name in self.numbers and _is_number(value)):
            return parsed_json(value, value)
        return _BOOLEANS.get(value, value)


def _is_number(value: Any) -> bool:
    """Return whether a text is a number that is written in the same way again."""
    return isinstance(value, str) and _NUMBER.fullmatch(value) is not None and repr(parsed_json(value)) == value


def _is_object(value: Any) -> bool:
    return isinstance(value, str) and value[:1] == "{" and isinstance(spelled(value), dict)


def _is_quoted(value: Any) -> bool:
    return isinstance(value, str) and value[:1] == '"' and isinstance(parsed_json(value), str)


@dataclass(frozen=True)
class Decoded(Step):
    """A value whose parts state their types: MongoDB's extended JSON, DynamoDB's attributes."""

    kind: str

    @property
    def description(self) -> str:
        return "typed values of MongoDB" if self.kind == "mongo" else "typed values of DynamoDB"

    def apply(self, value: Any) -> list[Any]:
        return [_of_mongo(value) if self.kind == "mongo" else _of_dynamo(value)]


def notation_of(values: Sequence[Any]) -> str | None:
    """Return the notation of typed values that the first objects are in, None where their values are plain."""
    objects = [each for each in values[:20] if isinstance(each, dict)]
    if _has_mongo(objects):
        return "mongo"
    if objects and all(_is_dynamo(each) for each in objects):
        return "dynamo"
    return None


def _has_mongo(values: list[Any]) -> bool:
    """Return whether a typed value of MongoDB is among the outermost values inside some."""
    waiting, n_looked_at = deque(values), 0
    while waiting and n_looked_at < _MOST_VALUES:
        value, n_looked_at = waiting.popleft(), n_looked_at + 1
        if isinstance(value, dict):
            if len(value) == 1 and next(iter(value)) in (_DATE, *_LONGS, *_REALS, "$oid"):
                return True
            waiting += itertools.islice(value.values(), _MOST_VALUES)
        elif isinstance(value, list):
            waiting += value[:_MOST_VALUES]
    return False


def _of_mongo(value: Any) -> Any:
    if isinstance(value, list):
        return [_of_mongo(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (name, inner), = value.items()
        if name == _DATE:
            return _of_mongo(inner)
        if name in _LONGS:
            return int(inner) if isinstance(inner, str) and re.fullmatch(r"-?\d+", inner) else inner
        if name in _REALS:
            return parsed_json(inner, inner) if isinstance(inner, str) else inner
        if name in _TEXTS:
            return inner
        if name == "$binary" and isinstance(inner, dict):
            return inner.get("base64", inner)
    return {name: _of_mongo(each) for name, each in value.items()}


def _is_attribute(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    (kind, inner), = value.items()
    if kind == "M":
        return isinstance(inner, dict) and all(map(_is_attribute, inner.values()))
    if kind == "L":
        return isinstance(inner, list) and all(map(_is_attribute, inner))
    if kind in ("BOOL", "NULL"):
        return isinstance(inner, bool)
    return (kind in ("SS", "NS", "BS") and isinstance(inner, list)) or (kind in ("S", "N", "B") and isinstance(inner, str))


def _is_dynamo(value: dict[str, Any]) -> bool:
    """Return whether all values of an object (or of the only object in it) are attributes of DynamoDB."""
    inner = value.get("Item", value.get("NewImage")) if len(value) <= 2 else None
    item = inner if isinstance(inner, dict) else value
    return bool(item) and all(map(_is_attribute, item.values()))


def _of_dynamo(value: Any) -> Any:
    inner = value.get("Item", value.get("NewImage")) if isinstance(value, dict) and len(value) <= 2 else None
    item = inner if isinstance(inner, dict) else value
    if not isinstance(item, dict) or not all(map(_is_attribute, item.values())):
        return value
    return {name: _of_attribute(each) for name, each in item.items()}


def _of_attribute(value: dict[str, Any]) -> Any:
    (kind, inner), = value.items()
    if kind == "M":
        return {name: _of_attribute(each) for name, each in inner.items()}
    if kind == "L":
        return [_of_attribute(each) for each in inner]
    if kind == "NULL":
        return None
    if kind == "N":
        return parsed_json(inner, inner)
    return [parsed_json(each, each) for each in inner] if kind == "NS" else inner


def _object(value: Any) -> Any:
    """Return an element of a list as an object, where it is one in pairs: of fields and values, of a time and a line."""
    if isinstance(value, list) and value:
        if all(isinstance(each, dict) and {"field", "value"} <= each.keys() for each in value):
            return {each["field"]: each["value"] for each in value}
        if len(value) in (2, 3) and isinstance(value[1], str) and microseconds(value[0]) is not None:
            return {"time": value[0], "line": value[1]}
    inner = spelled(value) if isinstance(value, str) else None
    return inner if isinstance(inner, dict) else value


def _with_facts(outer: dict[str, Any], inner: Any, with_time: bool) -> Any:
    """Return a record with what its envelope states and it does not."""
    facts = _facts(outer, inner, with_time) if isinstance(inner, dict) else None
    return {**inner, **facts} if facts else inner


def _facts(outer: dict[str, Any], inner: dict[str, Any], with_time: bool) -> dict[str, Any]:
    """Return what an envelope, or an object in it (`meta`, say), states of a record that does not."""
    facts: dict[str, Any] = {}
    places = [outer, *(each for each in outer.values() if isinstance(each, dict))]
    for names in _STATIC:
        stated = ((name, place[name]) for place in places for name in names if isinstance(place.get(name), str | int))
        fact = next(((name, each) for name, each in stated if each != ""), None)
        if fact is not None and inner.keys().isdisjoint(names):
            facts[fact[0]] = fact[1]
    if with_time and not _has_time(inner):
        at = next((at for place in places if (at := _time_in(place)) is not None), None)
        facts |= {"timestamp": at} if at is not None else {}
    return facts


def _time_in(value: dict[str, Any]) -> Any:
    """Return the time that an envelope states, under a name that logs use, else under one that says so."""
    names = [*TIME, *(name for name in value if _TIME_NAME.search(name) and not _OTHER_TIME.search(name))]
    return next((value[name] for name in names if microseconds(value.get(name)) is not None), None)


def _has_time(value: dict[str, Any], depth: int = 0) -> bool:
    return any((_TIME_NAME.search(name) is not None and microseconds(each) is not None) or (
        depth < _DEEPEST_TIME and isinstance(each, dict) and _has_time(each, depth + 1)) for name, each in value.items())
