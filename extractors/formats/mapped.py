"""Envelopes without a standard, as the configuration maps them: which field is the session, the time, the role, the content …

Sees JSON records, rows of tables and documents; lists of messages inside them, and lists of calls inside messages (`messages`,
`calls`); a call and its result in one record or in two. Where no field tells what a record is, what it holds does. Records of a
session are put in order of time, those of one instant in file order. A record that holds nothing of what is mapped is a log
event; a line of text is left. Where the configuration maps nothing, fields are looked for under our own names for them.
Does not see: anything that is not mapped; docs/configuration.md lists the fields.
"""

from __future__ import annotations

from collections.abc import Iterable

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.mapped_item import Item, Mapping
from extractors.formats.mapped_words import KINDS
from extractors.formats.samples import sample
from extractors.formats.scope import Scope
from extractors.formats.transcript import nameless

_SPOKEN = ("message", "call", "result")
_Told = dict[str | None, list[tuple[int | None, Row]]]
"""Events of each session, with their stated places."""


def claims(head: Head) -> bool:
    """Only records whose fields are called as ours are; all others need a configuration."""
    return head.layout in ("lines", "document", "table") and bool(head.objects) and all(map(_is_ours, head.objects))


def _is_ours(value: Row) -> bool:
    return value.get("kind") in KINDS and "session_id" in value and bool(value.keys() & {"content", "tool", "value", "path"})


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The events of each record; positions when all of them are known."""
    mapping = Mapping.of(emit.envelope.fields, emit.envelope.service({}))
    told: _Told = {}
    for record in records:
        if isinstance(record.value, str):
            emit.reject(record, "no_fields", "the record is text, in which no field can be mapped; repair or remove it")
            continue
        with emit.guarded(record):
            whole = Scope((record.value,), "")
            path = mapping.path("messages")
            scopes = list(whole.each(path)) if path is not None else []
            if scopes:
                _messages(record, scopes, mapping, emit)
            else:
                _item(record, Item(whole, mapping), None, told, emit)
    for rows in told.values():
        _number(rows)


def _messages(record: LogRecord, scopes: list[Scope], mapping: Mapping, emit: Emit) -> None:
    """The elements of the lists of messages that a record holds; each list is a conversation, or goes on with its session."""
    told: _Told = {}
    for scope in scopes:
        _item(record, Item(scope, mapping), nameless(record, scope.place.rpartition("/")[0]), told, emit)
    for rows in told.values():
        _number(rows)


def _item(record: LogRecord, item: Item, session_id: str | None, told: _Told, emit: Emit) -> None:
    fixed = item.fixed()
    if fixed["session_id"] is None:
        fixed["session_id"] = session_id
    for number, part in enumerate(item.parts()):
        row = emit.event(record, place=f"{item.scope.place}:{number}", **{**fixed, **part})
        told.setdefault(fixed["session_id"], []).append((item.position(), row))


def _number(rows: list[tuple[int | None, Row]]) -> None:
    """Positions of what was said, called and answered in one session: by stated place, else by time, else as they stand."""
    latest = 0
    keyed = []
    for ordinal, (stated, row) in enumerate(rows):
        latest = row["happened_at"] if row.get("happened_at") is not None else latest
        keyed.append(((stated if stated is not None else latest, ordinal), row))
    if any(stated is None for stated, _ in rows) and any(stated is not None for stated, _ in rows):
        keyed = [((0, ordinal), row) for ordinal, (_, row) in enumerate(rows)]
    position = 0
    for _, row in sorted(keyed, key=lambda each: each[0]):
        if row["kind"] in _SPOKEN:
            row["position"] = position
            position += 1


FORMAT = Format(name="mapped", history="once", claims=claims, read=read, sample=sample("mapped.jsonl"), rank=99)
