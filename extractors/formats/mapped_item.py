"""One record (or one element of a list in it) of a mapped source, to the parts that it tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from extractors.formats.chat import arguments_of, parts, text
from extractors.formats.format import Row
from extractors.formats.http_parts import body, query
from extractors.formats.instants import earlier, microseconds
from extractors.formats.mapped_words import KINDS, failed, kind_of, role_of, went_well
from extractors.formats.scope import Scope, opened
from extractors.formats.transcript import answer_of, name_of, written

FIELDS = (
    "messages", "calls", "position", "kind", "role", "content", "reasoning", "tool", "arguments", "result", "call_id",
    "error", "ended", "latency_ms", "latency_s", "model", "input_tokens", "output_tokens", "method", "path", "status",
    "query", "body", "response", "request_id", "name", "value", "comment")
"""Our fields, beside those of every format, that a mapping may name."""
TABLES = ("roles", "kinds", "says")
"""Tables inside a mapping: a log's word for a role or a kind to ours; a role to the path of what it says."""
_OUTWARD = ("session_id", "identity", "service", "time", "model")
"""Facts that what is around a message may state for it."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """What the configuration says of an envelope."""

    paths: dict[str, str]
    roles: dict[str, str]
    kinds: dict[str, str]
    says: dict[str, str]
    service: str | None

    @staticmethod
    def of(fields: Any, service: str | None) -> Mapping:
        """From the flat table of a source."""
        tables = {name: {key.partition(".")[2]: value for key, value in fields.items() if key.startswith(f"{name}.")}
                  for name in TABLES}
        paths = {key: value for key, value in fields.items() if key.partition(".")[0] not in TABLES}
        if not any(tables.values()) and not paths.keys() & set(FIELDS):   # our own names
            paths = {**{name: name for name in (*FIELDS[2:], *_OUTWARD)}, **paths}
        return Mapping(paths, tables["roles"], tables["kinds"], tables["says"], service)

    def path(self, field: str) -> str | None:
        """Path of a field, None where nothing maps it."""
        return self.paths.get(field)


class Item:
    """One mapped record."""

    def __init__(self, scope: Scope, mapping: Mapping) -> None:
        self.scope, self._mapping = scope, mapping
        self._paths, self._value = mapping.paths, scope.values[0]

    def raw(self) -> str | None:
        """All of it, as text."""
        return written(self.scope.values[0])

    def get(self, field: str) -> Any:
        """Value of a field; nothing is None, and so is an empty cell."""
        path = self._paths.get(field)
        if path is None:
            return None
        value = self._value   # nearly always an object with that very key
        found = value[path] if type(value) is dict and path in value else self.scope.get(path, field in _OUTWARD)
        return None if found == "" else found

    def position(self) -> int | None:
        """Its stated place in its session."""
        stated = self.get("position")
        return int(stated) if isinstance(stated, int | float) or (isinstance(stated, str) and stated.isdecimal()) else None

    def fixed(self) -> Row:
        """Columns of all its events."""
        at, ended, latency = microseconds(self.get("time")), microseconds(self.get("ended")), self._latency()
        if at is None and ended is not None:
            at = earlier(ended, latency) if latency is not None else ended
        return {"session_id": name_of(self.get("session_id")), "name": name_of(self.get("identity")), "happened_at": at,
                "service": self._mapping.service or name_of(self.get("service"))}

    def parts(self) -> Iterator[Row]:
        """Its parts, in order; at least one."""
        role, kind = role_of(self.get("role"), self._mapping.roles), self._kind()
        n_told = 0
        for part in self._told(kind, role):
            n_told += 1
            yield part
        if not n_told:
            yield {"kind": "log", "content": self.raw()}

    def _kind(self) -> str | None:
        """What it is, where a field says it in a word that is known; a constant is always known."""
        stated = self.get("kind")
        found = kind_of(stated, self._mapping.kinds)
        return found if found in KINDS else None

    def _told(self, kind: str | None, role: str | None) -> Iterator[Row]:
        if kind in (None, "request") and self.get("method") is not None and self.get("path") is not None:
            yield self._request()
        elif kind == "log":
            return
        elif kind in ("feedback", "outcome") or (kind is None and None not in (self.get("name"), self.get("value"))):
            yield from self._opinion(kind or "feedback")
        elif kind == "business":
            yield from self._business()
        elif self._mapping.says and kind is None:
            yield from self._message(role, False)
            if self.get("tool") is not None:
                yield from self._tool(None, role)
        elif kind in ("call", "result") or (kind is None and (self.get("tool") is not None or role == "tool")):
            yield from self._tool(kind, role)
        else:
            yield from self._message(role, kind == "reasoning")

    def _message(self, role: str | None, is_thought: bool) -> Iterator[Row]:
        usage = self._usage()
        shared: Row = {"model": name_of(self.get("model")), "lossy": []}
        if (thought := self.get("reasoning")) is not None:
            yield {"kind": "reasoning", "role": "assistant", "content": written(thought), **shared, "usage": usage}
            usage = None
        for speaker, path in self._mapping.says.items():
            if (said := text(self.scope.get(path))[0]):
                yield {"kind": "message", "role": speaker, "content": said, **shared, "lossy": text(self.scope.get(path))[1],
                       "usage": usage if speaker == "assistant" else None}
        held = self.get("content")
        content, lossy = text(opened(held) if isinstance(held, str) and held.startswith("[{") else held)
        word = role or name_of(self.get("role"))
        if content is not None or lossy:
            yield {"kind": "reasoning" if is_thought else "message", "role": word, "content": content, **shared, "usage": usage,
                   "lossy": lossy}
        yield from self._calls(word)

    def _calls(self, role: str | None) -> Iterator[Row]:
        path = self._mapping.path("calls")
        for scope in self.scope.each(path) if path is not None else ():
            inner = Item(scope, self._mapping)
            if inner.get("tool") is not None:
                yield from inner._tool("call", role if role in ("user", "assistant") else None)
            else:
                yield from (part for part in parts({"role": role, "tool_calls": [scope.values[0]]}))

    def _tool(self, kind: str | None, role: str | None) -> Iterator[Row]:
        """A call, its result, or both; without a word for it, what is there tells."""
        given, answer = self.get("arguments"), self.get("result")
        requestor = role if role in ("user", "assistant") else "assistant"
        is_result = kind == "result" or role == "tool"
        shared: Row = {"call_id": name_of(self.get("call_id")), "tool": name_of(self.get("tool"))}
        if not is_result:
            if (said := self.get("content")) is not None and said != given and said != answer:
                yield {"kind": "message", "role": requestor, "content": text(said)[0], "usage": self._usage()}
            arguments, lossy = arguments_of(opened(given) if isinstance(given, str) else given)
            yield {"kind": "call", "role": requestor, "requestor": requestor, **shared, "lossy": lossy,
                   "arguments": given if isinstance(given, str) and not lossy else arguments, "latency_ms": self._latency()}
        is_whole = kind is None and role is None and (self._says_error() is not None or self._has("result"))
        if is_result or answer is not None or is_whole:   # a record that nobody speaks tells all of a call
            yield self._result(answer, shared, is_result)

    def _has(self, field: str) -> bool:
        path = self._mapping.path(field)
        return path is not None and self.scope.has(path)

    def _result(self, answer: Any, shared: Row, is_alone: bool) -> Row:
        path = self._mapping.path("error") or "!"
        error = self.scope.get(path) if not path.startswith("!") else None
        content = answer if answer is not None else self.get("content") if is_alone else None
        if content is None and isinstance(error, (str, dict, list)):
            content = error
        said, lossy = answer_of(content)
        found: Row = {"kind": "result", **shared, "content": said, "lossy": lossy, "is_error": self._says_error()}
        if not is_alone:
            ended = microseconds(self.get("ended"))
            began, latency = microseconds(self.get("time")), self._latency()
            if ended is None and began is not None and latency is not None:
                ended = began + round(latency * 1000)
            found["happened_at"] = ended
        return found

    def _says_error(self) -> bool | None:
        path = self._mapping.path("error") or ""
        if path.startswith("!"):   # a field that says that all went well
            stated = self.scope.get(path[1:])
            return None if stated in (None, "") else not went_well(stated)
        return failed(self.scope.get(path)) if self._has("error") else None

    def _request(self) -> Row:
        target = urlsplit(str(self.get("path")))
        asked = opened(self.get("query"))
        if isinstance(asked, str):
            asked = query(asked.removeprefix("?"))
        status = self.get("status")
        asked = asked if asked is not None else query(target.query)
        return {"kind": "request", "tool": f"{str(self.get('method')).upper()} {target.path or '/'}",
                "arguments": written({"query": asked, "body": body(self.get("body"))}),
                "value": written({"status": int(status) if str(status).isdecimal() else status,
                                  "body": body(self.get("response"))}),
                "call_id": name_of(self.get("request_id")), "requestor": name_of(self.get("call_id")),
                "latency_ms": self._latency()}

    def _opinion(self, kind: str) -> Iterator[Row]:
        value = self.get("value")
        if value is not None:
            yield {"kind": kind, "name": name_of(self.get("name")) or kind, "value": written(value),
                   "content": written(self.get("comment")), "call_id": name_of(self.get("call_id"))}

    def _business(self) -> Iterator[Row]:
        payload = opened(self.get("arguments")) if self._mapping.path("arguments") else self.scope.values[0]
        yield {"kind": "business", "tool": name_of(self.get("tool")) or name_of(self.get("kind")),
               "arguments": payload if isinstance(payload, str) else orjson.dumps(payload, default=str).decode()}

    def _latency(self) -> float | None:
        for field, scale in (("latency_ms", 1), ("latency_s", 1000)):
            stated = self.get(field)
            try:
                if stated is not None and not isinstance(stated, bool):
                    return float(stated) * scale
            except (TypeError, ValueError):
                continue
        return None

    def _usage(self) -> Row | None:
        if "input_tokens" not in self._paths and "output_tokens" not in self._paths:
            return None
        counts = {name: self.get(name) for name in ("input_tokens", "output_tokens")}
        found = {name: int(count) for name, count in counts.items() if isinstance(count, int | float) or str(count).isdecimal()}
        return found or None
