"""OpenAI's Responses API, one exchange a record: `{"request": {"input": …}, "response": {"object": "response"}}`.

A request that names a `previous_response_id` or a `conversation` brings only what is new: the chain is rebuilt. A request
without them brings all of its history. A bare response (no request logged) tells its output, and that its input is not known.
Where the beginning of a chain lies in another file, its session is an alias that a link of that file resolves. Sees the final
object of a stream. Does not see what the server keeps to itself: encrypted reasoning, its own truncation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extractors.formats.completion_shapes import sides
from extractors.formats.exchange import Exchanges, exchange_of, finish
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.provider_parts import responses_parts
from extractors.formats.sampling import of_items, sampling, tokens
from extractors.formats.streams import is_responses, response_object, stream_events
from extractors.formats.values import as_list, word_of


@dataclass(slots=True, eq=False)
class _Link:
    """One response of a chain: what it was asked beyond the one before, and what it answered."""

    before: _Link | None
    session_id: str
    items: list[Any]
    answer: list[Any]

    def history(self) -> list[Any]:
        chain: list[_Link] = []
        link: _Link | None = self
        while link is not None:
            chain.append(link)
            link = link.before
        return [item for each in reversed(chain) for item in (*each.items, *each.answer)]


def claims(head: Head) -> bool:
    """One of the first objects is a response of this API, or holds one."""
    return head.is_json and any(_response(each)[1] is not None for each in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the new parts of each exchange."""
    reader = _ResponseReader(emit)
    for record in records:
        request, response = _response(record.value)
        if response is None and "input" not in request:
            emit.reject(record, "no_response", "the record holds no request with input and no response; leave it out or "
                        "repair it")
            continue
        with emit.guarded(record):
            reader.tell(record, request, response or {})
    reader.close()


def _response(value: Any) -> tuple[Row, Row | None]:
    if isinstance(value, dict) and value.get("object") == "response":
        return {}, value
    request, response = sides(value)
    if isinstance(response, dict):
        return request, response if response.get("object") == "response" else None
    events = stream_events(response)
    return request, response_object(events) if is_responses(events) else None


class _ResponseReader:
    """The exchanges of one file, and the chains that they make."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._exchanges = Exchanges(emit, responses_parts)
        self._responses: dict[str, _Link] = {}
        self._tips: dict[str, _Link] = {}
        """Last response of each conversation that the server keeps."""
        self._ends: dict[str, tuple[LogRecord, str]] = {}
        """Last response of each session."""

    def tell(self, record: LogRecord, request: Row, response: Row) -> None:
        response_id, output = response.get("id"), response.get("output")
        answer = output if isinstance(output, list) else []
        before_link = self._responses.get(response_id) if isinstance(response_id, str) else None
        if before_link is not None and before_link.answer == answer:
            self._emit.reject(record, "duplicate_response", f"response {response_id} is in the file already; no action needed")
            return
        before, session_id, conversation = self._chain(record, request, response)
        new, envelope = as_list(request.get("input")), self._emit.envelope
        details = response.get("incomplete_details")
        notes = finish(details.get("reason") if isinstance(details, dict) else response.get("status"))
        answered = response.get("completed_at")
        instructions = request.get("instructions") or response.get("instructions")
        if isinstance(instructions, list):
            parts = [part for each in instructions for part in responses_parts(each)]
            instructions = "\n\n".join(str(part["content"]) for part in parts if part.get("content"))
        exchange = exchange_of(
            record, self._emit, answered if answered is not None else response.get("created_at"),
            [*(before.history() if before else []), *new], [answer] if answer else [], session_id=session_id,
            system={"role": "system", "content": instructions} if isinstance(instructions, str) and instructions else None,
            model=response.get("model") or request.get("model"),
            usage={**(tokens(response.get("usage")) or {}), **of_items(as_list(output)), **sampling(request, response)},
            identity=envelope.identity(record.value) or envelope.identity(response),
            notes=notes if "input" in request else [*notes, "input not captured"])
        self._exchanges.declare(request.get("tools") or response.get("tools"), exchange.service)
        continued = self._exchanges.tell(exchange)
        if not exchange.answers:
            self._emit.reject(record, "no_answer", "the record holds no output; what was asked is kept, the answer is unknown")
        link = _Link(before, continued.session_id, new, answer)
        if isinstance(response_id, str):
            self._responses[response_id] = link
            self._ends[continued.session_id] = (record, response_id)
        if conversation is not None:
            self._tips[conversation] = link

    def _chain(self, record: LogRecord, request: Row, response: Row) -> tuple[_Link | None, str | None, str | None]:
        """Return the response before, the session, and the conversation that the server keeps."""
        envelope = self._emit.envelope
        stated = envelope.session_id(record.value) or envelope.session_id(response)
        conversation = _id(response.get("conversation")) or _id(request.get("conversation"))
        previous = request.get("previous_response_id") or response.get("previous_response_id")
        before = self._responses.get(previous) if isinstance(previous, str) else None
        if before is None and conversation is not None:
            before = self._tips.get(conversation)
        session_id = stated or conversation or (before.session_id if before else None)
        if session_id is None and isinstance(previous, str):
            session_id = f"trace:{previous}"
        return before, session_id, conversation

    def close(self) -> None:
        """Say which session the last response of each is of: another file may go on from it."""
        for session_id, (record, response_id) in self._ends.items():
            if session_id != f"trace:{response_id}":
                self._emit.event(record, "link", place="link", session_id=session_id, value=f"trace:{response_id}")


def _id(value: Any) -> str | None:
    return word_of(value.get("id") if isinstance(value, dict) else value)


FORMAT = Format(name="openai_responses", history="once", claims=claims, read=read, sample=sample("openai_responses.jsonl"),
                rank=25)
