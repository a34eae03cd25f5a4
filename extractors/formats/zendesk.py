"""Zendesk tickets: their messages, whether the customer was satisfied, how they ended.

In: a ticket with its metrics, a list or an export of tickets, or a ticket a line; comments where the export has them. Out:
messages (the description alone, where there are no comments), log events for private comments, feedback for ratings and survey
answers (none for a survey that was not answered), outcomes for status and reopening, a business event for the metrics.
Session: `external_id`, else a field that names one, else the ticket's id. Does not see: tools, changes of fields over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import plain
from extractors.formats.values import dumped, number_of, written

_TELLING = frozenset({"requester_id", "satisfaction_rating", "via", "submitter_id", "assignee_id", "custom_fields"})
_UNANSWERED = ("offered", "unoffered")


def claims(head: Head) -> bool:
    """Return whether the first ticket has a status and at least two fields with names of Zendesk alone."""
    first, _ = next(_tickets(head.first), ({}, {}))
    return head.is_json and "id" in first and "status" in first and len(_TELLING & first.keys()) >= 2


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """All tickets of each record."""
    tickets = list(_tickets(record.value))
    if not tickets:
        emit.reject(record, "no_ticket", "the record holds no ticket; leave it out or export it again")
    for ticket, metrics in tickets:
        with emit.guarded(record):
            session = ticket.get("external_id") or emit.envelope.session_id(ticket) or ticket["id"]
            shared: Row = {"session_id": str(session), "service": emit.envelope.service(ticket)}
            updated = microseconds(ticket.get("updated_at"))
            _tell_comments(record, ticket, shared, emit)
            for name, value, comment, at, lossy in _opinions(ticket):
                emit.event(record, "feedback", name=name, value=value, content=comment or None, lossy=lossy,
                           happened_at=microseconds(at) or updated, **shared)
            solved = microseconds(metrics.get("solved_at")) or updated
            emit.event(record, "outcome", name="ticket_status", value=str(ticket["status"]), happened_at=solved, **shared)
            if (reopens := number_of(metrics.get("reopens"))) is not None:
                emit.event(record, "outcome", name="reopened", value=str(reopens > 0).lower(),
                           happened_at=solved, lossy=[f"reopens {metrics['reopens']}"], **shared)
            if metrics:
                emit.event(record, "business", tool="ticket metrics", arguments=dumped(metrics), happened_at=solved, **shared)


def _tickets(value: Any) -> Iterator[tuple[Row, Row]]:
    """Tickets and their metrics, however they are wrapped."""
    if not isinstance(value, dict):
        return
    listed = value.get("tickets", value.get("results"))
    if isinstance(listed, list):
        metrics = {each.get("ticket_id"): each for each in value.get("metric_sets") or () if isinstance(each, dict)}
        yield from ((each, each.get("metric_set") or metrics.get(each.get("id"), {})) for each in listed
                    if isinstance(each, dict))
    elif isinstance(value.get("ticket"), dict):
        others = {name: value[name] for name in ("comments", "survey_responses") if name in value}
        yield {**others, **value["ticket"]}, value.get("metric_set") or value["ticket"].get("metric_set") or {}
    elif "status" in value:
        yield value, value.get("metric_set") or {}


def _tell_comments(record: LogRecord, ticket: Row, shared: Row, emit: Emit) -> None:
    requester = ticket.get("requester_id")
    comments = ticket.get("comments")
    if not isinstance(comments, list) or not comments:
        comments = [{"plain_body": ticket.get("description"), "author_id": requester, "created_at": ticket.get("created_at")}]
    position = 0
    for comment in comments:
        body = comment.get("plain_body") or comment.get("html_body") or comment.get("body")
        if not isinstance(body, str):
            continue
        content, lossy = (body, []) if comment.get("plain_body") else plain(body)
        lossy += [f"attachment {each.get('content_url') or each.get('file_name')}" for each in comment.get("attachments") or ()]
        author = comment.get("author_id")
        fields: Row = {**shared, "content": content, "lossy": lossy, "happened_at": microseconds(comment.get("created_at")),
                       "name": written(author)}
        if comment.get("public") is False:
            emit.event(record, "log", tool="private comment", **fields)
            continue
        emit.event(record, "message", role="user" if author == requester else "assistant", position=position, **fields)
        position += 1


def _opinions(ticket: Row) -> Iterator[tuple[str, str, str | None, Any, list[str]]]:
    """Name, answer, comment, time and the rest of each answer that was given."""
    rating = ticket.get("satisfaction_rating")
    if isinstance(rating, dict) and rating.get("score") not in (None, "", *_UNANSWERED):
        lossy = [f"reason {rating['reason']}"] if rating.get("reason") else []
        yield ("satisfaction_rating", str(rating["score"]), rating.get("comment"),
               rating.get("updated_at") or rating.get("created_at"), lossy)
    for response in ticket.get("survey_responses") or ():
        answers = response.get("answers") or ()
        prose = next((each.get("value") for each in answers if each.get("type") == "open_ended"), None)
        for answer in answers:
            if answer.get("rating") is not None:
                yield ("survey_rating", str(answer["rating"]), prose, response.get("responded_at") or answer.get("created_at"),
                       [f"rating_category {answer['rating_category']}"] if answer.get("rating_category") else [])


FORMAT = Format(name="zendesk", claims=claims, read=read, sample=sample("zendesk.json"), rank=30)
