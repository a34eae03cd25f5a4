"""Choose the sessions to review: those whose answer would make most tasks publishable, and a random sample of published ones.

Input: the published warehouse, and which tasks no policy solves. Output: `QueueItem`s. An answer "right" publishes a task that
lacks a known success, or whose reward is not likely enough right; an answer of either kind also teaches the estimates of its
family. After each choice the others of its tasks and family count less. The sample is drawn by hashes of a seed, and only among
published tasks that no review settled yet, so that its share of right answers is that of all of these. Does not see: whether
the audit will verify a task once its reward is known. """

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from extractors.reviews import settled_sessions
from pipelines.building.environments import BELOW
from pipelines.quality.precision import RewardEstimate, reward_estimates
from pipelines.reviewing.conditions import OpenCondition, open_conditions
from warehouse.errors import Missing
from warehouse.store import Store

Row = dict[str, Any]
OPENED_BY_SUCCESS = ("no_known_success", "no_agreed_end_state", "doubtful_success")
"""Reasons of tasks without a reward that one session known to be right would give one."""
TAUGHT = 0.1
"""Share of the open tasks of its family that an uncertain answer is taken to help, beside its own."""
_UNKNOWN = 0.5


class QueueItem(NamedTuple):
    """A session to review."""

    session_id: str
    service: str
    task_id: str
    goal: str
    probability: float | None
    """Estimated probability that its work is right."""
    n_tasks: float
    """Expected number of tasks that the answer makes publishable; 0 of a random sample."""
    why: str
    is_sampled: bool


class _Candidate(NamedTuple):
    session: Row
    chance: float
    task_ids: tuple[str, ...]
    """Unpublished tasks that the answer "right" would open."""


class _Warehouse(NamedTuple):
    sessions: dict[str, Row]
    tasks: dict[str, Row]
    estimates: dict[str, RewardEstimate]
    known: frozenset[str]
    """Sessions that somebody settled or reviewed without agreement; the latter need a third reviewer."""


def queue(
    store: Store, limit: int, service: str | None = None, unsolved: Mapping[str, str] = MappingProxyType({}),
) -> list[QueueItem]:
    """Return at most `limit` sessions, the most useful first. `unsolved`: task -> what says that no policy solves it; a session
    of each such published task comes before all others. Raises Missing for a service that is not there."""
    stored = _read(store, service)
    first = list(_of_unsolved(stored, unsolved))[:limit]
    listed = {item.session_id for item in first}
    return [*first, *(item for item in _opening(store, stored, limit) if item.session_id not in listed)][:limit]


def _of_unsolved(stored: _Warehouse, unsolved: Mapping[str, str]) -> Iterator[QueueItem]:
    """Yield the likeliest session behind the reward of each task that no policy solves, unless somebody settled one of them."""
    for task_id, why in sorted(unsolved.items()):
        supporting = stored.estimates[task_id].session_ids if task_id in stored.estimates else ()
        task = stored.tasks.get(task_id)
        if task is None or not task["is_published"] or not supporting or stored.known.intersection(supporting):
            continue
        session = max((stored.sessions[name] for name in supporting),
                      key=lambda row: (row["probability"] or 0.0, row["session_id"]))
        yield QueueItem(session["session_id"], session["service"], task_id, task["goal"], session["probability"], 0.0, why,
                        False)


def _opening(store: Store, stored: _Warehouse, limit: int) -> list[QueueItem]:
    """Return the sessions whose answers open most tasks."""
    candidates = _candidates(stored)
    n_open = Counter(stored.tasks[name]["family"] for each in candidates.values() for name in each.task_ids[:1])
    n_taught = Counter(task["family"] for task in stored.tasks.values() if stored.known & set(task["session_ids"]))
    unreviewed = defaultdict(lambda: 1.0, dict.fromkeys(stored.tasks, 1.0))

    def value(each: _Candidate) -> float:
        """Count the tasks that it is expected to open, and what its family learns."""
        own = sum(each.chance * unreviewed[name] for name in each.task_ids)
        family = stored.tasks[each.task_ids[0]]["family"]
        return own + TAUGHT * 4 * each.chance * (1 - each.chance) * n_open[family] / (1 + n_taught[family])

    stated = {name for each in _open_conditions(store, stored) for name in each.session_ids}
    waiting = [(-value(each), name not in stated, name) for name, each in sorted(candidates.items())]
    heapq.heapify(waiting)
    items: list[QueueItem] = []
    while waiting and len(items) < limit:
        before, is_other, name = heapq.heappop(waiting)
        candidate = candidates[name]
        now = value(candidate)
        if now < -before - 1e-12:   # what was chosen since made it less useful
            heapq.heappush(waiting, (-now, is_other, name))
            continue
        items.append(_item(stored, candidate, now))
        for task_id in candidate.task_ids:
            unreviewed[task_id] *= 1 - candidate.chance
        n_taught[stored.tasks[candidate.task_ids[0]]["family"]] += 1
    return items


def conditions_to_settle(store: Store, service: str | None = None) -> list[OpenCondition]:
    """Return the conditions that reviews would settle. Raises Missing for a service that is not there."""
    return _open_conditions(store, _read(store, service))


def _open_conditions(store: Store, stored: _Warehouse) -> list[OpenCondition]:
    waiting = {name: each.task_ids for name, each in _candidates(stored).items()}
    return open_conditions(store, waiting, stored.sessions.keys() - stored.known)


def sample(store: Store, n: int, seed: int = 0, service: str | None = None) -> list[QueueItem]:
    """Draw `n` published tasks that no review settled, at random by `seed`, with a session of each. The same seed draws the
    same tasks from the same build. Raises Missing for a service that is not there."""
    stored = _read(store, service)

    def order(name: str) -> str:
        return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()

    items: list[QueueItem] = []
    frame = [row for row in stored.tasks.values() if row["is_published"]]
    for row in sorted(frame, key=lambda row: order(row["task_id"])):
        supporting = stored.estimates[row["task_id"]].session_ids if row["task_id"] in stored.estimates else ()
        if not supporting or stored.known.intersection(supporting) or len(items) == n:
            continue
        session = stored.sessions[min(supporting, key=order)]
        items.append(QueueItem(
            session["session_id"], session["service"], row["task_id"], row["goal"], session["probability"], 0.0,
            "drawn at random from the published tasks", True))
    return items


def _read(store: Store, service: str | None) -> _Warehouse:
    services = store.read("select distinct service from core.sessions order by service")["service"].to_list()
    if service is not None and service not in services:
        raise Missing.named("service", service, services)
    where = "($service is null or service = $service)"
    sessions = store.read("select s.session_id, s.service, probability from core.sessions s left join mart.outcomes using "
                          f"(session_id) where {where}", service=service).to_dicts()
    tasks = store.read(
        "select task_id, family, goal, session_ids, coalesce(v.kept, false) as is_published, v.reason as verified, r.reason as "
        "rewarded from (select task_id, service, family, goal, session_ids from mart.tasks union all select task_id, service, "
        "family, goal, session_ids from mart.variants where task_id not in (select task_id from mart.tasks)) "
        "left join mart.decisions v on v.subject = task_id and v.stage = 'verify' "
        f"left join mart.decisions r on r.subject = task_id and r.stage = 'rewards' where {where} order by task_id",
        service=service).to_dicts()
    settled = settled_sessions(store.table("core.reviews"))
    corrected = store.read("select subject from core.corrections where stands and kind = 'outcome' and value != 'null'")
    return _Warehouse({row["session_id"]: row for row in sessions}, {row["task_id"]: row for row in tasks},
                      reward_estimates(store, service), frozenset({*settled, *corrected["subject"]}))


def _candidates(stored: _Warehouse) -> dict[str, _Candidate]:
    """Sessions that nobody settled, with the unpublished tasks that they would open."""
    opens: dict[str, list[str]] = defaultdict(list)
    for task_id, row in stored.tasks.items():
        if row["verified"] == BELOW and task_id in stored.estimates:
            names: Iterable[str] = stored.estimates[task_id].session_ids
        elif not row["is_published"] and row["rewarded"] in OPENED_BY_SUCCESS:
            names = row["session_ids"]
        else:
            continue
        for name in names:
            if name in stored.sessions and name not in stored.known:
                opens[name].append(task_id)
    usual = _usual(stored.sessions.values())
    return {name: _Candidate(stored.sessions[name], _chance(stored.sessions[name], usual), tuple(task_ids))
            for name, task_ids in opens.items()}


def _usual(sessions: Iterable[Row]) -> dict[str, float]:
    """Mean probability of the sessions of each service."""
    chances: dict[str, list[float]] = defaultdict(list)
    for row in sessions:
        if row["probability"] is not None:
            chances[row["service"]].append(row["probability"])
    return {service: sum(each) / len(each) for service, each in chances.items()}


def _chance(session: Row, usual: Mapping[str, float]) -> float:
    chance = session["probability"]
    return float(usual.get(session["service"], _UNKNOWN) if chance is None else chance)


def _item(stored: _Warehouse, candidate: _Candidate, value: float) -> QueueItem:
    task = stored.tasks[candidate.task_ids[0]]
    why = ("its task passed the audit, but its reward may be wrong" if task["verified"] == BELOW
           else "no session of its task is known to be right" if task["rewarded"] == OPENED_BY_SUCCESS[0]
           else "the sessions of its task contradict each other")
    return QueueItem(candidate.session["session_id"], candidate.session["service"], task["task_id"], task["goal"],
                     candidate.session["probability"], round(value, 4), why, False)
