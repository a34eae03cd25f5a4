"""Intercom conversations: what people and bots said, in plain text; ratings; how it ended.

In: conversations of the API, one or a list, or a webhook's. Out: messages (the opening one and every part with a body), log
events for parts that say nothing (assignments, notes of colleagues …), feedback for ratings (one that the AI agent repeats
counts once), outcomes for states. Session: a custom attribute that names one, else the conversation's id.
Does not see: tools that a bot used, what a picture shows. An assumed resolution is what nobody objected to, no confirmation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import plain
from extractors.formats.values import dumped, object_of

_PEOPLE = ("user", "lead", "contact", "visitor")
_UNSPOKEN = ("note", "note_and_reopen")


def claims(head: Head) -> bool:
    """Return whether the first conversation has parts, a source, a rating or a state beside its type."""
    first = next(_conversations(head.first), {})
    return head.is_json and any(
        isinstance(first.get(name), dict) for name in ("conversation_parts", "conversation_rating", "source"))


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """All conversations of each record."""
    conversations = list(_conversations(record.value))
    if not conversations:
        emit.reject(record, "no_conversation", "the record holds no conversation; leave it out or export it again")
    for conversation in conversations:
        with emit.guarded(record):
            _IntercomConversation(record, conversation, emit).tell()


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


class _IntercomConversation:
    def __init__(self, record: LogRecord, value: Row, emit: Emit) -> None:
        self._record, self._value, self._emit = record, value, emit
        attributes = value.get("custom_attributes")
        self._shared: Row = {
            "session_id": emit.envelope.session_id(value) or emit.envelope.session_id(attributes) or str(value["id"]),
            "service": emit.envelope.service(value)}
        self._position = 0

    def tell(self) -> None:
        value, n_before = self._value, len(self._emit.events)
        source, parts = object_of(value.get("source")), object_of(value.get("conversation_parts"))
        if source:
            self._part({"part_type": "comment", "created_at": value.get("created_at"), **source})
        for part in parts.get("conversation_parts") or ():
            self._part(part)
        if isinstance(count := parts.get("total_count"), int) and count > len(parts.get("conversation_parts") or ()):
            self._emit.reject(self._record, "parts_left_out", f"the export holds fewer than the {count} parts that the "
                              "conversation has; export it again with all of them")
        rating, agent, counts = (object_of(value.get(name)) for name in ("conversation_rating", "ai_agent", "statistics"))
        given = [("conversation_rating", rating.get("rating"), rating.get("remark"), rating.get("created_at"))]
        if agent.get("rating") != rating.get("rating"):
            given.append(("ai_agent_rating", agent.get("rating"), agent.get("rating_remark"), agent.get("updated_at")))
        for name, answer, remark, at in given:
            if answer is not None:
                self._emit.event(self._record, "feedback", name=name, value=str(answer), lossy=["scale 1-5"],
                                 content=remark if isinstance(remark, str) and remark else None,
                                 happened_at=microseconds(at), **self._shared)
        ended = counts.get("last_close_at") or value.get("updated_at")
        resolved = agent.get("updated_at") or ended
        reopens = counts.get("count_reopens")
        for name, state, at, lossy in (
                ("resolution_state", agent.get("resolution_state"), resolved, []),
                ("conversation_state", value.get("state"), ended, []),
                ("reopened", None if reopens is None else str(reopens != 0).lower(), ended, [f"count_reopens {reopens}"])):
            if state is not None:
                self._emit.event(self._record, "outcome", name=name, value=str(state), happened_at=microseconds(at),
                                 lossy=lossy, **self._shared)
        if len(self._emit.events) == n_before:
            self._emit.event(self._record, "log", tool="conversation", content=dumped(value), **self._shared)

    def _part(self, part: Row) -> None:
        author, kind = object_of(part.get("author")), str(part.get("part_type") or "comment")
        body, lossy = plain(part["body"]) if isinstance(part.get("body"), str) else (None, [])
        lossy += [f"attachment {each.get('url') or each.get('name')}" for each in part.get("attachments") or ()]
        happened_at = microseconds(part.get("created_at"))
        if not body or kind in _UNSPOKEN:
            self._emit.event(self._record, "log", tool=kind, content=body, happened_at=happened_at, lossy=lossy,
                             arguments=dumped(part), name=_author(author), **self._shared)
            return
        role = "user" if author.get("type") in _PEOPLE else "assistant"
        people = object_of(self._value.get("contacts")).get("contacts") or [{}]
        customer = next((str(people[0][name]) for name in ("external_id", "id") if people[0].get(name)), None)
        self._emit.event(self._record, "message", role=role, content=body, happened_at=happened_at, position=self._position,
                         lossy=lossy, name=customer or (_author(author) if role == "user" else None), **self._shared)
        self._position += 1


def _author(author: Row) -> str | None:
    return str(author["id"]) if author.get("id") is not None else None


FORMAT = Format(name="intercom", claims=claims, read=read, sample=sample("intercom.json"), rank=30)
