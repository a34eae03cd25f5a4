"""Tasks of a company's work that the tools of its apps can do: with a rubric, and the calls that are known to earn it.

In: tasks that hold on record (`publishing`), the finder of demonstrations. Out: a `CompanyTask` each, or why there is none.
The person's acts are tried with the tools at the instant of the task, at which the company stands still, as in an episode. What
no tool does (a join of a channel) is not asked for, nor values that exports have only of a later time (reactions to a message):
the rubric is written again without them.
Colleagues answer what they answered (`colleagues`), and the calls wait for them where the person did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from env_builder.company.rooms import CompanyTask
from env_builder.runtime.canonical import digest
from env_builder.runtime.company import CompanyDesk
from env_builder.runtime.company.ongoing import OngoingWorld
from env_builder.runtime.office.colleagues import Colleagues
from env_builder.runtime.office.company import CompanyEpisode
from env_builder.work.acts import RecordAct
from env_builder.work.colleagues import scripted, with_waits
from env_builder.work.demonstrations import Demonstration, DemonstrationFinder
from env_builder.work.publishing import LEAST_APPS, VerifiedWork, WorkDecision, WorkRoom
from env_builder.work.replaying import replay
from env_builder.work.rubrics import grades_over
from env_builder.work.stretches import WorkTask
from warehouse.records import RecordKind, WorkEvent


class _OwnActs(NamedTuple):
    item_id: str
    refs: tuple[str, ...]


def solved_tasks(room: WorkRoom, finder: DemonstrationFinder, works: Sequence[VerifiedWork], sides: Mapping[str, str] = {},
                 goes_on: Mapping[str, Iterable[str]] | None = None) -> Iterator[CompanyTask | WorkDecision]:
    """Yield the task of each piece of work, or why the tools cannot do it. `sides`: item -> side of the split, `train` where it
    has none. `goes_on`: item -> refs of all its acts, where the world goes on in episodes; None: it stands still."""
    for work in works:
        item = work.task.item_id
        solved = _solved(room, finder, work, None if goes_on is None else _names_of(finder.acts(goes_on[item]), finder))
        yield solved if isinstance(solved, WorkDecision) else solved._replace(split=sides.get(item, "train"))


def _names_of(acts: Iterable[RecordAct], finder: DemonstrationFinder) -> tuple[str, ...]:
    """Return what belongs to a piece of work: the records that it made, the source records that report its changes."""
    versions, own = finder.places.world.versions, set[str]()
    for act in acts:
        own.update(versions[place].record for place in act.hidden)
        if act.is_new:
            own.add(f"{act.entity_class}:{act.key}")
    return tuple(sorted(own - {""}))


def _solved(room: WorkRoom, finder: DemonstrationFinder, work: VerifiedWork, own: tuple[str, ...] | None
            ) -> CompanyTask | WorkDecision:
    task, rubric = work.task, work.rubric
    acts = _OwnActs(task.task_id, tuple(act.ref for act in task.own))
    demonstration = finder.find(acts, task.starts_at)
    if demonstration is None:
        return WorkDecision(task.item_id, task.task_id, "no_tool_does_it")
    beyond = {ref for act in demonstration.missed for ref in act.refs} | set(demonstration.recorded)
    feasible = _feasible(task, beyond, room, finder)
    if feasible != task:
        task = feasible
        if all(room.habits.is_message(act) for act in task.own):
            return WorkDecision(task.item_id, task.task_id, "no_tool_does_it", _reasons(demonstration))
        state = room.world.at(task.starts_at)
        rubric = room.rubric_of(task, replay(task.acts, state), state)
        if len({room.habits.app_of_class(kind) for kind in grades_over(rubric)}) < LEAST_APPS:
            return WorkDecision(task.item_id, task.task_id, "one_app", _reasons(demonstration))
    state = room.world.at(task.starts_at)
    replayed = replay(task.acts, state)
    colleagues = scripted(task, replayed, room.intended(task, replayed, state), room.habits, finder)
    start = finder.suite.start_of(_instant(task), task.person)
    if own is not None:
        start = start._replace(goes_on=OngoingWorld(start.state, own))
    episode = CompanyEpisode(finder.suite, CompanyDesk(start), None if colleagues.row is None else Colleagues(colleagues.row))
    steps = with_waits((step for step in demonstration.steps if step.refs and step.person == task.person), colleagues, episode)
    name = digest(task.task_id)
    return CompanyTask(name, _instant(task), task.person, task.opening, family=task.kind or "work",
                       rubric={**rubric, "task_id": name}, solution=tuple(steps), colleagues=colleagues.row, own=own)


def _feasible(task: WorkTask, beyond: Collection[str], room: WorkRoom, finder: DemonstrationFinder) -> WorkTask:
    """Return a task without what no tool does, and without what the exports show of the person's acts only as it was later.

    Such are labels and reactions that others may have set; texts are wanted by their facts, whoever edited them."""
    changed: dict[str, WorkEvent] = {}
    for act in task.own:
        guessed = frozenset[str]().union(*(each.guessed for each in finder.acts([act.ref])))
        texts = room.habits.kinds.get(act.record[0], RecordKind(act.record[0])).texts
        changes = tuple(change for change in act.changes if change.field in texts or change.field not in guessed)
        if changes or not act.changes:
            changed[act.ref] = act._replace(changes=changes)
    return task._replace(
        own=tuple(changed[act.ref] for act in task.own if act.ref in changed and act.ref not in beyond),
        acts=tuple(changed.get(act.ref, act) for act in task.acts
                   if act.ref not in beyond and (act.ref in changed or act not in task.own)))


def _reasons(demonstration: Demonstration) -> str:
    return "; ".join(sorted({f"{act.entity_class}: {act.reason}" for act in demonstration.missed}))


def _instant(task: WorkTask) -> str:
    return datetime.fromtimestamp(task.starts_at / 1_000_000, UTC).isoformat()
