"""Stripe events: what happened to payments, and refunds and disputes as outcomes.

In: events, a line each or a list. Out: a business event each, and one outcome for each refund and dispute, as the file's last
event on it (`refund.created`, `refund.updated`, `charge.refunded` …) states it. What a charge states of refunds counts where no
refund of it is logged. Amounts are in the currency's smallest unit, as logged.
Does not see: what the money was for, beyond the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_of, objects_in, stated_text

_GIVEN = (None, "succeeded", "pending", "requires_action")


def claims(head: Head) -> bool:
    """Return whether the first event is called one, and holds an object."""
    return head.is_json and next(_events(head.first), None) is not None


def read(records: LogRecords, emit: Emit) -> None:
    """Events as they come, then what they say together."""
    log = _StripeLog(emit)
    for record in records:
        events = list(_events(record.value))
        if not events:
            emit.reject(record, "no_event", "the record is no event of Stripe; leave it out")
        for event in events:
            with emit.guarded(record):
                log.take(record, event)
    log.emit_outcomes()


def _events(value: Any) -> Iterator[Row]:
    if not isinstance(value, dict):
        return
    if isinstance(value.get("data"), list):
        yield from (each for each in value["data"] if _is_event(each))
    elif _is_event(value):
        yield value


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "event" and isinstance(value.get("type"), str) and \
        isinstance(value.get("data"), dict) and isinstance(value["data"].get("object"), dict)


class _StripeLog:
    """What one file states of each refund, dispute and refunded charge."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._facts: dict[tuple[str, str], tuple[LogRecord, int | None, Row]] = {}
        """The last event on each: its record, time and object."""
        self._sessions: dict[str, str] = {}
        """Sessions by the ids of payments that name one."""
        self._event_ids: set[str] = set()

    def take(self, record: LogRecord, event: Row) -> None:
        """Emit one event; the same event delivered again is a reject."""
        if event.get("id") in self._event_ids:
            self._emit.reject(record, "duplicate_event", f"event {event['id']} was delivered before; no action needed")
            return
        inner, at = event["data"]["object"], microseconds(event.get("created"))
        session = self._emit.envelope.session_id(inner)
        kind = str(inner.get("object"))
        self._emit.event(record, "business", session_id=session, happened_at=at, tool=event["type"], call_id=event.get("id"),
                         arguments=dumped(inner), name=stated_text(inner.get("customer")),
                         service=self._emit.envelope.service({}))
        if isinstance(event.get("id"), str):
            self._event_ids.add(event["id"])
        for name in ("id", "charge", "payment_intent"):
            if session is not None and isinstance(inner.get(name), str):
                self._sessions.setdefault(inner[name], session)
        facts = [("refund", each) for each in objects_in(object_of(inner.get("refunds")).get("data"))]
        if kind in ("refund", "dispute") or (kind == "charge" and inner.get("amount_refunded")):
            facts.append((kind, inner))
        for kind, value in facts:
            key = (kind, str(value.get("id")))
            if key not in self._facts or (self._facts[key][1] or 0) <= (at or 0):
                self._facts[key] = (record, at, value)

    def emit_outcomes(self) -> None:
        refunded_charges = {str(value.get("charge")) for (kind, _), (_, _, value) in self._facts.items() if kind == "refund"}
        for (kind, name), (record, at, value) in self._facts.items():
            if kind != "charge" or name not in refunded_charges:
                with self._emit.guarded(record):
                    self._outcome(kind, record, at, value)

    def _outcome(self, kind: str, record: LogRecord, at: int | None, value: Row) -> None:
        status = value.get("status")
        ids = [value.get(name) for name in ("id", "charge", "payment_intent")]
        session = self._emit.envelope.session_id(value) or next(
            (self._sessions[each] for each in ids if isinstance(each, str) and each in self._sessions), None)
        if kind == "dispute":
            name, answer = "dispute", stated_text(status)
        else:
            name = "refund" if kind == "charge" or status in _GIVEN else f"refund_{status}"
            answer = stated_text(value.get("amount_refunded" if kind == "charge" else "amount"))
        lossy = [f"{each} {stated_text(value[each])}" for each in ("currency", "status", "failure_reason", "amount")
                 if value.get(each) is not None and not (each == "amount" and kind != "dispute")]
        self._emit.event(record, "outcome", place=f"{kind} {value.get('id')}", session_id=session, name=name, value=answer,
                         content=stated_text(value.get("reason")), call_id=stated_text(value.get("id")), lossy=lossy,
                         happened_at=microseconds(value.get("created")) if kind != "charge" else at,
                         service=self._emit.envelope.service({}))


FORMAT = Format(name="stripe", claims=claims, read=read, sample=sample("stripe_events.jsonl"), rank=28)
