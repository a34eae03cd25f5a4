"""Demonstrations as datasets: the tables that every exporter takes (`env_builder.exports`).

In: demonstrations with where their replays end differently, the stretches of each piece of work with what was asked, its split.
Out: `WorkTrajectory`s; a `DatasetSource` (a trajectory is an episode: what was asked as the user's words, then its calls); and
rows of provenance: the events behind each step, and what could not be said in calls. A person's calls are one trajectory for
each stretch (`stretches`): a new request begins another one. Without a task of its own, a person's first one begins with
what others had written to the person before; later ones have no opening and are no episode.
The reward is 1 of a published task whose item's replay reaches the end on record; another item that reaches it has its
probability of success. Others have no label, and `sft` leaves them out.
Does not see: whether the work was right (`success` of an item); the caller leaves out items that were not.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from env_builder.company.calls import AgentPrompt
from env_builder.exports import DatasetSource
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.company import CompanyWorld
from env_builder.work.demonstrations import Demonstration, DemonstrationStep
from env_builder.work.stretches import WorkHabits, acts_between, find_tasks, stretches
from warehouse.records import Outcome, Task, Tool, Turn, WorkEvent, WorkItem, empty, frame

SERVICE = "company"
GOOD_FROM = 0.5
"""Probability of success from which an episode counts as one that succeeded."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AskedStretch(NamedTuple):
    """A person's part of a piece of work."""

    name: str
    """Item and first act: as `WorkTask.task_id`."""
    person: str
    refs: frozenset[str]
    """The person's acts."""
    opening: str
    """What was asked; empty: it makes no task."""

    @property
    def task_id(self) -> str:
        """The id that its task has in an environment; empty: it makes none."""
        return digest(self.name) if self.opening else ""


class WorkTrajectory(NamedTuple):
    """One person's calls in a stretch of an item."""

    item_id: str
    person: str
    goal: str
    steps: tuple[DemonstrationStep, ...]
    reaches: bool
    """Whether the replay of the whole item reaches its end."""
    reason: str
    """Why the trajectory is not whole; empty: it is."""
    part: int = 0
    """Place of the stretch among the person's."""
    task_id: str = ""
    """Of the task that is made of the stretch, published or not; empty: none is."""
    kind: str = ""
    """Of work."""
    split: str = "train"
    success: float | None = None
    """Probability that the item ended well."""

    @property
    def name(self) -> str:
        """Id of the episode."""
        return f"{self.item_id} {self.person}" + (f" {self.part}" if self.part else "")


def asked_stretches(items: Iterable[WorkItem], events: Sequence[WorkEvent], world: CompanyWorld, habits: WorkHabits,
                    prompts: Sequence[AgentPrompt] = ()) -> dict[str, list[AskedStretch]]:
    """Return the stretches of each item, by the time of their first acts."""
    items = list(items)
    places = defaultdict[str, list[int]](list)
    for place, event in enumerate(events):
        places[event.ref].append(place)
    candidates = find_tasks(items, events, world, habits, prompts)
    openings = {each.task.task_id: each.task.opening for each in candidates if each.task}
    by_item: dict[str, list[AskedStretch]] = {}
    for item in items:
        acts = [event for place in sorted({place for ref in item.refs for place in places[ref]})
                if not habits.is_beside(event := events[place])]
        by_item[item.item_id] = []
        for person, start, end in sorted(stretches(acts, habits), key=lambda span: span[1]):
            own, _ = acts_between(acts, person, acts[start].at, acts[end].at, habits)
            name = f"{item.item_id}@{acts[start].ref}"
            by_item[item.item_id].append(AskedStretch(name, person, frozenset(act.ref for act in own), openings.get(name, "")))
    return by_item


def trajectories(paths: Iterable[tuple[Demonstration, Sequence[str]]],
                 requests: Mapping[str, Sequence[AskedStretch]] = MappingProxyType({})) -> Iterator[WorkTrajectory]:
    """Yield the trajectories of each person of each demonstration. `requests`: item -> its stretches."""
    for demonstration, differences in paths:
        missed = {act.person: f"{act.entity_class}: {act.reason}" for act in reversed(demonstration.missed)}
        for person in demonstration.people:
            own = [each for each in requests.get(demonstration.item_id, ()) if each.person == person]
            parts = _parts([step for step in demonstration.steps if step.person == person], own)
            for part, steps in sorted(parts.items()):
                goal = own[part].opening if own else ""
                yield WorkTrajectory(
                    demonstration.item_id, person, goal or ("" if part else demonstration.openings.get(person, "")), steps,
                    not differences and not demonstration.missed, missed.get(person, ""), part,
                    own[part].task_id if own else "")


def _parts(steps: Iterable[DemonstrationStep], own: Sequence[AskedStretch]) -> dict[int, tuple[DemonstrationStep, ...]]:
    """Return the steps of each stretch: looks go with the act after them, what is of no stretch with what was before it."""
    parts = defaultdict[int, list[DemonstrationStep]](list)
    part, looks = 0, list[DemonstrationStep]()
    for step in steps:
        looks.append(step)
        if step.refs:
            part = next((place for place, each in enumerate(own) if not each.refs.isdisjoint(step.refs)), part)
            parts[part] += looks
            looks = []
    return {part: tuple(each) for part, each in parts.items()}


def provenance_rows(paths: Iterable[WorkTrajectory]) -> Iterator[dict[str, Any]]:
    """Yield a row for each step: episode, step, refs of the events, `lossy` with the reasons; and one for each whole gap."""
    for trajectory in paths:
        for place, step in enumerate(trajectory.steps):
            yield {"episode_id": trajectory.name, "step": place, "tool": step.tool, "refs": list(step.refs),
                   "lossy": bool(step.lossy), "reason": ", ".join(step.lossy)}
        if trajectory.reason:
            yield {"episode_id": trajectory.name, "step": None, "tool": None, "refs": [], "lossy": True,
                   "reason": trajectory.reason}


def dataset_source(tools: Iterable[Mapping[str, Any]], paths: Sequence[WorkTrajectory], published: Collection[str] = (),
                   content_digest: str | None = None, privacy_policy: str | None = None, name: str = SERVICE) -> DatasetSource:
    """Return the tables of trajectories. `tools`: descriptors, as in tools.jsonl; `published`: ids of published tasks."""
    ordered = sorted((each for each in paths if each.goal), key=lambda each: (each.split, each.task_id or each.name, each.name))
    tiers = [(f"{each.name} {place}", step.tier) for each in ordered for place, step in enumerate(each.steps, start=1)]
    graded = [each.name for each in ordered if each.reaches and each.task_id in published]
    likely = {each.name: each.success for each in ordered if each.reaches and each.success is not None}
    good = {*graded, *(name for name, success in likely.items() if success >= GOOD_FROM)}
    return DatasetSource(
        name, content_digest, frame(Task, [_task(each, each.name in good) for each in ordered]),
        frame(Turn, [turn for each in ordered for turn in _turns(each)]),
        frame(Outcome, [Outcome(session_id=name, probability=success, signals="[]") for name, success in likely.items()])
        if likely else empty(Outcome),
        frame(Tool, list(_tools(tools, ordered))),
        grades=pl.DataFrame([(name, 1.0) for name in graded],
                            schema={"session_id": pl.String(), "reward": pl.Float64()}, orient="row"),
        marks=pl.DataFrame(tiers, schema={"turn_id": pl.String(), "tier": pl.String()}, orient="row"),
        privacy_policy=privacy_policy)


def _task(trajectory: WorkTrajectory, is_good: bool) -> Task:
    return Task.model_validate({
        "task_id": trajectory.task_id or trajectory.name, "service": SERVICE, "family": trajectory.kind or "work",
        "slots": "{}", "goal": trajectory.goal, "session_ids": [trajectory.name], "segment_of": None, "derived_from": None,
        "starts_at": _moment(trajectory.steps[0].at), "split": trajectory.split, "difficulty": None,
        "succeeded_session_ids": [trajectory.name] if is_good else []})


def _turns(trajectory: WorkTrajectory) -> Iterator[Turn]:
    """Yield the turns of an episode: what was asked, then the calls."""
    name = trajectory.name
    about = dict.fromkeys(Turn.model_fields) | {"session_id": name, "service": SERVICE}
    yield Turn.model_validate({**about, "turn_id": f"{name} 0", "position": 0, "kind": "message", "role": "user",
                               "content": trajectory.goal, "happened_at": _moment(trajectory.steps[0].at)})
    for place, step in enumerate(trajectory.steps, start=1):
        arguments = canonical(step.arguments)
        yield Turn.model_validate({
            **about, "turn_id": f"{name} {place}", "position": place, "kind": "call", "role": "assistant",
            "happened_at": _moment(step.at), "content": step.content, "call_id": f"call {place}", "tool": step.tool,
            "arguments": arguments, "arguments_raw": arguments, "is_error": step.is_error, "requestor": "assistant",
            "answered_at": _moment(step.at), "result_id": step.refs[0] if step.refs else None})


def _moment(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def _tools(tools: Iterable[Mapping[str, Any]], paths: Sequence[WorkTrajectory]) -> Iterator[Tool]:
    counts: dict[str, int] = {}
    for step in (step for each in paths for step in each.steps):
        counts[step.tool] = counts.get(step.tool, 0) + 1
    for row in tools:
        yield Tool(service=SERVICE, tool=row["name"], description=row.get("description"), declared=True,
                   input_schema=canonical(row["inputSchema"]), n_calls=counts.get(row["name"], 0),
                   annotations=json.dumps(row["annotations"]) if row.get("annotations") else None)
