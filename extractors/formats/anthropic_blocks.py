"""Messages in the Anthropic way to the parts of events.

Sees: text or lists of blocks, calls and results (of the client's tools, and of the server's, which stand in one message),
error flags (a result without one is none: the API's default), thinking. Texts side by side are joined. Does not see: what an
image or a file says; such blocks are named in `lossy` by type and hash. Blocks of unknown type become log parts, whole.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from extractors.formats.chat import arguments_of
from extractors.formats.format import Row

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_FILES = ("image", "document", "search_result", "container_upload")


def parts(message: Any) -> list[Row]:
    """Event fields of one message, in order; at least one part."""
    if not isinstance(message, dict):
        return [_log(message, "message")]
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, list):
        text = content if content is None or isinstance(content, str) else orjson.dumps(content).decode()
        return [{"kind": "message", "role": role, "content": text, "lossy": []}]
    found: list[Row] = []
    for block in content:
        _add(found, _part(block, role))
    return found or [{"kind": "message", "role": role, "content": None, "lossy": []}]


def _add(found: list[Row], part: Row) -> None:
    """Append a part; text goes on where the last part is text of the same message."""
    if found and found[-1]["kind"] == part["kind"] == "message":
        said = [text for text in (found[-1]["content"], part["content"]) if text is not None]
        found[-1]["content"] = "".join(said) if said else None
        found[-1]["lossy"] += part["lossy"]
    else:
        found.append(part)


def _part(block: Any, role: Any) -> Row:
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(block, str) or (kind in (None, "text") and isinstance(block, dict) and isinstance(block.get("text"), str)):
        return {"kind": "message", "role": role, "content": block if isinstance(block, str) else block["text"], "lossy": []}
    if kind in _CALLS:
        return _call(block, role)
    if isinstance(kind, str) and kind.endswith("tool_result"):
        return _result(block)
    if kind == "thinking":
        return {"kind": "reasoning", "role": role, "content": _text(block.get("thinking")), "lossy": []}
    if kind == "redacted_thinking":
        return {"kind": "reasoning", "role": role, "content": None, "lossy": [_hashed(block)]}
    if kind in _FILES:
        return {"kind": "message", "role": role, "content": _said(block), "lossy": [_hashed(block)]}
    return _log(block, f"block {kind}")


def _call(block: Row, role: Any) -> Row:
    arguments, notes = arguments_of(block.get("input"))
    notes = notes if block["type"] == "tool_use" else [*notes, "server tool"]
    return {"kind": "call", "role": role or "assistant", "requestor": role or "assistant", "call_id": _text(block.get("id")),
            "tool": _text(block.get("name")), "arguments": arguments, "lossy": notes}


def _result(block: Row) -> Row:
    lossy: list[str] = []
    content = block.get("content")
    failed = bool(block.get("is_error"))
    if block["type"] != "tool_result":
        stated = content.get("type") if isinstance(content, dict) else None
        failed = failed or (isinstance(stated, str) and stated.endswith("_error"))
    if isinstance(content, list) and all(_is_text_or_file(each) for each in content):
        texts = [each["text"] for each in content if each.get("type") == "text"]
        lossy = [_hashed(each) for each in content if each.get("type") != "text"]
        content = "".join(texts) if texts or not lossy else None
    return {"kind": "result", "call_id": _text(block.get("tool_use_id")), "content": "" if content is None and not lossy
            else _text(content), "is_error": failed, "lossy": lossy}


def _is_text_or_file(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") in _FILES or (block.get("type") == "text" and isinstance(block.get("text"), str))


def _said(block: Row) -> str | None:
    """Text of a document that is one."""
    source = block.get("source")
    plain = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else None
    return plain if isinstance(plain, str) else None


def _hashed(block: Row) -> str:
    return f"part {block.get('type')} sha256:{hashlib.sha256(orjson.dumps(block)).hexdigest()}"


def _log(value: Any, name: str) -> Row:
    return {"kind": "log", "tool": name, "content": orjson.dumps(value).decode(), "lossy": []}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
