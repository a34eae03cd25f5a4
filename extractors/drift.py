"""Detect schema drift: fields, tools and types that appeared, vanished, were renamed or changed, and since which day.

Input: frames of `core.events` and `core.turns`. Output: a decision of stage `drift` for each change. A feature vanished if it
is absent since a day although units (sessions, else records) like those that had it would have shown it by chance; it appeared
if that holds backwards; it was renamed if another one with like values appeared then. Units are alike if most of their tools
are. Sees columns, tools, first-level fields of arguments, answers, payloads and row images (at most 2,000 of a kind and tool a
day), and the sentences of the instructions that sessions begin with; numbers that are others every day, as dates, are left out
of these. Does not see: all tools changing at once, changes within a few sessions, changes of meaning, deeper fields,
snapshots."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import Any, NamedTuple

import polars as pl

from extractors.formats.values import object_in, object_of
from warehouse.records import Decision, frame

_BY_CHANCE = 1e-7
_ALIKE = 0.5
_MOSTLY = 0.5
_A_FEW = 10
_Company = dict[str, frozenset[str]]
"""The tools of each unit."""


def drift(events: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Detect changes in what the logs are made of: decisions, sorted by subject."""
    return drift_of([dated_events(events, turns)])


def drift_of(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Detect the same in parts of `dated_events`, each with all rows of its days."""
    contexts = sightings(parts)
    for key, each in contexts.items():
        if key[2] == _INSTRUCTIONS:
            each.features = _without_dates(each.features)
    tools_by_unit: dict[tuple[str, str], defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for (source, log_format, context), each in contexts.items():
        for tool, days in each.features.items() if context.startswith("tools of ") else ():
            for unit in set().union(*days.values()):
                tools_by_unit[source, log_format][unit].add(tool)
    company = {key: {unit: frozenset(tools) for unit, tools in units.items()} for key, units in tools_by_unit.items()}
    decisions: list[Decision] = []
    for key, each in sorted(contexts.items()):
        decisions += _Context(key, each, company.get(key[:2], {})).decisions()
    return frame(Decision, sorted(decisions, key=lambda each: (each.subject, each.reason)))


class _FeatureChange(NamedTuple):
    """A feature that came or went: the first day with it, or without it."""

    feature: str
    day: str
    last_day: str
    """Of one that went: the last day with it."""


class _Context:
    def __init__(self, key: Key, sighting: Sighting, company: _Company) -> None:
        self._key, self._sighting, self._company = key, sighting, company
        self._days = sorted(sighting.units)

    def decisions(self) -> list[Decision]:
        gone, come = [], []
        for feature, units in sorted(self._sighting.features.items()) if len(self._days) > 1 else ():
            first, last = min(units), max(units)
            after = [day for day in self._days if day > last]
            if after and self._is_change(feature, [day for day in self._days if day <= last], after):
                gone.append(_FeatureChange(feature, after[0], last))
            before = [day for day in self._days if day < first]
            if before and self._is_change(feature, [day for day in self._days if day >= first], before):
                come.append(_FeatureChange(feature, first, last))
        is_type = self._key[2].startswith("type of ")
        decisions, unmatched = [], list(come)
        for each in gone:
            new = self._renamed(each, unmatched)
            if new is None:
                decisions.append(self._decision(each.feature, "vanished", f"{self._named(each)} is not seen since {each.day}"))
                continue
            unmatched.remove(new)
            reason, verb = ("changed_type", "became") if is_type else ("renamed", "is called")
            decisions.append(self._decision(each.feature, reason, f"{each.feature} {verb} {new.feature} since {new.day}"))
        return decisions + [
            self._decision(each.feature, "appeared", f"{self._named(each)} is seen since {each.day}") for each in unmatched]

    def _is_change(self, feature: str, with_it: list[str], without: list[str]) -> bool:
        """Whether so many units without the feature are no chance, given how many had it on the days with it."""
        had = self._sighting.features[feature]
        like = _Like(set().union(*had.values()), self._company)
        others = [self._sighting.units[day] for day in without]
        if not like.goes_on(set().union(*others)):
            return False
        n_without = sum(len(like(units)) for units in others)
        counts = [(len(had.get(day, ())), len(like(self._sighting.units[day]) | had.get(day, set()))) for day in with_it]
        shares = [n_seen / (n_of + 2) for n_seen, n_of in counts if n_of >= _A_FEW]   # cautious: two units more without it
        overall = sum(n_seen for n_seen, _ in counts) / (sum(n_of for _, n_of in counts) + 2)
        return (1 - min(shares, default=overall)) ** n_without < _BY_CHANCE

    def _named(self, change: _FeatureChange) -> str:
        return f'"{change.feature}"' if self._key[2] == _INSTRUCTIONS else change.feature

    def _renamed(self, gone: _FeatureChange, come: list[_FeatureChange]) -> _FeatureChange | None:
        if self._key[2] == _INSTRUCTIONS:
            return None
        one = self._sighting.shapes[gone.feature]

        def likeness(other: Counter[str]) -> float:
            return math.fsum(min(one[shape] / one.total(), other[shape] / other.total()) for shape in one)   # in any order
        alike = [(likeness(self._sighting.shapes[each.feature]), each) for each in come
                 if gone.last_day <= each.day <= gone.day]
        share, best = max(alike, key=lambda pair: pair[0], default=(0.0, None))
        return best if share >= _ALIKE else None

    def _decision(self, feature: str, reason: str, what: str) -> Decision:
        source, log_format, context = self._key
        hint = ("tasks show the instructions of their own session: look whether it decides some otherwise"
                if context == _INSTRUCTIONS else
                "check what writes the log, and map the field in the configuration where its meaning stayed")
        return Decision(stage="drift", subject=f"{source}/{log_format}/{context}/{feature}", kept=True, reason=reason,
                        detail=f"source {source}, format {log_format}, {context}: {what}; {hint}.")


class _Like:
    """Units whose tools are mostly those of units that had a feature; all, where units have one tool each."""

    def __init__(self, had: set[str], company: _Company) -> None:
        tool_sets = [company.get(unit, frozenset()) for unit in had]
        self._company = company
        self._tools = frozenset().union(*tool_sets)
        self._tells = sum(map(len, tool_sets)) > 1.5 * len(tool_sets)

    def __call__(self, units: set[str]) -> set[str]:
        def is_alike(tools: frozenset[str]) -> bool:
            return not tools or len(tools & self._tools) > _MOSTLY * len(tools)
        return {unit for unit in units if is_alike(self._company.get(unit, frozenset()))} if self._tells else units

    def goes_on(self, units: set[str]) -> bool:
        """Whether half of the tools are used in `units` too: else what had the feature ended, or began, as a whole."""
        there: frozenset[str] = frozenset().union(*(self._company.get(unit, frozenset()) for unit in units))
        return not self._tells or 2 * len(self._tools & there) >= len(self._tools)

_MOST_A_DAY = 2000
_INSTRUCTIONS = "sentences of instructions"
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\s*\n\s*")
_LONGEST_SENTENCE = 300
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
        self.units[day].add(unit)
        for name, shape in features.items():
            self.features.setdefault(name, defaultdict(set))[day].add(unit)
            self.shapes[name][shape] += 1


def dated_events(events: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return the events that are looked at, with `day`, `unit`, and the tool that turns say of each. What has no day, its
    session's neither, is not seen."""
    day = pl.coalesce(pl.col("happened_at").min().over("source", "session_id"), "happened_at").dt.strftime("%Y-%m-%d")
    own = pl.coalesce(pl.when(pl.col("session_id").is_not_null()).then(day), pl.col("happened_at").dt.strftime("%Y-%m-%d"))
    snapshot = (pl.col("kind") == "row_change") & (pl.col("name") == "snapshot").fill_null(False)
    observed = events.filter(~snapshot, ~pl.col("kind").is_in(["correction", "review", "answer"]))   # which no log is made of
    dated = observed.with_columns(own.alias("day"), pl.coalesce("session_id", "record_id").alias("unit")).filter(
        pl.col("day").is_not_null())
    templates = turns.select(pl.col("turn_id").alias("event_id"), pl.col("tool").alias("_tool"))
    answered = turns.select(pl.col("result_id").alias("event_id"), pl.col("tool").alias("_answered")).drop_nulls().unique(
        "event_id")
    return dated.join(templates, on="event_id", how="left").join(answered, on="event_id", how="left")


def sightings(parts: Iterable[pl.DataFrame]) -> dict[Key, Sighting]:
    """All contexts of all sources and formats, of parts of `dated_events`."""
    by_context: dict[Key, Sighting] = defaultdict(Sighting)
    for part in parts:
        dated = part.sort("event_id")
        for key, day, unit, features in chain(_columns(dated), _tools(dated), _payloads(dated), _sentences(dated)):
            by_context[key].see(intern(day), intern(unit), features)   # each is held once, whatever was seen of it
    return by_context


_Observed = tuple[Key, str, str, dict[str, str]]


def _columns(dated: pl.DataFrame) -> Iterator[_Observed]:
    """Which columns each unit fills, by kind; a session's id that a reader made up (`~…`) fills none."""
    made_up = pl.col("session_id").str.starts_with("~").fill_null(False)
    stated = dated.with_columns(pl.when(~made_up).then("session_id").alias("session_id"))
    filled = [pl.col(name).is_not_null().any().alias(name) for name in _COLUMNS]
    kinds = stated.group_by("source", "format", "kind", "day", "unit").agg(filled).sort(pl.all())
    for source, log_format, kind, day, unit, *flags in kinds.iter_rows():
        yield (source, log_format, f"columns of {kind}"), day, unit, {
            name: "" for name, flag in zip(_COLUMNS, flags, strict=True) if flag}


def _tools(dated: pl.DataFrame) -> Iterator[_Observed]:
    named = dated.filter(pl.col("kind").is_in(["call", "business", "row_change"]) & pl.col("tool").is_not_null())
    tools = named.group_by("source", "format", "kind", "day", "unit").agg(pl.col("tool").unique().sort()).sort(
        "source", "format", "kind", "day", "unit")
    for source, log_format, kind, day, unit, names in tools.iter_rows():
        yield (source, log_format, f"tools of {kind}"), day, unit, dict.fromkeys(names, "")


def _payloads(dated: pl.DataFrame) -> Iterator[_Observed]:
    named = dated.filter(pl.col("kind").is_in(list(_OF_KIND))).with_columns(
        pl.coalesce("_tool", "tool", "_answered").alias("tool"))
    payload = pl.when(pl.col("kind") == "result").then("content").when(pl.col("kind") == "row_change").then("value").otherwise(
        "arguments")
    looked = named.select("source", "format", "kind", "tool", "day", "unit", payload.alias("held"), "value").group_by(
        "source", "format", "kind", "tool", "day", maintain_order=True).head(_MOST_A_DAY)
    for source, log_format, kind, tool, day, unit, text, value in looked.iter_rows():
        yield from _fields((source, log_format), kind, str(tool), day, unit, text)
        if kind == "request":
            yield from _fields((source, log_format), "result", str(tool), day, unit, value, "body")


def _sentences(dated: pl.DataFrame) -> Iterator[_Observed]:
    """Which sentences the instructions have that each unit begins with."""
    texts = dated.filter(pl.col("kind") == "message", pl.col("role").is_in(["system", "developer"]), pl.col(
        "content").is_not_null()).sort("position", "happened_at", "event_id", nulls_last=True)
    first = texts.group_by("source", "format", "day", "unit", maintain_order=True).agg(pl.col("content").first()).sort(
        "source", "format", "day", "unit").group_by("source", "format", "day", maintain_order=True).head(_MOST_A_DAY)
    for source, log_format, day, unit, text in first.select("source", "format", "day", "unit", "content").iter_rows():
        yield (source, log_format, _INSTRUCTIONS), day, unit, dict.fromkeys(_split(text), "")


@lru_cache(maxsize=256)
def _split(text: str) -> tuple[str, ...]:
    sentences = (" ".join(each.split())[:_LONGEST_SENTENCE] for each in _SENTENCE_END.split(text))
    return tuple(dict.fromkeys(intern(each) for each in sentences if each))


def _without_dates(features: dict[str, defaultdict[str, set[str]]]) -> dict[str, defaultdict[str, set[str]]]:
    """Return the same with sentences as one that are equal but for numbers, where these are others on most days."""
    alike: dict[str, list[str]] = defaultdict(list)
    for sentence in features:
        alike[_DIGITS.sub("…", sentence)].append(sentence)
    merged: dict[str, defaultdict[str, set[str]]] = {}
    for pattern, sentences in alike.items():
        days = set[str]().union(*(features[each] for each in sentences))
        varies = len(sentences) > 1 and 2 * len(sentences) > len(days)
        for sentence in sentences:
            one = merged.setdefault(pattern if varies else sentence, defaultdict(set))
            for day, units in features[sentence].items():
                one[day] |= units
    return merged


def _fields(of: tuple[str, str], kind: str, tool: str, day: str, unit: str, text: str | None,
            inside: str | None = None) -> Iterator[_Observed]:
    value = object_in(text or "")
    if value is not None and kind == "row_change":
        value = value.get("after") or value.get("before")
    elif value is not None and kind == "request":
        value = {**object_of(value.get("query")), **object_of(value.get("body"))}
    elif value is not None and inside is not None:
        value = value.get(inside)
    if not isinstance(value, dict):
        return
    context = _OF_KIND[kind].format(tool)
    yield (*of, context), day, unit, {name: shape(item) for name, item in value.items()}
    for name, item in value.items():
        yield (*of, f"type of {name} in {context}"), day, unit, {_TYPES[type(item)]: ""}


_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object", type(None): "null"}


def shape(value: Any) -> str:
    """Return the shape of a value: of text its characters by class, of an object its names."""
    if isinstance(value, str):
        return _text_shape(value[:60])
    if isinstance(value, dict):
        return "object " + ",".join(sorted(value)[:8])
    return _TYPES[type(value)]


@lru_cache(maxsize=1 << 16)
def _text_shape(text: str) -> str:
    return "string " + _AGAIN.sub(r"\1", _LETTERS.sub("a", _DIGITS.sub("0", text)))
