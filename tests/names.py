"""The names in a log's payload: tools, arguments, and fields of results, of two words or more. Envelopes are not payload.

Payload begins where a tool is declared or called, and inside any text that is itself JSON; its keys are names. In results
that are other text, `name: value` lines are. Folders `truth` and `format_samples` are not read. Of `framework_traces` the
names of tools and of their arguments alone are payload: what else stands in its inputs, outputs and inside arguments (whole
messages) are the types of the frameworks' own kits, envelopes that a reader must know.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LEFT = {"truth", "format_samples", "licences"}
PAYLOAD_KEYS = {"arguments", "input", "body", "query", "before", "after", "properties", "Constraints", "Item", "RequestArgs"}
ENVELOPES = {"framework_traces"}
CALL_KEYS = {"arguments", "args", "parsed_arguments"}
LINE = re.compile(r"^[ -]*([A-Za-z_][A-Za-z0-9_]*):(?: |$)", re.M)
TWO_WORDS = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+|[a-z]+[a-z0-9]*([A-Z][a-z0-9]+)+|([A-Z][a-z0-9]+){2,}")


def payload_names(folder: Path, n_bytes: int | None) -> dict[str, str]:
    """Name -> the file where it was first seen; at most `n_bytes` of each file are read, tool lists whole."""
    names: dict[str, str] = {}
    for path in sorted(folder.rglob("*.json*")) + sorted(folder.rglob("*.ndjson")):
        parts = path.relative_to(folder).parts
        if LEFT & set(parts):
            continue
        seen: set[str] = set()
        for document in _documents(path, n_bytes):
            for name in _called(document) if ENVELOPES & set(parts) else _names(document, seen):
                if TWO_WORDS.fullmatch(name) and not hasattr(builtins, name):  # a result may be a traceback
                    names.setdefault(name, "/".join(parts))
    return names


def _documents(path: Path, n_bytes: int | None) -> Iterator[Any]:
    """Yield a file's JSON: the whole of it, or its lines (the last one may be cut and is left)."""
    if path.suffix == ".json":
        text = path.read_text("utf-8")
        yield from _parsed([text])
    else:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from _parsed(file.readlines(n_bytes or -1))


def _parsed(texts: Iterable[str]) -> Iterator[Any]:
    for text in texts:
        try:
            yield json.loads(text)
        except ValueError:
            continue


def _names(value: Any, seen: set[str]) -> Iterator[str]:
    """Names in an envelope: of tools, and in every payload that it carries."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and {"arguments", "parameters", "inputSchema", "input"} & value.keys():
            yield value["name"]
        for key, inner in value.items():
            if key in PAYLOAD_KEYS and isinstance(inner, dict | list):
                yield from _keys(inner, seen)
            else:
                yield from _names(inner, seen)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner, seen)
    elif isinstance(value, str):
        yield from _in_text(value, seen)


def _called(value: Any) -> Iterator[str]:
    """Names of the tools that are called or declared, and of their arguments, at any depth of objects and JSON text."""
    if isinstance(value, dict):
        if isinstance(value.get("name"), str) and {*CALL_KEYS, "parameters", "inputSchema"} & value.keys():
            yield value["name"]
        for key, inner in value.items():
            if key in CALL_KEYS:
                given = next(_parsed([inner]), None) if isinstance(inner, str) else inner
                yield from given if isinstance(given, dict) else ()
            yield from _called(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _called(inner)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        for document in _parsed([value]):
            yield from _called(document)


def _in_text(text: str, seen: set[str]) -> Iterator[str]:
    if text in seen or len(text) < 5:
        return
    seen.add(text)
    yield from LINE.findall(text)
    if text[0] in "{[":
        for document in _parsed([text]):
            if isinstance(document, dict | list):
                # messages inside an attribute are an envelope once more
                is_envelope = isinstance(document, list) and document and isinstance(document[0], dict) and (
                    {"role", "parts", "type"} & document[0].keys()
                )
                yield from _names(document, seen) if is_envelope else _keys(document, seen)


def _keys(value: Any, seen: set[str]) -> Iterator[str]:
    """Every key of a payload, at every depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner, seen)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, seen)
    elif isinstance(value, str):
        yield from _in_text(value, seen)
