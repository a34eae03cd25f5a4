"""Goals: what a session was for, one after another, and where each begins.

In: what was asked (`asking.ASKED`), turns, and calls. Out: a frame, one row a goal. Each service is read in the way that its
sessions allow:

- where most sessions call one tool alone, that tool names a kind of request; its words are learnt from these sessions, and
  every session is read piece by piece (`pieces`, `reader`), so a goal that comes up later begins where the user brings it;
- where nothing is called, sessions in groups by their words teach the same (`clusters`);
- runs of a routine without words or answers are of the kind that they begin with;
- else the opening is read clause by clause (`families`): what sessions changed teaches which words ask for what.

What was done never decides what was asked. Does not see: a second goal of the same kind later on, but for clauses that name
other things; and in openings, goals that come up later.
"""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from extractors.tasks import clusters, pieces, reader
from extractors.tasks.families import read_openings
from extractors.tasks.pieces import Pieces
from extractors.tasks.words import WORD

GOALS = {"session_id": pl.String(), "service": pl.String(), "place": pl.Int64(), "begins": pl.Int64(), "ends": pl.Int64(),
         "label": pl.String(), "words": pl.String()}
"""place: 0-based; begins, ends: positions of turns, the end exclusive; label: what names the kind; words: the user's own."""

_ONE_TOOL = 0.5
"""Share of the calling sessions with one tool from which on the tool names the request."""

_SUPPORT = 3
"""Fewer sessions than this teach no kind."""

_GREETING = 3
"""A message of fewer words than this before others greets or thanks."""

_FEW = 30
"""Fewer sessions than this are not grouped by their words."""

_SURE = 0.7
"""Share of each group's sessions that teach nothing at first: those nearest to another group."""


def find_goals(asked: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Frame of `GOALS`, at least one for each session of `asked`, by session and place."""
    parts = [pl.DataFrame(schema=GOALS)]
    openings = []
    for (service,), sessions in asked.sort("service").group_by("service", maintain_order=True):
        spoken = sessions.filter("spoken")
        own = turns.join(spoken.select("session_id"), on="session_id", how="semi")
        told = _course(own, calls.filter(pl.col("service") == service)) if _talks(spoken, own) else None
        if told is None:
            openings.append(sessions)
            continue
        parts.append(told.with_columns(pl.lit(service).alias("service")).select(list(GOALS)).cast(pl.Schema(GOALS)))
        openings.append(sessions.join(told, on="session_id", how="anti"))
    rest = pl.concat(openings) if openings else asked.clear()
    read_as = _routines(turns)
    ends = turns.group_by("session_id").agg((pl.col("position").max() + 1).alias("ends"))
    read = read_openings(rest, calls).join(ends, on="session_id", how="left").join(
        read_as, on="session_id", how="left").with_columns(
        pl.lit(0, pl.Int64()).alias("begins"), pl.col("ends").fill_null(0), pl.coalesce("routine", "label").alias("label"))
    read = read.filter(pl.col("routine").is_null() | (pl.col("place") == 0))
    parts.append(read.select(list(GOALS)).cast(pl.Schema(GOALS)))
    return pl.concat(parts).sort("session_id", "place")


def _routines(turns: pl.DataFrame) -> pl.DataFrame:
    """session_id, routine: sessions in which nobody speaks and nothing answers go by what they begin with."""
    silent = pl.col("content").is_null().all()
    return turns.sort("session_id", "position").group_by("session_id").agg(
        silent.alias("silent"), pl.format("begins with {}", pl.col("tool").first()).alias("routine")).filter(
        "silent").drop_nulls().select("session_id", "routine")


def kinds_of(goals: pl.DataFrame) -> pl.DataFrame:
    """session_id, kinds (labels in order; one that comes back counts once where goals are courses), family."""
    return (
        goals.sort("session_id", "place").group_by("session_id", "service", maintain_order=True)
        .agg(pl.when(pl.col("begins").n_unique() > 1).then(pl.col("label").unique(maintain_order=True).implode()).otherwise(
            pl.col("label").implode()).first().alias("kinds"))
        .with_columns(pl.struct("service", "kinds").map_elements(_family_id, return_dtype=pl.String).alias("family"))
        .select("session_id", "kinds", "family"))


def kind_id(service: str, label: str) -> str:
    """Id of a kind of request."""
    return _family_id({"service": service, "kinds": [label]})


def _talks(spoken: pl.DataFrame, turns: pl.DataFrame) -> bool:
    """Are these conversations, and several of them?"""
    return spoken.height >= 2 * _SUPPORT and not turns.is_empty()


def _course(turns: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame | None:
    """Goals along each session; None where neither calls nor words tell kinds."""
    own = calls.join(turns.select("session_id").unique(), on="session_id", how="semi")
    named = _naming(own)
    if named is None and not own.is_empty():
        return None
    cut = pieces.cut(turns)
    if not cut.n_words or (named is None and cut.frame["session_id"].n_unique() < _FEW):
        return None
    if named is None:
        groups = clusters.group_sessions(cut, _SURE)
        labels = _names_of(cut, groups)
        called = np.zeros((cut.frame.height, len(labels)), dtype=bool)
        courses = reader.read(cut, groups, called, len(labels), reader.LOOSE)
        return _runs(cut, courses, labels)
    told, called = _told(cut, named)
    return _runs(cut, reader.read(cut, told, called, len(named)), named)


def _naming(calls: pl.DataFrame) -> list[str] | None:
    """The tools that name kinds of request, sorted; None where sessions mostly use several."""
    if calls.is_empty():
        return None
    used = calls.group_by("session_id").agg(pl.col("tool").unique().alias("tools"))
    alone = used.filter(pl.col("tools").list.len() == 1).select(pl.col("tools").list.first().alias("tool"))
    known = alone.group_by("tool").len().filter(pl.col("len") >= _SUPPORT)["tool"].sort().to_list()
    return known if len(known) > 1 and alone.height >= _ONE_TOOL * used.height else None


def _told(cut: Pieces, tools: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """What calls tell at first: the kind of each piece between two calls of one tool (-1: none), and who is called where."""
    number = {tool: i for i, tool in enumerate(tools)}
    called = np.zeros((cut.frame.height, len(tools)), dtype=bool)
    for piece, names in cut.frame.select("piece", "tools").iter_rows():
        for name in names:
            if name in number:
                called[piece, number[name]] = True
    own = np.where(called.sum(1) == 1, called.argmax(1), np.where(called.any(1), -2, -1))
    known = cut.frame.select("session_id", pl.Series("own", own).replace(-1, None))
    around = known.select(
        pl.col("own").forward_fill().over("session_id").alias("before"), pl.col("own").backward_fill().over("session_id").alias(
            "after"), pl.col("own").drop_nulls().n_unique().over("session_id").alias("n"))
    between = (pl.col("n") == 1) | (pl.col("before") == pl.col("after"))
    kind = around.select(pl.when(between).then(pl.coalesce("before", "after")).fill_null(-1).clip(-1))
    return kind.to_series().to_numpy().astype(np.int64), called


def _names_of(cut: Pieces, groups: np.ndarray) -> list[str]:
    """A name for each group that does not depend on the others: its first session."""
    first = cut.frame.select("session_id", pl.Series("group", groups)).filter(pl.col("group") >= 0).group_by("group").agg(
        pl.col("session_id").min()).sort("group")
    return ["words of " + name for name in first["session_id"]]


def _runs(cut: Pieces, kinds: np.ndarray, labels: list[str]) -> pl.DataFrame:
    """Neighbouring pieces of one kind are one goal; the words are what the user said first in it, greetings passed over."""
    placed = cut.frame.with_columns(pl.Series("label", [labels[kind] for kind in kinds], pl.String()))
    changed = (pl.col("label") != pl.col("label").shift(1).over("session_id")).fill_null(False)
    placed = placed.with_columns(changed.cast(pl.Int64).cum_sum().over("session_id").alias("goal"))
    said = pl.col("said").filter(pl.col("said") != "")
    telling = pl.col("said").filter(pl.col("said").str.count_matches(WORD) >= _GREETING)
    return placed.group_by("session_id", "goal", maintain_order=True).agg(
        pl.col("begins").min(), pl.col("ends").max(), pl.col("label").first(), telling.first().alias("telling"),
        said.first().alias("words")).rename({"goal": "place"}).with_columns(pl.coalesce("telling", "words").fill_null("").alias(
            "words")).drop("telling")


def _family_id(row: dict[str, object]) -> str:
    return hashlib.sha256(f"{row['service']}\0{row['kinds']}".encode()).hexdigest()[:16]
