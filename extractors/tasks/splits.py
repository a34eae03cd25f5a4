"""Split tasks into train, validation and held-out, and report what the splits still share.

Splits share no session, no user, and no entity that one of them changed or that belongs to one user. Tasks are tied by nearly
equal words (MinHash; Broder 1997), by the same user, by changed entities and by sessions that may be one conversation (column
`alike`, where it is given); tied tasks stay in one split (connected components). Later components are held out, so that a
policy is tested on what came after its training data; without a clock a hash decides. What many share (a catalogue, a
service's only account) ties nothing; the leakage report names it.

What is sealed (`sealed.py`) keeps its side. New tasks tied to sealed ones take their side; those tied to several sides are on
none (`TIED`). Other new tasks fill what the shares lack, the latest held out. What ties sealed tasks of several sides today
tied nothing when these were sealed: it moves none of them, and is counted as late.

A user is the session's identity, otherwise the argument that most sessions give exactly one value for. Does not see: ties
through names that are in no argument (a household, a card known by its last digits), likeness beyond words."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from extractors.components import components
from extractors.tasks.arguments import names_of_things
from extractors.tasks.sealed import TIED, UNNAMED, with_ledger
from extractors.tasks.words import is_identifier, masked, split_words
from warehouse.records import SPLITS

SHARES = {"held_out": 0.2, "validation": 0.1}
"""Shares of a service's tasks that these sides aim at; the rest is train."""
_MANY = 3
"""An entity that sessions of this many users name is shared, and ties nothing."""
_ALL_IN_ONE = 0.75
"""A component with more of the tasks than this leaves nothing to part: the split goes by family instead."""
_USUAL = 0.5
"""An argument tells the user where at least this share of the sessions give it, and hardly one gives two."""
_OPERATOR = 10
"""An identity with more tasks than this, and 2 % of its service's, is an operator (a clerk): reported, but ties nothing."""


_Unit = tuple[str, str]
"""Service, and the component or family that stays on one side."""


class Sides(NamedTuple):
    """Which side each task is on, and what ties were seen."""

    tasks: pl.DataFrame
    """task, service, component, split, method (`component` or `family`)."""
    ties: pl.DataFrame
    """task, kind (`user`, or path of an argument), value, shared (bool: named by many, or late; ties nothing), late (bool:
    tasks that name it were sealed on several sides, so it was shared or not there then)."""


def choose_sides(members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> Sides:
    """Assign each task of `members` (task, service, family, session_id, identity, started_at, words) to a split.

    Column `side`, where it is given: the split of a task elsewhere that a session shows the solution of. What is tied to such
    a session takes the side that is furthest from training. Columns of the ledger (`sealed.with_ledger`), where they are
    given: what was decided before."""
    members = members if "epoch" in members.columns else with_ledger(members)
    ties = _ties(members, calls, values)
    tying = _tying(members, ties)
    tasks = (
        members.sort("epoch", "session_id").group_by("task", "service").agg(
            pl.col("family").first(), pl.col("started_at").max(), pl.col("epoch").min(),
            pl.col("sealed_split").drop_nulls().first().alias("sealed"), pl.col("sealed_method").drop_nulls().first())
        .sort("task"))
    tasks = _shown_elsewhere(members, tasks)
    epochs, new = _settled_at(members, tasks), tasks.filter(pl.col("sealed").is_null())
    of_new = components(new["task"], tying.join(new, on="task", how="semi").group_by("tie").agg("task")["task"], epochs)
    root = pl.col("task").replace_strict(of_new, default=None, return_dtype=pl.String)
    tasks = tasks.with_columns(root.alias("component")).with_columns(_method())
    tasks = tasks.with_columns(pl.when(pl.col("method") == "family").then("family").otherwise("component").alias("unit"))
    new = tasks.filter(pl.col("sealed").is_null())
    decided = _elsewhere(members, new)
    for unit, touched in _touched(tasks, tying).items():
        sides = touched | ({decided[unit]} if unit in decided else set())
        decided[unit] = sides.pop() if len(sides) == 1 else TIED
    split_of_unit = _filled(tasks, decided)
    _keep_alike(members, new, split_of_unit, decided)
    split = pl.coalesce("sealed", pl.struct("service", "unit").map_elements(
        lambda row: split_of_unit.get((row["service"], row["unit"]), "train"), return_dtype=pl.String))
    tasks = tasks.with_columns(split.alias("split"))
    return Sides(tasks.with_columns(_components(tasks, members, tying, epochs)).select(
        "task", "service", "component", "method", "split"), _with_late(ties, tasks))


def _shown_elsewhere(members: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Take sealed tasks off their side that show the solution of a task on another one."""
    if "side" not in members.columns:
        return tasks
    placed = members.drop_nulls("side").join(tasks.select("task", "sealed"), on="task")
    shown = placed.filter(pl.col("side") != pl.col("sealed"))
    is_shown = pl.col("sealed").is_not_null() & pl.col("task").is_in(shown["task"].unique().implode())
    return tasks.with_columns(pl.when(is_shown).then(pl.lit(TIED)).otherwise("sealed").alias("sealed"))


def _settled_at(members: pl.DataFrame, tasks: pl.DataFrame) -> dict[str, int]:
    """Return the epoch of each task; of those that no component is named after, after all others."""
    roots = members["sealed_component"].drop_nulls().unique().implode()
    named = members.filter(pl.col("sealed_first").is_in(roots))["task"].unique().implode()
    later = pl.when(pl.col("task").is_in(named)).then(0).otherwise(UNNAMED)
    return dict(tasks.select("task", pl.col("epoch") + later).iter_rows())


def _tying(members: pl.DataFrame, ties: pl.DataFrame) -> pl.DataFrame:
    """List task, tie: what ties tasks where it is not shared. `near` has the texts that one is nearly equal to, its own too."""
    words = members.explode("near") if "near" in members.columns else members.with_columns(near="words")
    parts = [
        ties.filter(~pl.col("shared")).select("task", (pl.col("kind") + "\0" + pl.col("value")).alias("tie")),
        words.select("task", (pl.lit("words\0") + pl.col("near")).alias("tie"))]
    if "alike" in members.columns:
        parts.append(members.drop_nulls("alike").select("task", (pl.lit("alike\0") + pl.col("alike")).alias("tie")))
    return pl.concat(parts).drop_nulls("tie").unique()


def _method() -> pl.Expr:
    """Return by what a service is split: as when it was sealed; by family where one component has nearly all tasks."""
    size = pl.len().over("service", "component")
    alone = (size.max().over("service") > _ALL_IN_ONE * pl.len().over("service")) & (pl.len().over("service") > 1)
    before = pl.col("sealed_method").sort_by("epoch", "task").drop_nulls().first().over("service")
    return pl.coalesce(before, pl.when(alone).then(pl.lit("family")).otherwise(pl.lit("component"))).alias("method")


def _touched(tasks: pl.DataFrame, tying: pl.DataFrame) -> dict[_Unit, set[str]]:
    """Return the sides that new units are tied to: by what ties them, or by having their family; sessions that may be one
    conversation tie across services. A family that is on several sides takes the one that most of its tasks have."""
    placed = tying.join(tasks.select("task", "service", "unit", "method", "sealed"), on="task")
    everywhere = pl.col("tie").str.starts_with("alike\0")
    placed = placed.filter((pl.col("method") == "component") | everywhere).with_columns(
        pl.when(everywhere).then(pl.lit("")).otherwise("service").alias("within"))
    sides = placed.filter(pl.col("sealed") != TIED).group_by("within", "tie").agg(pl.col("sealed").unique())
    sides = sides.filter((pl.col("sealed").list.len() == 1) | ~pl.col("tie").str.starts_with("user\0"))
    rows = placed.filter(pl.col("sealed").is_null()).drop("sealed").join(sides, on=["within", "tie"]).explode("sealed")
    touched: dict[_Unit, set[str]] = defaultdict(set)
    for service, unit, side in rows.select("service", "unit", "sealed").unique().iter_rows():
        touched[service, unit].add(side)
    families = tasks.filter((pl.col("method") == "family") & (pl.col("sealed") != TIED))
    often = families.group_by("service", "family", "sealed").len().sort("len", "sealed", descending=[True, False])
    usual = often.group_by("service", "family", maintain_order=True).first()
    new = tasks.filter(pl.col("sealed").is_null() & (pl.col("method") == "family")).select("service", "unit").unique()
    for service, family, side, _ in usual.join(new, left_on=["service", "family"], right_on=["service", "unit"]).iter_rows():
        touched.setdefault((service, family), {side})
    return touched


def _filled(tasks: pl.DataFrame, decided: Mapping[_Unit, str]) -> dict[_Unit, str]:
    """Return the splits of new units: those that are `decided`, and of others the latest ones where a side lacks tasks."""
    new = tasks.filter(pl.col("sealed").is_null())
    units = new.group_by("service", "unit").agg(pl.len().alias("n"), pl.col("started_at").max()).sort("service", "unit")
    sealed = tasks.filter(pl.col("sealed") != TIED).group_by("service", "sealed").len()
    n_sealed = {(service, side): n for service, side, n in sealed.iter_rows()}
    split_of_unit: dict[_Unit, str] = dict(decided)
    for (service,), part in units.group_by("service", maintain_order=True):
        order = sorted(part.select("unit", "n", "started_at").iter_rows(), key=_latest_first)
        before = {side: n_sealed.get((str(service), side), 0) for side in SPLITS}
        total = int(part["n"].sum()) + sum(before.values())
        sizes = {side: before[side] + sum(n for unit, n, _ in order if decided.get((str(service), unit)) == side)
                 for side in SHARES}
        order = [each for each in order if (str(service), each[0]) not in decided]
        for side, share in SHARES.items():
            taken, rest = sizes[side], []
            for unit, n, started_at in order:
                few = len(order) + sum(before.values()) <= len(SHARES)
                if taken + n <= max(1.25 * share * total, 1) and taken < share * total and not few:
                    split_of_unit[str(service), unit] = side
                    taken += n
                else:
                    rest.append((unit, n, started_at))
            order = rest
    return split_of_unit


def _components(tasks: pl.DataFrame, members: pl.DataFrame, tying: pl.DataFrame, epochs: Mapping[str, int]) -> pl.Series:
    """Return the component of each task, named by its first settled one: what ties tasks of one side, now or when they were
    sealed. In a service that is split by family, a component may be on several sides."""
    once = members.drop_nulls("sealed_component").select("task", (pl.lit("once\0") + pl.col("sealed_component")).alias("tie"))
    side = pl.when(pl.col("method") == "component").then("split").otherwise(pl.lit(""))
    tied = pl.concat([tying, once.unique()]).join(tasks.select("task", side.alias("within")), on="task")
    roots = components(tasks["task"], tied.group_by("tie", "within").agg("task")["task"], epochs)
    return pl.Series("component", [roots[task] for task in tasks["task"]], pl.String())


def _with_late(ties: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Add which ties are late, and count these as shared."""
    sealed = ties.join(tasks.filter((pl.col("method") == "component") & (pl.col("sealed") != TIED)), on=["task", "service"])
    several = sealed.group_by("service", "kind", "value").agg(pl.col("sealed").n_unique().alias("n")).filter(pl.col("n") > 1)
    late = ~pl.col("shared") & pl.col("n").is_not_null()
    marked = ties.join(several, on=["service", "kind", "value"], how="left", maintain_order="left").with_columns(late=late)
    return marked.with_columns(pl.col("shared") | pl.col("late")).drop("n")


def _keep_alike(
    members: pl.DataFrame, tasks: pl.DataFrame, split_of_unit: dict[_Unit, str], elsewhere: Mapping[_Unit, str],
) -> None:
    """Put units with sessions that may be one conversation on one side, where they are on several: the one that is furthest
    from training of those that they have elsewhere, else train."""
    if "alike" not in members.columns:
        return
    tied = members.drop_nulls("alike").join(tasks.select("task", "unit"), on="task")
    units = tied.select("alike", pl.concat_str(pl.col("service", "unit"), separator="\0").alias("name"))
    roots = components(units["name"].unique(), units.group_by("alike").agg("name")["name"])
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, root in roots.items():
        service, _, unit = name.partition("\0")
        groups[root].append((service, unit))
    for group in groups.values():
        if len({split_of_unit.get(each, "train") for each in group}) > 1:
            sides = {elsewhere[each] for each in group if each in elsewhere}
            split_of_unit.update(dict.fromkeys(group, TIED if TIED in sides else _furthest(sides)))


def _elsewhere(members: pl.DataFrame, tasks: pl.DataFrame) -> dict[_Unit, str]:
    """Return the side that sessions of a unit have elsewhere, the one furthest from training where they have several."""
    if "side" not in members.columns:
        return {}
    rows = members.drop_nulls("side").join(tasks.select("task", "unit"), on="task").select("service", "unit", "side").unique()
    sides: dict[_Unit, set[str]] = defaultdict(set)
    for service, unit, side in rows.iter_rows():
        sides[service, unit].add(side)
    return {unit: _furthest(own) for unit, own in sides.items()}


def _furthest(sides: set[str]) -> str:
    return next((side for side in SHARES if side in sides), "train")


def _latest_first(unit: tuple[str, int, datetime | None]) -> tuple[float, str]:
    name, _, started_at = unit
    return -started_at.timestamp() if started_at else 0.0, hashlib.sha256(name.encode()).hexdigest()


def _ties(members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    named = (
        names_of_things(values).join(calls.select("turn_id", "session_id", "acts", "failed"), on="turn_id").select(
            "session_id", pl.col("path").str.split(".").list.last().alias("kind"), "value",
            (pl.col("acts") & ~pl.col("failed")).alias("changed"))
        .group_by("session_id", "kind", "value").agg(pl.col("changed").any())
        .join(members.select("session_id", "task", "service", "identity"), on="session_id"))
    users = _users(members, named)
    owners = users.filter(~pl.col("shared")).select("session_id", (pl.col("service") + "\0" + pl.col("user")).alias("owner"))
    of_user = members.select("task", "session_id").join(users, on="session_id")
    of_user = of_user.select("task", "service", pl.lit("user").alias("kind"), pl.col("user").alias("value"), "shared")
    owned = named.join(owners, on="session_id", how="left").with_columns(pl.coalesce("owner", "task").alias("owner"))
    n_owners = pl.col("owner").n_unique().over("service", "value")
    changed = pl.col("changed").any().over("service", "value")
    of_thing = owned.with_columns(((n_owners >= _MANY) | ((n_owners > 1) & ~changed)).alias("shared"))
    columns = ["task", "service", "kind", "value", "shared"]
    return pl.concat([of_user.select(columns), of_thing.select(columns)]).unique().sort("task", "kind", "value", "shared")


def _users(members: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """List session_id, service, user, shared: the log's identity, else (or if it is an operator, which is shared) the value of
    the most single-valued argument."""
    n_tasks = pl.col("task").n_unique()
    stated = members.filter(pl.col("identity").is_not_null()).select(
        "session_id", "service", "task", pl.col("identity").alias("user"))
    per_service = members.group_by("service").agg(n_tasks.cast(pl.Float64).alias("n_tasks"))
    operator = n_tasks.over("service", "user") > pl.max_horizontal(pl.lit(float(_OPERATOR)), 0.02 * pl.col("n_tasks"))
    stated = stated.join(per_service, on="service").select("session_id", "service", "user", operator.alias("shared"), "n_tasks")
    per_session = named.group_by("service", "session_id", "kind").agg(
        pl.col("value").n_unique().alias("n"), pl.col("value").min())
    single = per_session.group_by("service", "kind").agg(
        (pl.col("n") == 1).sum().alias("n_single"), (pl.col("n") > 1).sum().alias("n_many"))
    n_sessions = members.group_by("service").agg(pl.len().alias("n_sessions"))
    chosen = (
        single.join(n_sessions, on="service")
        .filter((pl.col("n_single") > 9 * pl.col("n_many")) & (pl.col("n_single") >= _USUAL * pl.col("n_sessions")))
        .sort("service", "n_single", "kind", descending=[False, True, False]).group_by("service", maintain_order=True).first()
        .select("service", "kind"))
    guessed = (
        per_session.join(chosen, on=["service", "kind"]).select("session_id", "service", pl.col("value").alias("user"))
        .join(stated.filter(~pl.col("shared")), on="session_id", how="anti")
        .join(members.select("session_id", "task"), on="session_id").join(per_service, on="service"))
    only = (n_tasks.over("service", "user") == pl.col("n_tasks")) & (pl.col("n_tasks") > 1)
    columns = ["session_id", "service", "user", "shared"]
    both = pl.concat([stated.select(columns), guessed.with_columns(only.alias("shared")).select(columns)])
    return both.unique().sort("session_id", "user")


ALIKE = 0.8
"""Share of words in common (Jaccard) from which on two requests that name the same entities are near-duplicates."""
_BANDS, _ROWS = 10, 4
_PRIME = (1 << 31) - 1


def near_duplicates(requests: pl.DataFrame) -> pl.DataFrame:
    """Group near-duplicate goals of a service: columns session_id, words (first session of those that it is like by chains),
    near (first sessions of the texts that its own is like, itself included). First settled first, where `epoch` is given."""
    epoch = pl.col("epoch") if "epoch" in requests.columns else pl.lit(0).alias("epoch")
    worded = requests.select(
        "session_id", "service", epoch, split_words(pl.col("goal")).list.unique().list.sort().alias("word"))
    names = worded.explode("word").filter(is_identifier(pl.col("word"))).group_by("session_id").agg(
        pl.col("word").sort().str.join(" ").alias("names"))
    sets: dict[tuple[str, str, tuple[str, ...]], str] = {}
    group: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    epochs: dict[str, int] = {}
    ordered = worded.join(names, on="session_id", how="left").sort("epoch", "session_id")
    for session, service, settled, words, named in ordered.iter_rows():
        key = (service, named or "", tuple(words or ()))
        sets.setdefault(key, session)
        group[session], epochs[session] = key, settled
    near: dict[str, list[str]] = {session: [session] for session in sets.values()}
    pairs = list(_pairs({session: key for key, session in sets.items()}))
    for one, two in pairs:
        near[one].append(two)
        near[two].append(one)
    first = components(sets.values(), pairs, epochs)
    rows = [(session, first[sets[key]], sorted(near[sets[key]])) for session, key in sorted(group.items())]
    return pl.DataFrame(
        rows, schema={"session_id": pl.String, "words": pl.String, "near": pl.List(pl.String)}, orient="row")


_CROWD = 200
"""Of so many texts in a bucket each is compared with the first alone."""


def _pairs(sets: Mapping[str, tuple[str, str, tuple[str, ...]]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of near-duplicates; `sets` in the order in which they settled."""
    met: set[tuple[str, str]] = set()
    buckets: dict[tuple[str, str, int, bytes], list[str]] = defaultdict(list)
    for session, (service, names, words) in sets.items():
        for band, signature in enumerate(_signature(words)):
            buckets[service, names, band, signature].append(session)
    for _, sessions in sorted(buckets.items()):
        for one, two in combinations(sessions, 2) if len(sessions) < _CROWD else ((sessions[0], each) for each in sessions[1:]):
            if (one, two) not in met:
                met.add((one, two))
                a, b = set(sets[one][2]), set(sets[two][2])
                if len(a & b) >= ALIKE * len(a | b):
                    yield one, two


@lru_cache(maxsize=1 << 14)
def _signature(words: tuple[str, ...]) -> list[bytes]:
    if not words:
        return [b""] * _BANDS
    numbers = np.array([int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % _PRIME for word in words])
    turns = np.arange(1, _BANDS * _ROWS + 1, dtype=np.int64)
    hashed = (numbers[:, None] * (turns * 2654435 % _PRIME)[None, :] + turns * 40503) % _PRIME
    least = hashed.min(axis=0).reshape(_BANDS, _ROWS)
    return [band.tobytes() for band in least]


_ENOUGH = 10
"""Tasks on a side from which on it is asked."""


def split_auroc(tasks: pl.DataFrame) -> float | None:
    """Compute the AUROC of telling held-out from train by words, each half by the other (.5: no leak; None if one is small)."""
    labelled = tasks.filter(pl.col("split").is_in(["train", "held_out"])).sort("task")
    is_held_out = (labelled["split"] == "held_out").to_numpy()
    if min(is_held_out.sum(), (~is_held_out).sum()) < _ENOUGH:
        return None
    words = labelled.select(split_words(masked(pl.col("goal"))).list.unique().list.sort().alias("word"))["word"].to_list()
    half = np.array([int(hashlib.sha256(task.encode()).hexdigest(), 16) % 2 for task in labelled["task"]])
    score = np.zeros(len(is_held_out))
    for side in (0, 1):
        taught = [np.flatnonzero((half != side) & (is_held_out == kind)) for kind in (True, False)]
        ours, theirs = (Counter(word for i in own for word in words[i]) for own in taught)
        n_ours, n_theirs = map(len, taught)
        odds = {word: math.log((ours[word] + 0.5) / (n_ours + 1)) - math.log((theirs[word] + 0.5) / (n_theirs + 1))
                for word in ours.keys() | theirs.keys()}
        for i in np.flatnonzero(half == side):
            score[i] = sum(odds.get(word, 0.0) for word in words[i])
    above, below = score[is_held_out][:, None], score[~is_held_out][None, :]
    return round(float((above > below).mean() + 0.5 * (above == below).mean()), 4)


_EXAMPLES = 10
_AT_ONCE = 200
"""Tasks whose goals are compared with all others at once: each pair that shares a word is a row for each such word."""


def report(sides: Sides, goals: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Report per service: method, sizes by split, near-duplicates, shared names by kind, likeness of the splits.

    `goals`: task, goal, words (id of the group of near-duplicates), n_sessions. `leaks` counts users, entities and groups of
    near-duplicates that tie tasks of several splits; it is 0 where the split goes by components. `late_ties`: those of tasks
    that were sealed before they tied."""
    tasks = sides.tasks.join(goals, on="task", how="left")
    both = (
        sides.ties.join(tasks.select("task", "split"), on="task").group_by("service", "kind", "value")
        .agg(pl.col("shared", "late").any(), pl.col("split").n_unique().alias("n_sides")).filter(pl.col("n_sides") > 1)
        .sort("service", "kind", "value"))
    return {
        str(service): _of_service(part, both.filter(pl.col("service") == service))
        for (service,), part in tasks.sort("service", "task").group_by("service", maintain_order=True)}


def _of_service(tasks: pl.DataFrame, both: pl.DataFrame) -> dict[str, Any]:
    by_side = tasks.group_by("split").agg(pl.len(), pl.col("n_sessions").sum()).sort("split")
    sizes = {split: (n_tasks, n_sessions) for split, n_tasks, n_sessions in by_side.iter_rows()}
    kinds = both.group_by("kind", maintain_order=True).agg(pl.len(), pl.col("value").head(_EXAMPLES))
    alike = tasks.group_by("words").agg(pl.len().alias("n"), pl.col("split").n_unique().alias("n_sides"))
    alike = alike.filter(pl.col("n") > 1)
    return {
        "method": tasks["method"][0], "n_components": tasks["component"].n_unique(),
        "n_tasks": {side: sizes.get(side, (0, 0))[0] for side in SPLITS},
        "n_sessions": {side: sizes.get(side, (0, 0))[1] for side in SPLITS}, "n_near_duplicates": int(alike["n"].sum()),
        "shared": {kind: {"n": n, "examples": examples} for kind, n, examples in kinds.iter_rows()},
        "late_ties": int(both["late"].sum()),
        "leaks": both.filter(~pl.col("shared")).height + alike.filter(pl.col("n_sides") > 1).height,
        "highest_jaccard": _highest_jaccard(tasks), "told_apart": split_auroc(tasks)}


def _highest_jaccard(tasks: pl.DataFrame) -> float | None:
    """Find the highest word overlap of a goal in train and one elsewhere; None if a split is empty.

    Two goals that share so many words share one of their rarest (prefix filter: Chaudhuri, Ganti, Kaushik, ICDE 2006), so pairs
    are found by these alone, from high shares down."""
    words = (
        tasks.unique(["split", "goal"], keep="first", maintain_order=True)
        .select("task", "split", split_words(pl.col("goal")).list.unique().alias("word"))
        .with_columns(pl.col("word").list.len().alias("n"), pl.col("task").rank("dense").alias("at")).explode("word")
        .with_columns(pl.len().over("word").alias("n_goals"))
        .with_columns(pl.struct("n_goals", "word").rank("ordinal").over("at", "split").alias("rank"))
        .select("at", "split", "word", "n", "rank"))
    train, others = words.filter(pl.col("split") == "train"), words.filter(pl.col("split") != "train")
    if train.is_empty() or others.is_empty():
        return None
    highest = 0.0
    for tenths in range(9, -1, -1):
        rare = pl.col("rank") <= pl.col("n") - (pl.col("n") * tenths + 9) // 10 + 1
        parts = others.with_columns(part=pl.col("at") // _AT_ONCE).partition_by("part")
        highest = max(_highest(some, train, rare) for some in parts)
        if highest >= tenths / 10:
            break
    return round(highest, 6)


def _highest(others: pl.DataFrame, train: pl.DataFrame, rare: pl.Expr) -> float:
    pairs = others.filter(rare).join(train.filter(rare), on="word", suffix="_train").select("at", "at_train").unique()
    joined = (
        pairs.join(others.select("at", "word", "n"), on="at")
        .join(train.select("at", "word", "n"), left_on=["at_train", "word"], right_on=["at", "word"], suffix="_train")
        .group_by("at", "at_train", "n", "n_train").agg(pl.len().alias("both")))
    highest = joined.select((pl.col("both") / (pl.col("n") + pl.col("n_train") - pl.col("both"))).max()).item()
    return float(highest) if highest is not None else 0.0
