"""A web server's access log, one request a line: Common, Combined, and Combined with `name=value` pairs behind.

Sees what `access_line` sees; lines of another kind in between are told as `application` tells them. A request is put where the
line says (nginx writes the end of the request there, Apache its begin), less the duration where the line states one.
Does not see: bodies; who sits behind one address; a session where no pair behind the fields names one.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from extractors.formats.access_line import fields_of
from extractors.formats.application import Teller, tell_all
from extractors.formats.application_request import NOT_CAPTURED, access_answer, access_arguments
from extractors.formats.format import Block, Emit, Format, Head, LogRecord
from extractors.formats.samples import sample

_LOSSY = orjson.dumps([NOT_CAPTURED]).decode()


def claims(head: Head) -> bool:
    """More than half of the first lines are lines of an access log."""
    return head.layout == "text" and sum(fields_of(line) is not None for line in head.text) * 2 > len(head.text)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One request a line."""
    tell_all(records, emit)


def read_block(block: Block, emit: Emit) -> None:
    """The same of many lines: plain requests go to columns at once."""
    teller, service = Teller(emit), emit.envelope.service({})
    rows: list[tuple[str, int, str, str, str, int, str]] = []
    for index, content in enumerate(block.contents):
        found = fields_of(content.decode("utf-8", "replace").strip())
        if found is None or found.extras or found.logged_at is None or found.path is None or found.path[:1] != "/":
            record = block.record(index)
            if record is not None:
                teller.tell(record, record.value)
            continue
        teller.begin_anew()
        rows.append((block.record_ids[index], block.lines[index], f"{found.method} {found.path}",
                     access_arguments(found.query, found.referer, found.agent, None),
                     access_answer(found.status, found.n_bytes), found.logged_at, found.user or found.host))
    teller.finish()
    if rows:
        ids, lines, tools, arguments, values, instants, names = (list(column) for column in zip(*rows, strict=True))
        emit.block(ids, "request", position=lines, tool=tools, arguments=arguments, value=values, happened_at=instants,
                   name=names, service=service, lossy=_LOSSY)


FORMAT = Format(name="access_log", claims=claims, read=read, read_block=read_block,
                sample=sample("access_log.log"), rank=60)
