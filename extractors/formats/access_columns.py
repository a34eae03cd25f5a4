"""Many lines of an access log to columns at once: the same as `access_line` and `application_request` tell of each.

In: the bytes of lines. Out: a frame with a row a plain request. Sees Common and Combined lines as servers write them nearly
always: no escapes, a path that begins with a slash, nothing behind the fields. All other lines are left to be told one by one.
"""

from __future__ import annotations

import polars as pl

from extractors.formats.application_request import query_text

_PLAIN = (
    r'^([^ "]+) [^ "]+ ([^ "]+) \[([^\]"\\]+)\] "([A-Za-z]+) (/[^ "\\?\x00-\x1f]*)(\?[^ "\\\x00-\x1f]*)?(?: HTTP/[\d.]+)?" '
    r'(\d\d\d) (\d+|-)(?: "([^"\\\x00-\x1f]*)" "([^"\\\x00-\x1f]*)")?$')
_FIELDS = ["host", "user", "time", "method", "path", "query", "status", "n_bytes", "referer", "agent"]
_NOTHING = ["-", ""]
_LONGEST_METHOD, _LONGEST_NUMBER = 20, 15


def plain_requests(contents: list[bytes]) -> pl.DataFrame:
    """The plain requests among the lines: index (of the line), tool, arguments, value, happened_at (microseconds), name."""
    fields = _texts(contents).str.extract_groups(_PLAIN).struct.unnest()
    fields.columns = _FIELDS
    found = fields.with_row_index("index").with_columns(
        pl.col("time").str.to_datetime("%d/%b/%Y:%H:%M:%S %z", time_unit="us", strict=False).dt.epoch("us").alias("happened_at")
    ).filter(
        pl.col("method").is_not_null() & (pl.col("method").str.len_bytes() <= _LONGEST_METHOD) & (pl.col("happened_at") > 0)
        & (pl.col("n_bytes").str.len_bytes() <= _LONGEST_NUMBER))
    return found.select(
        "index", pl.format("{} {}", "method", "path").alias("tool"), _arguments(found["query"]).alias("arguments"),
        _answer().alias("value"), "happened_at",
        pl.when(pl.col("user") == "-").then("host").otherwise("user").alias("name"))


def _texts(contents: list[bytes]) -> pl.Series:
    try:
        return pl.Series("text", contents, pl.Binary()).cast(pl.String())
    except pl.exceptions.ComputeError:   # some bytes are no UTF-8
        return pl.Series("text", [content.decode("utf-8", "replace") for content in contents], pl.String())


def _arguments(queries: pl.Series) -> pl.Expr:
    """JSON of the query, and of referer and agent where they are stated; what the pattern lets through needs no escape."""
    distinct = queries.drop_nulls().unique()
    texts = pl.Series([query_text(query[1:]) for query in distinct], dtype=pl.String())
    query = pl.col("query").replace_strict(distinct, texts, default="{}", return_dtype=pl.String())
    referer, agent = (_header(name, column) for name, column in (("referer", "referer"), ("user-agent", "agent")))
    headers = pl.concat_str(referer, agent, separator=",", ignore_nulls=True)
    return pl.concat_str(
        pl.lit('{"query":'), query, pl.when(headers != "").then(
            pl.concat_str(pl.lit(',"headers":{'), headers, pl.lit("}"))).otherwise(pl.lit("")),
        pl.lit("}"))


def _header(name: str, column: str) -> pl.Expr:
    stated = pl.col(column).is_not_null() & ~pl.col(column).is_in(_NOTHING)
    return pl.when(stated).then(pl.concat_str(pl.lit(f'"{name}":"'), column, pl.lit('"')))


def _answer() -> pl.Expr:
    status = pl.col("status").cast(pl.Int64).cast(pl.String)
    n_bytes = pl.col("n_bytes").cast(pl.Int64, strict=False).cast(pl.String)
    return pl.when(n_bytes.is_null()).then(pl.concat_str(pl.lit('{"status":'), status, pl.lit("}"))).otherwise(
        pl.concat_str(pl.lit('{"status":'), status, pl.lit(',"bytes":'), n_bytes, pl.lit("}")))
