"""One request to a model and its answer a record, as gateways and wrappers log any provider: to one conversation.

In: `Exchange`s in file order, each with the history as logged (any provider's items) and a function from an item to parts
(event fields as `extractors.formats.chat.parts` gives them). Out: events of what each exchange adds. An exchange that does not
continue what the file holds of its session starts over with all its history, and `extractors.sessions` joins the two. One
without a session id is joined to the conversation that its history continues, named by its first record (`~` and its hash).
Instructions that change from one exchange to the next become log events: they are no turn of the conversation.
Sees the names that wrappers use for request and response, bodies as JSON text, and configured paths for the time. Does not see
binary bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.chat import SPOKEN, emit_parts
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import Print, print_of
from extractors.formats.instants import earlier, microseconds
from extractors.formats.ratings import rate
from extractors.formats.tool_list import declare_all
from extractors.formats.values import dumped

_NORMAL = frozenset({None, "", "stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "completed"})
_CUT = frozenset({"length", "model_context_window_exceeded", "incomplete"})
_STARTED = ("ts", "timestamp", "start_time", "startTime", "started_at", "request_time",
            "request_created_at")
_ENDED = ("end_time", "endTime", "ended_at", "completed_at", "response_created_at")
_LATENCY = {"latency_ms": 1.0, "duration_ms": 1.0, "response_ms": 1.0, "latency": 1.0, "latency_sec": 1000.0,
            "latency_s": 1000.0}
"""Names of how long an answer took, and a unit of each in milliseconds."""


@dataclass(slots=True)
class Exchange:
    """What was asked and answered in one record."""

    record: LogRecord
    items: list[Any]
    """Items of the history as logged."""
    answers: list[list[Any]]
    """Items of each candidate answer, as a later history repeats them; the first one goes on."""
    model: Any = None
    """Kept where it is a text."""
    session_id: str | None = None
    trace_id: str | None = None
    """What names a conversation that no session id names."""
    system: Any = None
    """Item of the instructions, where they stand outside the history."""
    started_at: int | None = None
    ended_at: int | None = None
    latency_ms: float | None = None
    usage: Row | None = None
    service: str | None = None
    identity: str | None = None
    notes: list[str] = field(default_factory=list)
    """What `lossy` of the answer's parts must say."""

    def fixed(self, session_id: str) -> Row:
        return {"session_id": session_id, "service": self.service, "name": self.identity,
                "model": self.model if isinstance(self.model, str) else None}


@dataclass(slots=True, eq=False)
class ToldConversation:
    """What the file holds of one conversation so far."""

    session_id: str
    system: Any
    items: list[Any]
    answer: list[Print]
    """Prints of the answer, as a later history must repeat it."""
    position: int


def finish(reason: Any) -> list[str]:
    """Return what `lossy` must say of why an answer ended: nothing where it ended as answers do."""
    reason = reason.lower() if isinstance(reason, str) else None
    if reason in _NORMAL:
        return []
    cut = reason is not None and (reason in _CUT or reason.startswith("max_"))
    return ["finish_reason length" if cut else f"finish_reason {reason}"]


def is_answer(part: Row) -> bool:
    """Return whether a model wrote the part."""
    return part["kind"] in ("call", "reasoning") or part.get("role") == "assistant"


class Exchanges:
    """The exchanges of one file."""

    def __init__(self, emit: Emit, parts: Callable[[Any], list[Row]]) -> None:
        self._emit = emit
        self._parts = parts
        self._sessions: dict[str, ToldConversation] = {}
        self._openings: dict[bytes, list[ToldConversation]] = {}
        self._declared: dict[str | None, Any] = {}
        self._traces: dict[str, str] = {}
        """Session of each trace."""

    def declare(self, tools: Any, service: str | None) -> None:
        """Declare the tools that a request offers, where they differ from those of the last one."""
        if tools and self._declared.get(service) != tools:
            self._declared[service] = tools
            declare_all(tools, self._emit, service)

    def take(self, exchange: Exchange, tools: Any, response: Any) -> None:
        """Declare the tools and emit what is new; a response that holds no answer becomes a log event."""
        self.declare(tools, exchange.service)
        conversation = self.tell(exchange)
        if not exchange.answers:
            self._emit.event(exchange.record, "log", place="unanswered", session_id=conversation.session_id,
                             happened_at=exchange.ended_at, tool="no answer", content=dumped(response))

    def tell(self, exchange: Exchange) -> ToldConversation:
        """Emit what is new; returns what is known of the conversation now."""
        same: list[ToldConversation] = []
        if exchange.session_id is not None:
            conversation = self._sessions.get(exchange.session_id)
        else:   # of the nameless ones that began as it does, the one that it continues
            same = self._openings.setdefault(opening(exchange.items), [])
            fits = [each for each in same if self._new(each, exchange.items) is not None]
            conversation = max(fits, key=lambda each: (each.system == exchange.system, each.position), default=None)
        new = None if conversation is None else self._new(conversation, exchange.items)
        if conversation is None or new is None:
            session_id = exchange.session_id or self._named(exchange)
            conversation, new = ToldConversation(session_id, None, [], [], 0), exchange.items
        self._ask(exchange, conversation, new)
        answered = [[part for item in items for part in self._parts(item)] for items in exchange.answers if items]
        answer = {**exchange.fixed(conversation.session_id), "happened_at": exchange.ended_at,
                  "latency_ms": exchange.latency_ms}
        for index, parts in enumerate(answered):
            emit_parts(self._emit, exchange.record, parts, conversation.position, f"a{index}.", answer,
                       [*exchange.notes, *([f"candidate {index}"] if index else ())], exchange.usage if index == 0 else None)
        conversation.system, conversation.items = exchange.system, exchange.items
        conversation.answer = prints_of(answered[0] if answered else [])
        conversation.position += len(conversation.answer)
        self._sessions[conversation.session_id] = conversation
        self._link(exchange, conversation.session_id)
        rate(self._emit, exchange.record, exchange.record.value, conversation.session_id)
        if all(each is not conversation for each in same):
            same.append(conversation)
        return conversation

    def _named(self, exchange: Exchange) -> str:
        """Return the name of a conversation without a session id: after its trace, else after its first record."""
        trace = exchange.trace_id
        return self._traces.get(trace, f"trace:{trace}") if trace is not None else f"~{exchange.record.record_id[:16]}"

    def _link(self, exchange: Exchange, session_id: str) -> None:
        """Say, once, of which session a trace is: other files may state the trace alone."""
        trace = exchange.trace_id
        if trace is not None and trace not in self._traces:
            self._traces[trace] = session_id
            if session_id != f"trace:{trace}":
                self._emit.event(exchange.record, "link", place="trace", session_id=session_id, value=f"trace:{trace}")

    def _new(self, conversation: ToldConversation, items: list[Any]) -> list[Any] | None:
        """Items beyond what is known, None where `items` do not continue it."""
        n = len(conversation.items)
        if items[:n] != conversation.items:
            return None
        rest = items[n:]
        prints: list[Print] = []
        for taken in range(len(rest) + 1):
            if len(prints) >= len(conversation.answer):
                return rest[taken:] if prints == conversation.answer else None
            if taken < len(rest):
                prints += prints_of(self._parts(rest[taken]))
        return None

    def _ask(self, exchange: Exchange, conversation: ToldConversation, new: list[Any]) -> None:
        """Emit the instructions, where they changed, and what is new of the history."""
        record, fixed = exchange.record, exchange.fixed(conversation.session_id)
        if exchange.system is not None and exchange.system != conversation.system:
            for i, part in enumerate(self._parts(exchange.system)):
                if conversation.position == 0 or conversation.system is None:
                    self._emit.event(record, place=f"s{i}", position=conversation.position, **{**fixed, **part})
                    conversation.position += part["kind"] in SPOKEN
                else:
                    self._emit.event(record, "log", place=f"s{i}", session_id=conversation.session_id, tool="instructions",
                                     content=part.get("content"), happened_at=exchange.started_at, service=exchange.service)
        parts = [part for item in new for part in self._parts(item)]
        last = max((i for i, part in enumerate(parts) if is_answer(part)), default=-1)
        timed = [{"happened_at": exchange.started_at if i > last else None, **part} for i, part in enumerate(parts)]
        conversation.position = emit_parts(self._emit, record, timed, conversation.position, "q", fixed)


def prints_of(parts: Iterable[Row]) -> list[Print]:
    """Return what makes the turns among the parts the same turns."""
    return [print_of(part) for part in parts if part["kind"] in SPOKEN]


def opening(items: list[Any]) -> bytes:
    """Return all items up to the first message of a user: conversations that differ there are different.

    Not the instructions: where they state the time of day, they differ from one exchange to the next.
    """
    users = (i for i, each in enumerate(items) if isinstance(each, dict) and each.get("role") == "user")
    return orjson.dumps(items[:next(users, 0) + 1])


def times(value: Row, answered: Any, emit: Emit) -> tuple[int | None, int | None, float | None]:
    """When it was asked and answered (microseconds), and how long that took (ms); `answered`: as the response states it.

    What is not stated follows from the latency; without one, an answer has the time of its question. A record whose time is
    after its answer was written then: it was asked one latency before.
    """
    stated = emit.envelope.mapped("time", value)
    stated = stated if stated is not None else next((value[key] for key in _STARTED if key in value), None)
    over = next((value[key] for key in _ENDED if value.get(key) is not None), answered)
    started, ended = microseconds(stated), microseconds(over)
    numbers = ((value.get(key), unit) for key, unit in _LATENCY.items())
    latency = next((
        each * unit for each, unit in numbers if isinstance(each, (int, float)) and not isinstance(each, bool)), None)
    if latency is None and over is not answered and started is not None and ended is not None and started <= ended:
        latency = (ended - started) / 1000
    if started is not None and ended is not None and started > ended:
        started = earlier(ended, latency or 0.0)
    if ended is None and started is not None:
        ended = earlier(started, -(latency or 0.0))
    if started is None and ended is not None:
        started = earlier(ended, latency or 0.0)
    return started, ended, latency


def exchange_of(record: LogRecord, emit: Emit, answered: Any, items: list[Any], answers: list[list[Any]],
                **fields: Any) -> Exchange:
    """Return an exchange with the session, service, user and times that its record states; `fields` come before them."""
    envelope, (started, ended, latency) = emit.envelope, times(record.value, answered, emit)
    stated = {"session_id": envelope.session_id(record.value), "trace_id": envelope.trace_id(record.value),
              "service": envelope.service(record.value),
              "identity": envelope.identity(record.value)}
    return Exchange(record, items, answers, started_at=started, ended_at=ended, latency_ms=latency, **{**stated, **fields})
