"""Which tools speak of things, and of which: classes of documents, found from the answers alone.

A tool whose answers are JSON objects and that takes one argument shows the thing that the argument names; tools that show
the same fields under the same keys speak of one class. A tool with more arguments joins the class whose fields its answers
hold, by the argument whose values are keys of that class; where no argument is, by the field that names the thing itself.
Sees: top-level fields, scalar arguments. Does not see: things inside lists, things named by several arguments together.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import lru_cache
from typing import Any, NamedTuple

from env_builder.runtime.answers import parse
from env_builder.world.calls import Call

SIMILAR = 0.6
"""Jaccard of the always-present fields above which two readers show one class (measured on a prototype)."""
MOSTLY = 0.8
MINIMUM_SEEN = 3
STYLES: tuple[dict[str, Any], ...] = (
    {"separators": (", ", ": "), "ensure_ascii": True}, {"separators": (", ", ": "), "ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False}, {"separators": (",", ":"), "ensure_ascii": True},
)


Affix = tuple[str, str]


class EntityClass(NamedTuple):
    """A class of things."""

    name: str
    """Name of the first tool (by alphabet) that shows it by key."""
    fields: frozenset[str]
    """Fields that every document has."""
    self_field: str | None
    """The field whose value is the key itself."""
    affix: Affix = ("", "")
    """Signs that stand before and after the key in that field, and not in the argument that names the thing."""


class DocumentTool(NamedTuple):
    """How a tool speaks of a class."""

    tool: str
    entity_class: str
    argument: str | None
    """The argument that is the key; None: the key is in the answer (a tool that creates)."""
    only_key: bool
    """It takes nothing but the key."""


class Documents(NamedTuple):
    """What was found of one service."""

    classes: dict[str, EntityClass]
    tools: dict[str, DocumentTool]
    envelopes: dict[str, str | None]
    """Tool -> the field that wraps its answers, None where they are bare."""

    def seen_in(self, call: Call) -> tuple[str, str, str] | None:
        """(class, key, JSON text of the document) that the call's answer shows, or None."""
        known = self.tools.get(call.tool)
        if known is None or call.failed:
            return None
        envelope = self.envelopes.get(call.tool)
        document = unwrap(call.parsed, envelope)
        entity = self.classes[known.entity_class]
        if not isinstance(document, dict) or not entity.fields <= document.keys():
            return None
        key = call.arguments.get(known.argument) if known.argument else document.get(entity.self_field or "")
        text = inside(call.content, envelope)
        named = isinstance(key, str | int) and text is not None
        return (entity.name, self.plain(entity.name, str(key)), text or "") if named else None

    def plain(self, entity_class: str, key: str) -> str:
        """The key as things of the class are known by it."""
        return plain(key, self.classes[entity_class].affix) if entity_class in self.classes else key

    def words(self, entity_class: str, key: str) -> frozenset[str]:
        """What names the thing: its key, bare and as its documents write it."""
        before, after = self.classes[entity_class].affix
        return frozenset((key, before + key + after))


def find(calls: list[Call]) -> Documents:
    """Classes and the tools that speak of them, from one service's calls."""
    shown: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if not call.failed:
            shown[call.tool].append(call)
    common = _envelope(calls)
    envelopes = {tool: common or _own_envelope(found) for tool, found in sorted(shown.items())}
    shows = {tool: found for tool, found in sorted(shown.items()) if _shows_documents(found, envelopes[tool])}
    readers = {tool: found for tool, found in shows.items() if _single_argument(found)}
    classes, tools = _cluster(readers, envelopes)
    keys = _keys(readers, classes, tools)
    for tool in sorted(set(shows) - set(tools)):
        joined = _join(tool, shows[tool], classes, keys, envelopes[tool])
        if joined:
            tools[tool] = joined
    return Documents(classes, tools, envelopes)


def plain(key: str, affix: Affix) -> str:
    """The key without the signs around it."""
    if affix == ("", ""):
        return key
    before, after = affix
    return key[len(before):len(key) - len(after)] if key.startswith(before) and key.endswith(after) else key


def unwrap(parsed: Any, envelope: str | None) -> Any:
    """The document inside its envelope."""
    return parsed.get(envelope) if envelope and isinstance(parsed, dict) else parsed


@lru_cache(32768)
def inside(content: str, envelope: str | None) -> str | None:
    """The document's own JSON text as it stands in the content, None where no known style gives it back."""
    document = unwrap(parse(content), envelope)
    for style in STYLES:
        text = json.dumps(document, **style)
        if text == content or (envelope and text in content):
            return text
    return None


def frame_of(content: str, text: str) -> tuple[str, str]:
    """What stands before and after the document's text in the content."""
    before, _, after = content.partition(text)
    return before, after


def _envelope(calls: list[Call]) -> str | None:
    """One field that holds the object in nearly every answer, beside at most two scalars."""
    parsed = [call.parsed for call in calls if isinstance(call.parsed, dict)]
    if len(parsed) < MOSTLY * len(calls) or not parsed:
        return None
    shapes = Counter(tuple(sorted(value)) for value in parsed)
    shape, n = shapes.most_common(1)[0]
    if n < MOSTLY * len(parsed) or not 2 <= len(shape) <= 3:
        return None
    holds = [name for name in shape if sum(isinstance(value.get(name), dict) for value in parsed) > MOSTLY * n]
    tools = {call.tool for call in calls}
    return holds[0] if len(holds) == 1 and len(tools) > 2 else None


def _own_envelope(calls: list[Call]) -> str | None:
    """One field that holds the object in all answers of a tool that worked, beside at most two that always say the same."""
    parsed = [call.parsed for call in calls]
    if len(parsed) < MINIMUM_SEEN or not all(isinstance(value, dict) and 2 <= len(value) <= 3 for value in parsed):
        return None
    holds = {name for value in parsed for name, inner in value.items() if isinstance(inner, dict)}
    if len(holds) != 1 or not all(holds <= value.keys() for value in parsed):
        return None
    rest = ({name: inner for name, inner in value.items() if name not in holds} for value in parsed)
    beside = {json.dumps(one, sort_keys=True) for one in rest}
    return holds.pop() if len(beside) == 1 else None


def _shows_documents(calls: list[Call], envelope: str | None) -> bool:
    good = sum(isinstance(unwrap(call.parsed, envelope), dict) for call in calls)
    return good >= MOSTLY * len(calls)


def _single_argument(calls: list[Call]) -> bool:
    names = {tuple(call.arguments) for call in calls}
    return len(names) == 1 and len(next(iter(names))) == 1 and all(
        isinstance(value, str | int) for call in calls for value in call.arguments.values()
    )


def _fields(calls: list[Call], envelope: str | None) -> frozenset[str]:
    """Fields that (nearly) all the documents have."""
    counts: Counter[str] = Counter()
    n = 0
    for call in calls:
        document = unwrap(call.parsed, envelope)
        if isinstance(document, dict):
            n += 1
            counts.update(document.keys())
    return frozenset(name for name, seen in counts.items() if seen >= 0.98 * n)


def _cluster(
    readers: dict[str, list[Call]], envelopes: dict[str, str | None]
) -> tuple[dict[str, EntityClass], dict[str, DocumentTool]]:
    """Classes of things, and the tools that show them by their key; not those that take what several things share."""
    classes: dict[str, EntityClass] = {}
    tools: dict[str, DocumentTool] = {}
    fields_of = {tool: _fields(calls, envelopes[tool]) for tool, calls in readers.items()}
    own = {tool: _self_field(calls, next(iter(calls[0].arguments)), envelopes[tool]) for tool, calls in readers.items()}
    for tool, calls in sorted(readers.items(), key=lambda item: (-len(item[1]), item[0])):
        fields, argument = fields_of[tool], next(iter(calls[0].arguments))
        others = (other for other, theirs in fields_of.items() if theirs and fields and _similar(theirs, fields))
        if not fields or any(_shares(calls, envelopes[tool], own[other][0]) and not _shares(
                readers[other], envelopes[other], own[tool][0]) for other in others if own[tool][0]):
            continue
        name = next((known.name for known in classes.values() if _similar(known.fields, fields)), None)
        if name is None:
            name = tool
            classes[name] = EntityClass(name, fields, *own[tool])
        else:
            classes[name] = classes[name]._replace(fields=classes[name].fields & fields)
        tools[tool] = DocumentTool(tool, name, argument, True)
    return classes, tools


def _shares(calls: list[Call], envelope: str | None, field: str | None) -> bool:
    """Does one argument show things that differ in the field?"""
    seen: dict[str, str] = {}
    documents = ((str(call.arguments), unwrap(call.parsed, envelope)) for call in calls)
    shown = ((asked, str(found[field])) for asked, found in documents if isinstance(found, dict) and field in found)
    return any(seen.setdefault(asked, value) != value for asked, value in shown)


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) / len(one | other) > SIMILAR


def _self_field(calls: list[Call], argument: str, envelope: str | None) -> tuple[str | None, Affix]:
    """The field that holds the key, and the signs that stand around it there."""
    hits: Counter[tuple[Affix, str]] = Counter()
    for call in calls:
        document = unwrap(call.parsed, envelope)
        if isinstance(document, dict):
            key = call.arguments[argument]
            hits.update((affix, name) for name, value in document.items() if (affix := _around(key, value)) is not None)
    found = [place for place, n in hits.items() if n >= 0.98 * len(calls)]
    affix, name = min(found, key=lambda place: (len(place[0][0]) + len(place[0][1]), place)) if found else (("", ""), None)
    return name, affix


def _around(key: Any, value: Any) -> Affix | None:
    """The signs around the key in the value, None where the value is not the key."""
    if not isinstance(key, str) or not isinstance(value, str):  # a path says every key as text
        return ("", "") if isinstance(value, str | int) and str(key) == str(value) else None
    before, found, after = value.partition(key)
    return (before, after) if found and key and not any(map(str.isalnum, before + after)) else None


def _keys(
    readers: dict[str, list[Call]], classes: dict[str, EntityClass], tools: dict[str, DocumentTool]
) -> dict[str, set[str]]:
    keys: dict[str, set[str]] = defaultdict(set)
    for tool, known in tools.items():
        affix = classes[known.entity_class].affix
        keys[known.entity_class].update(plain(str(next(iter(call.arguments.values()))), affix) for call in readers[tool])
    return keys


def _join(
    tool: str, calls: list[Call], classes: dict[str, EntityClass], keys: dict[str, set[str]], envelope: str | None
) -> DocumentTool | None:
    """The class that a tool with several arguments speaks of, or None."""
    fields = _fields(calls, envelope)
    fitting = [known for known in classes.values() if known.fields and known.fields <= fields]
    if not fitting:
        return None
    entity = max(fitting, key=lambda known: (len(known.fields), known.name))
    hits: Counter[str] = Counter()
    for call in calls:
        hits.update(name for name, value in call.arguments.items() if plain(str(value), entity.affix) in keys[entity.name])
    named = [name for name, n in sorted(hits.items()) if n >= 0.5 * len(calls)]
    if named:
        return DocumentTool(tool, entity.name, max(named, key=lambda name: hits[name]), False)
    return DocumentTool(tool, entity.name, None, False) if entity.self_field else None
