"""Requests to an application become calls of tools, and runs of requests by one identity become sessions.

In: events of kind request. Out: sessions and turns. A tool is a method and a path template (`extractors.path_templates`);
its arguments are the path's, the query's and the body's, and who calls where the outcome hangs on it (`extractors.callers`).
A turn's content is the answer's status and body; its size, and the client's headers, stay in the events alone.
Sees sessions as logged, else runs of one identity's requests (a user, a cookie, a connection) without a pause, and within them
the runs of a routine (`extractors.cases`). What it does not see: that two people share a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from extractors import callers, cases
from extractors.formats.overlap import canonical
from extractors.path_templates import Found, templates
from extractors.spelled import object_of
from warehouse.records import Session, Turn, empty, frame_schema

_ERROR_STATUS = 400
_STATUS = r"^\{\"status\":(\d{3})[,}]"
_SIZE = r"^(\{\"status\":\d{3}),\"bytes\":\d+"
_PLAIN = r"^\{\"query\":\{\}(,\"headers\":|\}$)"
"""Arguments with neither query nor body."""
_LONGEST_US = 366 * 86_400 * 1_000_000
"""A year: what took longer is a mistake in the log."""


@dataclass(frozen=True)
class Requests:
    """Sessions and turns made of requests."""

    sessions: pl.DataFrame
    turns: pl.DataFrame


def assemble(requests: pl.DataFrame, gap_minutes: float) -> Requests:
    """Sessions and turns of requests; frames of `core.sessions` and `core.turns`."""
    if requests.is_empty():
        return Requests(empty(Session), empty(Turn))
    requests = _read(requests)
    named = requests.filter(pl.col("session_id").is_not_null())
    cut_ = cases.joined(cut(cases.marked(requests.filter(pl.col("session_id").is_null())), gap_minutes)).drop("_begins")
    turns = _turns(callers.told(pl.concat([named, cut_])).sort("session_id", "happened_at", "position", "event_id"))
    return Requests(sessions_of(turns), turns.select(list(frame_schema(Turn))))


def cut(events: pl.DataFrame, gap_minutes: float) -> pl.DataFrame:
    """Events without a session id, with one: the identity's run of events without a pause longer than the gap.

    The id is `~` and a hash of source, identity and first event; events without an identity go by their source and service.
    Where there is a column `_begins`, a run begins there too.
    """
    if events.is_empty():
        return events
    who = [pl.col("source"), pl.col("service").fill_null(""), pl.col("name").fill_null("")]
    ordered = events.sort(*who, "happened_at", "event_id", nulls_last=False)
    pause = pl.col("happened_at").diff().dt.total_microseconds() / 60e6
    new = (pause > gap_minutes).fill_null(False)
    run = (new | pl.col("_begins") if "_begins" in ordered.columns else new).cum_sum().over(who)
    ordered = ordered.with_columns(run.alias("_run"))
    first = pl.col("event_id").first().over([*who, pl.col("_run")])
    return ordered.with_columns(pl.format("~{}", first.str.slice(0, 16)).alias("session_id")).drop("_run")


def sessions_of(turns: pl.DataFrame) -> pl.DataFrame:
    """`core.sessions` of calls alone; `turns`: of `core.turns`, with source, identity and format."""
    rows = turns.with_columns(pl.col("answered_at").fill_null(pl.col("happened_at")).alias("ended"))
    sessions = rows.group_by("session_id").agg(
        pl.col("source").first(), pl.col("service").first(), pl.col("happened_at").min().alias("started_at"),
        pl.col("ended").max().alias("ended_at"), pl.lit(0, pl.Int64()).alias("n_messages"),
        pl.len().cast(pl.Int64()).alias("n_calls"), pl.col("identity").drop_nulls().first(), pl.col("format").first())
    return sessions.with_columns(day_of("started_at").alias("day")).select(list(frame_schema(Session)))


def day_of(column: str) -> pl.Expr:
    """UTC day of an instant as YYYY-MM-DD."""
    return pl.col(column).dt.strftime("%Y-%m-%d")


def _read(requests: pl.DataFrame) -> pl.DataFrame:
    """Requests with the tool that each asks for, and its arguments."""
    asked = pl.col("tool").str.split_exact(" ", 1)
    requests = requests.with_columns(
        asked.struct.field("field_0").alias("_method"), asked.struct.field("field_1").fill_null("/").alias("_path"),
        pl.when(pl.col("arguments").str.contains(_PLAIN)).then(None).otherwise("arguments").alias("_logged"))
    counts = requests.group_by("_path").len()
    found = templates(dict(zip(counts["_path"].to_list(), counts["len"].to_list(), strict=True)))
    requests = requests.join(_named(requests, found), on=["_path", "_logged"], how="left", nulls_equal=True,
                             maintain_order="left")
    return requests.with_columns(pl.format("{} {}", "_method", "_template").alias("_tool"))


def _turns(requests: pl.DataFrame) -> pl.DataFrame:
    """One call a request: tool, arguments, answer; positions by time within the session."""
    latency = (pl.col("latency_ms").fill_null(0) * 1000).clip(0, _LONGEST_US).fill_nan(0).cast(pl.Int64())
    service = pl.col("service").fill_null("main")
    return requests.with_columns(
        pl.col("event_id").alias("turn_id"), service.mode().sort().first().over("session_id").alias("service"),
        pl.int_range(pl.len()).over("session_id").cast(pl.Int64()).alias("position"), pl.lit("call").alias("kind"),
        pl.col("name").alias("identity"), pl.col("value").str.replace(_SIZE, "$1").alias("content"),
        pl.col("_tool").alias("tool"),
        pl.col("_canonical").alias("arguments"), pl.col("_merged").alias("arguments_raw"),
        (_status(requests) >= _ERROR_STATUS).alias("is_error"),
        (pl.col("happened_at") + pl.duration(microseconds=latency)).alias("answered_at"),
        pl.col("event_id").alias("result_id"))


def _named(requests: pl.DataFrame, found: Mapping[str, Found]) -> pl.DataFrame:
    """Template and merged arguments of each path and logged arguments, worked out once for all requests alike."""
    alike = requests.select("_path", "_logged").unique(maintain_order=True)
    paths = alike["_path"].to_list()
    merged = [_arguments(found[path][1], text) for path, text in zip(paths, alike["_logged"], strict=True)]
    return alike.with_columns(
        pl.Series("_template", [found[path][0] for path in paths], pl.String()), pl.Series("_merged", merged, pl.String()),
        pl.Series("_canonical", [canonical(text) for text in merged], pl.String()))


def _status(requests: pl.DataFrame) -> pl.Series:
    """The answers' status: of most it stands first in the text."""
    status = requests["value"].str.extract(_STATUS).cast(pl.Int64())
    if not status.null_count():
        return status
    return pl.Series([_stated_status(text) if known is None else known
                      for known, text in zip(status, requests["value"], strict=True)], dtype=pl.Int64())


def _stated_status(text: str | None) -> int | None:
    status = object_of(text).get("status")
    return status if isinstance(status, int) and not isinstance(status, bool) else None


def _arguments(parameters: dict[str, str], text: str | None) -> str:
    """Path parameters, query and body in one object; a name that is taken already gets its place in front."""
    logged = object_of(text)
    merged: dict[str, Any] = dict(parameters)
    body = logged.get("body")
    query = logged.get("query")
    places = {"query": query if isinstance(query, dict) else {}, "body": body if isinstance(body, dict) else {}}
    if body is not None and not isinstance(body, dict):
        places["body"] = {"body": body}
    for place, values in places.items():
        for name, value in values.items():
            merged[f"{place}_{name}" if name in merged else name] = value
    return orjson.dumps(merged).decode()
