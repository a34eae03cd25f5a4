"""Notations of answers: read as JSON values, and written back byte for byte.

In: a tool's answers as texts, and its notation (`world.notations` finds it). Inside an environment an answer in one of these
notations is JSON text, which everything else reads; the agent gets the tool's own notation. An answer that its notation does
not give back exactly stays as it is.

    json      JSON with other spaces or line breaks than documents have, or in a frame
    literal   Python's repr of dictionaries, lists and tuples
    yaml      YAML in block style, as its common writers dump it, long texts folded
    table     separated values under a header, quoted as CSV is; Markdown tables
    lines     `name: value` in each line

An answer of any of these may stand in a frame, the same characters before and after it, as in `(True, …)`.
Does not see: sentences with slots, several values in one answer, literal blocks, comments, anchors, notes before or after the
value.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .answers import parse
from .sentences import NoSentence, read_sentence, write_sentence

STYLE: dict[str, Any] = {"separators": (", ", ": "), "ensure_ascii": False}
"""How values are written inside."""
Notation = dict[str, Any]
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})$")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+$")
_RESOLVED = re.compile(
    r"(?i:~|null|true|false|yes|no|on|off|y|n|=|<<)$|[-+]?(?:[0-9][0-9_,.]*(?:e[-+]?\d+)?|0x[\da-f]+|0b[01_]+|\.inf|\.nan)$"
    r"|[-+]?\d+(?::[0-5]?\d)+(?:\.\d*)?$|\d{4}-\d\d?-\d\d?(?:[Tt ].*)?$")
"""Plain texts that a reader of YAML takes for something else than a text."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{6})?(?:[+-]\d\d:\d\d)?)?$")
_NAMED = re.compile(r"('(?:[^']|'')*'|[^\s'\"#&*!|>%@`\[\]{},?-][^#]*?)(?:: (.*)|:)$")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"$')
_ESCAPED = re.compile(r"\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {"\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e", '"': '"',
            "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P"}
_UNESCAPED = {**{letter: sign for sign, letter in _ESCAPES.items()}, " ": " ", "/": "/"}
_LINE = re.compile(r"([^:\n]{1,60}): (.*)$")


class NotInNotation(ValueError):
    """A text is not in a notation."""


_UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)


def read(content: str, notation: Notation) -> str:
    """Return an answer that worked without its frame, its value as JSON text; the answer itself where it would not be given
    back."""
    before, after = notation["frame"]
    if not (content.startswith(before) and content.endswith(after) and len(content) > len(before) + len(after)):
        return content
    inner = content[len(before):len(content) - len(after)]
    try:
        value = _READERS[notation["kind"]](inner, notation)
        if isinstance(value, dict | list) and write_value(value, notation) == inner:
            return json.dumps(value, **STYLE)
    except (*_UNREADABLE, SyntaxError, MemoryError, csv.Error):
        pass
    return inner if parse(inner) is None else content


def write(content: str, notation: Notation) -> str | None:
    """Return an answer that worked in its tool's notation, None where that has no place for it."""
    value = parse(content)
    before, after = notation["frame"]
    try:
        text = content if value is None else write_value(value, notation)
        return f"{before}{text}{after}"
    except _UNREADABLE:
        return None


def read_in(content: str, notations: Sequence[Sequence[Any]], instant: str | None) -> str:
    """Read an answer in the notation of its instant, of [until, notation] in order of time."""
    notation = in_force(notations, instant)
    return content if notation is None else read(content, notation)


def written_in(content: str, notations: Sequence[Sequence[Any]], instant: str | None) -> str | None:
    """Write an answer that worked in the notation of an instant, None where that has no place for it."""
    notation = in_force(notations, instant)
    return content if notation is None else write(content, notation)


def in_force(notations: Sequence[Sequence[Any]], instant: str | None) -> Notation | None:
    """Return the notation of an instant, of [until, notation] in order of time; the last where there is no clock."""
    return next((notation for until, notation in notations if until is None or (instant is not None and instant < until)), None)


def write_value(value: Any, notation: Notation) -> str:
    """Write a JSON value. Raises NotInNotation where the notation has no place for it."""
    return _WRITERS[notation["kind"]](value, notation)


def _scalar(text: str) -> Any:
    """Return the number that a cell is written as, else the text."""
    if _INTEGER.match(text):
        return int(text) if text != "-0" else text
    if _DECIMAL.match(text) and repr(float(text)) == text:
        return float(text)
    return text


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        raise NotInNotation("a cell holds a number or a text")
    return repr(value) if isinstance(value, float) else str(value)


# JSON

def _read_json(content: str, notation: Notation) -> Any:
    return json.loads(content)


def _write_json(value: Any, notation: Notation) -> str:
    separators = notation.get("separators")
    text = json.dumps(value, indent=notation["indent"], ensure_ascii=notation["ascii"], separators=separators)
    return text + str(notation["end"])


# Python literals

def _read_literal(content: str, notation: Notation) -> Any:
    return _listed(ast.literal_eval(content), (), notation["tuples"])


def _listed(value: Any, place: tuple[str, ...], tuples: list[list[str]]) -> Any:
    """Return a literal with lists for tuples, which stand in known places."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise NotInNotation("a key is no text")
        return {name: _listed(each, (*place, name), tuples) for name, each in value.items()}
    if isinstance(value, list | tuple):
        if isinstance(value, tuple) != (list(place) in tuples) and value:
            raise NotInNotation("a list, or a tuple, in another's place")
        return [_listed(each, (*place, "*"), tuples) for each in value]
    if not isinstance(value, str | int | float | None):
        raise NotInNotation("no JSON value")
    return value


def _write_literal(value: Any, notation: Notation) -> str:
    return repr(_tupled(value, (), notation["tuples"]))


def _tupled(value: Any, place: tuple[str, ...], tuples: list[list[str]]) -> Any:
    if isinstance(value, dict):
        return {name: _tupled(each, (*place, name), tuples) for name, each in value.items()}
    if isinstance(value, list):
        made = [_tupled(each, (*place, "*"), tuples) for each in value]
        return tuple(made) if list(place) in tuples else made
    return value


# YAML

def _read_yaml(content: str, notation: Notation) -> Any:
    lines = content.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    value, rest = _block(lines, 0, 0)
    if rest != len(lines):
        raise NotInNotation("lines are left")
    return value


def _block(lines: list[str], start: int, indent: int) -> tuple[Any, int]:
    """Return (the value whose lines begin at `start` with this indent, the first line after it)."""
    if start >= len(lines):
        raise NotInNotation("nothing is there")
    first = lines[start][indent:]
    return (_sequence if first == "-" or first.startswith("- ") else _mapping)(lines, start, indent)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _sequence(lines: list[str], start: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while start < len(lines) and _indent(lines[start]) == indent and lines[start][indent:indent + 2] == "- ":
        rest = lines[start][indent + 2:]
        if _NAMED.match(rest) or rest.startswith("- "):
            own = [*lines[:start], " " * (indent + 2) + rest, *lines[start + 1:]]
            value, start = _block(own, start, indent + 2)
        else:
            value, start = _folded(lines, start, rest, indent)
        items.append(value)
    return items, start


def _mapping(lines: list[str], start: int, indent: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    while start < len(lines) and _indent(lines[start]) == indent and not lines[start][indent:].startswith("- "):
        match = _NAMED.match(lines[start][indent:])
        if match is None:
            match = re.match(r"('(?:[^']|'')*'|[^\s'\"][^:]*): (.*)$", lines[start][indent:])
        if match is None:
            raise NotInNotation(f"no field: {lines[start]}")
        name = _plain_scalar(match.group(1), is_key=True)
        if not isinstance(name, str) or name in fields:
            raise NotInNotation("no name")
        if match.group(2) is None:
            following = _indent(lines[start + 1]) if start + 1 < len(lines) else -1
            is_list = following == indent and lines[start + 1][indent:].startswith("- ")
            if following <= indent and not is_list:
                raise NotInNotation("an empty field")
            fields[name], start = _block(lines, start + 1, following)
        else:
            fields[name], start = _folded(lines, start, match.group(2), indent)
    if not fields:
        raise NotInNotation("no mapping")
    return fields, start


def _folded(lines: list[str], start: int, text: str, indent: int) -> tuple[Any, int]:
    """Return (a scalar that may go on in lines with more indent, the first line after it); empty lines in quotes are breaks."""
    start, breaks = start + 1, ""
    if text.startswith('"'):
        return _unfolded(lines, start, text, indent)
    while start < len(lines) and (_indent(lines[start]) > indent or (not lines[start] and _is_open(text))):
        if lines[start]:
            text, breaks = text + (breaks or " ") + lines[start].strip(" "), ""
        else:
            breaks += "\n"
        start += 1
    return _plain_scalar(text), start


def _unfolded(lines: list[str], start: int, text: str, indent: int) -> tuple[str, int]:
    """Return (a text in double quotes whose broken lines end with a backslash, the first line after it)."""
    while not _QUOTED.match(text):
        if start >= len(lines) or _indent(lines[start]) <= indent or not text.endswith("\\"):
            raise NotInNotation("quotes that do not end")
        text, start = text[:-1] + lines[start].lstrip(" "), start + 1
    return _ESCAPED.sub(_unescaped, text[1:-1]), start


def _unescaped(match: re.Match[str]) -> str:
    *numbers, letter = match.groups()
    return _UNESCAPED[letter] if letter else chr(int(next(filter(None, numbers)), 16))


def _is_open(text: str) -> bool:
    """Return whether a text in single quotes goes on."""
    return text.startswith("'") and text.count("'") % 2 == 1


def _plain_scalar(text: str, is_key: bool = False) -> Any:
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text in ("[]", "{}"):
        return [] if text == "[]" else {}
    if text.startswith('"') or text == "":
        raise NotInNotation("double quotes")
    if is_key:
        return text
    if text in ("null", "~"):
        return None
    return {"true": True, "false": False}.get(text, _scalar(text))


def _write_yaml(value: Any, notation: Notation) -> str:
    if not value:
        raise NotInNotation("an empty document")
    return "\n".join(_yaml_lines(value, 0, notation)) + ("\n" if notation["last"] else "")


def _yaml_lines(value: Any, indent: int, notation: Notation) -> Iterator[str]:
    space = " " * indent
    if isinstance(value, dict):
        for name, each in value.items():
            if "\n" in name or _needs_escapes(name, notation):
                raise NotInNotation("a name that is escaped")
            head = f"{space}{_yaml_scalar(name, notation)}:"
            if isinstance(each, dict | list) and each:
                yield head
                yield from _yaml_lines(each, indent + (notation["dash"] if isinstance(each, list) else 2), notation)
            else:
                yield from _scalar_lines(f"{head} ", each, indent + 2, notation)
    else:
        for each in value:
            if isinstance(each, dict | list) and each:
                first, *others = _yaml_lines(each, indent + 2, notation)
                yield f"{space}- {first[indent + 2:]}"
                yield from others
            else:
                yield from _scalar_lines(f"{space}- ", each, indent + 2, notation)


def _scalar_lines(head: str, value: Any, indent: int, notation: Notation) -> list[str]:
    if isinstance(value, str) and _needs_escapes(value, notation):
        return _double(head, value, indent, notation)
    return _fold(head, _yaml_scalar(value, notation), indent, notation)


def _needs_escapes(text: str, notation: Notation) -> bool:
    """Return whether a text stands in double quotes: breaks beside spaces, and characters that are escaped."""
    return " \n" in text or "\n " in text or any(sign != "\n" and not _is_plain(sign, notation) for sign in text)


def _is_plain(sign: str, notation: Notation) -> bool:
    return " " <= sign <= "~" or (not notation.get("ascii") and sign not in "\x85\u2028\u2029\ufeff" and (
        "\xa0" <= sign <= "\ud7ff" or "\ue000" <= sign <= "\ufffd" or sign >= "\U00010000"))


def _double(head: str, text: str, indent: int, notation: Notation) -> list[str]:
    """Write a text in double quotes, broken at spaces and after escapes beyond the width, as writers of YAML do."""
    lines, line, start = [], head + '"', 0
    width = notation["width"] or len(head) + 10 * len(text) + 2
    for end in range(len(text) + 1):
        sign = text[end] if end < len(text) else ""
        if not sign or sign in '"\\' or sign > "\uffff" or not _is_plain(sign, notation):
            line, start = line + text[start:end] + _escape(sign), end + 1 if sign else end
        if 0 < end < len(text) - 1 and (sign == " " or start >= end) and len(line) + end - start > width:
            lines.append(line + text[start:end] + "\\")
            start = max(start, end)
            line = " " * indent + ("\\" if text[start] == " " else "")
    return [*lines, line + '"']


def _escape(sign: str) -> str:
    if not sign or sign in _ESCAPES:
        return "\\" + _ESCAPES[sign] if sign else ""
    number = ord(sign)
    return f"\\x{number:02X}" if number <= 0xFF else f"\\u{number:04X}" if number <= 0xFFFF else f"\\U{number:08X}"


def _fold(head: str, text: str, indent: int, notation: Notation) -> list[str]:
    """Break a text at the first space after the width, as writers of YAML do, and where it has several lines: these with as
    many empty lines before them as there are breaks."""
    first, *others = re.split(r"(\n+)", text)
    lines = _filled(head, first, indent, notation)
    for breaks, part in zip(others[::2], others[1::2], strict=True):
        lines += [*[""] * len(breaks), *_filled(" " * indent, part, indent, notation)]
    return lines


def _filled(head: str, text: str, indent: int, notation: Notation) -> list[str]:
    width = notation["width"]
    if not width or len(head) + len(text) <= width or "  " in text:
        return [head + text]
    lines, line = [], head
    for place, word in enumerate(text.split(" ")):
        if place and len(line) > width:
            lines.append(line)
            line = " " * indent + word
        else:
            line += (" " if place else "") + word
    return [*lines, line]


def _yaml_scalar(value: Any, notation: Notation) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict | list):
        return "[]" if isinstance(value, list) else "{}"
    if notation["days"] and _DAY.match(value):
        return str(value)
    needs_quotes = (
        not value or value != value.strip() or value[0] in "#,[]{}&*!|>'\"%@`" or value in ("-", "?", "---", "...")
        or value[:2] in ("- ", "? ", ": ") or (value[0] == ":" and len(value) == 1) or ": " in value or " #" in value
        or value.endswith(":") or "\n" in value or _RESOLVED.match(value))
    return "'" + value.replace("'", "''") + "'" if needs_quotes else str(value)


# Tables and lines

def _rows(header: list[str], cells: list[list[str]], single: bool) -> Any:
    if len(set(header)) < len(header) or not header or "" in header or any(len(row) != len(header) for row in cells):
        raise NotInNotation("no table")
    rows = [dict(zip(header, map(_scalar, row), strict=True)) for row in cells]
    if not single:
        return rows
    if len(rows) != 1:
        raise NotInNotation("not one row")
    return rows[0]


def _table_of(value: Any, single: bool) -> list[dict[str, Any]]:
    rows = [value] if single else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and list(row) == list(rows[0]) for row in rows):
        raise NotInNotation("no table")
    return rows


def _read_table(content: str, notation: Notation) -> Any:
    lines = list(csv.reader(io.StringIO(content, newline=""), delimiter=notation["separator"], strict=True))
    if len(lines) < 2 or len(lines[0]) < 2:
        raise NotInNotation("no table")
    return _rows(lines[0], lines[1:], notation["single"])


def _write_table(value: Any, notation: Notation) -> str:
    rows = _table_of(value, notation["single"])
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=notation["separator"], lineterminator=notation["end"])
    writer.writerow(rows[0])
    writer.writerows([_cell(each) for each in row.values()] for row in rows)
    return text.getvalue() if notation["last"] else text.getvalue()[:-len(notation["end"])]


def _read_markdown(content: str, notation: Notation) -> Any:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in content.strip("\n").split("\n")]
    if len(lines) < 3 or not all(re.fullmatch(r":?-+:?", cell) for cell in lines[1]):
        raise NotInNotation("no table")
    return _rows(lines[0], lines[2:], notation["single"])


def _write_markdown(value: Any, notation: Notation) -> str:
    rows = _table_of(value, notation["single"])
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([_cell(each) for each in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + ("\n" if notation["last"] else "")


def _read_lines(content: str, notation: Notation) -> Any:
    lines = content.removesuffix("\n").split("\n")
    fields: dict[str, Any] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is None or match.group(1) in fields:
            raise NotInNotation("no line of a field")
        fields[match.group(1)] = _scalar(match.group(2))
    if len(fields) < 2:
        raise NotInNotation("one line alone")
    return fields


def _write_lines(value: Any, notation: Notation) -> str:
    if not isinstance(value, dict):
        raise NotInNotation("no fields")
    return "\n".join(f"{name}: {_cell(each)}" for name, each in value.items()) + ("\n" if notation["last"] else "")


# Sentences

def _read_sentence(content: str, notation: Notation) -> Any:
    return read_sentence(content, notation["pieces"])


def _write_sentence(value: Any, notation: Notation) -> str:
    if not isinstance(value, dict):
        raise NoSentence("no fields")
    return write_sentence(value, notation["pieces"])


_READERS: Mapping[str, Callable[[str, Notation], Any]] = {
    "json": _read_json, "literal": _read_literal, "yaml": _read_yaml, "table": _read_table, "markdown": _read_markdown,
    "lines": _read_lines, "sentence": _read_sentence}
_WRITERS: Mapping[str, Callable[[Any, Notation], str]] = {
    "json": _write_json, "literal": _write_literal, "yaml": _write_yaml, "table": _write_table, "markdown": _write_markdown,
    "lines": _write_lines, "sentence": _write_sentence}
