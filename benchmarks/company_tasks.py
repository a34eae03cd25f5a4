"""Score the tasks of a company's work against the hidden truth: what they pay, what they leak."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from company_refs import truth_ref

from env_builder.company.calls import AgentPrompt
from env_builder.work.publishing import VerifiedWork, WorkPublished, WorkRoom
from pipelines.inspection.company import instant_of
from warehouse.records import WorkEvent, WorkItem

_GOOD = ("ok", "wrong_fixed", "refused")
_WORDS = ("text", "subject", "body", "summary", "description", "title")
_TENTHS = 10
_WHOLE_SECOND = 1_000_000
"""Exports of mails have whole seconds."""


class TrueWork:
    """The pieces of work as they were, and which found one is which."""

    def __init__(self, truth: Path, events: Sequence[WorkEvent]) -> None:
        self.items = {item["item_id"]: item for item in _rows(truth / "items.jsonl")}
        self._item_of: dict[str, str | None] = {}
        for event in _rows(truth / "events.jsonl"):
            if not event.get("lost"):
                self._item_of.setdefault(event["ref"], event["item"])
        self._names = {event.ref: truth_ref(event) for event in events}
        self._sizes = Counter(item for item in self._item_of.values() if item)
        self.acts: dict[str, list[WorkEvent]] = defaultdict(list)
        for event in events:
            item = self._item_of.get(truth_ref(event))
            if item:
                self.acts[item].append(event)

    def matches(self, found: Sequence[WorkItem]) -> dict[str, str]:
        """Return true item -> found item that has more than half of its acts and is of it for more than half."""
        best: dict[str, str] = {}
        for item in found:
            counts = Counter(self._item_of.get(self._names[ref]) for ref in item.refs)
            for name, count in counts.items():
                if name and count > self._sizes[name] / 2 and count > len(item.refs) / 2:
                    best[name] = item.item_id
        return best


def tasks_score(room: WorkRoom, published: WorkPublished, found: Sequence[WorkItem], true: TrueWork, truth: Path
                ) -> dict[str, Any]:
    """Return the figures of the tasks. An item's own changes are replayed against the rubrics of its tasks: of all of them."""
    works: dict[str, list[VerifiedWork]] = defaultdict(list)
    for work in published.verified:
        works[work.task.item_id].append(work)
    matches = true.matches(found)
    accepted: Counter[str] = Counter()
    graded: Counter[str] = Counter()
    for name, item in true.items.items():
        own = works.get(matches.get(name, ""), [])
        fate = "good" if item["fate"] in _GOOD and item["success"] else "wrong" if item["fate"] == "wrong" and not item[
            "success"] else "other"
        if own:
            graded[fate] += 1
            accepted[fate] += all(room.accepts(work, true.acts[name]) for work in own)
    sizes = sorted(len(work.rubric["checks"]) for work in published.verified)
    tenths = statistics.quantiles(sizes, n=_TENTHS) if len(sizes) > 1 else [0.0] * (_TENTHS - 1)
    return {
        "tasks": len(published.verified), "tasks_verified": accepted["good"], "good_with_tasks": graded["good"],
        "false_accept": accepted["wrong"],
        "false_reject": round(1 - accepted["good"] / graded["good"], 4) if graded["good"] else None,
        "attacks_passed": _still_passing(room, published.verified), "attacks_tried": published.attacks.total(),
        "attacks_refused_tasks": dict(published.passed), "openings_leak": _leaks(published.verified, truth, room.prompts),
        "openings_of_agents": sum(work.task.opening in {each.text for each in room.prompts} for work in published.verified),
        **_first_requests(published.verified, {found: true.items[name] for name, found in matches.items()}),
        "checks_p10": tenths[0], "checks_p50": tenths[4], "checks_p90": tenths[8],
        "no_task": dict(Counter(decision.reason for decision in published.decisions).most_common())}


def _still_passing(room: WorkRoom, verified: Sequence[VerifiedWork]) -> int:
    """Return how many of the published tasks an attack gets the reward of, attacked once more."""
    return sum(bool(room.passing_attacks(work)) for work in verified)


def _first_requests(verified: Sequence[VerifiedWork], items: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the share of tasks of a true item whose opening is of the item's first request, and by kind where not all are.

    A task of a later hand-over rightly begins with another one."""
    counts: Counter[str] = Counter()
    first: Counter[str] = Counter()
    for work in verified:
        item = items.get(work.task.item_id)
        if item is not None:
            counts[item["kind"]] += 1
            first[item["kind"]] += work.task.request.record[1] == item["request"]
    return {"openings_first": round(first.total() / counts.total(), 4) if counts else None,
            "openings_first_by_kind": {kind: round(first[kind] / count, 3) for kind, count in sorted(counts.items())
                                       if first[kind] < count}}


def _leaks(verified: Sequence[VerifiedWork], truth: Path, prompts: Sequence[AgentPrompt]) -> int:
    """Return how many openings hold words that the request did not hold at that instant, as the company's engine had it.

    What a person told an agent must be on record, word for word, not after the task's beginning."""
    texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for at, app, key, field, value, *_ in _rows(truth / "changes.jsonl"):
        if isinstance(value, str) and field in _WORDS:
            texts[f"{app}:{key}/{field}"].append((instant_of(at), value))
    leaks, prompted_at = 0, {prompt.text: prompt.at for prompt in reversed(prompts)}
    for work in verified:
        if work.task.opening in prompted_at:
            leaks += prompted_at[work.task.opening] > work.task.starts_at
            continue
        record = work.task.request.record
        until = work.task.starts_at + _WHOLE_SECOND
        said: set[str] = set()
        for field in _WORDS:
            versions = [value for at, value in texts[f"{record[0]}:{record[1]}/{field}"] if at <= until]
            said |= set(versions[-1].split()) if versions else set()
        leaks += not set(work.task.opening.split()) <= said
    return leaks


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
