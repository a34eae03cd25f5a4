"""The parts of Gemini's contents to the parts of events (see `extractors.formats.gemini`)."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from extractors.formats.chat import arguments_of
from extractors.formats.format import Row
from extractors.formats.gemini_names import snake_case

_CALLS = {"functionCall": "args", "toolCall": "args", "executableCode": None}
_RESULTS = {"functionResponse": "response", "toolResponse": "response", "codeExecutionResult": "output"}
_CODE = "code_execution"
_FILES = ("inlineData", "fileData")
_CAMEL = {snake_case(name): name for name in (*_CALLS, *_RESULTS, *_FILES)}


def part_of(part: Any, role: Any) -> Row:
    """Event fields of one part."""
    if isinstance(part, str):
        return {"kind": "message", "role": role, "content": part, "lossy": []}
    if not isinstance(part, dict):
        return _log(part)
    part = {_CAMEL.get(key, key): value for key, value in part.items() if value is not None}
    if isinstance(part.get("text"), str):
        thought = part.get("thought") is True
        return {"kind": "reasoning" if thought else "message", "role": role, "content": part["text"], "lossy": []}
    for name, key in _CALLS.items():
        if isinstance(part.get(name), dict):
            return _call(part[name], role, key)
    for name, key in _RESULTS.items():
        if isinstance(part.get(name), dict):
            return _result(part[name], key)
    file = next((name for name in _FILES if name in part), None)
    if file is not None:
        digest = hashlib.sha256(orjson.dumps(part[file])).hexdigest()
        return {"kind": "message", "role": role, "content": None, "lossy": [f"part {file} sha256:{digest}"]}
    return _log(part)


def together(found: list[Row]) -> list[Row]:
    """The parts with texts (and thoughts) side by side joined: a stream tells them in pieces."""
    told: list[Row] = []
    for part in found:
        if told and part["kind"] in ("message", "reasoning") and told[-1]["kind"] == part["kind"]:
            said = [text for text in (told[-1]["content"], part["content"]) if text is not None]
            told[-1]["content"] = "".join(said) if said else None
            told[-1]["lossy"] += part["lossy"]
        else:
            told.append(part)
    return told


def _call(call: Row, role: Any, key: str | None) -> Row:
    arguments, notes = arguments_of(call if key is None else call.get(key))
    notes = notes if not (call.get("willContinue") or call.get("partialArgs")) else [*notes, "arguments told in pieces"]
    tool = _CODE if key is None else call.get("name") or call.get("toolType")
    return {"kind": "call", "role": role, "requestor": role, "call_id": call.get("id"), "tool": tool, "arguments": arguments,
            "lossy": notes}


def _result(result: Row, key: str) -> Row:
    """A function's answer: an error is one that says `error`, the whole is kept then; success may lie under `output`."""
    value, failed = result.get(key), False
    if key == "output":
        failed = result.get("outcome") not in (None, "OUTCOME_OK", 1)
    elif isinstance(value, dict):
        failed = value.get("error") is not None
        value = value["output"] if set(value) == {"output"} else value
    content = value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
    return {"kind": "result", "call_id": result.get("id"), "tool": _CODE if key == "output" else result.get("name"),
            "content": content, "is_error": failed, "lossy": []}


def _log(part: Any) -> Row:
    return {"kind": "log", "tool": "part", "content": orjson.dumps(part).decode(), "lossy": []}
