"""The stage `demonstrations`: what people did in a company's apps, in tool calls; and the tables of it as exporters take them.

In: what the stages `apps` and `work` stored, calls of agents. Out: `mart.work_steps`, a decision on each piece of work that can
make a task; for the stage `datasets` a source under the name of the company's environment.
Left out is work that probably ended badly, and work that did something else than it was asked (a decision of `company_rooms`).
Does not see: what people really looked at; the looks are what they could have seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from env_builder.company.content import CompanyContent, company_content
from env_builder.exports import DatasetSource
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.work.demonstration_rows import WorkTrajectory, asked_stretches, dataset_source, trajectories
from env_builder.work.demonstrations import Demonstration, DemonstrationStep, find_demonstrations
from env_builder.work.publishing import GOOD_FROM, OBJECTIONS
from env_builder.work.stretches import WorkHabits
from extractors.apps import record_kinds
from extractors.work.events import find_events
from pipelines import progress
from pipelines.building.company_tasks import items_with_sides
from pipelines.building.decisions import replace_decisions
from pipelines.inspection.company import StoredCompany, stored_company
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import Decision, WorkItem, WorkStepRow, frame
from warehouse.store import Store

STAGE = "demonstrations"
KEPT = "demonstration"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OBJECTED = "select subject, reason from mart.decisions where stage = 'company_rooms' and list_contains($reasons, reason)"
_STEPS = "select * exclude (happened_at), epoch_us(happened_at) as at from mart.work_steps order by episode_id, position"
_DETAILS = {
    KEPT: "its calls, played again, reach its end on record", "not_known_good": "it probably ended badly",
    "nobody_listed": "nobody whose accounts are known did anything in it",
    "no_tool_does_it": "not all of it can be said in calls of the tools",
    "end_differs": "its calls, played again, do not reach its end on record",
    "no_opening": "nothing on record says what was asked"}


def demonstrations(store: Store, settings: Settings) -> Counts:
    """Find the demonstrations of the work that a run has found."""
    del settings
    items, sides = items_with_sides(store)
    rows: list[WorkStepRow] = []
    decisions: list[Decision] = []
    if items:
        company = stored_company(store)
        content = company_content(company.versions, company.calls, company.accounts, company.identities)
        objected = dict(store.read(_OBJECTED, reasons=list(OBJECTIONS)).iter_rows())
        made, reasons = found_trajectories(company, content, items, objected)
        by_id = {item.item_id: item for item in items}
        for each in made:
            item = by_id[each.item_id]
            rows += _rows(each._replace(kind=item.kind, success=item.success, split=sides[item.item_id]))
        decisions = [Decision(stage=STAGE, subject=key, kept=reason == KEPT, reason=reason,
                              detail=f"{key}: {_DETAILS.get(reason, 'it did something else than it was asked')}.")
                     for key, reason in sorted(reasons.items())]
    replace_decisions(store, STAGE, frame(Decision, decisions))
    return {"n_work_steps": store.replace("mart.work_steps", frame(WorkStepRow, rows)),
            "n_demonstrations": len({row.episode_id for row in rows if row.goal})}


def found_trajectories(company: StoredCompany, content: CompanyContent, items: Sequence[WorkItem], objected: dict[str, str]
                       ) -> tuple[list[WorkTrajectory], dict[str, str]]:
    """Return the trajectories of pieces of work, and what became of each item. `objected`: stretch -> why it is no example."""
    apps, events = record_kinds(), find_events(company.versions, company.accounts)
    requests = asked_stretches(items, events, company.world, WorkHabits(events, apps, company.accounts),
                               company.prompts)
    reasons: dict[str, str] = {}
    for item in items:
        wrong = next((objected[each.name] for each in requests[item.item_id] if each.name in objected), "")
        if wrong or (item.success is not None and item.success < GOOD_FROM):
            reasons[item.item_id] = wrong or "not_known_good"
    tried = [item for item in items if item.item_id not in reasons]
    paths: list[tuple[Demonstration, list[str]]] = []
    kinds = [kind for each in apps.values() for kind in each]
    for done, path in enumerate(find_demonstrations(content, events, tried, kinds)):
        progress.tell(STAGE, done, len(tried), path[0].item_id)
        paths.append(path)
    made = list(trajectories(paths, requests))
    with_goal = {each.item_id for each in made if each.goal}
    for demonstration, differences in paths:
        reasons[demonstration.item_id] = (
            "no_tool_does_it" if demonstration.missed else "end_differs" if differences
            else KEPT if demonstration.item_id in with_goal else "no_opening")
    return made, {item.item_id: reasons.get(item.item_id, "nobody_listed") for item in items}


def work_sources(store: Store, settings: Settings) -> Iterator[DatasetSource]:
    """Yield the tables of the company's work, if a run has written its environment and any of it was asked for."""
    rooms = {row["folder"]: row for row in store.table("mart.company_rooms").to_dicts()}
    room = rooms.get("environments") or next(iter(rooms.values()), None)
    paths = _trajectories(store.read(_STEPS).iter_rows(named=True))
    if room is None or not any(each.goal for each in paths):
        return
    folder = Path(settings.out) / room["folder"] / room["environment"]
    is_published = room["folder"] == "environments"
    published = {row["task_id"] for row in rows_of(folder / "tasks.jsonl")} if is_published else set[str]()
    yield dataset_source(
        rows_of(folder / "tools.jsonl"), paths, published, room["content_digest"] if is_published else None,
        store.read("select max(policy) as policy from raw.privacy").item(), room["environment"])


def _rows(trajectory: WorkTrajectory) -> Iterator[WorkStepRow]:
    for position, step in enumerate(trajectory.steps):
        yield WorkStepRow.model_validate({
            "episode_id": trajectory.name, "work_item_id": trajectory.item_id, "person": trajectory.person,
            "part": trajectory.part, "kind": trajectory.kind, "success": trajectory.success,
            "task_id": trajectory.task_id or None, "split": trajectory.split, "goal": trajectory.goal,
            "reaches": trajectory.reaches, "gap": trajectory.reason or None, "position": position,
            "happened_at": _EPOCH + timedelta(microseconds=step.at), "tool": step.tool, "arguments": canonical(step.arguments),
            "content": step.content, "is_error": step.is_error, "tier": step.tier, "refs": list(step.refs),
            "lossy": list(step.lossy)})


def _trajectories(rows: Iterable[dict[str, Any]]) -> list[WorkTrajectory]:
    """Return trajectories of rows of `mart.work_steps`, which are in order."""
    steps: dict[str, list[DemonstrationStep]] = {}
    about: dict[str, dict[str, Any]] = {}
    for row in rows:
        about[row["episode_id"]] = row
        steps.setdefault(row["episode_id"], []).append(DemonstrationStep(
            row["at"], row["person"], row["tool"], json.loads(row["arguments"]), row["content"], row["is_error"], row["tier"],
            tuple(row["refs"]), tuple(row["lossy"])))
    return [WorkTrajectory(
        row["work_item_id"], row["person"], row["goal"], tuple(steps[name]), row["reaches"], row["gap"] or "", row["part"],
        row["task_id"] or "", row["kind"], row["split"], row["success"]) for name, row in about.items()]
