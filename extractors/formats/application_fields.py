"""What one JSON object of an application's log states, under whatever names its logger uses, and the columns of a request.

In: an object, or `AccessFields` of an access log's line. Out: `Stated` facts; tool, arguments, value and the other columns of
`core.events`. Names count without case, `_` and `-`; nested and dotted keys are equal (`log.level` and `{"log": {"level"}}`),
and so is a fact inside a wrapper (`req`, `labels`, `context` …) and outside it.
Sees the names of ECS, pino, Bunyan, structlog, winston, zap, zerolog, logrus, slog, Serilog, python-json-logger, nginx and GCP.
The answer's size and the client's headers of an access log are kept with status and query.
Does not see: the unit of a bare `duration` or `latency` (taken as milliseconds, as seconds where zap wrote it); the scheme of
the address; the host, unless the target is a whole address.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from extractors.formats.format import Row
from extractors.formats.instants import earlier, microseconds
from extractors.formats.line_shapes import AccessFields
from extractors.formats.values import json_text, opened, query


@dataclass(slots=True)
class Stated:
    """Facts that a record states; None where it does not."""

    values: dict[str, Any] = field(default_factory=dict)
    """The first value of each fact, by the fact's name in `_NAMES`."""
    keys: dict[str, str] = field(default_factory=dict)
    """Key at the top of the object that each fact stands under."""
    ranks: dict[str, int] = field(default_factory=dict)

    def text(self, fact: str) -> str | None:
        value = self.values.get(fact)
        if isinstance(value, str):
            return value or None
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def time(self, fact: str) -> int | None:
        return microseconds(self.values.get(fact))

    @property
    def status(self) -> int | None:
        value = self.values.get("status")
        if isinstance(value, str):
            value = int(value) if _STATUS(value) else None
        return value if isinstance(value, int) and 100 <= value < 600 and not isinstance(value, bool) else None

    @property
    def latency_ms(self) -> float | None:
        if _DURATIONS.keys().isdisjoint(self.values):
            return None
        for fact, scale in _DURATIONS.items():
            if fact in self.values and (milliseconds := _milliseconds(self.values[fact], scale)) is not None:
                is_of_zap = fact == "duration" and self.keys.get("time") == "ts" and "caller" in self.keys
                return milliseconds * 1000 if is_of_zap else milliseconds
        return None

    @property
    def identity(self) -> str | None:
        """Who it belongs to: the user, else the session's cookie (by its hash), else the connection."""
        if (text := self.text("user") or "") or (match := _COOKIE.search(self.text("cookie") or "")) is None:
            return text or self.text("connection")
        # a hash, since the cookie itself is a key
        return f"cookie:{hashlib.sha256(match[2].strip().encode('utf-8', 'replace')).hexdigest()[:16]}"

    @property
    def trace(self) -> str | None:
        """Trace id; of a path to a trace its last part."""
        text = self.text("trace")
        return text.rsplit("/", 1)[-1] if text else None


_WRAPPERS = frozenset((
    "req", "request", "res", "response", "http", "httprequest", "labels", "context", "ctx", "metadata", "meta", "attributes",
    "fields", "extra", "jsonpayload", "mdc", "contextmap", "logevent", "data", "resource", "properties"))
_LEAVES = frozenset(("body", "query", "params", "args", "arguments"))
_NAMES: dict[str, tuple[str, ...]] = {
    "session": ("sessionid", "session.id", "conversationid", "threadid", "chatid", "genai.conversation.id",
                "headers.xsessionid", "headers.xconversationid", "headers.sessionid", "sess", "session"),
    "user": ("user.id", "userid", "enduserid", "enduser.id", "user", "username", "user.name", "uid", "identity"),
    "cookie": ("headers.cookie", "cookie"),
    "connection": ("client.ip", "clientip", "remoteaddress", "remoteaddr", "remoteip", "source.ip", "client.address",
                   "headers.xforwardedfor", "xforwardedfor", "ip"),
    "requestor": ("toolcallid", "toolcall", "headers.xtoolcallid", "callid", "tc"),
    "request_id": ("req.id", "request.id", "http.request.id", "requestid", "reqid", "rid", "headers.xrequestid",
                   "xrequestid", "correlationid"),
    "trace": ("trace.id", "traceid", "dd.traceid", "trace", "logging.googleapis.com/trace"),
    "method": ("method", "requestmethod", "httpmethod", "verb"),
    "target": ("url.original", "originalurl", "url.full", "requesturl", "requesturi", "url", "uri", "url.path", "target",
               "path", "requestpath", "urlpath"),
    "query": ("url.query", "querystring", "query"),
    "status": ("statuscode", "httpstatus", "status", "responsestatus", "statuscode"),
    "milliseconds": ("durationms", "responsetime", "responsetimems", "latencyms", "elapsedms", "tookms", "durationmillis"),
    "nanoseconds": ("event.duration", "durationns", "latencyns", "elapsedns"),
    "microseconds": ("durationus", "latencyus", "elapsedus"),
    "seconds": ("requesttime", "rt", "durations", "durationseconds", "elapseds", "elapsedseconds", "latencys"),
    "duration": ("duration", "latency", "elapsed", "took"),
    "started": ("event.start",),
    "time": ("@timestamp", "timestamp", "time", "ts", "@t", "asctime", "datetime", "at", "eventtime", "starttime",
             "startedat", "createdat", "created"),
    "level": ("log.level", "level", "severity", "levelname", "lvl", "loglevel", "@l"),
    "message": ("message", "msg", "@m", "@mt", "textpayload", "shortmessage", "event"),
    "service": ("service.name", "service", "servicename", "labels.servicename", "app", "application", "name"),
    "caller": ("caller",),
    "asked": ("req.body", "request.body", "http.request.body"),
    "answered": ("res.body", "response.body", "http.response.body"),
}
_TEXTS = frozenset(("message", "method", "target"))
_NO_RANK = 1000
_DURATIONS = {"milliseconds": 1.0, "nanoseconds": 1e-6, "microseconds": 1e-3, "seconds": 1e3, "duration": 1.0}
_PLACES = {name: (fact, rank) for fact, names in _NAMES.items() for rank, name in enumerate(names)}
_OUTSIDE = frozenset(("time", "level", "message", "caller"))
"""Facts about the line itself: inside a wrapper they are about something else."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|μs|ms|s|m)?", re.ASCII)
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII).fullmatch
_UNITS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
_COOKIE = re.compile(r"(?:^|;\s*)([^=;]*(?:sess|sid)[^=;]*)=([^;]+)", re.IGNORECASE)


def stated_in(value: Row) -> Stated:
    """Return the facts that the object states."""
    stated = Stated()
    for key, inner in value.items():
        _state(stated, inner, key, key)
    return stated


def _state(stated: Stated, value: Any, path: str, top: str) -> None:
    """Take what stands under the path: an object's parts, but bodies and queries whole."""
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in _LEAVES:
        for key, inner in value.items():
            _state(stated, inner, f"{path}.{key}", top)
    elif (found_at := _fact_at(path)) is not None and value is not None and value != "":
        fact, rank = found_at
        if rank < stated.ranks.get(fact, _NO_RANK) and (fact not in _TEXTS or isinstance(value, str)):
            stated.values[fact], stated.keys[fact], stated.ranks[fact] = value, top, rank


@lru_cache(maxsize=65536)
def _fact_at(path: str) -> tuple[str, int] | None:
    """Fact that a path names, and its rank among the names of the fact."""
    name = path.lower().replace("_", "").replace("-", "")
    wrapped = False
    while name:
        place = _PLACES.get(name)
        if place is not None and not (wrapped and place[0] in _OUTSIDE):
            return place
        head, _, rest = name.partition(".")
        if head == "headers" or head not in _WRAPPERS:
            return None
        name, wrapped = rest, True
    return None


def _milliseconds(value: Any, scale: float) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value * scale if scale != 1 and abs(value) < 1e18 else value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    return None if match is None else round(float(match[1]) * (_UNITS[match[2]] if match[2] else scale), 6)


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
    if path[:1] != "/" and (match := _ADDRESS.fullmatch(path)) is not None:
        host, path = match[1], match[2] or "/"
    answer = {"status": fields.status} if fields.n_bytes is None else {"status": fields.status, "bytes": fields.n_bytes}
    row: Row = {
        "tool": f"{fields.method} {path}", "arguments": _access_arguments(fields.query, fields.referer, fields.agent, host),
        "value": json_text(answer), "happened_at": fields.logged_at, "name": fields.user or fields.host, "service": service,
        "lossy": [NOT_CAPTURED]}
    if fields.extras:
        stated = stated_in(_pairs(fields.extras))
        row |= {"session_id": stated.text("session"), "call_id": stated.text("request_id"), "latency_ms": stated.latency_ms,
                "requestor": stated.text("requestor"), "name": fields.user or stated.identity or fields.host}
        if fields.logged_at is not None and stated.latency_ms is not None:
            row["happened_at"] = earlier(fields.logged_at, stated.latency_ms)
        if not stated.values:
            row["lossy"] = [NOT_CAPTURED, f"columns behind the Combined format: {fields.extras.strip()[:200]}"]
    return row


@lru_cache(maxsize=65536)
def _access_arguments(query_text: str, referer: str | None, agent: str | None, host: str | None) -> str:
    headers = {name: value for name, value in (("referer", referer), ("user-agent", agent)) if value is not None}
    others = {name: value for name, value in (("headers", headers), ("host", host)) if value}
    return json_text({"query": query(query_text), **others})


def object_columns(stated: Stated) -> Row:
    """Columns of the request that an object tells; its session, service, identity and time are not among them."""
    target = stated.text("target") or "/"
    host = None
    if (match := _ADDRESS.fullmatch(target)) is not None:
        host, target = match[1], match[2] if match[2].startswith("/") else f"/{match[2]}"
    path, _, text = target.partition("?")
    parameters = query(text) if text else stated.values.get("query")
    if isinstance(parameters, str):
        parameters = query(parameters.removeprefix("?"))
    arguments: Row = {"query": parameters if isinstance(parameters, dict) else {}}
    answer: Row = {"status": stated.status}
    for holder, body in ((arguments, stated.values.get("asked")), (answer, stated.values.get("answered"))):
        if body is None or (isinstance(body, dict) and body.keys() == {"bytes"}):   # a size alone is no body
            continue
        if isinstance(body, dict) and "content" in body and body.keys() <= {"bytes", "content"}:
            body = body["content"]
        holder["body"] = opened(body) if isinstance(body, str) and body[:1] in ("{", "[") else body
    if host:
        arguments["host"] = host
    return {"tool": f"{(stated.text('method') or '').upper()} {path or '/'}", "arguments": json_text(arguments),
            "value": json_text(answer), "call_id": stated.text("request_id"), "requestor": stated.text("requestor"),
            "latency_ms": stated.latency_ms, "lossy": [] if "body" in answer else [NOT_CAPTURED]}


def text_object(text: str) -> Row | None:
    """Return the object that a text spells: a request in a sentence and the pairs around it, or `name=value` pairs."""
    sentence = _SENTENCE.search(text)
    if sentence is None:
        pairs = _pairs(text) if text.count("=") >= _LOGFMT else {}
        return pairs if len(pairs) >= _LOGFMT else None
    parsed: Row = _pairs(text[:sentence.start()] + " " + text[sentence.end():])
    parsed |= {"method": sentence[1], "target": sentence[2], "status": int(sentence[3])}
    if sentence[4]:
        parsed["latency"] = f"{sentence[4]}{sentence[5]}"
    return parsed


def _pairs(text: str) -> Row:
    """`name=value` pairs; a quoted value is unquoted, `-` states nothing."""
    pairs: Row = {}
    for name, value in _PAIR.findall(text):
        if value[:1] == '"':
            value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        if value not in ("", "-"):
            pairs[name] = value
    return pairs
