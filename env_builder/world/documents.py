"""Which tools speak of records, and of which: classes of documents and of rows, found from the answers alone.

A tool whose answers are JSON objects and that takes one argument shows the record that the argument names; tools that show
the same fields under the same keys speak of one class. So does a tool that tells the same when asked again and whose other
arguments are values of the record that it shows (`agrees`: a surname, an address), where no key was shown with two of them.
Another tool with more arguments joins the class whose fields its answers hold, by the argument whose values are keys of that
class; where no argument is, by the field that names the record itself.
Sees: top-level fields, scalar arguments. Several arguments that name one together are one argument here (`world.joints`). Does
not see: records inside lists; arguments that must agree with what the record does not show.

A tool whose answers are lists of objects (or lists of such lists) shows rows; tools that show mostly the same fields show
one class of rows. An argument whose value stands in no field of the rows, or in a field of its own name, says something of
each row that the row may leave out.
Sees: lists at the top of an answer, and in one field of it; rows that are objects, or lists of values by their places. Does
not see: lists further inside.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.runtime.agreements import WAYS, Agreement, Path, holds
from env_builder.runtime.answers import Document, parsed
from env_builder.runtime.canonical import styled
from env_builder.runtime.joints import key_argument
from env_builder.runtime.relevance import leaves
from env_builder.runtime.tables import Table, rows_in, scalars
from env_builder.world.calls import LoggedCall, calls_by_tool

SIMILAR = 0.6
"""Jaccard of the always-present fields above which two readers show one class (measured on a prototype)."""
MOSTLY = 0.8
MINIMUM_SEEN = 3
MINIMUM_RECORDS, MINIMUM_REPEATS = 5, 3
"""Records that a reader whose arguments agree with them must have shown, and equal answers to a question asked again."""
STYLES: tuple[dict[str, Any], ...] = (
    {"separators": (", ", ": "), "ensure_ascii": True}, {"separators": (", ", ": "), "ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False}, {"separators": (",", ":"), "ensure_ascii": True},
)


Affix = tuple[str, str]
Shapes = Mapping[str, frozenset[type]]


class EntityClass(NamedTuple):
    """A class of records."""

    name: str
    """Name of the first tool (by alphabet) that shows it by key."""
    fields: frozenset[str]
    """Fields that every document has."""
    self_field: str | None
    """The field whose value is the key itself."""
    affix: Affix = ("", "")
    """Characters that stand before and after the key in that field, and not in the argument that names the record."""
    shapes: Shapes = MappingProxyType({})
    """How the values of these fields were written by the first tool: as lists, objects or neither."""


class Key(NamedTuple):
    """The argument that names the record of a reader, and what its other arguments are of that record."""

    argument: str
    agrees: tuple[Agreement, ...] = ()


class DocumentTool(NamedTuple):
    """How a tool speaks of a class."""

    tool: str
    entity_class: str
    argument: str | None
    """The argument that is the key; None: the key is in the answer (a tool that creates)."""
    only_key: bool
    """It takes nothing but the key."""
    agrees: tuple[Agreement, ...] = ()
    """What the other arguments are of the record."""

    @property
    def is_look(self) -> bool:
        """Is it a look at the record, as far as its arguments tell?"""
        return self.only_key or bool(self.agrees)


class Documents(NamedTuple):
    """What was found of one service."""

    classes: dict[str, EntityClass]
    tools: dict[str, DocumentTool]
    envelopes: dict[str, str | None]
    """Tool -> the field that wraps its answers, None where they are bare."""

    def seen_in(self, call: LoggedCall) -> tuple[str, str, str] | None:
        """(class, key, JSON text of the document) that the call's answer shows, or None."""
        documented = self.tools.get(call.tool)
        if documented is None or call.failed:
            return None
        envelope = self.envelopes.get(call.tool)
        document = unwrap(call.parsed, envelope)
        entity = self.classes[documented.entity_class]
        if not isinstance(document, dict) or not entity.fields <= document.keys():
            return None
        key = call.arguments.get(documented.argument) if documented.argument else document.get(entity.self_field or "")
        text = inside(call.content, envelope)
        named = isinstance(key, str | int) and text is not None
        return (entity.name, self.plain(entity.name, str(key)), text or "") if named else None

    def plain(self, entity_class: str, key: str) -> str:
        """Return the key as records of the class are known by it."""
        return plain(key, self.classes[entity_class].affix) if entity_class in self.classes else key

    def words(self, entity_class: str, key: str) -> frozenset[str]:
        """Return what names the record: its key, bare and as its documents write it."""
        before, after = self.classes[entity_class].affix
        return frozenset((key, before + key + after))


def find(calls: list[LoggedCall]) -> Documents:
    """Classes and the tools that speak of them, from one service's calls."""
    shown = calls_by_tool(call for call in calls if not call.failed)
    common = _envelope(calls)
    envelopes = {tool: common or _own_envelope(texts) for tool, texts in sorted(shown.items())}
    shows = {tool: texts for tool, texts in sorted(shown.items()) if MOSTLY * len(texts) <= sum(
        isinstance(unwrap(call.parsed, envelopes[tool]), dict) for call in texts)}
    key_of = {tool: key for tool, texts in shows.items() if (key := _key(texts, envelopes[tool])) and not _confirms(texts)}
    readers = {tool: shows[tool] for tool in key_of}
    classes, tools = _cluster(readers, envelopes, key_of)
    keys: dict[str, set[str]] = defaultdict(set)
    for tool, documented in tools.items():
        affix = classes[documented.entity_class].affix
        named = (str(call.arguments[documented.argument or ""]) for call in readers[tool])
        keys[documented.entity_class].update(plain(key, affix) for key in named)
    for tool in sorted(set(shows) - set(tools)):
        joined = _join(tool, shows[tool], classes, keys, envelopes[tool])
        if joined:
            tools[tool] = joined
    return Documents(classes, tools, envelopes)


def plain(key: str, affix: Affix) -> str:
    """Return the key without the characters around it."""
    before, after = affix
    return key[len(before):len(key) - len(after)] if key.startswith(before) and key.endswith(after) else key


def unwrap(parsed: Any, envelope: str | None) -> Any:
    """Return the document inside its envelope."""
    return parsed.get(envelope) if envelope and isinstance(parsed, dict) else parsed


@lru_cache(32768)
def inside(content: str, envelope: str | None) -> str | None:
    """Return the document's own JSON text as it stands in the content, None where no known style gives it back."""
    document = unwrap(parsed(content), envelope)
    for style in STYLES:
        text = styled(document, style)
        if text == content or (envelope and text in content):
            return Document.of(text, document) if isinstance(document, dict | list) else text
    return None


def usual_frame(answers: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Find what most often stands before and after the document's text, of (content, text); None where there are no answers."""
    frames = Counter((before, after) for content, text in answers for before, _, after in [content.partition(text)])
    return max(sorted(frames), key=lambda frame: frames[frame]) if frames else None


def style_of(texts: Collection[str]) -> dict[str, Any] | None:
    """Find the style in which all these objects are written as JSON."""
    return next((dict(style) for style in STYLES if all(styled(parsed(text), style) == text for text in texts)), None)


def _envelope(calls: list[LoggedCall]) -> str | None:
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


def _own_envelope(calls: list[LoggedCall]) -> str | None:
    """One field that holds the object in all answers of a tool that worked, beside at most two that always say the same."""
    parsed = [call.parsed for call in calls]
    if len(parsed) < MINIMUM_SEEN or not all(isinstance(value, dict) and 2 <= len(value) <= 3 for value in parsed):
        return None
    holds = {name for value in parsed for name, inner in value.items() if isinstance(inner, dict)}
    if len(holds) != 1 or not all(holds <= value.keys() for value in parsed):
        return None
    rest = ({name: inner for name, inner in value.items() if name not in holds} for value in parsed)
    around = {json.dumps(one, sort_keys=True) for one in rest}
    return holds.pop() if len(around) == 1 else None


def _key(calls: list[LoggedCall], envelope: str | None) -> Key | None:
    """Return the one argument that names what a reader shows."""
    names = {tuple(sorted(call.arguments)) for call in calls}
    argument = key_argument(calls[0].arguments)
    if len(names) != 1 or not all(isinstance(value, str | int) for call in calls for value in call.arguments.values()):
        return None
    return _agreeing(calls, envelope) if argument is None else Key(argument)


def _agreeing(calls: list[LoggedCall], envelope: str | None) -> Key | None:
    """Return the first argument that stands in the record as its name, where each of the others is a value of the record."""
    names = sorted(calls[0].arguments)
    if len(calls) - len({(call.key, call.content) for call in calls}) < MINIMUM_REPEATS:
        return None
    shown = [(call.arguments, dict(scalars(document))) for call in calls
             if isinstance(document := unwrap(call.parsed, envelope), dict)]
    for argument in names:
        own, _ = _self_field(calls, argument, envelope)
        if own is None or len({str(arguments[argument]) for arguments, _ in shown}) < MINIMUM_RECORDS:
            continue
        agrees = [_agreement((argument, own), name, shown) for name in names if name != argument]
        if None not in agrees:
            return Key(argument, tuple(filter(None, agrees)))
    return None


def _agreement(key: tuple[str, str], name: str, shown: list[tuple[dict[str, Any], dict[Path, Any]]]) -> Agreement | None:
    """Return where and how all the records hold an argument's value, None where a key was shown with two values there. `key`:
    (argument, field)."""
    argument, own = key
    paths = sorted(set.intersection(*(set(leaves) for _, leaves in shown)) - {(own,)})
    for how, path in product(WAYS, paths):
        if all(holds(how, arguments[name], leaves[path]) for arguments, leaves in shown):
            values = {(str(arguments[argument]), str(leaves[path])) for arguments, leaves in shown}
            return (name, path, how) if len(values) == len({key for key, _ in values}) else None
    return None


def _confirms(calls: list[LoggedCall]) -> bool:
    """Return whether the tool says the same of different things, or one sentence with their names: it shows none of them."""
    texts = {call.content for call in calls}
    if len(texts) > 1 and not any(_is_field(call) for call in calls):
        texts = {call.content.replace(str(value), "\0") for call in calls for value in call.arguments.values()}
    return len(texts) == 1 and len({call.key for call in calls}) >= MINIMUM_SEEN


def _is_field(call: LoggedCall) -> bool:
    """Is an argument of the call a value of its answer?"""
    return not set(map(str, leaves(call.arguments))).isdisjoint(map(str, leaves(call.parsed)))


def _fields(calls: list[LoggedCall], envelope: str | None) -> frozenset[str]:
    """Fields that (nearly) all the documents have."""
    documents = [document for call in calls if isinstance(document := unwrap(call.parsed, envelope), dict)]
    counts = Counter(name for document in documents for name in document)
    return frozenset(name for name, n in counts.items() if n >= 0.98 * len(documents))


def _shapes(calls: list[LoggedCall], envelope: str | None, fields: frozenset[str]) -> Shapes:
    """Return how the values of each field are written; null says nothing."""
    shapes: dict[str, set[type]] = defaultdict(set)
    for call in calls:
        document = unwrap(call.parsed, envelope)
        if isinstance(document, dict):
            for name in fields & document.keys():
                if document[name] is not None:
                    shapes[name].add(type(document[name]) if isinstance(document[name], list | dict) else object)
    return {name: frozenset(own) for name, own in shapes.items()}


def _alike(one: Shapes, other: Shapes) -> bool:
    """Return whether both write the values of the fields that they share in one way at least."""
    return all(one[name] & other[name] for name in one.keys() & other.keys())


def _cluster(
    readers: dict[str, list[LoggedCall]], envelopes: dict[str, str | None], key_of: dict[str, Key]
) -> tuple[dict[str, EntityClass], dict[str, DocumentTool]]:
    """Classes of records, and the tools that show them by their key; not those that take what several records share."""
    classes: dict[str, EntityClass] = {}
    tools: dict[str, DocumentTool] = {}
    keys: dict[str, set[str]] = defaultdict(set)
    fields_of = {tool: _fields(calls, envelopes[tool]) for tool, calls in readers.items()}
    own = {tool: _self_field(calls, key_of[tool].argument, envelopes[tool]) for tool, calls in readers.items()}
    for tool, calls in sorted(readers.items(), key=lambda item: (-len(item[1]), item[0])):
        fields = fields_of[tool]
        others = (other for other, theirs in fields_of.items() if theirs and fields and _similar(theirs, fields))
        if not fields or any(_shares(calls, envelopes[tool], own[other][0]) and not _shares(
                readers[other], envelopes[other], own[tool][0]) for other in others if own[tool][0]):
            continue
        shapes = _shapes(calls, envelopes[tool], fields)
        named = {str(call.arguments[key_of[tool].argument]) for call in calls}
        name = next((each.name for each in classes.values() if _similar(each.fields, fields) and _alike(each.shapes, shapes)
                     and (len(fields) > 1 or named & keys[each.name])), None)  # one field alone may stand in anything
        if name is None:
            name = tool
            classes[name] = EntityClass(name, fields, *own[tool], shapes)
        else:
            classes[name] = classes[name]._replace(fields=classes[name].fields & fields)
        keys[name].update(named)
        tools[tool] = DocumentTool(tool, name, key_of[tool].argument, not key_of[tool].agrees, key_of[tool].agrees)
    return classes, tools


def _shares(calls: list[LoggedCall], envelope: str | None, field: str | None) -> bool:
    """Return whether one argument shows records that differ in the field."""
    asked_by: dict[str, str] = {}
    documents = ((str(call.arguments), unwrap(call.parsed, envelope)) for call in calls)
    shown = ((argument, str(document[field])) for argument, document in documents
             if isinstance(document, dict) and field in document)
    return any(asked_by.setdefault(argument, value) != value for argument, value in shown)


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) / len(one | other) > SIMILAR


def _self_field(calls: list[LoggedCall], argument: str, envelope: str | None) -> tuple[str | None, Affix]:
    """Return the field that holds the key, and the characters that stand around it there."""
    hits: Counter[tuple[Affix, str]] = Counter()
    for call in calls:
        document = unwrap(call.parsed, envelope)
        if isinstance(document, dict):
            key = call.arguments[argument]
            hits.update((affix, name) for name, value in document.items() if (affix := _around(key, value)) is not None)
    frequent = [place for place, n in hits.items() if n >= 0.98 * len(calls)]
    affix, name = min(
        frequent, key=lambda place: (len(place[0][0]) + len(place[0][1]), place)) if frequent else (("", ""), None)
    return name, affix


def _around(key: Any, value: Any) -> Affix | None:
    """Return the characters around the key in the value, None where the value is not the key."""
    if not isinstance(key, str) or not isinstance(value, str):  # a path says every key as text
        return ("", "") if isinstance(value, str | int) and str(key) == str(value) else None
    if not key:
        return None
    before, matched, after = value.partition(key)
    return (before, after) if matched and not any(map(str.isalnum, before + after)) else None


def _join(
    tool: str, calls: list[LoggedCall], classes: dict[str, EntityClass], keys: dict[str, set[str]], envelope: str | None
) -> DocumentTool | None:
    fields = _fields(calls, envelope)
    shapes = _shapes(calls, envelope, fields)
    fitting = [each for each in classes.values() if each.fields and each.fields <= fields and _alike(each.shapes, shapes)
               and (len(each.fields) > 1 or each.fields == fields)]
    if not fitting:
        return None
    entity = max(fitting, key=lambda entity_class: (len(entity_class.fields), entity_class.name))
    hits: Counter[str] = Counter()
    for call in calls:
        hits.update(name for name, value in call.arguments.items() if plain(str(value), entity.affix) in keys[entity.name])
    named = [name for name, n in sorted(hits.items()) if n >= 0.5 * len(calls)]
    if named:
        return DocumentTool(tool, entity.name, max(named, key=lambda name: hits[name]), False)
    return DocumentTool(tool, entity.name, None, False) if entity.self_field else None


MINIMUM_ROWS = 5
MAXIMUM_DEPTH = 2
Rule = dict[str, Any]


def find_rows(calls: list[LoggedCall]) -> dict[str, Rule]:
    """Tool -> its `rows` rule."""
    by_tool = calls_by_tool(call for call in calls if isinstance(call.parsed, list | dict) and not call.failed)
    fields: dict[str, frozenset[str]] = {}
    rules: dict[str, Rule] = {}
    for tool, mine in sorted(by_tool.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = _rows_of(mine)
        if shown is None:
            continue
        field, depth, names = shown
        entity = next((entity_class for entity_class, theirs in fields.items() if _similar(theirs, names)), f"{tool}[]")
        fields.setdefault(entity, names)
        columns = sorted({name for call in mine for name, value in call.arguments.items() if isinstance(value, str | int)})
        inside_of = {} if field is None else {"field": field}
        rules[tool] = {"rule": "rows", "class": entity, **inside_of, "depth": depth, "columns": columns}
    return rules


def tables(calls: list[LoggedCall], rules: dict[str, Rule]) -> dict[str, Table]:
    """Class -> all its rows in these calls."""
    tables_by_class: dict[str, Table] = {rule["class"]: Table() for rule in rules.values()}
    for call in calls:
        rule = rules.get(call.tool)
        if rule and not call.failed:
            for row in rows_in(rule, call.arguments, call.parsed):
                tables_by_class[rule["class"]].add(row)
    return tables_by_class


def _rows_of(calls: list[LoggedCall]) -> tuple[str | None, int, frozenset[str]] | None:
    """(field of the answers that holds the rows, depth of the lists, fields that all rows have); None: they hold no rows."""
    objects = [call.parsed for call in calls if isinstance(call.parsed, dict)]
    lists = {name for answer in objects for name, value in answer.items() if isinstance(value, list)}
    for field in sorted(lists) if len(objects) == len(calls) else [None]:
        for depth in range(1, MAXIMUM_DEPTH + 1):
            rule: Rule = {"field": field, "depth": depth, "columns": []}
            shown = [row for call in calls for row in rows_in(rule, {}, call.parsed)]
            if len(shown) >= MINIMUM_ROWS and all(len(row) > 1 for row in shown):
                names = frozenset.intersection(*(frozenset(row) for row in shown))
                if names:
                    return field, depth, names
    return None
