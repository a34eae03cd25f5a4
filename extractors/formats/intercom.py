"""Intercom conversations: messages of people and bots in plain text; ratings; how it ended.

In: conversations of the API, one or a list, or a webhook's. Out: messages (the opening one and every part with a body), log
events for parts that say nothing (assignments, notes of colleagues …), feedback for ratings (one that the AI agent repeats
counts once), outcomes for states. Session: a custom attribute that names one, else the conversation's id.
Does not see: tools that a bot used, what a picture shows. An assumed resolution is no confirmation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import plain
from extractors.formats.values import dumped, number_of, object_of, objects_in, word_of

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
            _tell(record, conversation, emit)


def _conversations(value: Any) -> Iterator[Row]:
    if not isinstance(value, dict):
        return
    inner = value.get("conversations")
    if isinstance(inner, list):
        yield from objects_in(inner)
    elif isinstance(value.get("data"), dict) and isinstance(value["data"].get("item"), dict):
        yield from _conversations(value["data"]["item"])
    elif value.get("type") == "conversation" and "id" in value:
        yield value


def _tell(record: LogRecord, value: Row, emit: Emit) -> None:
    n_before, attributes = len(emit.events), value.get("custom_attributes")
    shared: Row = {"session_id": emit.envelope.session_id(value) or emit.envelope.session_id(attributes) or str(value["id"]),
                   "service": emit.envelope.service(value)}
    source, parts = object_of(value.get("source")), object_of(value.get("conversation_parts"))
    opening = [{"part_type": "comment", "created_at": value.get("created_at"), **source}] if source else []
    listed, position = parts.get("conversation_parts") or (), 0
    people = object_of(value.get("contacts")).get("contacts") or [{}]
    for part in (*opening, *listed):
        position += _part(record, part, people[0], position, shared, emit)
    if isinstance(count := parts.get("total_count"), int) and count > len(listed):
        emit.reject(record, "parts_left_out", f"the export holds fewer than the {count} parts that the conversation has; "
                    "export it again with all of them")
    rating, agent, counts = (object_of(value.get(name)) for name in ("conversation_rating", "ai_agent", "statistics"))
    given = [("conversation_rating", rating.get("rating"), rating.get("remark"), rating.get("created_at"))]
    if agent.get("rating") != rating.get("rating"):
        given.append(("ai_agent_rating", agent.get("rating"), agent.get("rating_remark"), agent.get("updated_at")))
    for name, answer, remark, at in given:
        if answer is not None:
            emit.event(record, "feedback", name=name, value=str(answer), lossy=["scale 1-5"], happened_at=microseconds(at),
                       content=word_of(remark), **shared)
    ended = counts.get("last_close_at") or value.get("updated_at")
    reopens = number_of(counts.get("count_reopens"))
    for name, state, at, lossy in (
            ("resolution_state", agent.get("resolution_state"), agent.get("updated_at") or ended, []),
            ("conversation_state", value.get("state"), ended, []),
            ("reopened", None if reopens is None else str(reopens != 0).lower(), ended, [f"count_reopens {reopens}"])):
        if state is not None:
            emit.event(record, "outcome", name=name, value=str(state), happened_at=microseconds(at), lossy=lossy, **shared)
    if len(emit.events) == n_before:
        emit.event(record, "log", tool="conversation", content=dumped(value), **shared)


def _part(record: LogRecord, part: Row, person: Row, position: int, shared: Row, emit: Emit) -> bool:
    """Emit one part of a conversation with `person`; return whether it is a message."""
    author, kind = object_of(part.get("author")), str(part.get("part_type") or "comment")
    body, lossy = plain(part["body"]) if isinstance(part.get("body"), str) else (None, [])
    lossy += [f"attachment {each.get('url') or each.get('name')}" for each in part.get("attachments") or ()]
    fields: Row = {**shared, "content": body, "happened_at": microseconds(part.get("created_at")), "lossy": lossy}
    if not body or kind in _UNSPOKEN:
        emit.event(record, "log", tool=kind, arguments=dumped(part), name=_author(author), **fields)
        return False
    role = "user" if author.get("type") in _PEOPLE else "assistant"
    customer = next((str(person[name]) for name in ("external_id", "id") if person.get(name)), None)
    emit.event(record, "message", role=role, position=position,
               name=customer or (_author(author) if role == "user" else None), **fields)
    return True


def _author(author: Row) -> str | None:
    return str(author["id"]) if author.get("id") is not None else None


FORMAT = Format(name="intercom", claims=claims, read=read, sample=sample("intercom.json"), rank=30)
