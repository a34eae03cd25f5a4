"""The spans of one conversation, in order of time, to its events (see `extractors.formats.otlp`)."""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.chat import arguments_of
from extractors.formats.format import Emit, Row
from extractors.formats.otlp_span import Span
from extractors.formats.overlap import Print, fingerprint, n_known

_RESPONSES = ("tool_call_response", "server_tool_call_response")
_CALLS = ("tool_call", "server_tool_call")
_LEFT = ("reasoning", "thinking", "compaction")


class Conversation:
    """Builds up the parts of one session, then emits them with their positions."""

    def __init__(self, session_id: str, emit: Emit) -> None:
        self._session_id = session_id
        self._emit = emit
        self._parts: list[tuple[Span, str, Row]] = []
        self._prints: list[Print] = []

    def tell(self, spans: list[Span]) -> None:
        """Take the spans in, in order of time, and emit the conversation."""
        models = [span for span in spans if span.is_model] or [span for span in spans if not span.is_tool]
        for span in models:
            self._answer(span)
        for span in spans:
            if span.is_tool:
                self._tool(span)
        position = 0
        for span, place, row in self._parts:
            row = {key: value for key, value in row.items() if not key.startswith("_")}
            fixed: Row = {"session_id": self._session_id, "service": span.service, "name": span.identity,
                          "model": span.model}
            candidate = any(note.startswith("candidate ") for note in row.get("lossy", ()))
            self._emit.event(span.record, place=f"{span.key[1]}/{place}", position=position, **fixed, **row)
            position += 0 if candidate else 1

    def _answer(self, span: Span) -> None:
        """Take in what one model span adds: the new end of its input, then its output."""
        for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
            if span.torn(key):
                self._emit.reject(span.record, "torn_attribute", f"{key} was cut off by a limit on lengths; raise the limit")
        history = [{"role": "system", "parts": span.structured("gen_ai.system_instructions") or []}]
        asked = [part for message in [*history, *_messages(span, "gen_ai.input.messages")] for part in _parts(message)]
        prints = [_print(part) for part in asked]
        known = n_known(self._prints, prints)
        if known is None:   # the span brings only what is new, after instructions that are known
            known = next((i for i, each in enumerate(prints) if each not in self._prints[:1]), len(prints))
        last = max((i for i, part in enumerate(asked) if part.get("role") == "assistant"), default=-1)
        for i, part in enumerate(asked[known:], start=known):
            self._add(span, f"in{i}", {**part, "happened_at": span.started_at if i > last else None})
        for index, message in enumerate(_messages(span, "gen_ai.output.messages")):
            for i, part in enumerate(_parts(message)):
                notes = [*part.get("lossy", ()), *([f"candidate {index}"] if index else ())]
                if message.get("finish_reason") == "length":
                    notes.append("finish_reason length")
                self._add(span, f"out{index}.{i}", {
                    **part, "happened_at": span.ended_at or span.started_at, "latency_ms": span.latency_ms,
                    "lossy": notes}, candidate=index > 0)

    def _add(self, span: Span, place: str, part: Row, candidate: bool = False) -> None:
        self._parts.append((span, place, part))
        if not candidate:
            self._prints.append(_print(part))

    def _tool(self, span: Span) -> None:
        """Take a tool's execution in: times and error of the call it answers, or the call itself."""
        call_id, tool = span.attribute("gen_ai.tool.call.id"), span.attribute("gen_ai.tool.name")
        at = self._call_of(call_id, tool)
        if at is None:
            arguments, notes = arguments_of(span.attribute("gen_ai.tool.call.arguments"))
            at = next((i for i, (_, _, row) in enumerate(self._parts)
                       if (row.get("happened_at") or 0) > (span.started_at or 0)), len(self._parts))
            self._parts.insert(at, (span, "call", {
                "kind": "call", "role": "assistant", "requestor": "assistant", "call_id": call_id, "tool": tool,
                "arguments": arguments, "lossy": [*notes, "call known from its span alone"]}))
        call = self._parts[at][2]
        call.update(happened_at=span.started_at, latency_ms=span.latency_ms)
        call["_executed"] = True
        self._result(span, at, call.get("call_id"))

    def _result(self, span: Span, at: int, call_id: Any) -> None:
        """Give the result of the call at `at` its time and error, or take the result from the span."""
        after = (row for _, _, row in self._parts[at + 1:] if row["kind"] == "result" and "_timed" not in row)
        result = next((row for row in after if call_id is None or row.get("call_id") == call_id), None)
        if result is None:
            value = span.attribute("gen_ai.tool.call.result")
            if value is None and span.ended_at is None:
                return
            result = {"kind": "result", "call_id": call_id, "content": _text(value), "lossy": []}
            self._parts.insert(at + 1, (span, "result", result))
        result.update(happened_at=span.ended_at, is_error=span.is_error, tool=span.attribute("gen_ai.tool.name"))
        result["_timed"] = True

    def _call_of(self, call_id: Any, tool: Any) -> int | None:
        """Place of the call that a tool span executes: by id, else the oldest of that tool without a span."""
        for i, (_, _, row) in enumerate(self._parts):
            if row["kind"] == "call" and "_executed" not in row and (
                    row.get("call_id") == call_id if call_id else row.get("tool") == tool):
                return i
        return None


def _messages(span: Span, key: str) -> list[Row]:
    value = span.structured(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _parts(message: Row) -> list[Row]:
    """Event fields of one message of the parts model: its text, then its calls and results in order."""
    role = message.get("role")
    said: list[str] = []
    lost: list[str] = []
    others: list[Row] = []
    for part in message.get("parts") or ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            said.append(str(part.get("content", "")))
        elif kind in _CALLS:
            others.append(_called(part, role))
        elif kind in _RESPONSES:
            value = part.get("response", part.get("result", part.get("server_tool_call_response")))
            others.append({"kind": "result", "call_id": part.get("id"), "tool": part.get("name"), "content": _text(value),
                           "lossy": []})
        else:
            lost.append(str(kind) if kind in _LEFT else f"part {kind}")
    if said or lost:
        return [{"kind": "message", "role": role, "content": "".join(said) if said else None, "lossy": lost}, *others]
    return others


def _called(part: Row, role: str | None) -> Row:
    arguments, notes = arguments_of(part.get("arguments"))
    return {"kind": "call", "role": role, "requestor": role, "call_id": part.get("id"), "tool": part.get("name"),
            "arguments": arguments, "lossy": notes}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _print(part: Row) -> Print:
    return fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))
