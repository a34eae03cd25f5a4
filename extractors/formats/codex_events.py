"""What Codex's screen events say beyond the items: whether a call failed, how long it ran, what an answer cost.

Sees commands (exit code), MCP tools (`isError`, `Err`), patches (`success`), and outputs that state it themselves.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import Row
from extractors.formats.usage import tokens


class Ends:
    """How the calls of a rollout ended."""

    def __init__(self) -> None:
        self._failed: dict[str, bool] = {}
        self._latency_ms: dict[str, float] = {}

    def take(self, event: Row) -> None:
        """Note an event that says how a call ended."""
        call_id = event.get("call_id")
        if not isinstance(call_id, str):
            return
        failed = _failed(event)
        if failed is not None:
            self._failed[call_id] = failed
        duration = _milliseconds(event.get("duration"))
        if duration is not None:
            self._latency_ms[call_id] = duration

    def mark(self, rows: list[Row]) -> None:
        """Give calls their duration, and results their error flag."""
        for row in rows:
            call_id = row.get("call_id")
            if row["kind"] == "call" and call_id in self._latency_ms:
                row["latency_ms"] = self._latency_ms[call_id]
            elif row["kind"] == "result" and row.get("is_error") is None:
                row["is_error"] = self._failed[call_id] if call_id in self._failed else _says_failed(row.get("content"))


def last_usage(info: Any) -> Row | None:
    """Token counts of the last answer, as a `token_count` event states them."""
    return tokens(info.get("last_token_usage")) if isinstance(info, dict) else None


def _failed(event: Row) -> bool | None:
    code, result = event.get("exit_code"), event.get("result")
    if isinstance(code, int):
        return code != 0
    if isinstance(event.get("success"), bool):
        return not event["success"]
    if not isinstance(result, dict):
        return None
    if "Err" in result:
        return True
    inner = result.get("Ok", result)
    flag = (inner.get("isError", inner.get("is_error", False)) if isinstance(inner, dict) else None)
    return bool(flag) if flag is not None else None


def _says_failed(content: Any) -> bool | None:
    """What an output of the older shapes says itself: `{"output", "metadata": {"exit_code"}}` or `{"content", "success"}`."""
    if not isinstance(content, str) or not content.startswith("{"):
        return None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "output" in value and isinstance(metadata.get("exit_code"), int):
        return bool(metadata["exit_code"] != 0)
    return not value["success"] if set(value) == {"content", "success"} and isinstance(value["success"], bool) else None


def _milliseconds(duration: Any) -> float | None:
    if not isinstance(duration, dict):
        return None
    seconds, nanoseconds = duration.get("secs"), duration.get("nanos")
    if not isinstance(seconds, (int, float)) or not isinstance(nanoseconds, (int, float)):
        return None
    return seconds * 1000 + nanoseconds / 1_000_000
