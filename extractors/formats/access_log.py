"""A web server's access log, one request a line: Common, Combined, and Combined with `name=value` pairs behind.

Sees what `line_shapes` sees; `application` reads lines of another kind in between. A request has the time that the line states
(nginx writes the end of the request there, Apache its begin), less the duration where the line states one. Plain lines (no
escapes, a path that begins with a slash, nothing behind the fields) are read many at once, with the same result.
Does not see: bodies; who sits behind one address; a session where no pair behind the fields names one.
"""

from __future__ import annotations

import polars as pl

from extractors.formats.application import PayloadReader, read_payloads
from extractors.formats.application_fields import NOT_CAPTURED
from extractors.formats.format import Block, Emit, Format, Head, sample
from extractors.formats.line_shapes import fields_of
from extractors.formats.values import dumped, json_text, query

_LOSSY = dumped([NOT_CAPTURED])


def claims(head: Head) -> bool:
    """More than half of the first lines are lines of an access log."""
    return head.layout == "text" and sum(fields_of(line) is not None for line in head.text) * 2 > len(head.text)


def read_block(block: Block, emit: Emit) -> None:
    """Read the same of many lines: plain requests go to columns at once."""
    plain = plain_requests(block.contents)
    plain_indexes = set(plain["index"])
    reader = PayloadReader(emit)
    for index in range(len(block.lines)):
        if index not in plain_indexes and (record := block.record(index)) is not None:
            if index - 1 in plain_indexes:
                reader.forget_line()
            reader.read(record, record.value)
    reader.finish()
    if plain_indexes:
        ids, lines = (pl.Series(values).gather(plain["index"]) for values in (block.record_ids, block.lines))
        emit.block(ids, "request", position=lines, service=emit.envelope.service({}), lossy=_LOSSY, **{
            name: plain[name] for name in ("tool", "arguments", "value", "happened_at", "name")})


_PLAIN = (
    r'^([^ "]+) [^ "]+ ([^ "]+) \[([^\]"\\]+)\] "([A-Za-z]+) (/[^ "\\?\x00-\x1f]*)(\?[^ "\\\x00-\x1f]*)?(?: HTTP/[\d.]+)?" '
    r'(\d\d\d) (\d+|-)(?: "([^"\\\x00-\x1f]*)" "([^"\\\x00-\x1f]*)")?$')
_LONGEST_METHOD, _LONGEST_NUMBER = 20, 15


def plain_requests(contents: list[bytes]) -> pl.DataFrame:
    """Return the plain requests among the lines: index of the line, tool, arguments, value, happened_at (µs), name."""
    try:
        lines = pl.Series("text", contents, pl.Binary()).cast(pl.String())
    except pl.exceptions.ComputeError:   # some bytes are no UTF-8
        lines = pl.Series("text", [content.decode("utf-8", "replace") for content in contents], pl.String())
    fields = lines.str.extract_groups(_PLAIN).struct.unnest()
    fields.columns = ["host", "user", "time", "method", "path", "query", "status", "n_bytes", "referer", "agent"]
    requests = fields.with_row_index("index").with_columns(
        pl.col("time").str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", strict=False).dt.epoch("us").alias("happened_at")
    ).filter(
        pl.col("method").is_not_null() & (pl.col("method").str.len_bytes() <= _LONGEST_METHOD) & (pl.col("happened_at") > 0)
        & (pl.col("n_bytes").str.len_bytes() <= _LONGEST_NUMBER))
    queries = requests["query"].drop_nulls().unique()
    texts = pl.Series([json_text(query(text[1:])) for text in queries], dtype=pl.String())
    query_text = pl.col("query").replace_strict(queries, texts, default="{}", return_dtype=pl.String())
    stated = [   # what the pattern lets through needs no escape
        pl.when(pl.col(column).is_not_null() & ~pl.col(column).is_in(["-", ""])).then(
            pl.concat_str(pl.lit(f'"{name}":"'), column, pl.lit('"')))
        for name, column in (("referer", "referer"), ("user-agent", "agent"))]
    headers = pl.concat_str(*stated, separator=",", ignore_nulls=True)
    headers = pl.when(headers != "").then(pl.concat_str(pl.lit(',"headers":{'), headers, pl.lit("}"))).otherwise(pl.lit(""))
    n_bytes = pl.col("n_bytes").cast(pl.Int64, strict=False).cast(pl.String)
    bytes_text = pl.when(n_bytes.is_null()).then(pl.lit("")).otherwise(pl.concat_str(pl.lit(',"bytes":'), n_bytes))
    status = pl.col("status").cast(pl.Int64).cast(pl.String)
    return requests.select(
        "index", pl.format("{} {}", "method", "path").alias("tool"),
        pl.concat_str(pl.lit('{"query":'), query_text, headers, pl.lit("}")).alias("arguments"),
        pl.concat_str(pl.lit('{"status":'), status, bytes_text, pl.lit("}")).alias("value"), "happened_at",
        pl.when(pl.col("user") == "-").then("host").otherwise("user").alias("name"))


FORMAT = Format(
    name="access_log", claims=claims, read=read_payloads, read_block=read_block, sample=sample("access_log.log"), rank=60)
