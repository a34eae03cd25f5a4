"""Lists and objects as tools write them: read into elements, and written again in the same form.

A form, as data: `notation` is `json` (with the `style` of json.dumps), `python` or `yaml`; `field`, where the list stands in
an object: its name and the names of the fields that count its elements, in order ([[name, "list" or "count"], …]).
Only what comes out again as it was, to the byte, is read. Of YAML that is block lists, whose elements are kept as their text.

A `parts` rule (docs/behaviour.md) makes an answer of one part for each name that was asked for. A name that an answer leaves
out has no part. Sees the answers to other questions, in the state of the moment; a name with two different parts is not known.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from .answers import parse
from .caching import cached

Form = dict[str, Any]
STYLES: tuple[dict[str, Any], ...] = tuple(
    {"separators": separators, "ensure_ascii": ascii, "indent": indent}
    for indent, separators in ((None, (", ", ": ")), (None, (",", ":")), (2, (",", ": ")), (4, (",", ": ")))
    for ascii in (True, False))
LONGEST = 400_000
"""Characters up to which a text is read."""
_ENTRY = re.compile(r"([A-Za-z_][\w .-]*):(?: (.*))?$")
_WHOLE, _DECIMAL = re.compile(r"[-+]?\d+"), re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]\d+)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "": None, "[]": [], "{}": {}}


class Listing(NamedTuple):
    """A list."""

    values: list[Any]
    texts: list[str]
    """Each element as it is written; compared where the notation is `yaml`."""
    form: Form


@cached(512)
def read(content: str) -> Listing | None:
    """Return the list that a text shows, None where it shows none that would be written the same again. Not to be changed."""
    if len(content) > LONGEST:
        return None
    for listing in _readings(content):
        if written(listing.form, listing.values, listing.texts) == content:
            return listing
    return None


def written(form: Form, values: list[Any], texts: list[str]) -> str:
    """Return the text of a list in this form. `texts`: of the elements, asked for YAML alone."""
    if form["notation"] == "yaml":
        return "\n".join(texts) or "[]"
    whole = values if form["field"] is None else {
        name: values if what == "list" else len(values) for name, what in form["field"]}
    return repr(whole) if form["notation"] == "python" else json.dumps(whole, **form["style"])


def _readings(content: str) -> list[Listing]:
    if content.startswith("- "):
        texts = re.split(r"\n(?=- )", content)
        return [Listing([_value([text[2:], *rest]) for text, *rest in (one.split("\n") for one in texts)], texts,
                        {"notation": "yaml", "field": None})]
    value, notation = parse(content), "json"
    if value is None and content[:1] in ("[", "{"):
        value, notation = _literal(content), "python"
    field = None
    if isinstance(value, dict):
        lists = [name for name, item in value.items() if isinstance(item, list)]
        if len(lists) != 1 or any(item != len(value[lists[0]]) for name, item in value.items() if name != lists[0]):
            return []
        field = [[name, "list" if name == lists[0] else "count"] for name in value]
        value = value[lists[0]]
    if not isinstance(value, list):
        return []
    styles: tuple[dict[str, Any], ...] = STYLES if notation == "json" else ({},)
    return [Listing(value, [], {"notation": notation, "field": field, "style": style}) for style in styles]


def _literal(content: str) -> Any:
    try:
        return ast.literal_eval(content)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _value(lines: list[str]) -> Any:
    """Value of a YAML block, the first line without its dash, the others indented: an object or a scalar, else its text."""
    lines = [lines[0], *(line[2:] if line.startswith("  ") else line for line in lines[1:])]
    first = _ENTRY.match(lines[0])
    if first is None:
        return _scalar("\n".join(lines))
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        entry = _ENTRY.match(lines[at])
        end = at + 1
        while end < len(lines) and (lines[end][:1] in (" ", "") or lines[end].startswith("- ")):
            end += 1
        if entry is None:
            return "\n".join(lines)
        inside = lines[at + 1: end]
        fields[entry[1]] = _inside(inside) if inside and not entry[2] else _scalar("\n".join([entry[2] or "", *inside]))
        at = end
    return fields


def _inside(lines: list[str]) -> Any:
    """Value of the lines below a name."""
    if not lines[0].startswith("- "):
        return _value([line[2:] for line in lines[:1]] + lines[1:])
    items = re.split(r"\n(?=- )", "\n".join(lines))
    return [_value([text[2:], *rest]) for text, *rest in (one.split("\n") for one in items)]


def _scalar(text: str) -> Any:
    """Return a YAML scalar; folded lines are joined."""
    plain = re.sub(r"\n+ *", lambda breaks: "\n" * (breaks[0].count("\n") - 1) or " ", text.strip())
    if plain[:1] == "'" == plain[-1:]:
        return plain[1:-1].replace("''", "'")
    if plain[:1] == '"' == plain[-1:]:
        value = parse(f"[{plain}]")
        return value[0] if value else plain
    if plain in _WORDS:
        return _WORDS[plain]
    return int(plain) if _WHOLE.fullmatch(plain) else float(plain) if _DECIMAL.fullmatch(plain) else plain


NOTHING = object()
"""Stands for the part of a name that answers leave out."""
Fields = dict[str, Any]


def put_together(rule: dict[str, Any], arguments: dict[str, Any], calls: Iterable[tuple[dict[str, Any], str]]) -> str | None:
    """Return the answer made of parts of other answers, None if one is not known."""
    names = arguments.get(rule["argument"])
    rest = {name: value for name, value in arguments.items() if name != rule["argument"]}
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    parts: Fields = {}
    unsure: set[str] = set()
    after: dict[str, set[str]] = {}
    for given, content in calls:
        value = read_object(rule["notation"], content)
        theirs = given.get(rule["argument"])
        if value is None or not isinstance(theirs, list) or {**given, rule["argument"]: 0} != {**rest, rule["argument"]: 0}:
            continue
        for name in filter(lambda name: isinstance(name, str), theirs):
            part = value.get(name, NOTHING)
            if parts.setdefault(name, part) != part:
                unsure.add(name)
        for one, other in pairwise(value):
            after.setdefault(one, set()).add(other)
    if any(name not in parts or name in unsure for name in names):
        return None
    there = [name for name in dict.fromkeys(names) if parts[name] is not NOTHING]
    ordered = there if rule["order"] == "given" else _in_order(there, after)
    return None if ordered is None else written_object(rule, {name: parts[name] for name in ordered})


@cached(4096)
def read_object(notation: str, content: str) -> dict[str, Any] | None:
    """Return the object of a text, None if it would not be written the same way; not to be changed."""
    if content[:1] != "{":
        return None
    value = parse(content) if notation == "json" else _literal(content)
    return value if isinstance(value, dict) and all(isinstance(name, str) for name in value) else None


def written_object(rule: dict[str, Any], value: dict[str, Any]) -> str:
    """Return a value as the notation writes it."""
    return repr(value) if rule["notation"] == "python" else json.dumps(value, **rule["style"])


def _in_order(names: list[str], after: dict[str, set[str]]) -> list[str] | None:
    """Return the names in the one order that all answers follow, None if they do not tell."""
    reach: dict[str, set[str]] = {}
    for name in names:
        reached, waiting = reach.setdefault(name, set()), [name]
        while waiting:
            for other in after.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
    ordered = sorted(names, key=lambda name: (-len(reach[name] & set(names)), name))
    follows = all(other in reach[one] and one not in reach[other] for one, other in pairwise(ordered))
    return ordered if follows else None
