"""Envelopes without a standard, as the configuration maps them: which field is the session, the time, the role, the content …

Sees JSON records, rows of tables and documents; lists of messages inside them, and lists of calls inside messages (`messages`,
`calls`); a call and its result in one record or in two, also where the tool is who speaks. Where no field tells what a record
is, what it holds does. Records of a session are put in order of time, those of one instant in file order. A record that holds
nothing of what is mapped is a log event; a line of text is rejected. Where the configuration maps nothing, fields are looked
for under our own names for them.
Does not see: anything that is not mapped; docs/configuration.md lists the fields.

A path is a key, or keys and places in lists joined by dots; a key with dots in it counts too, and text that spells JSON is
walked into. `^.` before a path means: in what holds the list that this is an element of. `.` is the value itself; `=text` is no
path but that very text; of paths joined by `|` the first that leads to something counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from extractors.formats.chat import arguments_of, parts, text
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import earlier, microseconds
from extractors.formats.mapped_words import KINDS, failed, kind_of, role_of, went_well
from extractors.formats.transcript import answer_of, name_of, nameless, written
from extractors.formats.values import body, json_text, opened, query

_WITH_RESULT = "~with result"
"""Marks a call that a record of its result tells."""
_LOOK_BACK = 64
_SPOKEN = ("message", "call", "result")
_SessionRows = dict[str | None, list[tuple[int | None, Row]]]
"""Events of each session, with their stated places."""


def claims(head: Head) -> bool:
    """Only records whose fields are called as ours are; all others need a configuration."""
    return head.layout in ("lines", "document", "table") and bool(head.objects) and all(
        each.get("kind") in KINDS and "session_id" in each and not each.keys().isdisjoint(("content", "tool", "value", "path"))
        for each in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the events of each record; positions when all of them are known."""
    mapping = Mapping.of(emit.envelope.fields, emit.envelope.service({}))
    rows_by_session: _SessionRows = {}
    for record in records:
        if isinstance(record.value, str):
            emit.reject(record, "no_fields", "the record is text, in which no field can be mapped; repair or remove it")
            continue
        with emit.guarded(record):
            whole = RecordScope((record.value,), "")
            scopes = list(whole.each(mapping.paths["messages"])) if "messages" in mapping.paths else []
            if not scopes:
                _item(record, Item(whole, mapping), None, rows_by_session, emit)
                continue
            messages: _SessionRows = {}   # each list is a conversation, or continues its session
            for scope in scopes:
                _item(record, Item(scope, mapping), nameless(record, scope.place.rpartition("/")[0]), messages, emit)
            for rows in messages.values():
                _number(rows)
    for rows in rows_by_session.values():
        _number(rows)


def _item(record: LogRecord, item: Item, session_id: str | None, rows_by_session: _SessionRows, emit: Emit) -> None:
    fixed = item.fixed()
    if fixed["session_id"] is None:
        fixed["session_id"] = session_id
    rows = rows_by_session.setdefault(fixed["session_id"], [])
    for number, part in enumerate(item.parts()):
        if part.pop(_WITH_RESULT, False) and _is_waiting(part, rows):
            continue
        row = emit.event(record, place=f"{item.scope.place}:{number}", **{**fixed, **part})
        rows.append((item.position(), row))


def _is_waiting(call: Row, rows: list[tuple[int | None, Row]]) -> bool:
    """Return whether an earlier record made the call that a result repeats: by id, else the same one without an answer."""
    answers = 0
    for _, row in reversed(rows[-_LOOK_BACK:]):
        is_same = row.get("tool") == call["tool"]
        if call["call_id"] is not None and row["kind"] == "call" and row["call_id"] == call["call_id"]:
            return True
        answers += is_same and row["kind"] == "result"
        if call["call_id"] is None and is_same and row["kind"] == "call" and row["arguments"] == call["arguments"]:
            answers -= 1
            if answers < 0:
                return True
    return False


def _number(rows: list[tuple[int | None, Row]]) -> None:
    """Positions of what was said, called and answered in one session: by stated place, else by time, else as they stand."""
    latest, keyed = 0, []
    is_mixed = len({stated is None for stated, _ in rows}) > 1
    for stated, row in rows:
        latest = row["happened_at"] if row.get("happened_at") is not None else latest
        place = latest if stated is None else stated
        keyed.append((0 if is_mixed else place, row))
    spoken = [row for _, row in sorted(keyed, key=lambda each: each[0]) if row["kind"] in _SPOKEN]
    for position, row in enumerate(spoken):
        row["position"] = position


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
        tables = {name: {key.partition(".")[2]: value for key, value in fields.items() if key.startswith(f"{name}.")}
                  for name in TABLES}
        paths = {key: value for key, value in fields.items() if key.partition(".")[0] not in TABLES}
        if not any(tables.values()) and not paths.keys() & set(FIELDS):   # our own names
            paths = {**{name: name for name in (*FIELDS[2:], *_OUTWARD)}, **paths}
        return Mapping(paths, tables["roles"], tables["kinds"], tables["says"], service)

class Item:
    """One mapped record."""

    def __init__(self, scope: RecordScope, mapping: Mapping) -> None:
        self.scope, self._mapping = scope, mapping
        self._paths, self._value = mapping.paths, scope.values[0]

    def get(self, field: str) -> Any:
        """Value of a field; nothing is None, and so is an empty cell."""
        path = self._paths.get(field)
        if path is None:
            return None
        value = self._value   # nearly always an object with that very key
        value_at = value[path] if type(value) is dict and path in value else self.scope.get(path, field in _OUTWARD)
        return None if value_at == "" else value_at

    def position(self) -> int | None:
        stated = self.get("position")
        return int(stated) if isinstance(stated, int | float) or (isinstance(stated, str) and stated.isdecimal()) else None

    def fixed(self) -> Row:
        at, ended, latency = microseconds(self.get("time")), microseconds(self.get("ended")), self._latency()
        if at is None and ended is not None:
            at = earlier(ended, latency) if latency is not None else ended
        return {"session_id": name_of(self.get("session_id")), "name": name_of(self.get("identity")), "happened_at": at,
                "service": self._mapping.service or name_of(self.get("service"))}

    def parts(self) -> Iterator[Row]:
        """Its parts, in order; at least one."""
        kind = kind_of(self.get("kind"), self._mapping.kinds)
        rows = list(self._tell(kind if kind in KINDS else None, role_of(self.get("role"), self._mapping.roles)))
        return iter(rows or [{"kind": "log", "content": written(self._value)}])

    def _tell(self, kind: str | None, role: str | None) -> Iterator[Row]:
        if kind in (None, "request") and self.get("method") is not None and self.get("path") is not None:
            target = urlsplit(str(self.get("path")))
            query_value = opened(self.get("query"))
            if isinstance(query_value, str):
                query_value = query(query_value.removeprefix("?"))
            status = self.get("status")
            query_value = query_value if query_value is not None else query(target.query)
            yield {"kind": "request", "tool": f"{str(self.get('method')).upper()} {target.path or '/'}",
                   "arguments": written({"query": query_value, "body": body(self.get("body"))}),
                   "value": written({"status": int(status) if str(status).isdecimal() else status,
                                     "body": body(self.get("response"))}),
                   "call_id": name_of(self.get("request_id")), "requestor": name_of(self.get("call_id")),
                   "latency_ms": self._latency()}
        elif kind == "log":
            return
        elif kind in ("feedback", "outcome") or (kind is None and None not in (self.get("name"), self.get("value"))):
            if (value := self.get("value")) is not None:
                kind = kind or "feedback"
                yield {"kind": kind, "name": name_of(self.get("name")) or kind, "value": written(value),
                       "content": written(self.get("comment")), "call_id": name_of(self.get("call_id"))}
        elif kind == "business":
            payload = opened(self.get("arguments")) if self._paths.get("arguments") else self._value
            yield {"kind": "business", "tool": name_of(self.get("tool")) or name_of(self.get("kind")),
                   "arguments": payload if isinstance(payload, str) else json_text(payload)}
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
            if (spoken := text(self.scope.get(path))[0]):
                yield {"kind": "message", "role": speaker, "content": spoken, **shared, "lossy": text(self.scope.get(path))[1],
                       "usage": usage if speaker == "assistant" else None}
        stated = self.get("content")
        content, lossy = text(opened(stated) if isinstance(stated, str) and stated.startswith("[{") else stated)
        word = role or name_of(self.get("role"))
        if content is not None or lossy:
            yield {"kind": "reasoning" if is_thought else "message", "role": word, "content": content, **shared, "usage": usage,
                   "lossy": lossy}
        yield from self._calls(word)

    def _calls(self, role: str | None) -> Iterator[Row]:
        for scope in self.scope.each(self._paths["calls"]) if "calls" in self._paths else ():
            inner = Item(scope, self._mapping)
            if inner.get("tool") is not None:
                yield from inner._tool("call", role if role in ("user", "assistant") else None)
            else:
                yield from parts({"role": role, "tool_calls": [scope.values[0]]})

    def _tool(self, kind: str | None, role: str | None) -> Iterator[Row]:
        """Yield a call, its result, or both; without a word for it, what is there tells."""
        given, answer = self.get("arguments"), self.get("result")
        requestor = role if role in ("user", "assistant") else "assistant"
        is_result = kind == "result" or role == "tool"
        shared: Row = {"call_id": name_of(self.get("call_id")), "tool": name_of(self.get("tool"))}
        arguments, lossy = arguments_of(opened(given) if isinstance(given, str) else given)
        call: Row = {"kind": "call", "role": requestor, "requestor": requestor, **shared, "lossy": lossy,
                     "arguments": given if isinstance(given, str) and not lossy else arguments, "latency_ms": self._latency()}
        if is_result and given is not None and shared["tool"] is not None:
            yield {**call, _WITH_RESULT: True}
        if not is_result:
            if (content := self.get("content")) is not None and content != given and content != answer:
                yield {"kind": "message", "role": requestor, "content": text(content)[0], "usage": self._usage()}
            yield call
        is_whole = kind is None and role is None and (self._says_error() is not None or (
            "result" in self._paths and self.scope.has(self._paths["result"])))
        if is_result or answer is not None or is_whole:   # a record that nobody speaks tells all of a call
            path = self._paths.get("error") or "!"
            error = self.scope.get(path) if not path.startswith("!") else None
            content = answer if answer is not None else self.get("content") if is_result else None
            if content is None and isinstance(error, (str, dict, list)):
                content = error
            output, lossy = answer_of(content)
            part: Row = {"kind": "result", **shared, "content": output, "lossy": lossy, "is_error": self._says_error()}
            if not is_result:
                ended = microseconds(self.get("ended"))
                began, latency = microseconds(self.get("time")), self._latency()
                if ended is None and began is not None and latency is not None:
                    ended = began + round(latency * 1000)
                part["happened_at"] = ended
            yield part

    def _says_error(self) -> bool | None:
        path = self._paths.get("error")
        if path is not None and path.startswith("!"):   # a field that says that all went well
            stated = self.scope.get(path[1:])
            return None if stated in (None, "") else not went_well(stated)
        return failed(self.scope.get(path)) if path is not None and self.scope.has(path) else None

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
        usage = {name: int(count) for name, count in counts.items() if isinstance(count, int | float) or str(count).isdecimal()}
        return usage or None


_MISSING = object()


class RecordScope(NamedTuple):
    """A value and those around it, the innermost first."""

    values: tuple[Any, ...]
    place: str
    """Its place in the record, element by element."""

    def get(self, path: str, outward: bool = False) -> Any:
        """Return what stands at `path`, None where nothing does; `outward`: in the innermost value that has it."""
        return None if (value := self._find(path, outward)) is _MISSING else value

    def has(self, path: str) -> bool:
        return self._find(path, False) is not _MISSING

    def _find(self, path: str, outward: bool) -> Any:
        if path.startswith("="):
            return path[1:]
        if "|" in path:
            candidates = [self._find(each, outward) for each in path.split("|")]
            there = [each for each in candidates if each is not _MISSING]
            return next((each for each in there if each not in (None, "")), there[0] if there else _MISSING)
        values = self.values
        while path.startswith("^."):
            path, values = path[2:], values[1:]
        searched = values if outward else values[:1]
        return next((candidates for value in searched if (candidates := at(value, path)) is not _MISSING), _MISSING)

    def each(self, path: str) -> Iterator[RecordScope]:
        """Yield the elements of the list at `path`; lists on the way to it are walked too, each a scope of its own."""
        yield from _elements(self.values[0], path.split(".") if path != "." else [], self)


def at(value: Any, path: str) -> Any:
    """Return what stands at the dotted path, the marker for nothing where nothing does."""
    if path == ".":
        return value
    value = opened(value)
    if isinstance(value, dict):
        if path in value:
            return value[path]
        head, _, rest = path.partition(".")
        while rest:
            if head in value and (inner := at(value[head], rest)) is not _MISSING:
                return inner
            more, _, rest = rest.partition(".")
            head = f"{head}.{more}"
    elif isinstance(value, list):
        head, _, rest = path.partition(".")
        if head.isdecimal() and int(head) < len(value):
            return at(value[int(head)], rest) if rest else value[int(head)]
    return _MISSING


def _elements(value: Any, parts: list[str], scope: RecordScope) -> Iterator[RecordScope]:
    value = opened(value)
    if isinstance(value, list):
        for number, element in enumerate(value):
            inner = RecordScope((element, *scope.values), f"{scope.place}/{number}")
            if parts:
                yield from _elements(element, parts, inner)
            else:
                yield inner
    elif parts and isinstance(value, dict):
        for size in range(len(parts), 0, -1):
            if (key := ".".join(parts[:size])) in value:
                yield from _elements(value[key], parts[size:], scope)
                return


FORMAT = Format(name="mapped", history="once", claims=claims, read=read, sample=sample("mapped.jsonl"), rank=99)
