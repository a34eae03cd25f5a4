"""The columns of a request event, from what an access log's line or an application's object states.

In: `AccessFields`, or an object and its `Stated` facts. Out: tool, arguments, value and the other columns of
`core.events`.
The answer's size and the client's headers that an access log holds are kept beside status and query.
Does not see: the scheme of the address; the host only where the target is a whole address.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import orjson

from extractors.formats.access_line import AccessFields
from extractors.formats.application_fields import Row, Stated, stated_in
from extractors.formats.instants import earlier

_PAIR = re.compile(r'(?:^|\s)([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)', re.ASCII)
_SENTENCE = re.compile(
    r'\b(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) ([/*][^\s"]*|https?://[^\s"]+)(?: HTTP/[\d.]+)?"?(?:\s+(?:->|-|=>|:))?\s+'
    r"([1-5]\d\d)\b(?:[^\d]{1,12}?(\d+(?:\.\d+)?)\s?(ms|s|µs|us)\b)?", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)([^#]*)")
_LOGFMT = 3
NOT_CAPTURED = "response body not captured"


def access_columns(fields: AccessFields, service: str | None) -> Row:
    """Columns of the request that an access log's line tells."""
    path = fields.path or "/"
    host = None
    if path[:1] != "/" and (found := _ADDRESS.fullmatch(path)) is not None:
        host, path = found[1], found[2] or "/"
    row: Row = {
        "tool": f"{fields.method} {path}", "arguments": access_arguments(fields.query, fields.referer, fields.agent, host),
        "value": access_answer(fields.status, fields.n_bytes), "happened_at": fields.logged_at,
        "name": fields.user or fields.host, "service": service, "lossy": [NOT_CAPTURED]}
    if fields.extras:
        _extras(row, fields)
    return row


def _extras(row: Row, fields: AccessFields) -> None:
    """Facts behind the fields of the Combined format; what states none is named in `lossy`."""
    stated = stated_in(_pairs(fields.extras))
    row["session_id"] = stated.text("session")
    row["call_id"], row["requestor"] = stated.text("request_id"), stated.text("requestor")
    row["latency_ms"] = stated.latency_ms
    row["name"] = fields.user or stated.identity or fields.host
    if fields.logged_at is not None and stated.latency_ms is not None:
        row["happened_at"] = earlier(fields.logged_at, stated.latency_ms)
    if not stated.found:
        row["lossy"] = [NOT_CAPTURED, f"columns behind the Combined format: {fields.extras.strip()[:200]}"]


def object_columns(value: Row, stated: Stated) -> Row:
    """Columns of the request that an object tells; its session, service, identity and time are not among them."""
    target = stated.text("target") or "/"
    host = None
    if (found := _ADDRESS.fullmatch(target)) is not None:
        host, target = found[1], found[2] if found[2].startswith("/") else f"/{found[2]}"
    path, _, text = target.partition("?")
    query = query_of(text) if text else _stated_query(stated.found.get("query"))
    arguments: Row = {"query": query}
    answer: Row = {"status": stated.status}
    for place, fact in ((arguments, "asked"), (answer, "answered")):
        if fact in stated.found and (body := _body(stated.found[fact])) is not _ABSENT:
            place["body"] = body
    if host:
        arguments["host"] = host
    return {"tool": f"{(stated.text('method') or '').upper()} {path or '/'}", "arguments": _json(arguments),
            "value": _json(answer), "call_id": stated.text("request_id"), "requestor": stated.text("requestor"),
            "latency_ms": stated.latency_ms, "lossy": [] if "body" in answer else [NOT_CAPTURED]}


def text_object(text: str) -> Row | None:
    """The object that a text spells: a request told in a sentence and the pairs around it, or `name=value` pairs."""
    sentence = _SENTENCE.search(text)
    if sentence is None:
        pairs = _pairs(text) if text.count("=") >= _LOGFMT else {}
        return pairs if len(pairs) >= _LOGFMT else None
    told: Row = _pairs(text[:sentence.start()] + " " + text[sentence.end():])
    told |= {"method": sentence[1], "target": sentence[2], "status": int(sentence[3])}
    if sentence[4]:
        told["latency"] = f"{sentence[4]}{sentence[5]}"
    return told


def query_of(query: str) -> Row:
    """Query as an object; a name that comes more than once holds a list."""
    found: Row = {}
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=None):
        found[name] = value if name not in found else [*_list(found[name]), value]
    return found


def _pairs(text: str) -> Row:
    """`name=value` pairs; a quoted value is unquoted, `-` states nothing."""
    found: Row = {}
    for name, value in _PAIR.findall(text):
        if value[:1] == '"':
            value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        if value not in ("", "-"):
            found[name] = value
    return found


def _stated_query(query: Any) -> Row:
    if isinstance(query, dict):
        return query
    return query_of(query.removeprefix("?")) if isinstance(query, str) else {}


_ABSENT = object()


def _body(value: Any) -> Any:
    """A body as logged; one logged as JSON text is the value that it spells; a size alone is no body."""
    if isinstance(value, dict) and value and value.keys() <= {"bytes", "content"}:
        if "content" not in value:
            return _ABSENT
        value = value["content"]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def query_text(query: str) -> str:
    """A query as JSON text."""
    return _json(query_of(query) if query else {})


@lru_cache(maxsize=65536)
def access_arguments(query: str, referer: str | None, agent: str | None, host: str | None) -> str:
    """The arguments of an access log's request as JSON text."""
    arguments: Row = {"query": query_of(query) if query else {}}
    headers = {name: value for name, value in (("referer", referer), ("user-agent", agent)) if value is not None}
    if headers:
        arguments["headers"] = headers
    if host:
        arguments["host"] = host
    return _json(arguments)


@lru_cache(maxsize=65536)
def access_answer(status: int | None, n_bytes: int | None) -> str:
    """The answer to an access log's request as JSON text."""
    return _json({"status": status} if n_bytes is None else {"status": status, "bytes": n_bytes})


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:   # a number beyond 64 bits
        return json.dumps(value, default=str, ensure_ascii=False)
