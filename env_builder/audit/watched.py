"""A room whose plays are noted: what they ask of its world, of what else could stand in a call, and of the task's user.

In: an environment's directory. Out: the same environment; `watch` names the notes in which the questions of the plays to come
are written. A watched world has no rows of its own, so a play that would read past it fails, and is no question unnoted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from env_builder.audit.notes import Notes, Sources
from env_builder.audit.values import Path as Spot
from env_builder.audit.values import Place, Plausible
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.numbering import Form
from env_builder.runtime.records import Task
from env_builder.runtime.tables import Row as TableRow
from env_builder.runtime.tables import Table, Wanted
from env_builder.runtime.user import Said, ScriptedUser
from env_builder.runtime.world import Name, Row, View, World


class Watched(Environment):
    """An environment whose plays are noted."""

    def __init__(self, *args: Any) -> None:
        manifest, tasks, tools, programs, world, *rest = args
        self._seen_by = Watch(world)
        super().__init__(manifest, tasks, tools, programs, WatchedWorld(self._seen_by), *rest)
        self._plausible = Plausible(world, tools)
        self.values = WatchedValues(self._plausible, self._seen_by)

    @classmethod
    def opened(cls, directory: str | Path) -> Watched:
        """As `Environment.load_room`: who audits has the grader's side at hand."""
        environment = cls.load_room(directory)
        assert isinstance(environment, cls)
        return environment

    def watch(self, task: Task) -> Notes:
        """From now on note what plays of this task ask."""
        notes = self._seen_by.notes = Notes()
        self._users[task.task_id] = (task, WatchedUser(task, self._seen_by))
        return notes

    def sources(self, task: Task) -> Sources:
        """Whom plays of the task ask, unwatched."""
        return Sources(self._seen_by.world, self._programs, self._plausible, ScriptedUser(task.user, task.opening))


class Watch:
    """The world that is watched, and where it is noted what it is asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.notes = Notes()


class WatchedWorld(World):
    """A world that notes what it is asked."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @property
    def asked(self) -> Any:  # type: ignore[override]
        """Tool -> arguments on record."""
        return WatchedAsked(self._watch)

    def document(self, name: Name, view: View) -> str | None:
        """As `World`."""
        self._watch.notes.add("document", *name, view)
        return self._watch.world.document(name, view)

    def answer(self, name: Name, view: View, after: list[list[str]]) -> Row | None:
        """As `World`."""
        self._watch.notes.add("answer", *name, _tuples(after), view)
        return self._watch.world.answer(name, view, after)

    def told_once(self, name: Name, after: list[list[str]]) -> list[Row]:
        """As `World`."""
        self._watch.notes.add("once", *name, _tuples(after))
        return self._watch.world.told_once(name, after)

    def table(self, entity_class: str, rules: dict[str, dict[str, Any]]) -> Table:
        """As `World`."""
        return WatchedTable(self._watch, "rows", entity_class, self._watch.world.table(entity_class, rules))

    def implied(self, entity_class: str, makes: dict[str, dict[str, Any]], plain: Callable[[Name], Name]) -> Table:
        """As `World`."""
        return WatchedTable(self._watch, "parts", entity_class, self._watch.world.implied(entity_class, makes, plain))

    def highest(self, entity_class: str, form: Form | None, instant: str) -> int | None:
        """As `World`."""
        self._watch.notes.add("highest", entity_class, form and tuple(form), instant)
        return self._watch.world.highest(entity_class, form, instant)


class WatchedAsked:
    """Calls on record, by tool."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def get(self, tool: str, otherwise: Sequence[str] = ()) -> Sequence[str]:
        """Arguments on record of the tool."""
        self._watch.notes.add("asked", tool)
        return self._watch.world.asked.get(tool, otherwise)


class WatchedTable(Table):
    """Rows of a class that note what is found among them."""

    def __init__(self, watch: Watch, kind: str, entity_class: str, table: Table) -> None:
        self._watch, self._kind, self._class, self._table = watch, kind, entity_class, table

    def found(self, wanted: Wanted) -> list[TableRow]:
        """As `Table`."""
        self._watch.notes.add(self._kind, self._class, canonical(wanted))
        return self._table.found(wanted)


class WatchedUser(ScriptedUser):
    """A task's user that notes what it is told."""

    __slots__ = ("_watch",)

    def __init__(self, task: Task, watch: Watch) -> None:
        super().__init__(task.user, task.opening)
        self._watch = watch

    def reply(self, said: Said, text: str) -> tuple[Said, str | None]:
        """As `ScriptedUser`."""
        self._watch.notes.add("reply", *said, text)
        return super().reply(said, text)


class WatchedValues(Plausible):
    """Values on record that note which of them were taken."""

    def __init__(self, values: Plausible, watch: Watch) -> None:
        self._values, self._watch = values, watch

    def calls(self, tool: str, start: str) -> Iterator[dict[str, Any]]:
        """As `Plausible`."""
        return self._watch.notes.taken(self._values.calls(tool, start), "calls", tool, start)

    def shapes(self, tool: str) -> list[dict[str, Any]]:
        """As `Plausible`."""
        self._watch.notes.add("shapes", tool)
        return self._values.shapes(tool)

    def named(self, words: Iterable[str]) -> list[str]:
        """As `Plausible`."""
        self._heard(words)
        self._watch.notes.add("named")
        return self._values.named(words)

    def fitting(self, tool: str, place: Place, words: Collection[str]) -> list[Any]:
        """As `Plausible`."""
        self._heard(words)
        self._watch.notes.add("fitting", tool, place)
        return self._values.fitting(tool, place, words)

    def is_free(self, tool: str, place: Place) -> bool:
        """As `Plausible`."""
        self._watch.notes.add("free", tool, place)
        return self._values.is_free(tool, place)

    def class_of(self, text: str) -> str | None:
        """As `Plausible`."""
        self._watch.notes.add("class", text)
        return self._values.class_of(text)

    def others(self, tool: str, path: Spot, value: Any, shown: Sequence[str]) -> Iterator[Any]:
        """As `Plausible`."""
        self._watch.notes.shown = shown
        return self._watch.notes.taken(self._values.others(tool, path, value, shown), "others", tool, path, canonical(value))

    def is_optional(self, tool: str, name: str) -> bool:
        """As `Plausible`."""
        self._watch.notes.add("optional", tool, name)
        return self._values.is_optional(tool, name)

    def _heard(self, words: Iterable[str]) -> None:
        self._watch.notes.words.update(words)


def _tuples(after: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, after))
