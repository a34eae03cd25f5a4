"""A web server's access log, one request a line: Common, Combined, and Combined with `name=value` pairs behind.

Sees what `access_line` sees; lines of another kind in between are told as `application` tells them. A request is put where the
line says (nginx writes the end of the request there, Apache its begin), less the duration where the line states one.
Does not see: bodies; who sits behind one address; a session where no pair behind the fields names one.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
import polars as pl

from extractors.formats.access_columns import plain_requests
from extractors.formats.access_line import fields_of
from extractors.formats.application import Teller, tell_all
from extractors.formats.application_request import NOT_CAPTURED
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
    plain = plain_requests(block.contents)
    told = set(plain["index"])
    teller = Teller(emit)
    for index in range(len(block.lines)):
        if index not in told and (record := block.record(index)) is not None:
            if index - 1 in told:
                teller.begin_anew()
            teller.tell(record, record.value)
    teller.finish()
    if told:
        ids, lines = (pl.Series(values).gather(plain["index"]) for values in (block.record_ids, block.lines))
        emit.block(ids, "request", position=lines, service=emit.envelope.service({}), lossy=_LOSSY, **{
            name: plain[name] for name in ("tool", "arguments", "value", "happened_at", "name")})


FORMAT = Format(name="access_log", claims=claims, read=read, read_block=read_block,
                sample=sample("access_log.log"), rank=60)
