"""Rollouts of OpenAI Codex: a JSON line for each event; also the shape before September 2025 (bare items).

Read is what the model saw (`response_item`); what the screen showed (`event_msg`) mirrors it and gives counts, errors,
durations and turns rolled back (kept as candidates that were not taken). Words that the harness said in the user's name, and
every line that is no part of the conversation, become log events, whole. Sub-agents have files and sessions of their own.
Screen events also say whether a call failed and how long it ran: commands (exit code), MCP tools (`isError`, `Err`), patches
(`success`), and outputs that state it themselves.
Does not see: outputs that Codex itself cut off, encrypted reasoning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from extractors.formats.chat import SPOKEN, message_part
from extractors.formats.exchange import is_answer
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import responses_parts
from extractors.formats.sampling import sampling, tokens
from extractors.formats.values import dumped, loaded, object_of, word_of
from warehouse.vocabulary import CHECKOUT

_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_HARNESS = re.compile(r"\s*(<([a-z_]+(?: [a-z_]+)*)>.*</\2>\s*$|# AGENTS\.md instructions)", re.DOTALL)


@dataclass(slots=True)
class _RolloutPart:
    """A part of the conversation, or of what surrounds it."""

    record: LogRecord
    place: str
    row: Row
    taken: bool = True


def claims(head: Head) -> bool:
    """One of the first lines is an envelope of a rollout, or the first is the header that older ones begin with."""
    if head.layout != "lines":
        return False
    first = head.first
    old = {"id", "timestamp", "instructions"} <= first.keys() and "type" not in first and "messages" not in first
    return old or any(str(each.get("type")) in _TYPES and isinstance(each.get("payload"), dict) for each in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the conversation of one rollout."""
    reader = _RolloutReader(emit)
    for record in records:
        value = record.value
        if not isinstance(value, dict):
            emit.reject(record, "no_line", "the record is no line of a rollout (an object); leave it out or repair it")
            continue
        with emit.guarded(record):
            reader.take(record, value)
    reader.emit()


class _RolloutReader:
    """Collects the lines of one file, then emits them with their positions."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._session_id: str | None = None
        self._model: str | None = None
        self._drawn: Row = {}
        self._parts: list[_RolloutPart] = []
        self._shown: set[str] = set()
        """What users typed, as the screen showed it."""
        self._answer: _RolloutPart | None = None
        """First part of the last answer, while its counts are not known."""
        self._is_prompted = True
        self._counted: Any = None
        self._failed: dict[str, bool] = {}
        self._latency_ms: dict[str, float] = {}
        """How calls ended, by their ids."""

    def take(self, record: LogRecord, value: Row) -> None:
        payload, kind = value.get("payload"), value.get("type")
        at = microseconds(value.get("timestamp"))
        if not isinstance(payload, dict):   # the old shape: the line is the item
            payload, kind = value, "response_item" if isinstance(kind, str) else "session_meta" if "id" in value else None
        if kind == "response_item":
            for i, part in enumerate(responses_parts(payload)):
                added = self._add(record, str(i), {"happened_at": at, "model": self._model, **part})
                if is_answer(part) and part["kind"] != "reasoning" and self._drawn:
                    added.row["usage"] = self._drawn
                if not is_answer(part):
                    self._is_prompted = self._is_prompted or part["kind"] in SPOKEN
                elif self._is_prompted or self._answer is None:
                    self._answer, self._is_prompted = added, False
            return
        if kind == "session_meta" and self._session_id is None:   # a fork repeats the header of what it came from
            self._session_id = word_of(payload.get("id"))
            base = payload.get("base_instructions")
            text = base.get("text") if isinstance(base, dict) else base if base is not None else payload.get("instructions")
            if isinstance(text, str) and text:
                self._add(record, "system", {**message_part("system", text), "happened_at": at})
            git = object_of(payload.get("git"))
            checkout = {"folder": payload.get("cwd"), "branch": git.get("branch"), "commit": git.get("commit_hash")}
            if checkout := {name: value for name, value in checkout.items() if isinstance(value, str) and value}:
                self._add(record, "checkout", {"kind": "log", "tool": CHECKOUT, "content": dumped(checkout), "happened_at": at,
                                               "lossy": []})
        elif kind == "turn_context":
            self._model = payload["model"] if isinstance(payload.get("model"), str) else self._model
            self._drawn = sampling({"effort": payload.get("effort")})
        elif kind == "event_msg":
            self._event(payload)
        words = [each for each in (word_of(kind), word_of(payload.get("type"))) if each is not None]
        self._add(record, "log", {"kind": "log", "tool": " ".join(words) or "line",
                                  "content": dumped(value), "happened_at": at, "lossy": []})

    def _event(self, payload: Row) -> None:
        kind, call_id = payload.get("type"), payload.get("call_id")
        if kind == "user_message" and isinstance(payload.get("message"), str):
            self._shown.add(payload["message"].strip())
        elif kind == "token_count":
            info = object_of(payload.get("info"))
            total = info.get("total_token_usage")
            usage = tokens(info.get("last_token_usage")) if total is None or total != self._counted else None
            if usage is not None and self._answer is not None:   # repeated totals count nothing
                self._answer.row["usage"] = {**usage, **(self._answer.row.get("usage") or {})}
                self._answer, self._is_prompted = None, True
            self._counted = total if total is not None else self._counted
        elif kind == "thread_rolled_back":
            n_turns = payload.get("num_turns")
            n_remaining = n_turns if isinstance(n_turns, int) else 0
            for part in reversed(self._parts):
                if n_remaining <= 0:
                    break
                if part.taken and part.row["kind"] != "log" and part.row.get("role") != "system":
                    part.taken = False
                    is_user = part.row["kind"] == "message" and part.row.get("role") == "user"
                    n_remaining -= is_user and not self._is_harness(part.row)
        elif isinstance(call_id, str):
            if (failed := _failed(payload)) is not None:
                self._failed[call_id] = failed
            duration = object_of(payload.get("duration"))
            seconds, nanoseconds = duration.get("secs"), duration.get("nanos")
            if isinstance(seconds, (int, float)) and isinstance(nanoseconds, (int, float)):
                self._latency_ms[call_id] = seconds * 1000 + nanoseconds / 1_000_000

    def _is_harness(self, row: Row) -> bool:
        content = row.get("content")
        return row["kind"] == "message" and row.get("role") == "user" and isinstance(content, str) and \
            content.strip() not in self._shown and _HARNESS.match(content) is not None

    def _add(self, record: LogRecord, place: str, row: Row) -> _RolloutPart:
        self._parts.append(_RolloutPart(record, place, row))
        return self._parts[-1]

    def emit(self) -> None:
        position = 0
        for part in self._parts:
            row, call_id = part.row, part.row.get("call_id")
            if row["kind"] == "call" and call_id in self._latency_ms:
                row["latency_ms"] = self._latency_ms[call_id]
            elif row["kind"] == "result" and row.get("is_error") is None:
                row["is_error"] = self._failed[call_id] if call_id in self._failed else _says_failed(row.get("content"))
            if self._is_harness(row):
                row = {**row, "kind": "log", "tool": "harness", "role": None}
            if not part.taken:
                row["lossy"] = [*row["lossy"], "candidate branch", "turn rolled back"]
            session_id = self._session_id or f"~{self._parts[0].record.record_id[:16]}"
            placed: Row = {"position": position} if row["kind"] != "log" else {}
            self._emit.event(part.record, place=part.place, session_id=session_id, **placed, **row)
            position += row["kind"] in SPOKEN and part.taken


def _failed(event: Row) -> bool | None:
    code, result = event.get("exit_code"), event.get("result")
    if isinstance(code, int):
        return code != 0
    if isinstance(event.get("success"), bool):
        return not event["success"]
    if not isinstance(result, dict):
        return None
    if "Err" in result:
        return True
    inner = result.get("Ok", result)
    flag = inner.get("isError", inner.get("is_error", False)) if isinstance(inner, dict) else None
    return bool(flag) if flag is not None else None


def _says_failed(content: Any) -> bool | None:
    """Read what an older output says itself: `{"output", "metadata": {"exit_code"}}` or `{"content", "success"}`."""
    value = loaded(content) if isinstance(content, str) and content.startswith("{") else None
    if value is None:
        return None
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "output" in value and isinstance(metadata.get("exit_code"), int):
        return bool(metadata["exit_code"] != 0)
    return not value["success"] if set(value) == {"content", "success"} and isinstance(value["success"], bool) else None


FORMAT = Format(name="codex", history="once", claims=claims, read=read, sample=sample("codex.jsonl"), apart=False, rank=20)
