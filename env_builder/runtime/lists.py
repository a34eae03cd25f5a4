"""Lists as tools write them: read into elements, and written again in the same form.

A form, as data: `notation` is `json` (with the `style` of json.dumps), `python` or `yaml`; `field`, where the list stands in
an object: its name and the names of the fields that count its elements, in order ([[name, "list" or "count"], …]).
Only what comes out again as it was, to the byte, is read. Of YAML that is block lists, whose elements are kept as their text.
"""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from .answers import parse

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


@lru_cache(512)
def read(content: str) -> Listing | None:
    """The list that a text shows, None where it shows none that would be written the same again. Not to be changed."""
    if len(content) > LONGEST:
        return None
    for found in _readings(content):
        if written(found.form, found.values, found.texts) == content:
            return found
    return None


def written(form: Form, values: list[Any], texts: list[str]) -> str:
    """The text of a list in this form. `texts`: of the elements, asked for YAML alone."""
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
    found: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        entry = _ENTRY.match(lines[at])
        end = at + 1
        while end < len(lines) and (lines[end][:1] in (" ", "") or lines[end].startswith("- ")):
            end += 1
        if entry is None:
            return "\n".join(lines)
        inside = lines[at + 1: end]
        found[entry[1]] = _inside(inside) if inside and not entry[2] else _scalar("\n".join([entry[2] or "", *inside]))
        at = end
    return found


def _inside(lines: list[str]) -> Any:
    """Value of the lines below a name."""
    if not lines[0].startswith("- "):
        return _value([line[2:] for line in lines[:1]] + lines[1:])
    items = re.split(r"\n(?=- )", "\n".join(lines))
    return [_value([text[2:], *rest]) for text, *rest in (one.split("\n") for one in items)]


def _scalar(text: str) -> Any:
    """A YAML scalar; folded lines are joined."""
    plain = re.sub(r"\n+ *", lambda found: "\n" * (found[0].count("\n") - 1) or " ", text.strip())
    if plain[:1] == "'" == plain[-1:]:
        return plain[1:-1].replace("''", "'")
    if plain[:1] == '"' == plain[-1:]:
        value = parse(f"[{plain}]")
        return value[0] if value else plain
    if plain in _WORDS:
        return _WORDS[plain]
    return int(plain) if _WHOLE.fullmatch(plain) else float(plain) if _DECIMAL.fullmatch(plain) else plain
