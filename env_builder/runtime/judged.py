"""The grader's side of an environment: what an episode was worth, and a journal done again to tell.

In: a rubric a task, a room that has played or a journal to replay in one. Out: a `Grade` (grading.py).
Sees: what its own replay reached. Does not see: what a journal claims of answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from .conditions import Conditions
from .episode import Room
from .grading import grade, shaped
from .programs import Programs
from .records import Episode, Grade, Task
from .rubrics import Rubric
from .talking import Talking
from .world import World


class Judged(Talking):
    """Episodes that are judged; `Environment` is one, and plays them."""

    _task: Task | None
    _room: Room
    _world: World
    _programs: Programs
    _writes: frozenset[str]
    _bound: dict[str, Any]
    _conditions: Conditions
    _rubrics: dict[str, dict[str, Any]]
    _read_rubrics: dict[str, Rubric]

    @property
    def journal(self) -> tuple[dict[str, Any], ...]:
        """Everything that happened, all that a grader gets."""
        return tuple(self._journal)

    @property
    def leaned(self) -> tuple[dict[str, Any], ...]:
        """Journal rows that were answered `unknown`, or by a model, of tools that may change the world."""
        tiers = [row.get("tier") for row in self._journal]
        if "unknown" not in tiers and "model" not in tiers:
            return ()
        return tuple([row for row, tier in zip(self._journal, tiers, strict=True)
                      if tier in ("unknown", "model") and self._room.acts_of(row["tool"])])

    def grade(self, mode: str = "eval", ask: Callable[[str], str] | None = None) -> Grade:
        """Grade this episode; unscored where the task has no verified reward.

        `mode`: `eval` or `train` (grading.py); `ask`: the model that judges ask, without one they are unscored.
        What a replay of the journal would reach is what this room has reached, unless something else than the room answered.
        """
        if self._task is None:
            raise KeyError("the open room has no task to grade; reset to one")
        task_id, drawn = self._task.task_id, self._conditions
        rubric = self._rubric(task_id)
        if self._bound or rubric is None or "model" in [row.get("tier") for row in self._journal]:
            return self.grade_journal(task_id, self.journal, drawn.seed, drawn.switches, mode, ask)
        return grade(rubric, self._seen(self._room), mode, ask, drawn.seed)

    def grade_journal(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, conditions: Iterable[str] = (),
        mode: str = "eval", ask: Callable[[str], str] | None = None,
    ) -> Grade:
        """The grader's side: replay a journal's calls on a world of its own and judge what came of it.

        `seed`, `conditions`: those of the rollout, by the word of who ran it; the journal is not asked.
        """
        rubric = self._rubric(task_id)
        return Grade(None, ()) if rubric is None else grade(
            rubric, self.replay(task_id, journal, seed, conditions), mode, ask, seed)

    def shaped(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, conditions: Iterable[str] = (),
        discount: float = 1.0, ask: Callable[[str], str] | None = None,
    ) -> tuple[float, ...] | None:
        """Reward of each step of the journal, for training (`grading.shaped`); None where it is unscored."""
        rubric = self._rubric(task_id)
        if rubric is None:
            return None
        steps = [twin.episode() for twin in self._replayed(task_id, journal, seed, conditions)]
        return shaped(rubric, steps, discount, ask, seed)

    def replay(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, conditions: Iterable[str] = ()
    ) -> Episode:
        """The episode that a journal's calls and words make of this room."""
        *_, twin = self._replayed(task_id, journal, seed, conditions)
        return twin.episode()

    def _rubric(self, task_id: str) -> Rubric | None:
        """The task's rubric, read once; None where it has none here."""
        if task_id not in self._read_rubrics and task_id in self._rubrics:
            self._read_rubrics[task_id] = Rubric.read(self._rubrics[task_id])
        return self._read_rubrics.get(task_id)

    def _replayed(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int, conditions: Iterable[str]
    ) -> Iterator[Self]:
        """A room of its own in which the journal is done again: before its first step and after each, the same one."""
        twin = self.replaying(task_id, seed, conditions)
        yield twin
        for row in journal:  # from the untrusted side: a row that is no step is none
            row = row if isinstance(row, dict) else {}
            kind, tool, content = row.get("kind"), row.get("tool"), row.get("content")
            if kind == "call" and isinstance(tool, str):
                twin.call(tool, row.get("arguments"))
            elif kind == "say" and isinstance(content, str):
                twin.say(content)
            yield twin

    def episode(self) -> Episode:
        """The episode so far as a grader sees it, as far as the room itself answered it."""
        return self._seen(self._room.fork())

    def _seen(self, now: Room) -> Episode:
        """The episode of a room that nobody acts in while it is looked at."""
        def look(name: str) -> tuple[str | None, str | None]:
            kind, _, key = name.partition("/")
            begun = Room(self._world, self._programs, now.view)
            return begun.document((kind, key)), now.document((kind, key))

        return Episode(self.journal, now.difference(), self.leaned, self._writes, look)

    @abstractmethod
    def replaying(self, task_id: str, seed: int = 0, conditions: Iterable[str] = ()) -> Self:
        """A twin at the beginning of a task, for who plays a journal again: without limits, and without a model."""
