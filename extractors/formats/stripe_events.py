"""Stripe events: what happened to payments, and refunds and disputes as outcomes.

In: events, a line each or a list. Out: a business event each, and one outcome for each refund and dispute, with the last that
the file says of it (several events describe one: `refund.created`, `refund.updated`, `charge.refunded`). A charge's own word
on refunds counts where no refund of it is told. Amounts are in the currency's smallest unit, as logged.
Does not see: what the money was for, beyond the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_GIVEN = (None, "succeeded", "pending", "requires_action")


def claims(head: Head) -> bool:
    """The first event is called one, and holds an object."""
    return head.layout in ("lines", "document") and next(_events(head.first), None) is not None


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """Events as they come, then what they say together."""
    log = _Log(emit)
    for record in records:
        found = list(_events(record.value))
        if not found:
            emit.reject(record, "no_event", "the record is no event of Stripe; leave it out")
        for event in found:
            with emit.guarded(record):
                log.take(record, event)
    log.tell()


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


@dataclass(slots=True)
class _Fact:
    """The last that an event said of a refund, a dispute, or a charge's refunds."""

    record: LogRecord
    at: int | None
    value: Row


class _Log:
    """What one file said of each refund, dispute and refunded charge."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._facts: dict[tuple[str, str], _Fact] = {}
        self._sessions: dict[str, str] = {}
        """Sessions by the ids of payments that name one."""
        self._seen: set[str] = set()

    def take(self, record: LogRecord, event: Row) -> None:
        """One event; the same event delivered again is a reject."""
        if event.get("id") in self._seen:
            self._emit.reject(record, "duplicate_event", f"event {event['id']} was delivered before; nothing to mend")
            return
        inner, at = event["data"]["object"], microseconds(event.get("created"))
        session = self._emit.envelope.session_id(inner)
        kind = str(inner.get("object"))
        self._emit.event(record, "business", session_id=session, happened_at=at, tool=event["type"], call_id=event.get("id"),
                         arguments=orjson.dumps(inner).decode(), name=_text(inner.get("customer")),
                         service=self._emit.envelope.service({}))
        if isinstance(event.get("id"), str):
            self._seen.add(event["id"])
        for name in ("id", "charge", "payment_intent"):
            if session is not None and isinstance(inner.get(name), str):
                self._sessions.setdefault(inner[name], session)
        for refund in _listed(inner.get("refunds")):
            self._note("refund", _Fact(record, at, refund))
        if kind in ("refund", "dispute") or (kind == "charge" and inner.get("amount_refunded")):
            self._note(kind, _Fact(record, at, inner))

    def _note(self, kind: str, fact: _Fact) -> None:
        key = (kind, str(fact.value.get("id")))
        known = self._facts.get(key)
        if known is None or (known.at or 0) <= (fact.at or 0):
            self._facts[key] = fact

    def tell(self) -> None:
        """One outcome for each refund and dispute."""
        told = {str(fact.value.get("charge")) for (kind, _), fact in self._facts.items() if kind == "refund"}
        for (kind, name), fact in self._facts.items():
            if kind != "charge" or name not in told:
                with self._emit.guarded(fact.record):
                    self._outcome(kind, fact)

    def _outcome(self, kind: str, fact: _Fact) -> None:
        value, status = fact.value, fact.value.get("status")
        ids = [value.get(name) for name in ("id", "charge", "payment_intent")]
        session = self._emit.envelope.session_id(value) or next(
            (self._sessions[each] for each in ids if isinstance(each, str) and each in self._sessions), None)
        if kind == "dispute":
            name, answer = "dispute", _text(status)
        else:
            name = "refund" if kind == "charge" or status in _GIVEN else f"refund_{status}"
            answer = _text(value.get("amount_refunded" if kind == "charge" else "amount"))
        lossy = [f"{each} {_text(value[each])}" for each in ("currency", "status", "failure_reason", "amount")
                 if value.get(each) is not None and not (each == "amount" and kind != "dispute")]
        self._emit.event(fact.record, "outcome", place=f"{kind} {value.get('id')}", session_id=session, name=name, value=answer,
                         content=_text(value.get("reason")), call_id=_text(value.get("id")), lossy=lossy,
                         happened_at=microseconds(value.get("created")) if kind != "charge" else fact.at,
                         service=self._emit.envelope.service({}))


def _listed(value: Any) -> list[Row]:
    """The refunds that a charge lists."""
    data = value.get("data") if isinstance(value, dict) else None
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def _text(value: Any) -> str | None:
    return None if value in (None, "") else value if isinstance(value, str) else orjson.dumps(value).decode()


FORMAT = Format(name="stripe", claims=claims, read=read, sample=sample("stripe_events.jsonl"), rank=28)
