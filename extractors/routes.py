"""Requests to an application become calls of tools, and runs of requests by one identity become sessions.

In: events of kind request. Out: sessions and turns. A tool is a method and a path template: segments that hold ids are
parameters. A segment is an id where it looks like one (a digit, a sign that names do not have), or where so many different
segments stand in one place that they cannot be names of routes. What it does not see: an id that looks like a word and
comes seldom; it stays part of the tool's name.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson
import polars as pl

from extractors.formats.overlap import canonical
from warehouse.records import Session, Turn, empty, frame_schema

_MANY = 20
_LOOKS_LIKE_ID = re.compile(r"[^a-z_.~-]|^.{40,}$", re.IGNORECASE)
_VERSION = re.compile(r"v\d{1,2}(\.\d+)?", re.IGNORECASE)
_ERROR_STATUS = 400


@dataclass(frozen=True)
class Requests:
    """Sessions and turns made of requests."""

    sessions: pl.DataFrame
    turns: pl.DataFrame


def assemble(requests: pl.DataFrame, gap_minutes: float) -> Requests:
    """Sessions and turns of requests; frames of `core.sessions` and `core.turns`."""
    if requests.is_empty():
        return Requests(empty(Session), empty(Turn))
    named = requests.filter(pl.col("session_id").is_not_null())
    cut_ = cut(requests.filter(pl.col("session_id").is_null()), gap_minutes)
    turns = _turns(pl.concat([named, cut_]).sort("session_id", "happened_at", "event_id"))
    rows = turns.with_columns(pl.col("answered_at").fill_null(pl.col("happened_at")).alias("ended"))
    sessions = rows.group_by("session_id").agg(
        pl.col("source").first(), pl.col("service").first(), pl.col("happened_at").min().alias("started_at"),
        pl.col("ended").max().alias("ended_at"), pl.lit(0, pl.Int64()).alias("n_messages"),
        pl.len().cast(pl.Int64()).alias("n_calls"), pl.col("identity").drop_nulls().first(), pl.col("format").first())
    sessions = sessions.with_columns(day_of("started_at").alias("day"))
    return Requests(sessions.select(list(frame_schema(Session))), turns.select(list(frame_schema(Turn))))


def cut(events: pl.DataFrame, gap_minutes: float) -> pl.DataFrame:
    """Events without a session id, with one: the identity's run of events without a pause longer than the gap.

    The id is `~` and a hash of source, identity and first event; events without an identity go by their source and service.
    """
    if events.is_empty():
        return events
    who = [pl.col("source"), pl.col("service").fill_null(""), pl.col("name").fill_null("")]
    ordered = events.sort(*who, "happened_at", "event_id", nulls_last=False)
    pause = pl.col("happened_at").diff().dt.total_microseconds() / 60e6
    run = (pause > gap_minutes).fill_null(False).cum_sum().over(who)
    ordered = ordered.with_columns(run.alias("_run"))
    first = pl.col("event_id").first().over([*who, pl.col("_run")])
    return ordered.with_columns(pl.format("~{}", first.str.slice(0, 16)).alias("session_id")).drop("_run")


def day_of(column: str) -> pl.Expr:
    """UTC day of an instant as YYYY-MM-DD."""
    return pl.col(column).dt.strftime("%Y-%m-%d")


def templates(paths: list[str]) -> dict[str, tuple[str, dict[str, str]]]:
    """Template and parameters of each path: `/doors/17/open` to `/doors/{doors_1}/open` and {"doors_1": "17"}."""
    split = {path: [unquote(part) for part in path.strip("/").split("/")] for path in set(paths)}
    crowded = _crowded(list(split.values()))
    found = {}
    for path, parts in split.items():
        shape: list[str] = []
        parameters: dict[str, str] = {}
        for part in parts:
            if _is_id(part) or tuple(shape) in crowded:
                name = _name(shape, parameters)
                parameters[name] = part
                shape.append(f"{{{name}}}")
            else:
                shape.append(part)
        found[path] = ("/" + "/".join(shape), parameters)
    return found


def _crowded(paths: list[list[str]]) -> set[tuple[str, ...]]:
    """Places below which so many different words stand, most of them seldom, that they are ids."""
    below: dict[tuple[str, ...], Counter[str]] = {}
    for parts in paths:
        shape: list[str] = []
        names: dict[str, str] = {}
        for part in parts:
            if _is_id(part):
                name = _name(shape, names)
                names[name] = part
                shape.append(f"{{{name}}}")
            else:
                below.setdefault(tuple(shape), Counter())[part] += 1
                shape.append(part)
    return {place for place, words in below.items() if len(words) > _MANY}


def _is_id(part: str) -> bool:
    return bool(part) and _LOOKS_LIKE_ID.search(part) is not None and _VERSION.fullmatch(part) is None


def _name(shape: list[str], parameters: dict[str, str]) -> str:
    """Name of a parameter: the segment before it and a number."""
    before = next((part for part in reversed(shape) if not part.startswith("{")), "path")
    word = re.sub(r"\W+", "_", before).strip("_") or "path"
    number = 1 + sum(name.rpartition("_")[0] == word for name in parameters)
    return f"{word}_{number}"


def _turns(requests: pl.DataFrame) -> pl.DataFrame:
    """One call a request: tool, arguments, answer; positions by time within the session."""
    asked = requests.get_column("tool").str.split_exact(" ", 1).struct.unnest()
    methods, paths = asked.to_series(0).to_list(), asked.to_series(1).fill_null("/").to_list()
    shapes = templates(paths)
    arguments = [_arguments(shapes[path][1], text) for path, text in zip(paths, requests.get_column("arguments"), strict=True)]
    answers = [orjson.loads(text) for text in requests.get_column("value")]
    latency = (pl.col("latency_ms").fill_null(0) * 1000).cast(pl.Int64())
    service = pl.col("service").fill_null("main")
    return requests.with_columns(
        pl.col("event_id").alias("turn_id"), service.mode().sort().first().over("session_id").alias("service"),
        pl.int_range(pl.len()).over("session_id").cast(pl.Int64()).alias("position"), pl.lit("call").alias("kind"),
        pl.col("name").alias("identity"), pl.col("value").alias("content"),
        pl.Series("tool", [f"{method} {shapes[path][0]}" for method, path in zip(methods, paths, strict=True)]),
        pl.Series("arguments", [canonical(text) for text in arguments]), pl.Series("arguments_raw", arguments),
        pl.Series("is_error", [_is_error(answer.get("status")) for answer in answers], pl.Boolean()),
        (pl.col("happened_at") + pl.duration(microseconds=latency)).alias("answered_at"),
        pl.col("event_id").alias("result_id"))


def _arguments(parameters: dict[str, str], text: str) -> str:
    """Path parameters, query and body in one object; a name that is taken already gets its place in front."""
    logged: dict[str, Any] = orjson.loads(text)
    merged: dict[str, Any] = dict(parameters)
    body = logged.get("body")
    places = {"query": logged.get("query") or {}, "body": body if isinstance(body, dict) else {}}
    if body is not None and not isinstance(body, dict):
        places["body"] = {"body": body}
    for place, values in places.items():
        for name, value in values.items():
            merged[f"{place}_{name}" if name in merged else name] = value
    return orjson.dumps(merged).decode()


def _is_error(status: Any) -> bool | None:
    return status >= _ERROR_STATUS if isinstance(status, int) else None
