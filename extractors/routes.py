"""Turn requests and actions without a log of sessions into calls, turns and sessions.

A request's tool is its method and path template: `/doors/17/open` becomes `/doors/{doors_1}/open`. A segment is an id if it
looks like one, or if more than twenty segments share a position; there a name that precedes an id stays a name. Arguments are
those of path, query and body, and the caller if the outcome depends on the caller: most callers are entities of the
application, or the same question gets each caller an answer that names the caller. Sessions are as logged, else runs of one
identity's requests without a pause, and within them runs of a routine (`extractors.routines`). Business events (clicks, cells,
forms) become sessions by the routines of each person; an action is named by what it is and by fields with few values. Does not
see: people who share a connection, ids that look like words and are rare, callers under another name, alternating streams."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import orjson
import polars as pl

from extractors.content import object_of
from extractors.formats import without_routines
from extractors.formats.history import canonical
from extractors.routines import LEAST_STREAM, READS, join_cases, mark_runs, run_begins
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
    cut_ = join_cases(cut(mark_runs(requests.filter(pl.col("session_id").is_null())), gap_minutes)).drop("_begins")
    requests = add_caller(pl.concat([named, cut_])).sort("session_id", "happened_at", "position", "event_id")
    latency = (pl.col("latency_ms").fill_null(0) * 1000).clip(0, _LONGEST_US).fill_nan(0).cast(pl.Int64())
    # the status of most answers stands first in their text
    statuses = requests["value"].str.extract(_STATUS).cast(pl.Int64())
    for index in statuses.is_null().arg_true():
        if type(status := object_of(requests["value"][index]).get("status")) is int:
            statuses[index] = status
    return _calls(
        requests, service=pl.col("service").fill_null("main").mode().sort().first().over("session_id"),
        content=pl.col("value").str.replace(_SIZE, "$1"), tool="_tool", arguments="_canonical", arguments_raw="_merged",
        is_error=statuses >= _ERROR_STATUS,
        answered_at=pl.col("happened_at") + pl.duration(microseconds=latency), result_id="event_id")


def _calls(actions: pl.DataFrame, **columns: pl.Expr | pl.Series | str) -> Requests:
    """One call an action, with these columns; positions by order within the session."""
    turns = actions.with_columns(
        pl.col("event_id").alias("turn_id"), pl.int_range(pl.len()).over("session_id").cast(pl.Int64()).alias("position"),
        pl.lit("call").alias("kind"), pl.col("name").alias("identity"), **columns)
    turns = turns.cast({name: kind for name, kind in frame_schema(Turn).items() if name in turns.columns})
    return Requests(sessions_of(turns), turns.select(list(frame_schema(Turn))))


def cut(events: pl.DataFrame, gap_minutes: float) -> pl.DataFrame:
    """Cut events without a session id into sessions: runs of one identity without a pause longer than the gap.

    The id is `~` and a hash of the first event; without an identity, source and service count. A column `_begins` cuts too."""
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
    """`core.sessions` of calls alone, begun by their first step that is not their user's.

    `turns`: of `core.turns`, with source, identity and format."""
    rows = turns.with_columns(pl.col("answered_at").fill_null(pl.col("happened_at")).alias("ended"))
    by_user = (pl.col("requestor") == "user").fill_null(False)
    begun = pl.col("happened_at").filter(~by_user | by_user.all())
    sessions = rows.group_by("session_id").agg(
        pl.col("source").first(), pl.col("service").first(), begun.min().alias("started_at"),
        pl.col("ended").max().alias("ended_at"), pl.lit(0, pl.Int64()).alias("n_messages"),
        pl.len().cast(pl.Int64()).alias("n_calls"), pl.col("identity").drop_nulls().first(), pl.col("format").first(),
        pl.lit(None, pl.String()).alias("alike"), pl.lit([], pl.List(pl.String())).alias("other_session_ids"))
    return sessions.with_columns(day_of("started_at").alias("day")).select(list(frame_schema(Session)))


def day_of(column: str) -> pl.Expr:
    """UTC day of an instant as YYYY-MM-DD."""
    return pl.col(column).dt.strftime("%Y-%m-%d")


def _read(requests: pl.DataFrame) -> pl.DataFrame:
    request = pl.col("tool").str.split_exact(" ", 1)
    requests = requests.with_columns(
        request.struct.field("field_0").alias("_method"), request.struct.field("field_1").fill_null("/").alias("_path"),
        pl.when(pl.col("arguments").str.contains(_PLAIN)).then(None).otherwise("arguments").alias("_logged"))
    counts = requests.group_by("_path").len()
    templated = templates(dict(zip(counts["_path"].to_list(), counts["len"].to_list(), strict=True)))
    alike = requests.select("_path", "_logged").unique(maintain_order=True)
    paths = alike["_path"].to_list()
    merged = [_arguments(templated[path][1], text) for path, text in zip(paths, alike["_logged"], strict=True)]
    alike = alike.with_columns(
        pl.Series("_template", [templated[path][0] for path in paths], pl.String()), pl.Series("_merged", merged, pl.String()),
        pl.Series("_canonical", [canonical(text) for text in merged], pl.String()))
    requests = requests.join(alike, on=["_path", "_logged"], how="left", nulls_equal=True, maintain_order="left")
    return requests.with_columns(pl.format("{} {}", "_method", "_template").alias("_tool"))


def _arguments(parameters: dict[str, str], text: str | None) -> str:
    """Path parameters, query and body in one object; a name that is taken already gets its place in front."""
    logged = object_of(text)
    merged: dict[str, Any] = dict(parameters)
    body, query = logged.get("body"), logged.get("query")
    if not isinstance(body, dict):
        body = {"body": body} if body is not None else {}
    for place, values in (("query", query if isinstance(query, dict) else {}), ("body", body)):
        for name, value in values.items():
            merged[f"{place}_{name}" if name in merged else name] = value
    return orjson.dumps(merged).decode()


CALLER = "caller"
MINIMUM_CALLERS = 3
MOSTLY = 0.5
NEARLY = 0.8
_BODY = '"body":'
"""An answer without a body tells nothing of who asked."""
_TEXTS = r'"[^"\\]+"'


def add_caller(requests: pl.DataFrame) -> pl.DataFrame:
    """Return requests in which the caller is an argument where the outcome hangs on it."""
    answered = requests.filter(
        pl.col("name").is_not_null() & pl.col("_merged").is_not_null() & pl.col("value").str.contains(_BODY, literal=True)
    ).with_columns(pl.format('"{}"', "name").alias("_who"))
    tools = [*_acting(answered), *_reading(answered)] if answered.height else []
    if not tools:
        return requests
    distinct = answered.filter(pl.col("_tool").is_in(tools)).select("_tool", "_merged", "name").unique(maintain_order=True)
    merged = []
    for arguments, name in distinct.select("_merged", "name").iter_rows():
        stated = orjson.loads(arguments)
        merged.append(orjson.dumps({**stated, f"request_{CALLER}" if CALLER in stated else CALLER: name}).decode())
    whole = distinct.with_columns(
        pl.Series("_whole", merged, pl.String()), pl.Series("_sorted", [canonical(text) for text in merged], pl.String()))
    return requests.join(whole, on=["_tool", "_merged", "name"], how="left", maintain_order="left").with_columns(
        pl.coalesce("_whole", "_merged").alias("_merged"), pl.coalesce("_sorted", "_canonical").alias("_canonical"),
    ).drop("_whole", "_sorted")


def _acting(requests: pl.DataFrame) -> list[str]:
    """Tools that change something, most callers of which are entities of the application."""
    writes = requests.filter(~pl.col("_method").is_in(READS))
    if writes.is_empty():
        return []
    quoted_values = requests.filter(pl.col("_merged") != "{}")["_merged"].unique().str.extract_all(_TEXTS).explode().unique()
    callers = writes["_who"].unique()
    named = callers.filter(callers.is_in(quoted_values.implode()))
    is_entity = pl.col("_who").is_in(named.implode()) | pl.col("value").str.contains(pl.col("_who"), literal=True)
    is_stated = pl.col("_merged").str.contains(pl.col("_who"), literal=True)
    return _tools(writes, is_entity.mean() >= MOSTLY, is_stated.mean() < MOSTLY)


def _reading(requests: pl.DataFrame) -> list[str]:
    """Tools that read, and tell everybody who asks the same of themselves."""
    reads = requests.filter(pl.col("_method").is_in(READS))
    shared = reads.filter(pl.col("name").n_unique().over("_tool", "_canonical") >= MINIMUM_CALLERS)
    names_caller = pl.col("value").str.contains(pl.col("_who"), literal=True)
    return _tools(shared, names_caller.mean() >= NEARLY)


def _tools(requests: pl.DataFrame, *when: pl.Expr) -> list[str]:
    enough = pl.col("name").n_unique() >= MINIMUM_CALLERS
    by_tool = requests.group_by("_tool").agg(pl.all_horizontal(enough, *when).alias("hangs"))
    return sorted(by_tool.filter("hangs")["_tool"])


_MANY = 20
_STANDS_OUT = 5
_LOOKS_LIKE_ID = re.compile(r"[^a-z_.~-]|^.{40,}$", re.IGNORECASE).search
_VERSION = re.compile(r"v\d{1,2}(\.\d+)?", re.IGNORECASE).fullmatch
_NO_WORD = re.compile(r"\W+")

TemplatedPath = tuple[str, dict[str, str]]


@dataclass(slots=True, eq=False)
class _Place:
    """What stands below the same segments: names, and one place for all ids."""

    names: dict[str, _Place] = field(default_factory=dict)
    ids: _Place | None = None
    count: int = 0
    """How often it was asked for, with everything below it."""
    template: str = ""
    parameters: tuple[str, ...] = ()


def templates(paths: Iterable[str] | Mapping[str, int]) -> dict[str, TemplatedPath]:
    """Template and parameters of each path; of a mapping the values say how often each path was asked."""
    counts = paths if isinstance(paths, Mapping) else Counter(paths)
    root = _Place()
    for path, count in counts.items():
        place = root
        for part in segments(path):
            if part in place.names or not part or not _LOOKS_LIKE_ID(part) or _VERSION(part):
                place = place.names.setdefault(part, _Place())
            else:
                place.ids = place.ids or _Place()
                place = place.ids
            place.count += count
    _settle(root)
    _name(root)
    templated: dict[str, TemplatedPath] = {}
    for path in counts:
        place, values = root, []
        for part in segments(path):
            if part not in place.names:
                values.append(part)
            place = place.names.get(part) or place.ids or root
        templated[path] = place.template, dict(zip(place.parameters, values, strict=True))
    return templated


def segments(path: str) -> list[str]:
    """Return the parts between the slashes, unquoted."""
    parts = path.strip("/").split("/")
    return [unquote(part) for part in parts] if "%" in path else parts


def _settle(root: _Place) -> None:
    """Make ids of the names in crowded places, from the root down."""
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if len(place.names) > _MANY:
            is_root = place is root
            usual = statistics.median_low(below.count for below in place.names.values())
            kept = {name for name, below in place.names.items()
                    if below.ids is not None or (is_root and (below.names or below.count >= _STANDS_OUT * max(usual, 2)))}
            for name in [name for name in place.names if name not in kept]:
                place.ids = place.ids or _Place()
                _merge(place.ids, place.names.pop(name))
        waiting += place.names.values()
        if place.ids is not None:
            waiting.append(place.ids)


def _merge(into: _Place, other: _Place) -> None:
    waiting = [(into, other)]
    while waiting:
        one, two = waiting.pop()
        one.count += two.count
        for name, below in two.names.items():
            if name in one.names:
                waiting.append((one.names[name], below))
            else:
                one.names[name] = below
        if two.ids is not None and one.ids is not None:
            waiting.append((one.ids, two.ids))
        elif two.ids is not None:
            one.ids = two.ids


def _name(root: _Place) -> None:
    """Give every place its template: a parameter is named after the last name before it, with a number."""
    waiting = [(root, "path")]
    while waiting:
        place, word = waiting.pop()
        for name, below in place.names.items():
            below.template, below.parameters = f"{place.template}/{name}", place.parameters
            waiting.append((below, _NO_WORD.sub("_", name).strip("_") or "path"))
        if place.ids is not None:
            number = 1 + sum(each.rpartition("_")[0] == word for each in place.parameters)
            own = f"{word}_{number}"
            place.ids.template, place.ids.parameters = f"{place.template}/{{{own}}}", (*place.parameters, own)
            waiting.append((place.ids, word))


_FEW, _LONGEST = 64, 60
"""A field of more different values (digits masked), or with a longer one, is content and names no action."""
_DIGITS = re.compile(r"\d+")


def sessions_of_actions(events: pl.DataFrame) -> Requests:
    """Sessions and turns of business events whose streams show a routine."""
    own = events.filter((pl.col("kind") == "business") & pl.col("session_id").is_null()
                        & ~pl.col("format").is_in(without_routines()))
    person = pl.when(pl.col("name").is_null()).then(pl.format("file {}", "file_id")).otherwise(pl.format("name {}", "name"))
    own = own.with_columns(pl.format("{} {} {}", "source", pl.col("service").fill_null(""), person).alias("_stream"))
    own = own.filter(pl.len().over("_stream") >= LEAST_STREAM).sort(
        "_stream", "happened_at", "position", "event_id", nulls_last=False)
    if own.is_empty():
        return Requests(empty(Session), empty(Turn))
    carried = [{key: _DIGITS.sub("0", str(value)) for key, value in object_of(text).items()} for text in own["arguments"]]
    values: defaultdict[str, set[str]] = defaultdict(set)
    for fields in carried:
        for key, value in fields.items():
            if len(values[key]) <= _FEW:
                values[key].add(value)
    telling = sorted(key for key, different in values.items()
                     if 1 < len(different) <= _FEW and max(map(len, different)) <= _LONGEST)
    symbols = [" ".join([tool or "", *(fields[key] for key in telling if key in fields)])
               for tool, fields in zip(own["tool"], carried, strict=True)]
    own = own.with_columns(pl.Series("_symbol", symbols, pl.String()))
    runs = [own.clear()]
    for _, stream in own.group_by("_stream", maintain_order=True):
        if (begins := run_begins(stream["_symbol"].to_list())) is not None:
            first = pl.when(pl.Series("_begins", begins)).then(pl.col("event_id").str.slice(0, 16)).forward_fill()
            runs.append(stream.with_columns(pl.format("~{}", first).alias("session_id")))
    kept = pl.concat(runs)
    return _calls(kept, service=pl.col("service").fill_null("main"), content=pl.lit(None), tool="_symbol",
                  arguments=pl.Series(map(canonical, kept["arguments"]), dtype=pl.String()), arguments_raw="arguments",
                  answered_at=pl.lit(None), result_id=pl.lit(None))
