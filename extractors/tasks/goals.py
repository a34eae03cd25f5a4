"""Find the goals of each session: what it was for, one after another, and where each begins.

Input: requests (`requests.REQUESTS`), turns and calls. Output: one row a goal. The method depends on the service:

- if most sessions call one tool only, that tool names a kind of request; its words are learnt from these sessions, and every
  session is read piece by piece (`courses`), so a later goal begins where the user brings it;
- if nothing is called, clusters of sessions by their words teach the same; sealed sessions (`sealed.py`) stay in their
  cluster, and others are read by what it taught, until they are half as many: then all are clustered again;
- runs of a routine without words or answers are of the kind that they begin with;
- otherwise the opening is read clause by clause: sessions that wrote with one tool (or none) teach which words ask for what.

Tool calls are training signal only; they never decide what was asked. A goal continues in a later session if it is of the same
kind, names the same entities, and follows within some days. Does not see: two goals in one clause; a second goal of the same
kind later on, unless its clause names other entities; in openings, goals that come up later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.tasks.arguments import slots_of
from extractors.tasks.branches import id_of
from extractors.tasks.courses import FEW, LOOSE, Pieces, cut_conversations, read_kinds
from extractors.tasks.likeness import group_sessions
from extractors.tasks.words import WORD, document_words, is_identifier, masked

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
_GROWN = 0.5
"""So many sessions more than were clustered, as a share of these, are clustered again with them."""
WORD_GROUPS = {"session_id": pl.String(), "word_group": pl.String()}
"""word_group: the session that names the cluster; empty: it taught no kind."""


class FoundGoals(NamedTuple):
    """What `find_goals` gives."""

    goals: pl.DataFrame
    """Frame of `GOALS`, at least one for each session, by session and place."""
    groups: pl.DataFrame
    """Frame of `WORD_GROUPS`: sessions that were clustered by their words."""


def find_goals(requests: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame) -> FoundGoals:
    """Find the goals of `requests`, which have the columns of the ledger (`sealed.with_ledger`)."""
    parts, groups = [pl.DataFrame(schema=GOALS)], [pl.DataFrame(schema=WORD_GROUPS)]
    openings = []
    for (service,), sessions in requests.sort("service").group_by("service", maintain_order=True):
        spoken = sessions.filter("spoken")
        own = turns.join(spoken.select("session_id"), on="session_id", how="semi")
        talks = spoken.height >= 2 * _SUPPORT and not own.is_empty()
        conversation = _course(own, calls.filter(pl.col("service") == service), spoken) if talks else None
        if conversation is None:
            openings.append(sessions)
            continue
        course, of_words = conversation
        groups.append(of_words)
        parts.append(course.with_columns(pl.lit(service).alias("service")).select(list(GOALS)).cast(pl.Schema(GOALS)))
        openings.append(sessions.join(course, on="session_id", how="anti"))
    rest = pl.concat(openings) if openings else requests.clear()
    silent = pl.col("content").is_null().all()   # nobody speaks and nothing answers: such sessions go by what they begin with
    of_turns = turns.sort("session_id", "position").group_by("session_id").agg(
        (pl.col("position").max() + 1).alias("ends"),
        pl.when(silent).then(pl.format("begins with {}", pl.col("tool").first())).alias("routine"))
    read = read_openings(rest, calls).join(of_turns, on="session_id", how="left").with_columns(
        pl.lit(0, pl.Int64()).alias("begins"), pl.col("ends").fill_null(0), pl.coalesce("routine", "label").alias("label"))
    read = read.filter(pl.col("routine").is_null() | (pl.col("place") == 0))
    parts.append(read.select(list(GOALS)).cast(pl.Schema(GOALS)))
    return FoundGoals(pl.concat(parts).sort("session_id", "place"), pl.concat(groups).sort("session_id"))


def kinds_of(goals: pl.DataFrame) -> pl.DataFrame:
    """session_id, service, kinds (labels in order; one that comes back counts once where goals are courses), family."""
    return (
        goals.sort("session_id", "place").group_by("session_id", "service", maintain_order=True)
        .agg(pl.when(pl.col("begins").n_unique() > 1).then(pl.col("label").unique(maintain_order=True).implode()).otherwise(
            pl.col("label").implode()).first().alias("kinds"))
        .with_columns(pl.struct("service", "kinds").map_elements(
            lambda row: id_of(row["service"], row["kinds"]), return_dtype=pl.String).alias("family"))
        .select("session_id", "service", "kinds", "family"))


def _course(turns: pl.DataFrame, calls: pl.DataFrame, requests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Goals along each session, and `WORD_GROUPS`; None where neither calls nor words tell kinds."""
    own = calls.join(turns.select("session_id").unique(), on="session_id", how="semi")
    named = _naming(own)
    if named is None and not own.is_empty():
        return None
    cut = cut_conversations(turns) if named is not None else cut_conversations(turns, FEW)
    if not cut.n_words or (named is None and cut.frame["session_id"].n_unique() < _FEW):
        return None
    if named is None:
        groups, firsts, taught = _clustered(cut, requests)
        labels = ["words of " + name for name in firsts]
        called = np.zeros((cut.frame.height, len(labels)), dtype=bool)
        return _runs(cut, read_kinds(cut, groups, called, len(labels), LOOSE), labels), taught
    initial, called = _initial_kinds(cut, named)
    return _runs(cut, read_kinds(cut, initial, called, len(named)), named), pl.DataFrame(schema=WORD_GROUPS)


def _clustered(cut: Pieces, requests: pl.DataFrame) -> tuple[np.ndarray, list[str], pl.DataFrame]:
    """Return the cluster of each piece (-1: none), the session that names each, and `WORD_GROUPS`."""
    pieces = cut.frame.select("session_id").join(
        requests.select("session_id", "epoch", "word_group"), on="session_id", how="left", maintain_order="left")
    sessions = pieces.unique("session_id", maintain_order=True)
    n_before = sessions["word_group"].drop_nulls().len()
    if not n_before or sessions.height - n_before >= _GROWN * n_before or not (sessions["word_group"] > "").any():
        pieces = pieces.with_columns(pl.Series("group", group_sessions(cut)))
        names = {-1: "", **_named_clusters(pieces.unique("session_id", maintain_order=True).filter(pl.col("group") >= 0))}
        pieces = pieces.with_columns(pl.col("group").replace_strict(names, return_dtype=pl.String).alias("word_group"))
    used = sorted(set(pieces["word_group"].drop_nulls()) - {""})
    number = {name: i for i, name in enumerate(used)}
    groups = np.array([number.get(name, -1) for name in pieces["word_group"]], dtype=np.int64)
    return groups, used, pieces.select(list(WORD_GROUPS)).drop_nulls().unique().sort("session_id")


def _named_clusters(sessions: pl.DataFrame) -> dict[int, str]:
    """Name clusters (session_id, epoch, group): as most of the sessions of one were called before, where they were, else after
    the first session that settled and names no other."""
    before = sessions.filter(pl.col("word_group") > "").group_by("group", "word_group").len()
    names: dict[int, str] = {}
    for cluster, name, _ in before.sort("len", "word_group", "group", descending=[True, False, False]).iter_rows():
        if cluster not in names and name not in names.values():
            names[cluster] = name
    for name, cluster in sessions.sort("epoch", "session_id").select("session_id", "group").iter_rows():
        if cluster not in names and name not in names.values():
            names[cluster] = name
    return names


def _naming(calls: pl.DataFrame) -> list[str] | None:
    """List the tools that name kinds of request; None if sessions mostly use several."""
    if calls.is_empty():
        return None
    used = calls.group_by("session_id").agg(pl.col("tool").unique().alias("tools"))
    alone = used.filter(pl.col("tools").list.len() == 1).select(pl.col("tools").list.first().alias("tool"))
    names = alone.group_by("tool").len().filter(pl.col("len") >= _SUPPORT)["tool"].sort().to_list()
    return names if len(names) > 1 and alone.height >= _ONE_TOOL * used.height else None


def _initial_kinds(cut: Pieces, tools: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the kind of each piece between two calls of one tool (-1: none), and which tools each piece calls."""
    number = {tool: i for i, tool in enumerate(tools)}
    called = np.zeros((cut.frame.height, len(tools)), dtype=bool)
    for piece, names in cut.frame.select("piece", "tools").iter_rows():
        for name in names:
            if name in number:
                called[piece, number[name]] = True
    own = np.where(called.sum(1) == 1, called.argmax(1), np.where(called.any(1), -2, -1))
    own_kinds = cut.frame.select("session_id", pl.Series("own", own).replace(-1, None))
    around = own_kinds.select(
        pl.col("own").forward_fill().over("session_id").alias("before"), pl.col("own").backward_fill().over("session_id").alias(
            "after"), pl.col("own").drop_nulls().n_unique().over("session_id").alias("n"))
    between = (pl.col("n") == 1) | (pl.col("before") == pl.col("after"))
    kind = around.select(pl.when(between).then(pl.coalesce("before", "after")).fill_null(-1).clip(-1))
    return kind.to_series().to_numpy().astype(np.int64), called


def _runs(cut: Pieces, kinds: np.ndarray, labels: list[str]) -> pl.DataFrame:
    """Neighbouring pieces of one kind are one goal; the words are what the user said first in it, greetings passed over."""
    placed = cut.frame.with_columns(pl.Series("label", [labels[kind] for kind in kinds], pl.String()))
    changed = (pl.col("label") != pl.col("label").shift(1).over("session_id")).fill_null(False)
    placed = placed.with_columns(changed.cast(pl.Int64).cum_sum().over("session_id").alias("goal"))
    nonempty = pl.col("said").filter(pl.col("said") != "")
    telling = pl.col("said").filter(pl.col("said").str.count_matches(WORD) >= _GREETING)
    return (
        placed.group_by("session_id", "goal", maintain_order=True).agg(
            pl.col("begins").min(), pl.col("ends").max(), pl.col("label").first(), telling.first().alias("telling"),
            nonempty.first().alias("words"))
        .rename({"goal": "place"}).with_columns(pl.coalesce("telling", "words").fill_null("").alias("words")).drop("telling"))


_CONNECTIVE = r"(?i)[\s.;,]*\b(?:also|additionally|moreover|furthermore|besides that|another thing|secondly)\b[\s,:]*"
"""English words that begin another request; where they are absent the whole goal is one clause."""
_MIN_SESSIONS = 3
"""Fewer sessions than this do not make a kind of request."""
_ROUTINE = 0.5
"""Share of a service's acting sessions from which on a tool is routine, and tells nothing of what was asked."""
_OFTEN, _TIMES = 0.01, (1.0, 8.0)
"""A word tells of kinds where so many of the clauses that teach hold it, within these bounds: rare words name things."""
_SMOOTHING = 0.1
"""Added to every count (Lidstone): a word never seen with a kind speaks against it, but not for ever."""
_AT_ONCE = 2_000
"""Clauses that are held against all kinds at once."""
_SCALE = 1000
"""Log likelihoods are kept as whole thousandths, so that sums do not depend on the order of threads."""


def read_openings(requests: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Read openings clause by clause: session_id, service, place, label (a tool that writes, or empty), words."""
    labels = _labels(requests, calls)
    silent = requests.filter(~pl.col("worded")).join(labels, on="session_id").select(
        "session_id", "service", pl.lit(0, pl.Int64).alias("place"), "label", pl.col("goal").alias("words"))
    requests = requests.filter("worded")
    clauses = _clauses(requests).with_row_index("number")   # a number takes a sixth of the memory of a clause's name
    words = document_words(clauses.select("number", masked(pl.col("text")).alias("text")), document="number").drop("n")
    # clauses whose kind what was done tells: those of sessions of one clause and one tool or none
    worded = clauses.select("number", "session_id").join(words.select("number").unique(), on="number", how="semi")
    n_clauses = worded.group_by("session_id").agg(pl.len().alias("n_clauses"), pl.col("number").first())
    plain = labels.join(n_clauses, on="session_id").filter((pl.col("n_tools") <= 1) & (pl.col("n_clauses") == 1))
    taught = plain.filter(pl.len().over("service", "label") >= _MIN_SESSIONS).select("number", "service", "label")
    table = _worth_of_words(words, taught)
    best = [_best_kinds(words.filter(pl.col("number").is_between(first, first + _AT_ONCE, closed="left")), clauses, table)
            for first in range(0, clauses.height, _AT_ONCE)]
    none = pl.DataFrame(schema={"number": pl.get_index_type(), "kind": pl.String})
    read = clauses.join(pl.concat([none, *best]), on="number", how="left").join(
        labels.select("session_id", "label"), on="session_id")
    read = read.with_columns(pl.coalesce("kind", "label").alias("label")).sort("session_id", "clause").select(
        "session_id", "service", pl.int_range(pl.len()).over("session_id").alias("place"), "label",
        pl.col("text").alias("words"))
    return pl.concat([read, silent]).sort("session_id", "place")


def _worth_of_words(words: pl.DataFrame, taught: pl.DataFrame) -> pl.DataFrame:
    """Columns service, label, word, score: of each word of the vocabulary for each kind. `taught`: number, service, label."""
    kinds = taught.group_by("service", "label").agg(pl.len().alias("n_taught"))
    counted = words.join(taught, on="number").group_by("service", "label", "word").agg(pl.len().alias("n"))
    n_taught = taught.group_by("service").agg((pl.len() * _OFTEN).clip(*_TIMES).alias("least"))
    vocabulary = counted.group_by("service", "word").agg(pl.col("n").sum()).join(n_taught, on="service").filter(
        pl.col("n") >= pl.col("least")).select("service", "word")
    table = vocabulary.join(kinds, on="service").join(counted, on=["service", "label", "word"], how="left")
    share = (pl.col("n").fill_null(0) + _SMOOTHING) / (pl.col("n_taught") + 2 * _SMOOTHING)
    return table.select("service", "label", "word", (share.log() * _SCALE).round().cast(pl.Int64).alias("score"))


def _best_kinds(words: pl.DataFrame, clauses: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Columns number, kind: the kind that the words of each clause speak for most."""
    scores = words.join(clauses.select("number", "service"), on="number").join(table, on=["service", "word"]).group_by(
        "number", "label").agg(pl.col("score").sum())
    first = scores.sort("number", "score", "label", descending=[False, True, False]).group_by("number", maintain_order=True)
    return first.agg(pl.col("label").first().alias("kind"))


def _clauses(requests: pl.DataFrame) -> pl.DataFrame:
    parted = requests.select(
        "session_id", "service", pl.col("goal").str.replace_all(_CONNECTIVE, "\u001e").str.split("\u001e").alias("text")
    ).explode("text")
    spoken = parted.filter(pl.col("text").str.contains(r"\p{L}"))
    silent = requests.join(spoken, on="session_id", how="anti").select("session_id", "service", pl.col("goal").alias("text"))
    place = pl.int_range(pl.len()).over("session_id").cast(pl.String).str.zfill(3)
    return pl.concat([spoken, silent]).with_columns((pl.col("session_id") + " " + place).alias("clause"))


def _labels(requests: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """List session_id, service, label (tools that wrote, without the routine of the service), n_tools.

    In a service without writes the label is the tool of the session that fewest sessions use."""
    acts = calls.filter(pl.col("acts") & ~pl.col("failed"))
    n_using = pl.col("session_id").n_unique().over("service", "tool")
    n_acting = pl.col("session_id").n_unique().over("service")
    n_tools = pl.col("tool").n_unique().over("service")
    did = (
        acts.filter((n_using <= _ROUTINE * n_acting) | (n_tools <= 2)).group_by("session_id")
        .agg(pl.col("tool").unique().sort().str.join(" ").alias("label"), pl.col("tool").n_unique().alias("n_tools")))
    labels = requests.select("session_id", "service").join(did, on="session_id", how="left")
    labels = labels.with_columns(pl.col("label").fill_null(""), pl.col("n_tools").fill_null(0))
    silent = ~(pl.col("label") != "").any().over("service")
    used = calls.select("session_id", "service", "tool").unique()
    looked = (
        used.with_columns(pl.len().over("service", "tool").alias("n")).sort("session_id", "n", "tool")
        .group_by("session_id", maintain_order=True).agg(pl.col("tool").first().alias("looked")))
    return (
        labels.join(looked, on="session_id", how="left")
        .with_columns(pl.when(silent).then(pl.col("looked").fill_null("")).otherwise("label").alias("label")).drop("looked"))


DAYS = 7
"""Between the beginnings of the two sessions at most."""
_NAMED = pl.Schema({"goal_id": pl.String(), "session_id": pl.String(), "service": pl.String(), "kind": pl.String(),
                    "name": pl.List(pl.String())})


def continued(goals: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """List goals that continue an earlier one: goal_id, continues (goal_id), by goal_id; goals without a time continue none."""
    rows = [(*ids, [name for values in slots_of(slots).values() for name in values])
            for *ids, slots in goals.select("goal_id", "session_id", "service", "kind", "slots").iter_rows()]
    named = pl.DataFrame(rows, schema=_NAMED, orient="row").explode("name").filter(is_identifier(pl.col("name")))
    about = named.group_by("goal_id", "session_id", "service", "kind").agg(
        pl.col("name").unique().sort().str.join(" ").alias("names"))
    placed = about.join(sessions.select("session_id", "started_at").drop_nulls(), on="session_id").sort(
        "service", "kind", "names", "started_at", "goal_id")
    before = pl.all().shift(1).over("service", "kind", "names").name.suffix("_before")
    soon = pl.col("started_at") - pl.col("started_at_before") <= pl.duration(days=DAYS)
    later = placed.with_columns(before).filter((pl.col("session_id") != pl.col("session_id_before")) & soon)
    return later.select("goal_id", pl.col("goal_id_before").alias("continues")).sort("goal_id")
