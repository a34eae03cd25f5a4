"""The two sides of a record that a gateway or a wrapper logs around any provider's API: request and response, and their times.

Sees the names that wrappers use, bodies as JSON text, and configured paths for the time. Does not see binary bodies.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import Emit, Row
from extractors.formats.instants import earlier, microseconds

_REQUEST = ("request", "request_body", "requestBody", "req")
_RESPONSE = ("response", "response_body", "responseBody", "res")
_STARTED = ("ts", "timestamp", "start_time", "started_at", "request_time")
_LATENCY = ("latency_ms", "duration_ms", "response_ms", "latency")


def sides(value: Any) -> tuple[Row, Any]:
    """Request (empty where there is none) and response of a record."""
    if not isinstance(value, dict):
        return {}, None
    request, response = _side(value, _REQUEST), _side(value, _RESPONSE)
    return request if isinstance(request, dict) else {}, response


def times(value: Row, answered: Any, emit: Emit) -> tuple[int | None, int | None, float | None]:
    """When it was asked and answered (microseconds), and how long that took (ms); `answered`: as the response states it.

    What is not stated follows from the latency; without one, an answer has the time of its question.
    """
    stated = emit.envelope.mapped("time", value)
    stated = stated if stated is not None else next((value[key] for key in _STARTED if key in value), None)
    started, ended = microseconds(stated), microseconds(answered)
    latency = next((float(value[key]) for key in _LATENCY if _is_number(value.get(key))), None)
    if ended is None and started is not None:
        ended = earlier(started, -(latency or 0.0))
    if started is None and ended is not None:
        started = earlier(ended, latency or 0.0)
    return started, ended, latency


def _side(value: Row, names: tuple[str, ...]) -> Any:
    found = next((value[name] for name in names if value.get(name) is not None), None)
    if isinstance(found, dict) and isinstance(found.get("body"), (dict, str)):
        found = found["body"]
    if isinstance(found, str) and found.lstrip()[:1] in ("{", "["):
        try:
            return orjson.loads(found)
        except orjson.JSONDecodeError:
            return found
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
