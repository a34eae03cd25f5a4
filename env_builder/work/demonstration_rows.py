"""Demonstrations as datasets: the tables that every exporter takes (`env_builder.exports`), a trajectory a person of an item.

In: demonstrations with where their replays end differently, the items' openings and splits if tasks have them. Out: a
`DatasetSource` (a trajectory is an episode: what was asked as the user's words, then its calls), and rows of provenance: the
events behind each step, and what could not be said in calls. A trajectory is good, and has the reward 1, if the whole item's
replay reaches the end on record; others have no label, and `sft` leaves them out. Without tasks the opening is what others had
written to the person before the first call; work that nobody asked for on record has no opening and is no episode. Does not
see: whether the work was right (`success` of an item); the caller leaves out items that were not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from env_builder.company.content import CompanyContent, descriptors
from env_builder.exports import DatasetSource
from env_builder.runtime.canonical import canonical
from env_builder.work.demonstrations import Demonstration, DemonstrationStep
from warehouse.records import Outcome, Task, Tool, Turn, empty, frame

SERVICE = "company"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WorkTrajectory(NamedTuple):
    """One person's calls in an item."""

    item_id: str
    person: str
    goal: str
    steps: tuple[DemonstrationStep, ...]
    reaches: bool
    """Whether the replay of the whole item reaches its end."""
    reason: str
    """Why the trajectory is not whole; empty: it is."""

    @property
    def name(self) -> str:
        """Id of the episode."""
        return f"{self.item_id} {self.person}"


def trajectories(paths: Iterable[tuple[Demonstration, Sequence[str]]],
                 goals: Mapping[tuple[str, str], str] = MappingProxyType({})) -> Iterator[WorkTrajectory]:
    """Yield the trajectory of each person of each demonstration. `goals`: (item, person) -> what was asked of the person."""
    for demonstration, differences in paths:
        missed = {act.person: f"{act.entity_class}: {act.reason}" for act in reversed(demonstration.missed)}
        for person in demonstration.people:
            steps = tuple(step for step in demonstration.steps if step.person == person)
            goal = goals.get((demonstration.item_id, person)) or demonstration.openings.get(person, "")
            yield WorkTrajectory(demonstration.item_id, person, goal, steps, not differences and not demonstration.missed,
                                 missed.get(person, ""))


def provenance_rows(paths: Iterable[WorkTrajectory]) -> Iterator[dict[str, Any]]:
    """Yield a row for each step: episode, step, refs of the events, `lossy` with the reasons; and one for each whole gap."""
    for trajectory in paths:
        for place, step in enumerate(trajectory.steps):
            yield {"episode_id": trajectory.name, "step": place, "tool": step.tool, "refs": list(step.refs),
                   "lossy": bool(step.lossy), "reason": ", ".join(step.lossy)}
        if trajectory.reason:
            yield {"episode_id": trajectory.name, "step": None, "tool": None, "refs": [], "lossy": True,
                   "reason": trajectory.reason}


def dataset_source(content: CompanyContent, paths: Sequence[WorkTrajectory], splits: Mapping[str, str],
                   content_digest: str | None = None, privacy_policy: str | None = None) -> DatasetSource:
    """Return the tables of trajectories. `splits`: item -> split; those without one are in `train`."""
    ordered = sorted((each for each in paths if each.goal), key=lambda each: each.name)
    tiers = [(f"{each.name} {place}", step.tier) for each in ordered for place, step in enumerate(each.steps, start=1)]
    return DatasetSource(
        SERVICE, content_digest, frame(Task, [_task(each, splits.get(each.item_id, "train")) for each in ordered]),
        frame(Turn, [turn for each in ordered for turn in _turns(each)]), empty(Outcome),
        frame(Tool, list(_tools(content, ordered))),
        grades=pl.DataFrame([(each.name, 1.0) for each in ordered if each.reaches],
                            schema={"session_id": pl.String(), "reward": pl.Float64()}, orient="row"),
        marks=pl.DataFrame(tiers, schema={"turn_id": pl.String(), "tier": pl.String()}, orient="row"),
        privacy_policy=privacy_policy)


def _task(trajectory: WorkTrajectory, split: str) -> Task:
    return Task.model_validate({
        "task_id": trajectory.name, "service": SERVICE, "family": "work", "slots": "{}", "goal": trajectory.goal,
        "session_ids": [trajectory.name], "segment_of": None, "derived_from": None,
        "starts_at": _moment(trajectory.steps[0].at), "split": split, "difficulty": None,
        "succeeded_session_ids": [trajectory.name] if trajectory.reaches else []})


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


def _tools(content: CompanyContent, paths: Sequence[WorkTrajectory]) -> Iterator[Tool]:
    counts: dict[str, int] = {}
    for step in (step for each in paths for step in each.steps):
        counts[step.tool] = counts.get(step.tool, 0) + 1
    for row in descriptors(content):
        yield Tool(service=SERVICE, tool=row["name"], description=row.get("description"), declared=True,
                   input_schema=canonical(row["inputSchema"]), n_calls=counts.get(row["name"], 0),
                   annotations=json.dumps(row["annotations"]) if row.get("annotations") else None)
