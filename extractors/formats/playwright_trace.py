"""Traces of Playwright (`trace.zip`, versions 6 to 10): the requests of a browser, and what a script or an agent did in it.

In: one archive with `trace.network`, `trace.trace` (or `0-trace.network` …) and bodies under `resources/`. Out: pages and
requests as from an HTTP Archive, and a business event for each action on a page (`goto`, `click`, `fill`, `select_option` …)
with its selector, the element that it matched (tag, id, name, type, text), the value and its error; log events for the other
calls. What was typed into a field for passwords is never kept, wherever it turns up. One trace is a session.
Does not see: snapshots of frames, screenshots, console lines, the code that called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.har import tell_entry
from extractors.formats.instants import microseconds
from extractors.formats.password_fields import cut_password_fields
from extractors.formats.transcript import nameless
from extractors.formats.values import dumped, object_of, text_of
from extractors.privacy.credentials import SECRET, is_credential

_PART = re.compile(r"(?:.*-)?(?:trace|test)\.(?P<kind>trace|network)")
_ACTIONS = frozenset(("goto", "reload", "goBack", "goForward", "click", "dblclick", "tap", "fill", "type", "press", "check",
                      "uncheck", "selectOption", "setInputFiles", "hover", "dragAndDrop", "setChecked", "clear",
                      "keyboardType", "keyboardPress", "keyboardInsertText", "mouseClick", "close", "waitForTimeout"))
_TYPED = ("value", "text", "key")
_RESOLVED = re.compile(
    r"locator resolved to <(?P<tag>[\w-]+)(?P<attributes>(?:\s+[\w:-]+(?:=\"[^\"]*\")?)*)\s*/?>(?P<text>[^<]*)")
_ATTRIBUTE = re.compile(r"([\w:-]+)=\"([^\"]*)\"")
_LEAST_SECRET = 4
"""Shorter typed text is no password on its own: it would be cut out of words."""


@dataclass(slots=True)
class _Action:
    """A call of the browser's interface, put together from the lines about it."""

    started: Row
    ended: Row = field(default_factory=dict)
    target: Row = field(default_factory=dict)
    is_secret: bool = False


def claims(head: Head) -> bool:
    """Return whether an archive holds a trace's lines, and its network or resources."""
    names = head.document if head.layout == "archive" and isinstance(head.document, dict) else {}
    kinds = {part["kind"] for name in names if (part := _PART.fullmatch(name))}
    return "trace" in kinds and ("network" in kinds or any(
        b'"context-options"' in names[name][:4096] for name in names if name.endswith(".trace")))


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One trace a record."""
    members: dict[str, Any] = object_of(record.value)
    n_before = len(emit.events)
    typed: set[str] = set()
    for name in sorted(members):
        if not isinstance(members[name], bytes) or (part := _PART.fullmatch(name)) is None:
            continue
        lines = list(_lines(members[name]))
        if part["kind"] == "network":
            _network(record, name, lines, members, emit)
        else:
            typed |= _actions(record, name, lines, emit)
    if len(emit.events) == n_before:
        raise RejectedRecord("no_trace", "the archive holds no line of a trace that is read; record it again")
    made = emit.events[n_before:]
    cut_password_fields(made)
    for row in made:
        row["session_id"] = row.get("session_id") or nameless(record)
        for column in ("content", "arguments", "value") if typed else ():
            row[column] = _without(row.get(column), typed)


def _lines(content: bytes) -> Iterator[Row]:
    for line in content.splitlines():
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:   # a trace that was cut off
            continue
        if isinstance(value, dict):
            yield value


def _network(record: LogRecord, name: str, lines: list[Row], members: Row, emit: Emit) -> None:
    for number, line in enumerate(lines):
        entry = line.get("snapshot")
        if line.get("type") == "resource-snapshot" and isinstance(entry, dict):
            with emit.guarded(record):
                for part in (entry.get("request", {}).get("postData"), entry.get("response", {}).get("content")):
                    _fill_in(part, members)
                n_before = len(emit.events)
                tell_entry(record, number, entry, emit)
                _renamed(emit, n_before, record, name)


def _renamed(emit: Emit, n_before: int, record: LogRecord, name: str) -> None:
    """Give the last events ids that tell them from those of another part of the archive."""
    made = emit.events[n_before:]
    del emit.events[n_before:]
    for number, row in enumerate(made):
        fields = {key: value for key, value in row.items() if key not in _FIXED}
        emit.event(record, row["kind"], place=f"{name}/{row['event_id']}/{number}", **fields)


_FIXED = ("event_id", "record_id", "kind", "file_id", "source", "format")


def _fill_in(part: Any, members: Row) -> None:
    """Put the text of a body in its place, where the archive holds it as a file."""
    if not isinstance(part, dict) or part.get("text"):
        return
    file = part.get("_file") or (f"resources/{part['_sha1']}" if part.get("_sha1") else None)
    content = members.get(file) if isinstance(file, str) else None
    if isinstance(content, bytes):
        try:
            part["text"] = content.decode()
        except UnicodeDecodeError:   # no text: its name is its hash
            return


def _actions(record: LogRecord, name: str, lines: list[Row], emit: Emit) -> set[str]:
    """Emit the calls of one part of a trace; returns what was typed into fields for passwords."""
    zero = next((line for line in lines if line.get("type") == "context-options"), {})
    actions = _put_together(lines)
    typed = {text for each in actions if each.is_secret for text in _typed(each.started) if len(text) >= _LEAST_SECRET}
    for number, action in enumerate(actions):
        with emit.guarded(record):
            _tell(record, f"{name}/{number}", action, zero, emit)
    return typed


def _put_together(lines: list[Row]) -> list[_Action]:
    actions: dict[Any, _Action] = {}
    for line in lines:
        kind, call_id = line.get("type"), str(line.get("callId"))
        if kind in ("before", "action"):
            actions[call_id] = _Action(line, line if kind == "action" else {})
        elif call_id in actions and kind == "after":
            actions[call_id].ended = line
        elif call_id in actions and kind == "log" and (match := _RESOLVED.search(str(line.get("message")))):
            actions[call_id].target = _element(match)
    focused: dict[str, bool] = {}
    for action in actions.values():
        action.is_secret = _is_secret(action, focused)
    return list(actions.values())


def _element(match: re.Match[str]) -> Row:
    attributes = dict(_ATTRIBUTE.findall(match["attributes"]))
    stated = {name: attributes.get(name) for name in ("id", "name", "type", "href")}
    made = {"tag": match["tag"].upper(), **stated, "text": match["text"].strip().rstrip("…")}
    return {name: value for name, value in made.items() if value}


def _is_secret(action: _Action, focused: dict[str, bool]) -> bool:
    """Whether the action concerns a field for a credential; keys without a selector go where the last action was."""
    started, target = action.started, action.target
    page = str(started.get("pageId"))
    selector = object_of(started.get("params")).get("selector")
    if selector is None:
        return str(started.get("method")).startswith("keyboard") and focused.get(page, False)
    is_secret = target.get("type") == "password" or is_credential(str(selector)) or any(
        is_credential(str(target.get(name, ""))) for name in ("name", "id"))
    focused[page] = is_secret
    return is_secret


def _typed(started: Row) -> list[str]:
    parameters = object_of(started.get("params"))
    return [parameters[name] for name in _TYPED if isinstance(parameters.get(name), str)]


def _tell(record: LogRecord, place: str, action: _Action, zero: Row, emit: Emit) -> None:
    started, method = action.started, str(action.started.get("method"))
    parameters = {name: value for name, value in object_of(started.get("params")).items()
                  if name not in ("timeout", "strict") and not (action.is_secret and name in _TYPED)}
    began, ended = started["startTime"], action.ended.get("endTime")
    shared: Row = {"place": place, "call_id": text_of(started.get("callId")), "happened_at": _instant(began, started, zero),
                   "latency_ms": float(ended - began) if isinstance(ended, (int, float)) else None,
                   "service": emit.envelope.service({})}
    error = action.ended.get("error")
    about = {**action.target, **parameters, **({"error": object_of(error).get("message", error)} if error else {})}
    kind = "business" if method in _ACTIONS else "log"
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method).lower()
    emit.event(record, kind, tool=word, arguments=dumped(about), is_error=True if error else None, **shared)


def _instant(began: float, started: Row, zero: Row) -> int | None:
    """Return the instant of a call: what it states, else the trace's own clock set by when the trace began."""
    if isinstance(stated := started.get("wallTime"), (int, float)):
        return microseconds(stated)
    if isinstance(wall := zero.get("wallTime"), (int, float)):
        return microseconds(wall + began - zero.get("monotonicTime", 0))
    return None


def _without(text: Any, typed: set[str]) -> Any:
    for each in typed if isinstance(text, str) else ():
        for spelled in {each, dumped(each)[1:-1]}:
            text = text.replace(spelled, SECRET)
    return text


FORMAT = Format(name="playwright_trace", claims=claims, read=read, sample=sample("playwright_trace.zip"), whole=True, rank=20)
