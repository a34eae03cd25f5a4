"""HTTP Archives 1.2, as browsers and proxies save them: the requests of a browser.

In: one document with `log.entries`. Out: a page for each entry that fetched one (a document, a frame, a file to keep), a
request for each that asks an application for something else, log events for the rest (pictures, styles, scripts, preflights)
and for messages of web sockets; of a style sheet with its text, which says what of a page people see. A form that is sent is a
request; the page that answers it is its body.
Sees: bodies (JSON, forms, base64), sessions, request ids and tool call ids in headers; the user of basic authentication; the
host as the service.
Does not see: cookies and credentials (not read on purpose, nor what a form sent for a page's field of the type `password`),
which click made which request, bodies that the browser dropped.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any
from urllib.parse import unquote, urlsplit

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.password_fields import cut_password_fields
from extractors.formats.values import body, dumped, first_of, list_under, merged, number_of, object_of, query

_SESSION = ("x-session-id", "x-conversation-id", "session-id", "x-thread-id", "mcp-session-id")
_REQUEST = ("x-request-id", "request-id", "x-correlation-id", "x-amzn-requestid", "x-trace-id")
_CALL = ("x-tool-call-id", "tool-call-id", "x-call-id")
_IDENTITY = ("x-user-id", "x-user", "x-forwarded-user", "x-client-id")
_RESOURCES = frozenset({"document", "stylesheet", "script", "image", "font", "media", "manifest", "texttrack", "preflight",
                        "ping", "csp-violation-report", "iframe", "frame", "style", "track", "audio", "video", "object",
                        "embed", "worker", "sharedworker", "serviceworker"})
"""Kinds of pages and their parts, in the words of Chrome's `_resourceType` and of the header `Sec-Fetch-Dest`."""
_FILE_NAME = re.compile(
    r"(?i)filename(?:\*=[\w-]*'[\w-]*'(?P<coded>[^;]+)|=(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s;\"]+)))")
_PAGES = frozenset({"document", "iframe", "frame", "object", "embed"})
_MIME_TYPES = ("image/", "font/", "audio/", "video/", "text/css", "text/javascript", "application/javascript",
               "application/x-javascript", "application/font", "application/wasm")


def claims(head: Head) -> bool:
    """Return whether the file holds a document with a list of entries under `log`."""
    log = head.first.get("log")
    return head.is_json and isinstance(log, dict) and isinstance(log.get("entries"), list)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Every entry of each archive (mostly one a file)."""
    entries = list_under(object_of(record.value).get("log"), "entries")
    if not entries:
        raise RejectedRecord("no_entries", "the record holds no `log.entries`; leave it out or export it again")
    n_before = len(emit.events)
    for number, entry in enumerate(entries):
        with emit.guarded(record):
            tell_entry(record, number, entry, emit)
    cut_password_fields(emit.events[n_before:])


def tell_entry(record: LogRecord, number: int, entry: Row, emit: Emit) -> None:
    """Emit what one entry of an archive tells: a page, a request, or a log event for a part of a page."""
    request, response = entry["request"], entry.get("response") or {}
    url, headers, answered = urlsplit(request["url"]), _headers(request), _headers(response)
    time = entry.get("time")
    shared: Row = {
        "session_id": first_of(headers, _SESSION) or first_of(answered, _SESSION[:2]),
        "happened_at": microseconds(entry.get("startedDateTime")), "service": emit.envelope.service({}) or url.hostname,
        "call_id": first_of(headers, _REQUEST) or first_of(answered, _REQUEST),
        "name": emit.envelope.mapped("identity", entry) or first_of(headers, _IDENTITY) or _basic_user(headers),
        "latency_ms": float(time) if isinstance(time, (int, float)) and time >= 0 else None,   # -1: not measured
        "tool": f"{request['method']} {url.path or '/'}", "requestor": first_of(headers, _CALL)}
    parameters = merged([(each["name"], each.get("value")) for each in request.get("queryString") or ()]) or query(url.query)
    if _is_page(request, response, entry):
        emit.event(record, "page", place=f"{number}", content=request["url"], arguments=dumped({"query": parameters}),
                   value=dumped(_page(response)), lossy=_lost(response), **shared)
        return
    if _is_resource(request, response, entry):
        sheet = response.get("content") or {} if _mime_type(response).startswith("text/css") else {}
        emit.event(record, "log", place=f"{number}", content=request["url"], arguments=dumped(parameters),
                   value=dumped({"type": "text/css", "body": sheet["text"]}) if sheet.get("text") else None, **shared)
        return
    arguments: Row = {"query": parameters}
    if isinstance(posted := request.get("postData"), dict):
        arguments["body"] = _body(posted) if posted.get("text") else merged(
            [(each["name"], each.get("value", each.get("fileName"))) for each in posted.get("params") or ()])
    content = response.get("content") or {}
    answer: Row = {"status": response.get("status") or None}   # 0: it was blocked or given up
    if _kind(request, response, entry) in _PAGES:
        answer = _page(response) | _port(request["url"])
    elif "text" in content:
        answer["body"] = _body(content)
    lossy = _lost(response)
    emit.event(record, "request", place=f"{number}", arguments=dumped(arguments), value=dumped(answer), lossy=lossy, **shared)
    for index, message in enumerate(entry.get("_webSocketMessages") or ()):
        text = message.get("data")
        emit.event(record, "log", place=f"{number}.{index}", **{
            **shared, "happened_at": microseconds(message.get("time")), "latency_ms": None,
            "arguments": dumped({"type": message.get("type")}),
            "content": text if isinstance(text, str) else dumped(text)})


def _page(response: Row) -> Row:
    """Return what came back for a page: its status, where it leads, of what type it is, and its body or the file it is."""
    headers, content = _headers(response), response.get("content") or {}
    page: Row = {"status": response.get("status") or None, "location": response.get("redirectURL") or headers.get("location"),
                 "type": _mime_type(response).partition(";")[0] or None}
    disposition = headers.get("content-disposition", "")
    if named := _FILE_NAME.search(disposition):
        page["file"] = unquote(named["coded"] or named["quoted"] or named["plain"])
    if (size := number_of(content.get("size")) or 0) > 0:
        page["size"] = int(size)
    if content.get("text"):
        page["body"] = _body(content)
    return {name: value for name, value in page.items() if value is not None}


def _port(url: str) -> Row:
    """Return the port of an address if it is none that the scheme has by itself."""
    port = urlsplit(url).port
    return {} if port in (None, 80, 443) else {"port": port}


def _lost(response: Row) -> list[str]:
    content = response.get("content") or {}
    lossy = [] if "text" in content or number_of(content.get("size")) == 0 else ["response body not captured"]
    return lossy if response.get("status") else [*lossy, f"no answer {response.get('_error') or ''}".rstrip()]


def _body(content: Row) -> Any:
    return body(content["text"], str(content.get("mimeType") or ""), content.get("encoding"))


def _headers(message: Row) -> dict[str, str]:
    return {str(each["name"]).lower(): str(each.get("value", "")) for each in message.get("headers") or ()}


def _basic_user(headers: dict[str, str]) -> str | None:
    """Return the user name that a browser sends with each request where a server asks for one; its password is left."""
    scheme, _, coded = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return b64decode(coded, validate=True).decode().partition(":")[0] or None
    except ValueError:
        return None


def _is_resource(request: Row, response: Row, entry: Row) -> bool:
    """Whether the entry fetched a page or a part of one: by the browser's word, else by what came back for a GET."""
    kind = _kind(request, response, entry)
    if kind is not None:
        return kind in _RESOURCES and request["method"] in ("GET", "HEAD", "OPTIONS")
    return request["method"] == "GET" and _mime_type(response).startswith(_MIME_TYPES)


def _is_page(request: Row, response: Row, entry: Row) -> bool:
    """Whether what was fetched is a page, or a file to keep, and no part of a page."""
    kind = _kind(request, response, entry)
    return request["method"] == "GET" and (kind in _PAGES or "attachment" in _headers(response).get("content-disposition", ""))


def _kind(request: Row, response: Row, entry: Row) -> str | None:
    """Return what a browser says that an entry is for; None where nothing tells.

    Chrome writes it next to the request. Firefox and Safari do not: there the request's own headers tell.
    """
    headers = _headers(request)
    if isinstance(stated := entry.get("_resourceType") or headers.get("sec-fetch-dest"), str):
        return stated.lower()
    if "x-requested-with" in headers:
        return "xhr"
    return "document" if headers.get("accept", "").startswith("text/html") and (
        _mime_type(response).startswith("text/html")) else None


def _mime_type(response: Row) -> str:
    return str((response.get("content") or {}).get("mimeType") or "")


FORMAT = Format(name="har", claims=claims, read=read, sample=sample("har.json"), whole=True, rank=20)
