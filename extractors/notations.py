"""Files that hold records in no layout of their own: JSON values one after the other, and dumps of SQL.

In: bytes. Out: JSON values, in file order; what cannot be read is an `Unparsed` with the reason.
Sees: indented values one after the other, commas and comments between lines (`#`, `//`), commas before a closing
bracket; PostgreSQL's `COPY … FROM stdin` and `INSERT` of PostgreSQL, MySQL and SQLite, rows by table. Does not see: types of
columns that a dump writes as text; dumps in binary notation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

_JSON_NOISE = re.compile(
    r'("(?:[^"\\\n]|\\.)*")|(?m:^[ \t]*(?:#|//)[^\n]*)|(?<=[,{\[\]}\d"el])[ \t]+//[^\n]*|,(?=\s*[}\]])')
"""Strings, which stay; comments, and commas before a closing bracket, which go."""
_BETWEEN = re.compile(r"[\s,]*")
_NEXT_VALUE = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
_ROWS = re.compile(
    r"^(?:COPY +(?P<copied>[^\s(]+) *\((?P<copied_columns>[^)\n]*)\) +FROM +stdin[^\n]*;[ \t]*$"
    r"|INSERT +(?:IGNORE +)?INTO +(?P<table>[^\s(]+) *(?:\((?P<columns>[^)\n]*)\)\s*)?VALUES\s*)", re.MULTILINE | re.IGNORECASE)
"""Where the rows of a table begin."""
_CREATE = re.compile(r"^CREATE +TABLE +(?:IF +NOT +EXISTS +)?(?P<table>[^\s(]+) *\("
                     r"(?P<body>[^\n]*\n(?:(?!CREATE|INSERT|COPY)[^\n]*\n)*?)[ \t]*\)", re.MULTILINE | re.IGNORECASE)
_COLUMN = re.compile(r"^\s*[\"`\[]?(?!(?:PRIMARY|KEY|UNIQUE|CONSTRAINT|FOREIGN|CHECK|INDEX)\b)(\w+)", re.IGNORECASE)
_NEXT_ROW = re.compile(r"\s*,\s*(?=\()")
_QUOTES = "\"`[]"
_STANDARD = re.compile(
    r"\s*(?:(?P<raw>E|X|B|_binary )?'(?P<text>(?:[^']|'')*+)'|(?P<word>[^,()\s]+))\s*(?P<end>[,)])", re.IGNORECASE)
_ESCAPING = re.compile(r"\s*(?:(?P<raw>E|X|B|_binary )?'(?P<text>(?:[^'\\]|\\.|'')*+)'|(?P<word>[^,()\s]+))\s*(?P<end>[,)])",
                       re.DOTALL | re.IGNORECASE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "Z": "\x1a"}
_WORDS = {"null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Unparsed:
    """A part of a file that gives no value, and why."""

    problem: str


def is_stream(content: bytes) -> bool:
    """Return whether a text may hold JSON values one after the other: it begins with one, or with a comment."""
    return content.lstrip()[:1] in (b"{", b"[", b"#", b"/")


def values_in_stream(content: bytes, most: int | None = None) -> list[Any]:
    """Return the JSON values of a text, those of its lists one by one; `most`: only so many.

    After a part that is no JSON, it goes on with the next line that begins a value."""
    source = content.decode("utf-8-sig", "replace")
    text = _JSON_NOISE.sub(lambda match: match[1] or "", source)
    decoder = json.JSONDecoder(parse_constant=lambda name: None)
    values: list[Any] = []
    at = _BETWEEN.match(text, 0).end()  # type: ignore[union-attr]  # it matches nothing, too
    while at < len(text) and (most is None or len(values) < most):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            following = _NEXT_VALUE.search(text, at + 1)
            end = following.start() if following is not None else len(text)
            begin, reason = text[at:at + 40].split("\n")[0], error.args[0].partition(":")[0]
            values.append(Unparsed(f"{begin!r} begins no JSON ({reason})"))
            at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]
            continue
        values += value if isinstance(value, list) else [value]
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
    return [_storable(each) for each in values]


def _storable(value: Any) -> Any:
    """Return a value without what cannot be stored: lone surrogates become `?`."""
    if isinstance(value, Unparsed):
        return value
    try:
        orjson.dumps(value)
    except TypeError:
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def is_dump(content: bytes) -> bool:
    """Return whether a text is a dump of SQL with rows."""
    text = content[:1 << 20].decode("utf-8", "replace")
    return _ROWS.search(text) is not None


def values_in_dump(content: bytes) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a dump, by table."""
    text = content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    tables: dict[str, list[dict[str, Any]]] = {}
    columns_of = {_name(each["table"]): [match[1] for line in each["body"].split("\n") if (match := _COLUMN.match(line))]
                  for each in _CREATE.finditer(text)}
    at = 0
    while (start := _ROWS.search(text, at)) is not None:
        name = _name(start["copied"] or start["table"])
        named = start["copied_columns"] or start["columns"]
        columns = [_name(each) for each in named.split(",")] if named else columns_of.get(name, [])
        rows = tables.setdefault(name, [])
        if start["copied"]:
            end = text.find("\n\\.", start.end())
            end = len(text) if end < 0 else end
            rows += _with_booleans([dict(zip(columns, map(_copied, line.split("\t")), strict=False))
                                    for line in text[start.end() + 1:end].split("\n") if line])
            at = end
        else:
            inserted, at = _inserted(text, start.end(), is_escaping="`" in start["table"])
            rows += [dict(zip(columns or [f"column_{n + 1}" for n in range(len(row))], row, strict=False)) for row in inserted]
    return tables


def _name(text: str) -> str:
    return text.strip().rpartition(".")[2].strip(_QUOTES)


def _copied(cell: str) -> str | None:
    """Return the text of a cell of `COPY`, None for NULL."""
    if cell == "\\N":
        return None
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), cell, flags=re.DOTALL) if "\\" in cell else cell


def _with_booleans(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the columns that hold `t` and `f` alone as true and false."""
    names = {name for name in (rows[0] if rows else ()) if {row.get(name) for row in rows} - {None} <= {"t", "f"}}
    return [{name: each == "t" if name in names and each is not None else each for name, each in row.items()} for row in rows]


def _inserted(text: str, at: int, is_escaping: bool) -> tuple[list[list[Any]], int]:
    """Return the rows of an `INSERT` whose values begin at a place, and where they end."""
    rows: list[list[Any]] = []
    literal = _ESCAPING if is_escaping else _STANDARD
    while at < len(text) and text[at] == "(":
        row: list[Any] = []
        at += 1
        while (match := (_ESCAPING if text[at:at + 8].lstrip()[:1] in "eE" else literal).match(text, at)) is not None:
            row.append(_value(match, is_escaping))
            at = match.end()
            if match["end"] == ")":
                break
        rows.append(row)
        following = _NEXT_ROW.match(text, at)
        if following is None:
            break
        at = following.end()
    return rows, at


def _value(match: re.Match[str], is_escaping: bool) -> Any:
    if match["text"] is None:
        word = match["word"].partition("::")[0]
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        try:
            return orjson.loads(word)
        except orjson.JSONDecodeError:
            return word
    written = match["text"].replace("''", "'")
    if is_escaping or (match["raw"] or "").upper() == "E":
        written = re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), written, flags=re.DOTALL)
    return written
