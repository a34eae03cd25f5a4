"""Session recordings of rrweb 1 and 2: pages as scripts made them, and what people typed and clicked.

In: JSON lines of events, one list, or objects with a list under `events`. Out: a page for each full snapshot, as its tree stood
before the next page or at the end of the recording, without what was typed into it; a business event for each click, run of
typing, choice and event of the application's own; log events for the rest. What a field for a password holds is never kept.
Sees: the session that a record states (else a recording is one). Does not see: requests and answers (no status), styles that
the recorder copied, documents in frames, drawings, packed recordings (`v`, `cv`: they have a decision each).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, RejectedRecord, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.rrweb_page import RecordedPage
from extractors.formats.transcript import nameless
from extractors.formats.values import dumped, list_under, object_of, query

_LOADED, _WHOLE, _CHANGE, _META, _CUSTOM, _PLUGIN = 1, 2, 3, 4, 5, 6
_MUTATION, _MOUSE, _INPUT = 0, 2, 5
_CLICKS = {2: "click", 3: "contextmenu", 4: "dblclick"}
_CHANGES = ("mutation", "mouse move", "mouse", "scroll", "resize", "input", "touch move", "media", "style rule", "canvas",
            "font", "log", "drag", "style declaration", "selection", "adopted style sheet", "custom element")
_KINDS = ("loaded", "load", "snapshot", "change", "meta", "custom", "plugin")


def claims(head: Head) -> bool:
    """Return whether the first objects are a recorder's events, or hold a list of them, and one shows a page or a change."""
    if not head.is_json:
        return False
    first = list_under(head.first, "events")[:5] or head.objects
    return bool(first) and all(map(_is_event, first)) and any(
        _whole_or_change(each) for each in first)


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and _is_number(value.get("type"), int) and 0 <= value["type"] <= _PLUGIN and (
        _is_number(value.get("timestamp"), (int, float)))


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _whole_or_change(event: Row) -> bool:
    data = object_of(event.get("data"))
    return (event["type"] == _META and "href" in data and "width" in data) or (
        event["type"] == _WHOLE and isinstance(data.get("node"), dict)) or (
        event["type"] == _CHANGE and _is_number(data.get("source"), int))


def read(records: LogRecords, emit: Emit) -> None:
    """All events of a file, a recording for each session."""
    recordings: dict[str, _Recording] = {}
    alone: str | None = None
    for record in records:
        alone = alone or nameless(record)
        with emit.guarded(record):
            for place, event, stated in _events(record, emit):
                name = stated or alone
                recordings.setdefault(name, _Recording(name, emit)).take(record, place, event)
    for each in recordings.values():
        each.close()


def _events(record: LogRecord, emit: Emit) -> Iterator[tuple[int, Row, str | None]]:
    """Yield the events of a record with their place and the session that is stated."""
    value = record.value
    listed = value["events"] if isinstance(value, dict) and isinstance(value.get("events"), list) else (
        value if isinstance(value, list) else [value])
    around = emit.envelope.session_id(value) if isinstance(value, dict) else None
    if not listed:
        raise RejectedRecord("no_events", "the record holds no event; leave it out or record it again")
    for place, event in enumerate(listed):
        if isinstance(event, str) or (isinstance(event, dict) and ("cv" in event or isinstance(event.get("data"), str))):
            raise RejectedRecord("packed_recording", "the event is packed; unpack the recording before it is read")
        if not _is_event(event):
            raise RejectedRecord("no_event", "the record is no event of a recorder (`type`, `timestamp`); leave it out")
        yield place, event, emit.envelope.session_id(event) or around


class _Recording:
    """One session's recording: the page that is open, and the field that is being typed into."""

    def __init__(self, session_id: str, emit: Emit) -> None:
        self._session_id, self._emit = session_id, emit
        self._href = ""
        self._page: RecordedPage | None = None
        self._row: Row = {}
        """The event of the open page."""
        self._typing: tuple[Any, Row] | None = None
        """Node and event of the field that was typed into last."""

    def take(self, record: LogRecord, place: int, event: Row) -> None:
        """Tell one event."""
        kind, data = event["type"], object_of(event.get("data"))
        shared: Row = {"session_id": self._session_id, "happened_at": microseconds(event["timestamp"]), "place": place,
                       "name": self._emit.envelope.identity(event),
                       "service": self._emit.envelope.service({}) or urlsplit(self._href).hostname}
        if kind == _META:
            self.close()
            self._href = str(data.get("href") or "")
        if kind == _WHOLE:
            self.close()
            self._open(record, data, shared)
        elif kind == _CHANGE:
            self._change(record, data, shared)
        elif kind == _CUSTOM:
            self._emit.event(record, "business", tool=str(data.get("tag") or "custom"),
                             arguments=dumped({"url": self._href, "payload": data.get("payload")}), **shared)
        elif kind == _PLUGIN:
            self._emit.event(record, "log", tool=str(data.get("plugin") or "plugin"), content=dumped(data.get("payload")),
                             **shared)
        else:
            self._emit.event(record, "log", tool=f"rrweb {_KINDS[kind]}", content=self._href or None, **shared)

    def close(self) -> None:
        """Write the open page as it stands."""
        self._typing = None
        if self._page is None:
            return
        made = {"type": "text/html", "title": self._page.title(), "body": self._page.html()}
        self._row["value"] = dumped({name: each for name, each in made.items() if each is not None})
        if self._page.n_missed:
            self._row["lossy"] = [f"{self._page.n_missed} changes of nodes that the recording does not show"]
        self._page = None

    def _open(self, record: LogRecord, data: Row, shared: Row) -> None:
        if not isinstance(data.get("node"), dict):
            raise RejectedRecord("no_snapshot", "the snapshot holds no `node`; record it again")
        url = urlsplit(self._href)
        self._page = RecordedPage(data["node"])
        self._row = self._emit.event(
            record, "page", content=self._href or None, tool=f"GET {url.path or '/'}",
            arguments=dumped({"query": query(url.query)}), value=None, **shared)

    def _change(self, record: LogRecord, data: Row, shared: Row) -> None:
        source = data.get("source")
        if source == _MUTATION and self._page is not None:
            self._page.apply(data)
        elif source == _INPUT and self._is_input(data):
            self._input(record, data, shared)
            return
        elif source == _MOUSE and data.get("type") in _CLICKS:
            self._typing = None
            self._emit.event(record, "business", tool=_CLICKS[data["type"]], arguments=self._about(data, {}), **shared)
            return
        name = _CHANGES[source] if isinstance(source, int) and 0 <= source < len(_CHANGES) else str(source)
        counts = {key: len(each) for key, each in data.items() if isinstance(each, list)}
        self._emit.event(record, "log", tool=f"rrweb {name}", arguments=dumped(counts) if counts else None, **shared)

    def _is_input(self, data: Row) -> bool:
        """Whether a person changed a field: a script's change is none, nor is the button that another one replaced."""
        kind = self._target(data).get("type")
        return data.get("userTriggered") is not False and not (kind == "radio" and not data.get("isChecked"))

    def _input(self, record: LogRecord, data: Row, shared: Row) -> None:
        target = self._target(data)
        if target.get("type") in ("checkbox", "radio"):
            tool, value = ("check" if data.get("isChecked") else "uncheck"), data.get("isChecked")
        else:
            tool, value = ("select" if target.get("tag") == "SELECT" else "type"), data.get("text")
        kept = {} if target.get("type") == "password" else {"value": value}
        if tool == "type" and self._typing is not None and self._typing[0] == data.get("id"):
            self._typing[1].update(arguments=self._about(data, kept), happened_at=shared["happened_at"])
            self._emit.event(record, "log", tool="rrweb input", **shared)
            return
        row = self._emit.event(record, "business", tool=tool, arguments=self._about(data, kept), **shared)
        self._typing = (data.get("id"), row) if tool == "type" else None

    def _target(self, data: Row) -> Row:
        return self._page.target(data.get("id")) if self._page is not None else {}

    def _about(self, data: Row, value: Row) -> str:
        title = self._page.title() if self._page is not None else None
        around = {"url": self._href, **({"title": title} if title else {})}
        return dumped({**around, **self._target(data), **value})


FORMAT = Format(name="rrweb", claims=claims, read=read, sample=sample("rrweb.jsonl"), apart=False, history="once", rank=19)
