"""One request to a model and its answer a record, as gateways and wrappers log any provider: to a conversation told once.

In: `Exchange`s in file order, each with the history as logged (any provider's items) and a function from an item to parts
(event fields as `extractors.formats.chat.parts` gives them). Out: events of what each exchange adds. An exchange that does not
continue what the file told of its session starts over with all its history, and `extractors.sessions` joins the two. One
without a session id is joined to the conversation that its history continues, named by its first record (`~` and its hash).
Instructions that change from one exchange to the next become log events: they are no turn of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.overlap import Print, fingerprint
from extractors.formats.sampling import laid
from extractors.formats.tool_list import declare_all

Parts = Callable[[Any], list[Row]]
_SPOKEN = ("message", "call", "result")
_NORMAL = frozenset({None, "", "stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "completed"})
_CUT = frozenset({"length", "model_context_window_exceeded", "incomplete"})


@dataclass(slots=True)
class Exchange:
    """What was asked and answered in one record."""

    record: LogRecord
    asked: list[Any]
    """Items of the history as logged."""
    answers: list[list[Any]]
    """Items of each candidate answer, as a later history repeats them; the first one goes on."""
    session_id: str | None = None
    system: Any = None
    """Item of the instructions, where they stand outside the history."""
    started_at: int | None = None
    ended_at: int | None = None
    latency_ms: float | None = None
    model: str | None = None
    usage: Row | None = None
    service: str | None = None
    identity: str | None = None
    notes: list[str] = field(default_factory=list)
    """What `lossy` of the answer's parts must say."""


@dataclass(slots=True, eq=False)
class Known:
    """What the file told of one conversation so far."""

    session_id: str
    system: Any
    asked: list[Any]
    answer: list[Print]
    """What the answer said, as a later history must repeat it."""
    position: int


def finish(reason: Any) -> list[str]:
    """What `lossy` must say of why an answer ended: nothing where it ended as answers do."""
    reason = reason.lower() if isinstance(reason, str) else None
    if reason in _NORMAL:
        return []
    cut = reason is not None and (reason in _CUT or reason.startswith("max_"))
    return ["finish_reason length" if cut else f"finish_reason {reason}"]


def is_answer(part: Row) -> bool:
    """Whether a model said it."""
    return part["kind"] in ("call", "reasoning") or part.get("role") == "assistant"


class Exchanges:
    """The exchanges of one file."""

    def __init__(self, emit: Emit, parts: Parts) -> None:
        self._emit = emit
        self._parts = parts
        self._sessions: dict[str, Known] = {}
        self._openings: dict[bytes, list[Known]] = {}
        self._declared: dict[str | None, Any] = {}

    def declare(self, tools: Any, service: str | None) -> None:
        """Declare the tools that a request offers, where they differ from those of the last one."""
        if tools and self._declared.get(service) != tools:
            self._declared[service] = tools
            declare_all(tools, self._emit, service)

    def tell(self, exchange: Exchange) -> Known:
        """Emit what is new; returns what is known of the conversation now."""
        known, same = self._known(exchange)
        new = None if known is None else self._new(known, exchange.asked)
        if known is None or new is None:
            session_id = exchange.session_id or f"~{exchange.record.record_id[:16]}"
            known, new = Known(session_id, None, [], [], 0), exchange.asked
        self._instruct(exchange, known)
        self._ask(exchange, known, new)
        answered = [[part for item in items for part in self._parts(item)] for items in exchange.answers if items]
        for index, parts in enumerate(answered):
            self._answer(exchange, known, parts, index)
        known.system, known.asked, known.answer = exchange.system, exchange.asked, _prints(answered[0] if answered else [])
        known.position += len(known.answer)
        self._sessions[known.session_id] = known
        if all(each is not known for each in same):
            same.append(known)
        return known

    def _known(self, exchange: Exchange) -> tuple[Known | None, list[Known]]:
        """The conversation that the exchange is of, and those that began as it does (of nameless ones)."""
        if exchange.session_id is not None:
            return self._sessions.get(exchange.session_id), []
        same = self._openings.setdefault(_opening(exchange), [])
        fits = [known for known in same if self._new(known, exchange.asked) is not None]
        return max(fits, key=lambda known: (known.system == exchange.system, known.position), default=None), same

    def _new(self, known: Known, asked: list[Any]) -> list[Any] | None:
        """Items beyond what is known, None where `asked` does not continue it."""
        n = len(known.asked)
        if asked[:n] != known.asked:
            return None
        rest = asked[n:]
        told: list[Print] = []
        for taken in range(len(rest) + 1):
            if len(told) >= len(known.answer):
                return rest[taken:] if told == known.answer else None
            if taken < len(rest):
                told += _prints(self._parts(rest[taken]))
        return None

    def _instruct(self, exchange: Exchange, known: Known) -> None:
        if exchange.system is None or exchange.system == known.system:
            return
        for i, part in enumerate(self._parts(exchange.system)):
            if known.position == 0 or known.system is None:
                self._told(exchange, known, part, f"s{i}", {})
            else:
                self._emit.event(exchange.record, "log", place=f"s{i}", session_id=known.session_id, tool="instructions",
                                 content=part.get("content"), happened_at=exchange.started_at, service=exchange.service)

    def _ask(self, exchange: Exchange, known: Known, new: list[Any]) -> None:
        parts = [part for item in new for part in self._parts(item)]
        last = max((i for i, part in enumerate(parts) if is_answer(part)), default=-1)
        for i, part in enumerate(parts):
            self._told(exchange, known, part, f"q{i}", {"happened_at": exchange.started_at if i > last else None})

    def _told(self, exchange: Exchange, known: Known, part: Row, place: str, fixed: Row) -> None:
        self._emit.event(exchange.record, place=place, position=known.position, **{
            "session_id": known.session_id, "service": exchange.service, "name": exchange.identity, "model": exchange.model,
            **fixed, **part})
        known.position += part["kind"] in _SPOKEN

    def _answer(self, exchange: Exchange, known: Known, parts: list[Row], index: int) -> None:
        """Emit a candidate of the answer; the position stays before it."""
        position = known.position
        notes = [*exchange.notes, *([f"candidate {index}"] if index else ())]
        told = laid(exchange.usage, [part["kind"] for part in parts])
        for i, part in enumerate(parts):
            usage = {"usage": told[i]} if index == 0 and told[i] else {}
            self._emit.event(exchange.record, place=f"a{index}.{i}", position=position, **{
                "session_id": known.session_id, "service": exchange.service, "name": exchange.identity,
                "model": exchange.model, "happened_at": exchange.ended_at, "latency_ms": exchange.latency_ms, **usage,
                **part, "lossy": [*part["lossy"], *notes]})
            position += part["kind"] in _SPOKEN


def _prints(parts: list[Row]) -> list[Print]:
    return [fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))
            for part in parts if part["kind"] in _SPOKEN]


def _opening(exchange: Exchange) -> bytes:
    """Everything up to the first thing that a user said: conversations that differ there are different.

    Not the instructions: where they state the time of day, they differ from one exchange to the next.
    """
    said = (i for i, each in enumerate(exchange.asked) if isinstance(each, dict) and each.get("role") == "user")
    return orjson.dumps(exchange.asked[:next(said, 0) + 1])
