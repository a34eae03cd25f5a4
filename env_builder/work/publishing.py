"""Tasks of a company's work that hold: made, graded by their own records, attacked.

In: a company's world and acts, its pieces of work. Out: `VerifiedWork` for each task that holds, and a reason for each other.
A task holds if its own recorded changes get the reward, none of eleven attacks does, its gates look at two apps at least, and
it did what it was asked. Sees: records alone. Does not see: whether the tools of an environment can do each act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.company.calls import AgentPrompt
from env_builder.runtime.company import CompanyState, CompanyWorld
from env_builder.runtime.company.parts import words_of
from env_builder.runtime.grading import grade
from env_builder.runtime.rubrics import ParsedRubric
from env_builder.work.asked import AskedValues, UsualSlots, filled_slots
from env_builder.work.attacks import AttackField, attacks_on
from env_builder.work.honeypots import Honeypots
from env_builder.work.intended import IntendedValues, SeldomWords
from env_builder.work.orders import UsualOrders
from env_builder.work.replaying import ReplayedActs, replay
from env_builder.work.rubrics import RubricWriter, grades_over
from env_builder.work.stretches import WorkHabits, WorkTask, acts_between, find_tasks
from warehouse.records import RecordKind, WorkEvent, WorkItem

PAID = 0.5
"""A reward above this is one."""
GOOD_FROM = 0.5
"""Probability of success from which a piece of work may be an example."""
LEAST_APPS = 2
OBJECTIONS = ("not_as_asked", "not_as_usual", "choice_untold")
"""Reasons why work did something else than it was asked."""


class VerifiedWork(NamedTuple):
    """A task that holds."""

    task: WorkTask
    rubric: dict[str, Any]
    n_apps: int
    """Apps that its gates look at."""


class WorkDecision(NamedTuple):
    """Why something is no task."""

    item_id: str
    task_id: str
    reason: str
    detail: str = ""


class WorkPublished(NamedTuple):
    """What came of a company's work."""

    verified: list[VerifiedWork]
    decisions: list[WorkDecision]
    attacks: Counter[str]
    """How many tries there were, by the name of the attack."""
    passed: Counter[str]
    """Of those, how many got the reward of a task, which is then not published."""


class WorkRoom:
    """A company, as its work is made into tasks."""

    def __init__(self, world: CompanyWorld, events: Sequence[WorkEvent], apps: Mapping[str, Sequence[RecordKind]],
                 accounts: Mapping[str, Mapping[str, str]], prompts: Sequence[AgentPrompt] = ()) -> None:
        """`prompts`: what people told their agents."""
        self.world, self.events, self.prompts = world, events, prompts
        self.habits = WorkHabits(events, apps, accounts)
        self._seldom = SeldomWords(events)
        self._orders = UsualOrders((), self.habits)
        self._order = {event.ref: place for place, event in enumerate(events)}
        self._pots = Honeypots(events, self.habits)
        self._ids: dict[str, int] = {}
        for (_, key), born in world.births.items():
            self._ids[key] = min(born, self._ids.get(key, born))

    def intended(self, task: WorkTask, replayed: ReplayedActs, state: CompanyState) -> IntendedValues:
        """Return the conditions of a task's values."""
        return IntendedValues(task, replayed, state, self.habits, self._seldom, self._ids)

    def rubric_of(self, task: WorkTask, replayed: ReplayedActs, state: CompanyState) -> dict[str, Any]:
        """Return the rubric of a task."""
        writer = RubricWriter(task, replayed, state, self.habits, self.intended(task, replayed, state), self._orders)
        return writer.document(self._pots.of(task, state))

    def publish(self, items: Iterable[WorkItem]) -> WorkPublished:
        """Return the tasks of pieces of work that hold, and why others do not."""
        published = WorkPublished([], [], Counter(), Counter())
        judged = []
        for item in items:
            self._pots.belongs(item.item_id, item.refs)
            if item.reason or item.success is None or item.success >= GOOD_FROM:
                judged.append(item)
            else:
                published.decisions.append(WorkDecision(item.item_id, "", "not_known_good", f"{item.success:.2f}"))
        tasks = []
        for candidate in find_tasks(judged, self.events, self.world, self.habits, self.prompts):
            if candidate.task is None:
                published.decisions.append(WorkDecision(candidate.item_id, "", candidate.reason))
            else:
                tasks.append((candidate.task, replay(candidate.task.acts, self.world.at(candidate.task.starts_at))))
        self._orders = UsualOrders((task for task, _ in tasks), self.habits)
        slots = [filled_slots(task, replayed, self.habits) for task, replayed in tasks]
        words = [frozenset(words_of(list(task.request.texts))) for task, _ in tasks]
        asked_values, usual = AskedValues(slots), UsualSlots(zip(slots, words, strict=True))
        objections: dict[str, tuple[str, str]] = {}
        for (task, _), filled, own_words in zip(tasks, slots, words, strict=True):
            for reason, wrong in zip(OBJECTIONS, (asked_values.not_asked(filled), usual.unusual(filled, own_words),
                                                  usual.untold(filled, own_words)), strict=True):
                if wrong:
                    objections.setdefault(task.item_id, (reason, f"{' '.join(wrong[0].name)}: {wrong[0].value}"))
        for task, replayed in tasks:
            if task.item_id in objections:
                published.decisions.append(WorkDecision(task.item_id, task.task_id, *objections[task.item_id]))
            else:
                self._verify(task, replayed, published)
        return published

    def _verify(self, task: WorkTask, replayed: ReplayedActs, published: WorkPublished) -> None:
        state = self.world.at(task.starts_at)
        rubric = self.rubric_of(task, replayed, state)
        n_apps = len({self.habits.app_of_class(kind) for kind in grades_over(rubric)})
        reason = "one_app" if n_apps < LEAST_APPS else ""
        read = ParsedRubric.read(rubric)
        if not reason and not is_paid(read, replayed):
            reason = "own_records_fail"
        if not reason:
            reason = self._attacked(task, replayed, state, read, published)
        if reason:
            published.decisions.append(WorkDecision(task.item_id, task.task_id, reason))
        else:
            published.verified.append(VerifiedWork(task, rubric, n_apps))

    def _attacked(self, task: WorkTask, replayed: ReplayedActs, state: CompanyState, rubric: ParsedRubric,
                  published: WorkPublished) -> str:
        """Return the reason if an attack gets the reward."""
        for name, is_passing in self._attacks(task, replayed, state, rubric):
            published.attacks[name] += 1
            if is_passing:
                published.passed[name] += 1
                return f"attack_{name}"
        return ""

    def _attacks(self, task: WorkTask, replayed: ReplayedActs, state: CompanyState, rubric: ParsedRubric
                 ) -> Iterator[tuple[str, bool]]:
        """Yield the name of each attack, and whether it gets the reward; one that ends as the work does is none."""
        for attack in attacks_on(AttackField(task, state, self.habits, self._pots.of(task, state))):
            tried = replay(attack.acts, state)
            if tried.changed() != replayed.changed():
                yield attack.name, is_paid(rubric, tried)

    def passing_attacks(self, work: VerifiedWork) -> list[str]:
        """Return the names of the attacks that get the reward of a task."""
        state = self.world.at(work.task.starts_at)
        tries = self._attacks(work.task, replay(work.task.acts, state), state, ParsedRubric.read(work.rubric))
        return [name for name, is_passing in tries if is_passing]

    def accepts(self, work: VerifiedWork, acts: Iterable[WorkEvent]) -> bool:
        """Return whether a task's rubric pays what these acts changed in the time and by the person of the task."""
        task = work.task
        acts = sorted(acts, key=lambda act: self._order[act.ref])
        own, replies = acts_between(acts, task.person, task.first_at, task.ends_at, self.habits)
        return self.pays(work, [act for act in acts if act in own or act in replies])

    def pays(self, work: VerifiedWork, acts: Iterable[WorkEvent]) -> bool:
        """Return whether a task's rubric pays what acts, in this order, make of the world as the task begins."""
        return is_paid(ParsedRubric.read(work.rubric), replay(acts, self.world.at(work.task.starts_at)))


def is_paid(rubric: ParsedRubric, replayed: ReplayedActs) -> bool:
    """Return whether a rubric rewards what acts changed."""
    reward = grade(rubric, replayed.episode()).reward
    return reward is not None and reward > PAID
