"""Helicone's requests: as its export writes them (JSON lines, a list, CSV), and pages of its API (`data`).

In: rows with `request_body` and `response_body`. Out: what the format of the provider that answered gives: OpenAI's completions
and Responses, Anthropic's messages, Gemini's. Session, user and service come from the row (`Helicone-Session-Id` among the
properties, `request_user_id`), ratings from `feedback_rating` and `scores`.
Does not see: bodies that the export left out (`signed_body_url`): such a row is rejected; prices; the session's path and name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from extractors.formats import anthropic_messages, gemini, openai_completions, openai_responses
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.values import object_of, objects_of, opened, word_of

_ROW = {"request_id", "request_created_at"}
_BODIES = ("request_body", "response_body")
_PROPERTIES = ("request_properties", "properties")
_SESSION = ("helicone-session-id", "session-id", "sessionid", "session_id")
_KEPT = ("request_created_at", "response_created_at", "delay_ms", "feedback_rating", "scores")
Read = Callable[[LogRecords, Emit], None]


def claims(head: Head) -> bool:
    """Return whether the first row has a request's id, its time and one of the bodies."""
    rows = objects_of(head.first)
    return (head.is_json or head.layout == "table") and bool(rows) and rows[0].keys() >= _ROW and any(
        name in rows[0] for name in (*_BODIES, "signed_body_url"))


def read(records: LogRecords, emit: Emit) -> None:
    """Each provider's rows as its own format reads them, in file order."""
    rows: dict[Read, list[LogRecord]] = {}
    places: dict[int, str] = {}
    for record in records:
        row = None
        for number, row in enumerate(objects_of(record.value)):
            exchange = _exchange(row)
            if exchange is None:
                emit.reject(record, "no_body",
                            f"request {row.get('request_id')} holds no bodies; export it with --include-body")
                continue
            inner = replace(record, value=exchange)
            places[id(inner)] = f"{number}/"
            rows.setdefault(_reader(exchange), []).append(inner)
        if row is None:
            emit.reject(record, "no_row", "the record holds no requests; leave it out or export it again")
    for read_rows, of_provider in rows.items():
        read_rows(of_provider, _PlacedEmit(emit, places))


class _PlacedEmit(Emit):
    """Emits into another one; the rows of one record have places of their own."""

    def __init__(self, emit: Emit, places: dict[int, str]) -> None:
        self.__dict__ = emit.__dict__
        self._places = places

    def event(self, record: LogRecord, kind: str, place: int | str | None = None, **fields: Any) -> Row:
        prefix = self._places.get(id(record))
        if prefix is not None:
            place = f"{prefix}{len(self.events) if place is None else place}"
        return super().event(record, kind, place, **fields)


def _exchange(row: Row) -> Row | None:
    """Return a row as a record with a request and a response; None without bodies."""
    request, response = (opened(row.get(name)) for name in _BODIES)
    if not isinstance(request, dict) or not request:
        return None
    properties = {str(key).lower(): value for name in _PROPERTIES for key, value in object_of(opened(row.get(name))).items()}
    session = next((properties[name] for name in _SESSION if word_of(properties.get(name))), None)
    kept = {name: opened(row[name]) for name in _KEPT if row.get(name) not in (None, "")}
    latency = kept.pop("delay_ms", None)
    return {**kept, **({"latency_ms": latency} if isinstance(latency, (int, float)) else {}),
            **{name: value for name, value in (("session_id", session), ("user_id", row.get("request_user_id")),
                                               ("service", properties.get("service") or properties.get("app"))) if value},
            "request": request, "response": response}


def _reader(exchange: Row) -> Read:
    request, response = exchange["request"], exchange["response"]
    head = Head("lines", [{"request": request, "response": response}])
    return next((each.read for each in _PROVIDERS if each.claims(head)), openai_completions.read)


_PROVIDERS = (openai_responses.FORMAT, anthropic_messages.FORMAT, gemini.FORMAT)
FORMAT = Format(name="helicone", claims=claims, read=read, sample=sample("helicone.jsonl"), apart=False, rank=24)
