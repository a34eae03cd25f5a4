"""Part a family whose sessions end in different work.

In: the family of each session, and the calls. Out: the family of each session, parted where the logs show branches: one request
form that ends in an exchange or in a return, one routine that begins with the same form and goes on to different jobs.

Branches are marked by tools that exclude each other: many sessions of the family call each with success, hardly one calls two,
and together they are in most sessions that changed anything. So a step that some sessions add, a retry, a look in passing, a
refusal and a failed call part nothing, since they exclude no other work. The share of a branch must be more than mistakes
make. A session that changed nothing, or that has marks of two branches, is of the family that its words alone gave, or of the
largest branch. Where tools name kinds, the branch that ends in a tool is of that tool's family. Where it is
unknown which calls change, each branch needs several steps of its own.

Does not see: branches of clicks, where one job done in two ways looks the same; branches that one tool does with other values;
one that adds work to all of another's; branches within a session of several goals; why a session went which way."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import polars as pl

from extractors.tasks.arguments import calls_of

_LEAST = 5
"""Sessions of a branch at least."""
_SHARE = 0.2
"""Share of the family's sessions that each branch must have."""
_BOTH = 0.1
"""Share of the rarer of two tools' sessions that may call both, where the tools exclude each other."""
_COVERED = 0.8
"""Share of the working sessions that must have the mark of one branch, and of one only."""
_OWN_STEPS = 2
"""Steps of its own that a branch needs where it is unknown which steps change."""
_OWN_SHARE = 0.5
"""The same as a share of the branch's usual steps: one job done in two ways shares more of them."""
_MOSTLY = 0.5
"""Share of a branch's sessions that have a step which belongs to it."""


class SessionWork(NamedTuple):
    """What a session of a family did."""

    session_id: str
    tools: frozenset[str]
    """Tools that it called with success, of those that count."""


class RequestFamily(NamedTuple):
    """Sessions with one goal of one kind."""

    service: str
    family: str
    label: str
    """What names the kind."""
    is_silent: bool
    """No messages, and no answers of tools."""
    is_known: bool
    """It is known what the service's tools write."""
    work: list[SessionWork]


def id_of(*parts: object) -> str:
    """Make an id of what it stands for, a hash: a kind of request is a family of one label."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def branch_ids(service: str, label: str, mark: str) -> tuple[str, str]:
    """Return the ids of the branch that a tool marks: where tools name kinds, and of a routine with that label."""
    return id_of(service, [mark]), id_of(service, [label, mark])


def part_branches(kinds: pl.DataFrame, turns: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, family: those of `kinds` (session_id, service, kinds, family), parted where there are branches.

    `effects`: service, tool, effect."""
    parted: dict[str, str] = {}
    for family in _families(kinds, turns, effects):
        parted |= _parted(family)
    return kinds.select("session_id", pl.col("session_id").replace_strict(parted, default=None, return_dtype=pl.String).alias(
        "branch"), "family").select("session_id", pl.coalesce("branch", "family").alias("family"))


def _families(kinds: pl.DataFrame, turns: pl.DataFrame, effects: pl.DataFrame) -> Iterable[RequestFamily]:
    """Families of sessions with one goal, with what each session did, by service and family."""
    calls, writing = calls_of(turns, effects), set(effects.filter(pl.col("effect") == "write")["service"])
    silent = turns.group_by("session_id").agg(pl.col("content").is_null().all().alias("silent"))
    single = kinds.filter(pl.col("kinds").list.len() == 1).select(
        "session_id", "service", "family", pl.col("kinds").list.first().alias("label")).join(silent, on="session_id")
    fine = calls.join(single.select("session_id", "silent"), on="session_id").filter(
        pl.when("silent").then(pl.lit(True)).otherwise(pl.col("acts") & ~pl.col("failed")))
    done = fine.group_by("session_id").agg(pl.col("tool").unique().sort().alias("tools"))
    worked = single.join(done, on="session_id", how="left").sort("service", "family", "session_id")
    for (service, family), part in worked.group_by("service", "family", maintain_order=True):
        work = [SessionWork(name, frozenset(tools or ())) for name, tools in part.select("session_id", "tools").iter_rows()]
        yield RequestFamily(str(service), str(family), part["label"][0], bool(part["silent"].all()),
                            str(service) in writing, work)


def _parted(family: RequestFamily) -> dict[str, str]:
    """Session -> family, of the sessions that have another one now."""
    own_steps = _OWN_STEPS if family.is_silent or not family.is_known else 1
    marks = [] if family.is_silent else branch_marks([each.tools for each in family.work], own_steps)
    if not marks:
        return {}
    names = {mark: _name(family, mark) for mark in marks}
    own = family.family if family.label in marks or not family.is_silent else names[marks[0]]
    of_session = {}
    for each in family.work:
        own_marks = [mark for mark in marks if mark in each.tools]
        of_session[each.session_id] = names[own_marks[0]] if len(own_marks) == 1 else own
    return of_session


def _name(family: RequestFamily, mark: str) -> str:
    if mark == family.label:
        return family.family
    return branch_ids(family.service, family.label, mark)[family.is_silent]


def branch_marks(work: Sequence[frozenset[str]], own_steps: int = 1) -> list[str]:
    """Return the tools that mark branches, the most frequent first; none if the sessions do one kind of work.

    `work`: what each session of a family called; `own_steps`: how many tools of its own each branch must have."""
    counts = Counter(tool for tools in work for tool in tools)
    often = sorted((tool for tool, n in counts.items() if n >= max(_LEAST, _SHARE * len(work))),
                   key=lambda tool: (-counts[tool], tool))
    both = Counter(pair for tools in work for pair in combinations([tool for tool in often if tool in tools], 2))
    excluded = {pair for pair in combinations(often, 2) if both[pair] <= _BOTH * counts[pair[1]]}
    marks: list[str] = []
    for tool in (tool for tool in often if any(tool in pair for pair in excluded)):
        if all((mark, tool) in excluded for mark in marks):
            marks.append(tool)
    worked = sum(bool(tools & counts.keys()) for tools in work)
    marked = sum(len(tools.intersection(marks)) == 1 for tools in work)
    if len(marks) < 2 or marked < _COVERED * worked or not _all_own(work, marks, own_steps):
        return []
    return marks


def _all_own(work: Sequence[frozenset[str]], marks: Sequence[str], own_steps: int) -> bool:
    """Whether each branch mostly takes so many steps that no other branch mostly takes."""
    if own_steps == 1:
        return True
    steps = {}
    for mark in marks:
        sessions = [tools for tools in work if mark in tools]
        counts = Counter(tool for tools in sessions for tool in tools)
        steps[mark] = {tool for tool, n in counts.items() if n >= _MOSTLY * len(sessions)}
    own = {mark: steps[mark].difference(*(steps[other] for other in marks if other != mark)) for mark in marks}
    return all(len(own[mark]) >= max(own_steps, _OWN_SHARE * len(steps[mark])) for mark in marks)
