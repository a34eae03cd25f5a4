"""What logs are made of, day by day: columns, tools, names of arguments and of fields, and the types of what they hold.

In: frames of `core.events` and `core.turns`. Out: a `Sighting` for each feature of each context of a source and format: in how
many units (sessions; records, where there is none) of a day the context was seen, and in how many of these the feature.
Sees the first level of arguments, answers, payloads and row images, of a request's answer its body's; no snapshots of tables.
At most 2,000 of a kind and tool a day are looked at, the same ones every time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import orjson
import polars as pl

_MOST_A_DAY = 2000
_COLUMNS = ("session_id", "service", "name", "model", "call_id", "latency_ms", "usage", "requestor", "position", "value")
_OF_KIND = {"call": "arguments of {}", "result": "answers of {}", "request": "arguments of {}", "business": "payload of {}",
            "row_change": "rows of {}"}
_DIGITS, _LETTERS, _AGAIN = re.compile(r"\d+"), re.compile(r"[^\W\d_]+"), re.compile(r"(.)\1+")
Key = tuple[str, str, str]
"""Source, format and context."""


@dataclass(slots=True)
class Sighting:
    """A context, and what was seen in it."""

    units: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Units by day."""
    features: dict[str, defaultdict[str, set[str]]] = field(default_factory=dict)
    """Of each feature, the units by day."""
    shapes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Of each feature, what its values look like."""

    def see(self, day: str, unit: str, features: dict[str, str]) -> None:
        """One look: features and the shapes of what they held."""
        self.units[day].add(unit)
        for name, shape in features.items():
            if name not in self.features:
                self.features[name] = defaultdict(set)
            self.features[name][day].add(unit)
            self.shapes[name][shape] += 1


def sightings(events: pl.DataFrame, turns: pl.DataFrame) -> dict[Key, Sighting]:
    """All contexts of all sources and formats. What has no day, its session's neither, is not seen."""
    day = pl.coalesce(pl.col("happened_at").min().over("source", "session_id"), "happened_at").dt.strftime("%Y-%m-%d")
    own = pl.coalesce(pl.when(pl.col("session_id").is_not_null()).then(day), pl.col("happened_at").dt.strftime("%Y-%m-%d"))
    snapshot = (pl.col("kind") == "row_change") & (pl.col("name") == "snapshot").fill_null(False)
    told = events.filter(~snapshot, pl.col("kind") != "correction")   # which no log is made of
    dated = told.with_columns(own.alias("day"), pl.coalesce("session_id", "record_id").alias("unit")).filter(
        pl.col("day").is_not_null()).sort("event_id")
    found: dict[Key, Sighting] = defaultdict(Sighting)
    for key, day_, unit, features in chain(_columns(dated), _tools(dated), _payloads(dated, turns)):
        found[key].see(day_, unit, features)
    return found


_Look = tuple[Key, str, str, dict[str, str]]


def _columns(dated: pl.DataFrame) -> Iterator[_Look]:
    """Which columns each unit fills, by kind; a session's id that a reader made up (`~…`) fills none."""
    made_up = pl.col("session_id").str.starts_with("~").fill_null(False)
    stated = dated.with_columns(pl.when(~made_up).then("session_id").alias("session_id"))
    filled = [pl.col(name).is_not_null().any().alias(name) for name in _COLUMNS]
    kinds = stated.group_by("source", "format", "kind", "day", "unit").agg(filled).sort(pl.all())
    for source, log_format, kind, day, unit, *flags in kinds.iter_rows():
        yield (source, log_format, f"columns of {kind}"), day, unit, {
            name: "" for name, flag in zip(_COLUMNS, flags, strict=True) if flag}


def _tools(dated: pl.DataFrame) -> Iterator[_Look]:
    """Which tools (events, tables, paths do not count) each unit names."""
    named = dated.filter(pl.col("kind").is_in(["call", "business", "row_change"]) & pl.col("tool").is_not_null())
    tools = named.group_by("source", "format", "kind", "day", "unit").agg(pl.col("tool").unique().sort()).sort(
        "source", "format", "kind", "day", "unit")
    for source, log_format, kind, day, unit, names in tools.iter_rows():
        yield (source, log_format, f"tools of {kind}"), day, unit, dict.fromkeys(names, "")


def _payloads(dated: pl.DataFrame, turns: pl.DataFrame) -> Iterator[_Look]:
    """Fields of what each record carries; requests by the template of their path."""
    templates = turns.select(pl.col("turn_id").alias("event_id"), pl.col("tool").alias("_tool"))
    answered = turns.select(pl.col("result_id").alias("event_id"), pl.col("tool").alias("_answered")).drop_nulls().unique(
        "event_id")
    named = dated.filter(pl.col("kind").is_in(list(_OF_KIND))).join(templates, on="event_id", how="left").join(
        answered, on="event_id", how="left").with_columns(pl.coalesce("_tool", "tool", "_answered").alias("tool"))
    held = pl.when(pl.col("kind") == "result").then("content").when(pl.col("kind") == "row_change").then("value").otherwise(
        "arguments")
    looked = named.select("source", "format", "kind", "tool", "day", "unit", held.alias("held"), "value").group_by(
        "source", "format", "kind", "tool", "day", maintain_order=True).head(_MOST_A_DAY)
    for source, log_format, kind, tool, day, unit, text, value in looked.iter_rows():
        yield from _fields((source, log_format), kind, str(tool), day, unit, text)
        if kind == "request":
            yield from _fields((source, log_format), "result", str(tool), day, unit, value, "body")


def _fields(of: tuple[str, str], kind: str, tool: str, day: str, unit: str, text: str | None,
            inside: str | None = None) -> Iterator[_Look]:
    try:
        value = orjson.loads(text or "null")
    except orjson.JSONDecodeError:
        return
    if kind == "row_change" and isinstance(value, dict):
        value = value.get("after") or value.get("before")
    if inside is not None and isinstance(value, dict):
        value = value.get(inside)
    if kind == "request" and isinstance(value, dict):
        value = {**_object(value.get("query")), **_object(value.get("body"))}
    if not isinstance(value, dict):
        return
    context = _OF_KIND[kind].format(tool)
    yield (*of, context), day, unit, {name: shape(held) for name, held in value.items()}
    for name, held in value.items():
        yield (*of, f"type of {name} in {context}"), day, unit, {_type(held): ""}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _type(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object", type(None): "null"}
    return names[type(value)]


def shape(value: Any) -> str:
    """What a value looks like: of text its signs by class, of an object its names."""
    if isinstance(value, str):
        return _text_shape(value[:60])
    if isinstance(value, dict):
        return "object " + ",".join(sorted(value)[:8])
    return _type(value)


@lru_cache(maxsize=1 << 16)
def _text_shape(text: str) -> str:
    return "string " + _AGAIN.sub(r"\1", _LETTERS.sub("a", _DIGITS.sub("0", text)))
