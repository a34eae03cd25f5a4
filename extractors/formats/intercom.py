"""Intercom conversations: what people and bots said, in plain text; ratings; how it ended.

In: conversations of the API, one or a list, or a webhook's. Out: messages (the opening one and every part with a body), log
events for parts that say nothing (assignments, notes of colleagues …), feedback for ratings, outcomes for states.
Session: a custom attribute that names one, else the conversation's id. A rating that the AI agent repeats counts once.
Does not see: tools that a bot used, what a picture shows. An assumed resolution is what nobody objected to: it is kept as
logged, no confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.html_text import plain
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_PEOPLE = ("user", "lead", "contact", "visitor")
_UNSPOKEN = ("note", "note_and_reopen")


def claims(head: Head) -> bool:
    """The first conversation has parts, a source, a rating or a state beside its type."""
    first = next(_conversations(head.first), {})
    return head.layout in ("lines", "document") and any(
        isinstance(first.get(name), dict) for name in ("conversation_parts", "conversation_rating", "source"))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All conversations of each record."""
    for record in records:
        found = list(_conversations(record.value))
        if not found:
            emit.reject(record, "no_conversation", "the record holds no conversation; leave it out or export it again")
        for conversation in found:
            with emit.guarded(record):
                _Conversation(record, conversation, emit).tell()


def _conversations(value: Any) -> Iterator[Row]:
    if not isinstance(value, dict):
        return
    inner = value.get("conversations")
    if isinstance(inner, list):
        yield from (each for each in inner if isinstance(each, dict))
    elif isinstance(value.get("data"), dict) and isinstance(value["data"].get("item"), dict):
        yield from _conversations(value["data"]["item"])
    elif value.get("type") == "conversation" and "id" in value:
        yield value


class _Conversation:
    """One conversation, told from its beginning."""

    def __init__(self, record: LogRecord, value: Row, emit: Emit) -> None:
        self._record, self._value, self._emit = record, value, emit
        attributes = value.get("custom_attributes")
        self._shared: Row = {
            "session_id": emit.envelope.session_id(value) or emit.envelope.session_id(attributes) or str(value["id"]),
            "service": emit.envelope.service(value)}
        self._position = 0

    def tell(self) -> None:
        """Everything that the conversation holds."""
        value, n_before = self._value, len(self._emit.events)
        source, parts = _object(value.get("source")), _object(value.get("conversation_parts"))
        if source:
            self._part({"part_type": "comment", "created_at": value.get("created_at"), **source})
        for part in parts.get("conversation_parts") or ():
            self._part(part)
        if isinstance(count := parts.get("total_count"), int) and count > len(parts.get("conversation_parts") or ()):
            self._emit.reject(self._record, "parts_left_out", f"the export holds fewer than the {count} parts that the "
                              "conversation has; export it again with all of them")
        self._opinions()
        self._outcomes()
        if len(self._emit.events) == n_before:
            self._emit.event(self._record, "log", tool="conversation", content=orjson.dumps(value).decode(), **self._shared)

    def _part(self, part: Row) -> None:
        author, kind = _object(part.get("author")), str(part.get("part_type") or "comment")
        body, lossy = plain(part["body"]) if isinstance(part.get("body"), str) else (None, [])
        lossy += [f"attachment {each.get('url') or each.get('name')}" for each in part.get("attachments") or ()]
        happened_at = microseconds(part.get("created_at"))
        if not body or kind in _UNSPOKEN:
            self._emit.event(self._record, "log", tool=kind, content=body, happened_at=happened_at, lossy=lossy,
                             arguments=orjson.dumps(part).decode(), name=_author(author), **self._shared)
            return
        role = "user" if author.get("type") in _PEOPLE else "assistant"
        self._emit.event(self._record, "message", role=role, content=body, happened_at=happened_at, position=self._position,
                         lossy=lossy, name=self._person() or (_author(author) if role == "user" else None), **self._shared)
        self._position += 1

    def _opinions(self) -> None:
        rating, agent = _object(self._value.get("conversation_rating")), _object(self._value.get("ai_agent"))
        given = [("conversation_rating", rating.get("rating"), rating.get("remark"), rating.get("created_at"))]
        if agent.get("rating") != rating.get("rating"):
            given.append(("ai_agent_rating", agent.get("rating"), agent.get("rating_remark"), agent.get("updated_at")))
        for name, value, remark, at in given:
            if value is not None:
                self._emit.event(self._record, "feedback", name=name, value=str(value), lossy=["scale 1-5"],
                                 content=remark if isinstance(remark, str) and remark else None,
                                 happened_at=microseconds(at), **self._shared)

    def _outcomes(self) -> None:
        agent, counts = _object(self._value.get("ai_agent")), _object(self._value.get("statistics"))
        ended = counts.get("last_close_at") or self._value.get("updated_at")
        resolved = agent.get("updated_at") or ended
        reopens = counts.get("count_reopens")
        for name, value, at, lossy in (
                ("resolution_state", agent.get("resolution_state"), resolved, []),
                ("conversation_state", self._value.get("state"), ended, []),
                ("reopened", None if reopens is None else str(reopens != 0).lower(), ended, [f"count_reopens {reopens}"])):
            if value is not None:
                self._emit.event(self._record, "outcome", name=name, value=str(value), happened_at=microseconds(at),
                                 lossy=lossy, **self._shared)

    def _person(self) -> str | None:
        """The customer whom the conversation is with."""
        people = _object(self._value.get("contacts")).get("contacts") or [{}]
        return next((str(people[0][name]) for name in ("external_id", "id") if people[0].get(name)), None)


def _author(author: Row) -> str | None:
    return str(author["id"]) if author.get("id") is not None else None


def _object(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


FORMAT = Format(name="intercom", claims=claims, read=read, sample=sample("intercom.json"), rank=30)
