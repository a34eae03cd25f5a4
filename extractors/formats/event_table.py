"""A table of events: rows with a time and the name of what was done (clicks and cells of people at work, exports of analytics).

One business event a row: its name, its time, who did it, and the other cells that hold something. An XES-like `lifecycle`
stays among the arguments. Does not see: which rows make one case; sessions are runs of one person's rows without a pause.
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import json_text

_EVENTS = ("eventtype", "eventname", "event", "activity", "conceptname", "action", "operation")
_TIMES = ("timestamp", "timetimestamp", "time", "eventtime", "datetime", "date", "occurredat", "happenedat", "createdat", "at",
          "ts")
_IDENTITIES = ("userid", "user", "username", "resource", "orgresource", "actor")
_SESSIONS = ("sessionid", "session", "caseid", "caseconceptname")
_LEAST = 3


def claims(head: Head) -> bool:
    """Return whether the header names an event and a time, and the first rows hold both."""
    if head.layout != "table" or not head.objects or len(head.first) < _LEAST:
        return False
    event, time = _column(head.first, _EVENTS), _column(head.first, _TIMES)
    return event is not None and time is not None and all(
        row.get(event) and microseconds(row.get(time)) is not None for row in head.objects)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One event a row."""
    value = record.value if isinstance(record.value, dict) else {}
    event = _column(value, _EVENTS)
    if event is None or not value[event]:
        raise RejectedRecord("no_event_name", "the row names no event; complete or drop it")
    time, identity, session = (_column(value, names) for names in (_TIMES, _IDENTITIES, _SESSIONS))
    columns = (event, time, identity, session)
    stated = {key: inner for key, inner in value.items() if inner not in ("", None)}
    tool, session_id, name = (   # of a cell that holds something its text
        cell if cell is None or isinstance(cell, str) else json_text(cell)
        for cell in (stated.get(column) if column else None for column in (event, session, identity)))
    emit.event(record, "business", position=record.line, tool=tool,
               session_id=emit.envelope.session_id(value) or session_id,
               service=emit.envelope.service({}), name=name or emit.envelope.identity(value),
               happened_at=microseconds(value.get(time)) if time else emit.envelope.time(value),
               arguments=json_text({key: inner for key, inner in stated.items() if key not in columns}))


def _column(row: Row, names: tuple[str, ...]) -> str | None:
    """Return the row's own name for the first of the names that it has."""
    own = {"".join(letter for letter in key.lower() if letter.isalnum()): key for key in row if isinstance(key, str)}
    return next((own[name] for name in names if name in own), None)


FORMAT = Format(name="event_table", claims=claims, read=read, sample=sample("event_table.csv"), rank=80)
