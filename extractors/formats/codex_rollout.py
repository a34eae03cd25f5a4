"""Rollouts of OpenAI Codex: a JSON line for each thing that happened; also the shape before September 2025 (bare items).

Read is what the model saw (`response_item`); what the screen showed (`event_msg`) mirrors it and gives counts, errors,
durations and turns rolled back (kept as candidates that were not taken). Words that the harness said in the user's name, and
every line that is no part of the conversation, become log events, whole. Sub-agents have files and sessions of their own.
Does not see: outputs that Codex itself cut off, encrypted reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.codex_events import Ends, last_usage
from extractors.formats.exchange import is_answer
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.responses_items import parts
from extractors.formats.samples import sample
from extractors.formats.sampling import sampling

_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_HARNESS = re.compile(r"\s*(<([a-z_]+(?: [a-z_]+)*)>.*</\2>\s*$|# AGENTS\.md instructions)", re.DOTALL)
_SPOKEN = ("message", "call", "result")


@dataclass(slots=True)
class _Told:
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


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The conversation of one rollout."""
    reader = _Reader(emit)
    for record in records:
        value = record.value
        if not isinstance(value, dict):
            emit.reject(record, "no_line", "the record is no line of a rollout (an object); leave it out or repair it")
            continue
        with emit.guarded(record):
            reader.take(record, value)
    reader.emit()


class _Reader:
    """Collects the lines of one file, then emits them with their positions."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._session_id: str | None = None
        self._model: str | None = None
        self._drawn: Row = {}
        self._told: list[_Told] = []
        self._shown: set[str] = set()
        """What users typed, as the screen showed it."""
        self._answer: _Told | None = None
        """First part of the last answer, while its counts are not known."""
        self._asked = True
        self._counted: Any = None
        self._ends = Ends()

    def take(self, record: LogRecord, value: Row) -> None:
        """Take one line in."""
        payload, kind = value.get("payload"), value.get("type")
        at = microseconds(value.get("timestamp"))
        if not isinstance(payload, dict):   # the old shape: the line is the item
            payload, kind = value, "response_item" if isinstance(kind, str) else "session_meta" if "id" in value else None
        if kind == "response_item":
            self._item(record, payload, at)
            return
        if kind == "session_meta":
            self._meta(record, payload, at)
        elif kind == "turn_context":
            self._model = payload["model"] if isinstance(payload.get("model"), str) else self._model
            self._drawn = sampling({"effort": payload.get("effort")})
        elif kind == "event_msg":
            self._event(payload)
        words = [each for each in (_word(kind), _word(payload.get("type"))) if each is not None]
        self._add(record, "log", {"kind": "log", "tool": " ".join(words) or "line",
                                  "content": orjson.dumps(value).decode(), "happened_at": at, "lossy": []})

    def _meta(self, record: LogRecord, payload: Row, at: int | None) -> None:
        """Name and instructions of the session; a fork repeats the header of what it came from."""
        if self._session_id is not None:
            return
        self._session_id = _word(payload.get("id"))
        base = payload.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else base if base is not None else payload.get("instructions")
        if isinstance(text, str) and text:
            self._add(record, "system", {"kind": "message", "role": "system", "content": text, "happened_at": at, "lossy": []})

    def _item(self, record: LogRecord, item: Row, at: int | None) -> None:
        for i, part in enumerate(parts(item)):
            told = self._add(record, str(i), {"happened_at": at, "model": self._model, **part})
            if is_answer(part) and part["kind"] != "reasoning" and self._drawn:
                told.row["usage"] = self._drawn
            if not is_answer(part):
                self._asked = self._asked or part["kind"] in _SPOKEN
            elif self._asked or self._answer is None:
                self._answer, self._asked = told, False

    def _event(self, payload: Row) -> None:
        kind = payload.get("type")
        if kind == "user_message" and isinstance(payload.get("message"), str):
            self._shown.add(payload["message"].strip())
        elif kind == "token_count":
            self._count(payload.get("info"))
        elif kind == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"))
        else:
            self._ends.take(payload)

    def _count(self, info: Any) -> None:
        """Counts of the last answer; the same totals told again count nothing."""
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if total is None or total != self._counted:
            usage = last_usage(info)
            if usage is not None and self._answer is not None:
                self._answer.row["usage"] = {**usage, **(self._answer.row.get("usage") or {})}
                self._answer, self._asked = None, True
        self._counted = total if total is not None else self._counted

    def _roll_back(self, n_turns: Any) -> None:
        """The last turns were taken back: they are no part of the conversation that goes on."""
        left = n_turns if isinstance(n_turns, int) else 0
        for told in reversed(self._told):
            if left <= 0:
                break
            if told.taken and told.row["kind"] != "log" and told.row.get("role") != "system":
                told.taken = False
                left -= told.row["kind"] == "message" and told.row.get("role") == "user" and not self._is_harness(told.row)

    def _is_harness(self, row: Row) -> bool:
        """Whether the harness said it in the user's name."""
        said = row.get("content")
        return row["kind"] == "message" and row.get("role") == "user" and isinstance(said, str) and \
            said.strip() not in self._shown and _HARNESS.match(said) is not None

    def _add(self, record: LogRecord, place: str, row: Row) -> _Told:
        self._told.append(_Told(record, place, row))
        return self._told[-1]

    def emit(self) -> None:
        """Emit all that was told."""
        self._ends.mark([told.row for told in self._told])
        position = 0
        for told in self._told:
            row = told.row
            if self._is_harness(row):
                row = {**row, "kind": "log", "tool": "harness", "role": None}
            if not told.taken:
                row["lossy"] = [*row["lossy"], "candidate branch", "turn rolled back"]
            session_id = self._session_id or f"~{self._told[0].record.record_id[:16]}"
            placed: Row = {"position": position} if row["kind"] != "log" else {}
            self._emit.event(told.record, place=told.place, session_id=session_id, **placed, **row)
            position += row["kind"] in _SPOKEN and told.taken


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


FORMAT = Format(name="codex", history="once", claims=claims, read=read, sample=sample("codex.jsonl"), apart=False, rank=20)
