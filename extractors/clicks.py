"""Actions of people at work that no log cut (clicks, cells, forms) to sessions: the runs of their routines.

In: events of kind business without a session. Out: sessions and turns. A person's actions are one stream, those of nobody named
one a file, by time and place in the file. An action is named by what it is and by the fields around it that take few values,
digits masked; its turn is a call without an answer, as such logs show none.

Does not see: whose actions alternate in one stream. Streams without a routine (`routines`) stay in the events.
"""

from __future__ import annotations

import re
from collections import defaultdict

import polars as pl

from extractors import routines
from extractors.formats.overlap import canonical
from extractors.routes import sessions_of
from extractors.spelled import object_of
from warehouse.records import Session, Turn, empty, frame_schema

_FEW = 64
"""A field of more different values, digits masked, is content and names no action."""

_LONGEST = 60
"""A field with a longer value is content."""

_DIGITS = re.compile(r"\d+")


def assemble(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frames of `core.sessions` and `core.turns`."""
    own = events.filter((pl.col("kind") == "business") & pl.col("session_id").is_null())
    person = pl.when(pl.col("name").is_null()).then(pl.format("file {}", "file_id")).otherwise(pl.format("name {}", "name"))
    own = own.with_columns(pl.format("{} {} {}", "source", pl.col("service").fill_null(""), person).alias("_stream"))
    own = own.filter(pl.len().over("_stream") >= routines.LEAST).sort(
        "_stream", "happened_at", "position", "event_id", nulls_last=False)
    if own.is_empty():
        return empty(Session), empty(Turn)
    own = own.with_columns(pl.Series("_symbol", _symbols(own), pl.String()))
    cut = [_cut(part) for _, part in own.group_by("_stream", maintain_order=True)]
    kept = pl.concat([part for part in cut if part is not None] or [own.clear().with_columns(pl.lit("").alias("_run"))])
    return _tables(kept)


def _symbols(events: pl.DataFrame) -> list[str]:
    """The name of each action."""
    carried = [{key: _DIGITS.sub("0", str(value)) for key, value in object_of(text).items()} for text in events["arguments"]]
    values: defaultdict[str, set[str]] = defaultdict(set)
    for fields in carried:
        for key, value in fields.items():
            if len(values[key]) <= _FEW:
                values[key].add(value)
    telling = sorted(key for key, seen in values.items() if 1 < len(seen) <= _FEW and max(map(len, seen)) <= _LONGEST)
    return [" ".join([tool or "", *(fields[key] for key in telling if key in fields)])
            for tool, fields in zip(events["tool"], carried, strict=True)]


def _cut(stream: pl.DataFrame) -> pl.DataFrame | None:
    """A stream with the id of each action's run; None where it shows no routine."""
    begins = routines.begins(stream["_symbol"].to_list())
    if begins is None:
        return None
    first = pl.when(pl.Series("_begins", begins)).then(pl.col("event_id").str.slice(0, 16)).forward_fill()
    return stream.with_columns(pl.format("~{}", first).alias("_run"))


def _tables(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    arguments = pl.Series("_canonical", map(canonical, events["arguments"]), pl.String())
    turns = events.with_columns(
        pl.col("event_id").alias("turn_id"), pl.col("_run").alias("session_id"), pl.col("service").fill_null("main"),
        pl.int_range(pl.len()).over("_run").cast(pl.Int64()).alias("position"), pl.lit("call").alias("kind"),
        pl.lit(None).alias("content"), pl.col("_symbol").alias("tool"), pl.col("arguments").alias("arguments_raw"),
        arguments.alias("arguments"), pl.col("name").alias("identity"),
        pl.lit(None).alias("answered_at"), pl.lit(None).alias("result_id"))
    turns = turns.cast({name: kind for name, kind in frame_schema(Turn).items() if name in turns.columns})
    return sessions_of(turns), turns.select(list(frame_schema(Turn)))
