"""Protocols of the mining benchmark for streams without conversations: cases in requests, runs of routines in clicks."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.mining_baselines import SEEDS
from benchmarks.mining_data import Data
from benchmarks.mining_scores import ari_of, f1, f1_of, figure, mean_of
from extractors.sessions import AssembledSessions, assemble
from extractors.tasks import find
from warehouse.records import Outcome, empty

_SAME = {"log4.csv": "log1.csv"}
"""Logs of one routine, as the set's README says."""


def cases(data: Data) -> dict[str, Any]:
    """Cases of requests (`requests`): which requests make one case, and of what kind it is."""
    number = _numbers(data.path / "logs")
    true = {number[request]: row["ticket"] for row in data.truth for request in row["requests"] if request in number}
    found = _of_turns(data.tables["core.turns"], data.tables["raw.records"], data.tables["raw.files"])
    events = data.tables["core.events"]
    handles = sorted({row["ticket"] for row in data.truth}, key=len, reverse=True)
    bare = assemble(events.with_columns(_without(pl.col("tool"), handles)))
    without = _of_turns(bare.turns, data.tables["raw.records"], data.tables["raw.files"])
    gap = _by_pause(events, data)
    kinds = {row["ticket"]: tuple(row["kinds"]) for row in data.truth}
    return {
        **_cut("", true, found), **_cut("_no_ticket", true, without), **_cut("_baseline_identity_and_pause", true, gap),
        **figure("family_ari", _kinds(kinds, true, found, data.families), ari_of),
        "n_sessions": data.tables["core.sessions"].height, "n_cases": len(kinds)}


def rows(data: Data) -> dict[str, Any]:
    """Rows of unsegmented logs (`row`, `case_id`), without times: runs in each log, and of all logs in one stream."""
    streams = _streams(data)
    single = {name: _cuts(stream, _sessions([stream], data)) for name, stream in sorted(streams.items())}
    runs = [run for name, stream in sorted(streams.items()) for run in _runs(name, stream)]
    mixed = mean_of([_mixed(runs, data, seed, 1) for seed in SEEDS])
    two = _mixed(runs, data, 0, 2)
    return {
        **figure("boundary_f1", _blocks([count for counts in single.values() for count in counts]), f1_of),
        **{f"boundary_f1_{Path(name).stem}": round(f1_of(counts), 4) for name, counts in single.items()},
        "boundary_f1_baseline_first_event": round(
            f1_of([count for stream in streams.values() for count in _first_again(stream, data)]), 4),
        **mixed, **{f"{name}_two_users": round(value, 4) for name, value in two.items() if "baseline" not in name}}


# requests ---------------------------------------------------------------------------------------------------------------------


def _numbers(folder: Path) -> dict[str, tuple[str, int]]:
    """Request id -> (file, line)."""
    told = {}
    for path in sorted(folder.iterdir()):
        for line, text in enumerate(path.read_text("utf-8").splitlines(), 1):
            told[str(json.loads(text)["req"]["id"])] = (path.name, line)
    return told


def _of_turns(turns: pl.DataFrame, records: pl.DataFrame, files: pl.DataFrame) -> dict[tuple[str, int], str]:
    """(file, line) of each request -> its session."""
    placed = turns.select("turn_id", "session_id").join(records, left_on="turn_id", right_on="record_id").join(
        files.select("file_id", "path"), on="file_id")
    return {(Path(path).name, line): session for path, line, session in placed.select("path", "line", "session_id").iter_rows()}


def _without(column: pl.Expr, handles: Sequence[str]) -> pl.Expr:
    return column.str.replace_many(list(handles), ["-"] * len(handles))


def _cut(mark: str, true: Mapping[Any, str], found: Mapping[Any, str]) -> dict[str, Any]:
    """F1 of the first and last requests of cases, and of pairs of requests that are in one case.

    Sessions without any request of a case are left: what they are made of, the truth does not say.
    """
    looked_at = {found.get(place) for place in true}
    found = {place: name for place, name in found.items() if name in looked_at}
    ends = (set(_ends(true)), set(_ends(found)))
    together = Counter((true[place], found[place]) for place in true if place in found)
    right = sum(n * (n - 1) / 2 for n in together.values())
    of_found = sum(n * (n - 1) / 2 for n in Counter(found.values()).values())
    of_true = sum(n * (n - 1) / 2 for n in Counter(true.values()).values())
    units = [(end in ends[0] and end in ends[1], end in ends[1], end in ends[0]) for end in sorted(ends[0] | ends[1])]
    return {**figure(f"boundary_f1{mark}", units, f1_of), f"membership_f1{mark}": round(f1(right, of_found, of_true), 4)}


def _ends(of: Mapping[Any, str]) -> list[tuple[str, Any]]:
    members: dict[str, list[Any]] = defaultdict(list)
    for place, name in of.items():
        members[name].append(place)
    return [end for places in members.values() for end in (("first", min(places)), ("last", max(places)))]


def _kinds(kinds: Mapping[str, Any], true: Mapping[Any, str], found: Mapping[Any, str],
           families: Mapping[str, str]) -> list[tuple[Any, Any]]:
    """(kinds, family) of each case; its family is that of the session that holds most of its requests."""
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for place, name in true.items():
        told[name][families.get(found.get(place, ""), "left")] += 1
    return [(kinds[name], min(told[name], key=lambda family: (-told[name][family], family))) for name in sorted(told)]


def _by_pause(events: pl.DataFrame, data: Data) -> dict[tuple[str, int], str]:
    """Baseline: one identity's requests without a pause of thirty minutes."""
    ordered = events.filter(pl.col("kind") == "request").sort("name", "happened_at")
    run = (pl.col("happened_at").diff().dt.total_minutes() >= 30).fill_null(False).cum_sum().over("name")
    named = ordered.select(pl.col("event_id").alias("turn_id"), pl.format("{} {}", pl.col("name").fill_null(""), run).alias(
        "session_id"))
    return _of_turns(named, data.tables["raw.records"], data.tables["raw.files"])


# rows -------------------------------------------------------------------------------------------------------------------------


Row = tuple[str, str]
"""event_id, case."""


def _streams(data: Data) -> dict[str, list[Row]]:
    """file -> its rows in order, each with the run that it belongs to."""
    paths = {row["file_id"]: Path(row["path"]).name for row in data.tables["raw.files"].to_dicts()}
    case = {(row["file"], row["row"]): row["case_id"] for row in data.truth}
    header = 2
    told: dict[str, list[Row]] = defaultdict(list)
    placed = data.tables["raw.records"].sort("file_id", "line")
    for record, file_id, line in placed.select("record_id", "file_id", "line").iter_rows():
        name = paths[file_id]
        if (name, line - header) in case:
            told[name].append((record, case[name, line - header]))
    return dict(told)


def _runs(name: str, stream: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """(routine, rows) of each run of a log."""
    members: dict[str, list[str]] = defaultdict(list)
    for event, case in stream:
        members[case].append(event)
    return [(_SAME.get(name, name), events) for _, events in sorted(members.items())]


def _cuts(stream: Sequence[Row], found: Mapping[str, str]) -> list[tuple[float, float, float]]:
    """(right, found, true) of each place where a run may begin; the first row begins none."""
    return [(float(one[1] != two[1] and found.get(one[0]) != found.get(two[0])),
             float(found.get(one[0]) != found.get(two[0])), float(one[1] != two[1])) for one, two in pairwise(stream)]


def _blocks(counts: Sequence[tuple[float, float, float]], size: int = 200) -> list[tuple[float, float, float]]:
    """Return sums over stretches of a stream: what the bootstrap draws."""
    return [(sum(part[0] for part in block), sum(part[1] for part in block), sum(part[2] for part in block))
            for block in (counts[i:i + size] for i in range(0, len(counts), size))]


def _sessions(streams: Sequence[Sequence[Row]], data: Data) -> dict[str, str]:
    """event -> session, of streams that were put together anew: no times, one file, an identity for each stream."""
    return dict(_assembled(streams, data).turns.select("turn_id", "session_id").iter_rows())


def _assembled(streams: Sequence[Sequence[Row]], data: Data) -> AssembledSessions:
    order = list(chain.from_iterable(zip_longest(*streams)))
    owner = {event: f"user {i}" for i, stream in enumerate(streams) for event, _ in stream}
    placed = pl.DataFrame({"event_id": [row[0] for row in order if row], "order": range(sum(map(len, streams)))})
    events = data.tables["core.events"].join(placed, on="event_id").with_columns(
        pl.lit("stream").alias("file_id"), pl.lit(None, pl.Datetime("us", "UTC")).alias("happened_at"),
        pl.col("order").cast(pl.Int64).alias("position"), pl.col("event_id").replace_strict(owner).alias("name")).drop("order")
    return assemble(events)


def _first_again(stream: Sequence[Row], data: Data) -> list[tuple[float, float, float]]:
    """Baseline: a run begins wherever what the log begins with is done again."""
    tool = dict(data.tables["core.events"].select("event_id", "tool").iter_rows())
    number, found = 0, {}
    for event, _ in stream:
        number += tool[event] == tool[stream[0][0]]
        found[event] = str(number)
    return _cuts(stream, found)


def _mixed(runs: Sequence[tuple[str, list[str]]], data: Data, seed: int, n_users: int) -> dict[str, float]:
    """All logs' runs in random order, in one stream or dealt to several users whose rows alternate."""
    order = list(range(len(runs)))
    random.Random(seed).shuffle(order)
    streams = [[(event, str(i)) for i in order[user::n_users] for event in runs[i][1]] for user in range(n_users)]
    made = _assembled(streams, data)
    found = dict(made.turns.select("turn_id", "session_id").iter_rows())
    tasks = find(made.sessions, made.turns, empty(Outcome), data.effects.clear(), {}).tasks
    family = dict(tasks.select("family", "session_ids").explode("session_ids").select("session_ids", "family").iter_rows())
    told = []
    for routine, events in runs:
        counts = Counter(family.get(found.get(event, ""), "left") for event in events)
        told.append((routine, min(counts, key=lambda name: (-counts[name], name))))
    cuts = [count for stream in streams for count in _cuts(stream, found)]
    bare = [count for stream in streams for count in _first_again(stream, data)]
    return {"boundary_f1_mixed": f1_of(cuts), "family_ari_mixed": ari_of(told),
            "boundary_f1_mixed_baseline_first_event": f1_of(bare)}
