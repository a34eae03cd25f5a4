"""What one JSON object of an application's log states, under whatever names its logger uses.

In: the object. Out: `Stated`. Names count without case, `_` and `-`; nested and dotted keys are equal (`log.level` and
`{"log": {"level"}}`), and so is a fact inside a wrapper (`req`, `labels`, `context` …) and outside it.
Sees the names of ECS, pino, Bunyan, structlog, winston, zap, zerolog, logrus, slog, Serilog, python-json-logger, nginx and GCP.
Does not see: the unit of a bare `duration` or `latency`: it is taken as milliseconds, as seconds where zap wrote it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from extractors.formats.instants import microseconds

Row = dict[str, Any]


@dataclass(slots=True)
class Stated:
    """Facts that a record states; None where it does not."""

    found: dict[str, Any] = field(default_factory=dict)
    """The first value of each fact, by the fact's name in `_NAMES`."""
    keys: dict[str, str] = field(default_factory=dict)
    """Key at the top of the object that each fact stands under."""
    ranks: dict[str, int] = field(default_factory=dict)

    def text(self, fact: str) -> str | None:
        """A fact as text."""
        value = self.found.get(fact)
        if isinstance(value, str):
            return value or None
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def time(self, fact: str) -> int | None:
        """A fact as an instant."""
        return microseconds(self.found.get(fact))

    @property
    def status(self) -> int | None:
        """HTTP status."""
        value = self.found.get("status")
        if isinstance(value, str):
            value = int(value) if _STATUS(value) else None
        return value if isinstance(value, int) and 100 <= value < 600 and not isinstance(value, bool) else None

    @property
    def latency_ms(self) -> float | None:
        """How long the request took."""
        if _DURATIONS.keys().isdisjoint(self.found):
            return None
        for fact, scale in _DURATIONS.items():
            if fact in self.found and (found := _milliseconds(self.found[fact], scale)) is not None:
                return found * 1000 if fact == "duration" and self.keys.get("time") == "ts" and "caller" in self.keys else found
        return None

    @property
    def identity(self) -> str | None:
        """Who it belongs to: the user, else the session's cookie, else the connection."""
        return self.text("user") or _cookie(self.text("cookie")) or self.text("connection")

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
    """The facts that the object states."""
    stated = Stated()
    for key, inner in value.items():
        _state(stated, inner, key, key)
    return stated


def _state(stated: Stated, value: Any, path: str, top: str) -> None:
    """Take what stands under the path: an object's parts, but bodies and queries whole."""
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in _LEAVES:
        for key, inner in value.items():
            _state(stated, inner, f"{path}.{key}", top)
        return
    place = _place(path)
    if place is None or value is None or value == "":
        return
    fact, rank = place
    if rank < stated.ranks.get(fact, _NO_RANK) and (fact not in _TEXTS or isinstance(value, str)):
        stated.found[fact], stated.keys[fact], stated.ranks[fact] = value, top, rank


@lru_cache(maxsize=65536)
def _place(path: str) -> tuple[str, int] | None:
    """Fact that a path names, and its rank among the names of the fact."""
    name = path.lower().replace("_", "").replace("-", "")
    wrapped = False
    while name:
        found = _PLACES.get(name)
        if found is not None and not (wrapped and found[0] in _OUTSIDE):
            return found
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
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if found is None:
        return None
    number = float(found[1]) * (_UNITS[found[2]] if found[2] else scale)
    return round(number, 6)


def _cookie(text: str | None) -> str | None:
    """A name for whoever holds a session's cookie: a hash, since the cookie itself is a key."""
    found = _COOKIE.search(text) if text else None
    return f"cookie:{hashlib.sha256(found[2].strip().encode('utf-8', 'replace')).hexdigest()[:16]}" if found else None
