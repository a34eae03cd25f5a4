"""Logged values as text or as objects, the same way in every format: JSON, queries, forms, base64."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

_PART_NAME = re.compile(r"(?i)^content-disposition:[^\n]*?[;\s]name=\"([^\"]*)\"", re.MULTILINE)
_PART_FILE = re.compile(r"(?i)^content-disposition:[^\n]*?[;\s]filename=\"([^\"]*)\"", re.MULTILINE)


def dumped(value: Any) -> str:
    """Return a value as JSON text. Errors: TypeError for what JSON has no type for."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # whole numbers of more than 64 bits
        return json.dumps(value)


def parsed_json(text: Any, otherwise: Any = None) -> Any:
    """Return the value that JSON text (or its bytes) spells, `otherwise` where it is no JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return otherwise


def loaded(value: Any) -> Any:
    """Return what JSON text (or its bytes) says; any other value as it is; None where the text is no JSON."""
    return parsed_json(value) if isinstance(value, (str, bytes)) else value


def written(value: Any) -> str | None:
    """Return text as it is, None as None, anything else as JSON text."""
    return value if value is None or isinstance(value, str) else dumped(value)


def stated_text(value: Any) -> str | None:
    """Return what `written` does, None for an empty text."""
    return None if value == "" else written(value)


def json_text(value: Any) -> str:
    """Return a value as JSON text; what JSON has no type for becomes text."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:   # a number beyond 64 bits
        return json.dumps(value, default=str, ensure_ascii=False)


def object_in(text: str) -> dict[str, Any] | None:
    """Return the object that a JSON text spells, None where it spells none."""
    value = parsed_json(text)
    return value if isinstance(value, dict) else None


def opened(value: Any) -> Any:
    """Return what text spells, where that is a JSON object or list; any other value as it is."""
    return parsed_json(value, value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value


def object_of(value: Any) -> dict[str, Any]:
    """Return an object as it is, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def first_of(value: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first of these fields that holds something: neither None nor an empty text."""
    return next((value[name] for name in names if value.get(name) not in (None, "")), None)


def text_of(value: Any) -> str | None:
    """Return a value as text, None for nothing and for an empty text."""
    return str(value) if value not in (None, "") else None


def list_under(value: Any, name: str) -> list[Any]:
    """Return the list that an object holds under a name, an empty one where it holds none."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []


def number_of(value: Any) -> float | None:
    """Return a number, also where text spells it (exports of warehouses do); None for anything else."""
    value = parsed_json(value) if isinstance(value, str) else value
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, None as an empty one, anything else as the only element."""
    return value if isinstance(value, list) else [] if value is None else [value]


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def word_of(value: Any) -> str | None:
    """Return a text that is not empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a page, which holds them under `data`; of any other object itself."""
    data = value.get("data") if isinstance(value, dict) else None
    return objects_in(data if isinstance(data, list) else [value])


def query(text: str) -> dict[str, Any]:
    """Return a query (without `?`) as an object."""
    return merged(parse_qsl(text, keep_blank_values=True))


def merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Names and values as an object; a name that comes more than once holds a list."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name not in values:
            values[name] = value
        else:
            values[name] = [*(values[name] if isinstance(values[name], list) else [values[name]]), value]
    return values


def _parts(text: str) -> list[tuple[str, Any]]:
    """Return the fields of a form in parts; of a file its name."""
    lines = text.lstrip().splitlines()
    boundary = lines[0].strip() if lines else ""
    if not boundary.startswith("--"):
        return []
    fields: list[tuple[str, Any]] = []
    for part in re.split(rf"(?:^|\r?\n){re.escape(boundary)}(?:--)?(?:\r?\n|$)", text.lstrip()):
        head, _, content = part.replace("\r\n", "\n").partition("\n\n")
        if name := _PART_NAME.search(head):
            file_name = _PART_FILE.search(head)
            fields.append((name[1], {"file": file_name[1]} if file_name else content))
    return fields


_CHARSET = re.compile(rb"charset=[\"']?([\w.:-]+)", re.IGNORECASE)


def _decoded(content: bytes, mime_type: str) -> str | None:
    """Return a text in UTF-8, else in the encoding that its type or its page names; None where it is no text."""
    named = [match[1].decode() for part in (mime_type.encode(), content[:2048]) if (match := _CHARSET.search(part))]
    for name in ["utf-8", *(named if mime_type.startswith("text/") else ())]:
        try:
            return content.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return None


def body(text: Any, mime_type: str = "", encoding: str | None = None) -> Any:
    """Return the value that a body's JSON spells, the fields of its form (in parts too), else its text.

    Base64 of no text stays as it is; of a page in an older encoding it is that page."""
    if encoding == "base64" and isinstance(text, str):
        try:
            decoded = _decoded(base64.b64decode(text, validate=True), mime_type)
        except binascii.Error:
            return text
        if decoded is None:
            return text
        text = decoded
    if not isinstance(text, str):
        return text
    if mime_type.startswith("application/x-www-form-urlencoded"):
        return query(text)
    if mime_type.startswith("multipart/form-data") and (parts := _parts(text)):
        return merged(parts)
    return parsed_json(text, text) if "json" in mime_type else opened(text)
