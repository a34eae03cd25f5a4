"""Audits that need not be played again: while all that plays see is the same, their results are too.

In: a task's files, rubric, solution and recorded sessions. Out: a key, and the audit as text. The key holds what a play is
given: tools, the task, checks without provenance, the solution, and the sessions' order, steps and side of the
depth's limits. What plays asked of a `Watched` environment is noted with one digest of all answers, and asked again before the
audit counts (`again`), as each day's logs add facts of which a task reads few. What probabilities decide is decided each time.
Does not see: the code (a kept audit belongs to one version of it), and questions asked past `Watched`.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import orjson

from env_builder.audit import EARLY, Audited, Depth, Failure, RecordedSession, chance_text, in_order, judged, side_of
from env_builder.audit.plays import GradedPlay
from env_builder.audit.values import Arrivals, Place, Plausible
from env_builder.audit.values import Path as Spot
from env_builder.runtime import Environment
from env_builder.runtime.apps import Start
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.apps.worlds import WorldsApp
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.habits import UserHabits
from env_builder.runtime.numbering import Form
from env_builder.runtime.programs import Programs, Ready
from env_builder.runtime.records import Task
from env_builder.runtime.tables import Row as TableRow
from env_builder.runtime.tables import Table, Wanted
from env_builder.runtime.user import ScriptedUser, UserProgress
from env_builder.runtime.world import Name, View, World
from env_builder.runtime.world import Row as WorldRow

NO_PLAY_SEES = ("family", "split", "user")
"""Of a task: what no play asks for, and the user, of which it hears the words and asks for the replies."""


def given_to_all(environment: Environment) -> str:
    """Digest of what is given to the plays of every task: tools, and which of them may write."""
    return digest(canonical([environment.tools, sorted(environment.writes), sorted(environment.explained)]))


def key_of(
    given: str, task: Mapping[str, Any], rubric: Mapping[str, Any], solution: Sequence[Mapping[str, Any]],
    sessions: Iterable[RecordedSession], depth: Depth,
) -> str:
    """Return what names the audit of a task. `given`: to all; `task`, `rubric`: rows of tasks.jsonl and rubrics.jsonl."""
    checks = [{name: value for name, value in check.items() if name != "provenance"} for check in rubric["checks"]]
    recorded = [[one.session_id, side_of(one.probability, depth) or None, list(one.steps)] for one in in_order(sessions)]
    task_fields = {name: value for name, value in task.items() if name not in NO_PLAY_SEES}
    return digest(canonical(
        [given, task_fields, task["user"]["turns"], checks, list(solution), recorded, depth._asdict()]))


def written(audited: Audited, questions: Mapping[str, Any]) -> str:
    """Return the audit as deflated text, without what probabilities make of it. `questions`: as `Notes.written` gives."""
    failure, plays = audited.failure, [play._replace(description="") if play.kind == "session" else play
                                       for play in audited.plays]
    early = failure if failure is not None and failure.reason in EARLY else None
    text = canonical({"failure": early, "plays": plays, "asked": questions})
    return b64encode(zlib.compress(text.encode(), 1)).decode()


def again(text: str, sessions: Sequence[RecordedSession], sources: PlaySources) -> Audited | None:
    """Restore a kept audit with today's probabilities; None where its plays would be answered otherwise today."""
    kept = orjson.loads(zlib.decompress(b64decode(text)))
    if not stands(kept["asked"], sources):
        return None
    failure, plays = kept["failure"], [GradedPlay(*play) for play in kept["plays"]]
    if failure is not None:
        return Audited(Failure(*failure), plays)
    chances = {one.session_id: one.probability for one in sessions}
    plays = [play._replace(description=chance_text(chances[play.player])) if play.kind == "session" else play for play in plays]
    return Audited(judged(plays, sessions), plays)


OF_ALL_PROGRAMS = frozenset(name for name, each in vars(Programs).items() if isinstance(each, cached_property))
"""What follows from all programs together."""
BRIEF = 200
"""Characters from which an answer stands for itself by its digest."""
Question = tuple[Any, ...]
"""What is asked, and of what: plain values, lists as tuples."""
Written = dict[str, Any]
V = TypeVar("V")


class PlaySources(NamedTuple):
    """Whom plays ask."""

    world: World
    programs: Programs
    values: Plausible
    answers: dict[str, str]
    """Answers to questions that any task may ask, by the question."""
    user: ScriptedUser


class Notes:
    """Questions of the plays of one task, in the order in which they were first asked."""

    def __init__(self) -> None:
        self._questions: dict[Question, int] = {}
        self.shown: Sequence[str] = ()
        """Words that the agent of the task was shown: `others` chooses among them."""
        self.words: set[str] = set()
        """Words that attackers heard: `fitting` and `named` choose among them."""

    def add(self, *question: Any, n: int = 0) -> None:
        """Note that it was asked; `n`: how many answers were taken, of those that are taken one by one."""
        self._questions[question] = max(n, self._questions.get(question, 0))

    def taken(self, answers: Iterable[V], *question: Any) -> Iterator[V]:
        """Return the answers, each noted as it is taken; so is the end, where it is reached."""
        n = 0
        for n, answer in enumerate(answers, 1):
            self.add(*question, n=n)
            yield answer
        self.add(*question, n=n + 1)

    def written(self, sources: PlaySources) -> Written:
        """Return the questions, and the digest of what `sources` answers."""
        views: dict[View, int] = {}
        questions = [[*(views.setdefault(each, len(views)) if isinstance(each, View) else each for each in question),
                      *[n] * bool(n)] for question, n in self._questions.items()]
        document: Written = {
            "views": [[view.instant, sorted(view.session_ids)] for view in views], "shown": list(self.shown),
            "words": sorted(self.words), "questions": questions}
        return document | {"answers": _digest(document, sources)}


def stands(written: Mapping[str, Any], sources: PlaySources) -> bool:
    """Whether all questions of `Notes.written` are answered today as they were then."""
    return _digest(written, sources) == str(written["answers"])


def _digest(written: Mapping[str, Any], sources: PlaySources) -> str:
    """Digest of what `sources` answers to the questions."""
    return digest("\n".join(_answers(written, sources)))


def _answers(written: Mapping[str, Any], sources: PlaySources) -> Iterator[str]:
    """Yield each answer as text, a long one as its digest."""
    views = [View(instant, frozenset(sessions)) for instant, sessions in written["views"]]
    heard = dict.fromkeys(written["words"])
    for kind, *details in written["questions"]:
        if kind in OF_A_VIEW:
            yield _brief(OF_A_VIEW[kind](sources, views[details[-1]], *details[:-1]))
        elif kind == "others":
            tool, path, value, n = details
            yield _brief(list(islice(sources.values.others(tool, tuple(path), json.loads(value), written["shown"]), n)))
        elif kind == "fitting":
            yield _brief(sources.values.fitting(details[0], tuple(details[1]), heard))
        elif kind == "named":
            yield _brief(sources.values.named(written["words"]))
        elif kind == "reply":
            spoken, idle, at, text = details
            yield _brief(sources.user.reply(UserProgress(spoken, idle, at), text))
        else:
            question = str((kind, details, sources.values.reach if kind == "calls" else None))
            if question not in sources.answers:
                sources.answers[question] = _brief(PLAIN[kind](sources, *details))
            yield sources.answers[question]


def _brief(answer: Any) -> str:
    return _brief_text(answer) if isinstance(answer, str) else _shortened(canonical(answer))


@lru_cache(1 << 16)
def _brief_text(text: str) -> str:
    """Return the same of a text: documents are asked for by many tasks."""
    return _shortened(canonical(text))


def _shortened(text: str) -> str:
    return text if len(text) < BRIEF else digest(text)


def _ordered(value: Any) -> Any:
    """Return a value as JSON that is the same for equal values."""
    if isinstance(value, Mapping):
        return sorted(([_ordered(name), _ordered(each)] for name, each in value.items()), key=canonical)
    if isinstance(value, frozenset):
        return sorted(map(_ordered, value), key=canonical)
    return list(map(_ordered, value)) if isinstance(value, list | tuple) else value


def of_row(row: WorldRow | None) -> Any:
    """Return what of an answer on record a play can see."""
    return None if row is None else [row["content"], row["is_error"], row["after"], row.get("effects", ())]


def _wanted(text: str) -> list[tuple[Any, ...]]:
    return [(tuple(path), *rest) for path, *rest in json.loads(text)]


OF_A_VIEW: dict[str, Callable[..., Any]] = {
    "document": lambda sources, view, kind, key: sources.world.document((kind, key), view),
    "answer": lambda sources, view, tool, key, after: of_row(sources.world.answer((tool, key), view, [*map(list, after)])),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "program": lambda sources, tool: sources.programs.get(tool),
    "of all programs": lambda sources, name: _ordered(getattr(sources.programs, name)),
    "bearing": lambda sources, acting, reading: sources.programs.bearing(acting, reading),
    "once": lambda sources, tool, key, after: [
        of_row(row) for row in sources.world.session_answers((tool, key), [*map(list, after)])],
    "rows": lambda sources, kind, wanted: sources.world.table(
        kind, sources.programs.listing.get(kind, {})).matching(_wanted(wanted)),
    "parts": lambda sources, kind, wanted: sources.world.implied(
        kind, sources.programs.making, sources.programs.bare).matching(_wanted(wanted)),
    "highest": lambda sources, kind, form, instant: sources.world.highest(kind, form, instant),
    "asked": lambda sources, tool: sources.world.questions.get(tool, []),
    "strangers": lambda sources, tool, key: sources.world.strangers(tool, key),
    "doubtful": lambda sources, tool, key: sources.world.doubtful(tool, key),
    "spelled": lambda sources, tool, key: sources.world.spelled(tool, key),
    "answers to": lambda sources, tool, key: sources.world.answers_to(tool, key),
    "everywhere": lambda sources, tool: sorted(sources.world.everywhere(tool)),
    "lists": lambda sources, tool, names: sources.world.lists(tool, frozenset(names)),
    "class": lambda sources, text: sources.values.class_of(text),
    "calls": lambda sources, tool, start, n: list(islice(sources.values.calls(tool, start), n)),
    "shapes": lambda sources, tool: sources.values.shapes(tool),
    "free": lambda sources, tool, place: sources.values.is_free(tool, tuple(place)),
    "optional": lambda sources, tool, name: sources.values.is_optional(tool, name),
}


class Watched(Environment):
    """An environment whose plays are noted: what they ask of its world, of what else could stand in a call, of the task's user.

    A watched world has no rows of its own, so a play that would read past it fails, and no question stays unnoted.
    """

    def __init__(self, *args: Any) -> None:
        manifest, tasks, tools, apps, *rest = args
        answering = next((app for app in apps if isinstance(app, RecordsApp | WorldsApp)), RecordsApp("", {}, World([], [])))
        records = answering.common if isinstance(answering, WorldsApp) else answering
        self._watch = Watch(records.world)
        watched = WatchedRecords(records, self._watch)
        super().__init__(manifest, tasks, tools, [watched if app is records else app for app in apps], *rest)
        self._programs = records.programs
        self._answers: dict[str, str] = {}
        self._plausible = Plausible(records.world, tools)
        self._arrivals = Arrivals({}, {})
        self.values = WatchedValues(self._plausible, self._watch)

    @property
    def world(self) -> World:
        """The world, unwatched."""
        return self._watch.world

    def arrived(self, arrivals: Arrivals) -> None:
        """From now on let attackers of a watched task draw calls up to its epoch alone."""
        self._arrivals = arrivals

    def watch(self, task: Task) -> Notes:
        """From now on note what plays of this task ask."""
        notes = self._watch.notes = Notes()
        self.values = WatchedValues(self._plausible_for(task), self._watch)
        self._users[task.task_id] = (task, WatchedUser(task, self._watch))
        return notes

    def sources(self, task: Task) -> PlaySources:
        """Whom plays of the task ask, unwatched."""
        user = ScriptedUser(task.user, task.opening)
        return PlaySources(self._watch.world, self._programs, self._plausible_for(task), self._answers, user)

    def _plausible_for(self, task: Task) -> Plausible:
        calls, reach = self._arrivals
        return self._plausible.up_to(reach.get(task.task_id), calls)


class WatchedRecords(RecordsApp):
    """An app whose episodes note what they ask of its world and its programs."""

    def __init__(self, records: RecordsApp, watch: Watch) -> None:
        super().__init__(records.name, records.programs, WatchedWorld(watch))
        self._noting = WatchedPrograms(records.programs, watch)

    def reset(self, start: Start) -> EpisodeState:
        return EpisodeState(self.world, self._noting, View(start.instant, start.session_ids), start.seed)


class Watch:
    """The world that is watched, and where it is noted what it is asked."""

    def __init__(self, world: World) -> None:
        self.world, self.notes = world, Notes()


class WatchedWorld(World):
    """A world that notes what it is asked."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.questions: Any = WatchedQuestions(watch)

    def document(self, name: Name, view: View) -> str | None:
        self._watch.notes.add("document", *name, view)
        return self._watch.world.document(name, view)

    def answer(self, name: Name, view: View, after: list[list[str]]) -> WorldRow | None:
        self._watch.notes.add("answer", *name, tuple(map(tuple, after)), view)
        return self._watch.world.answer(name, view, after)

    def session_answers(self, name: Name, after: list[list[str]]) -> list[WorldRow]:
        self._watch.notes.add("once", *name, tuple(map(tuple, after)))
        return self._watch.world.session_answers(name, after)

    def table(self, entity_class: str, rules: dict[str, dict[str, Any]]) -> Table:
        return WatchedTable(self._watch, "rows", entity_class, self._watch.world.table(entity_class, rules))

    def implied(self, entity_class: str, makes: dict[str, dict[str, Any]], plain: Callable[[Name], Name]) -> Table:
        return WatchedTable(self._watch, "parts", entity_class, self._watch.world.implied(entity_class, makes, plain))

    def strangers(self, tool: str, key: str) -> list[str] | None:
        self._watch.notes.add("strangers", tool, key)
        return self._watch.world.strangers(tool, key)

    def doubtful(self, tool: str, key: str) -> list[str]:
        self._watch.notes.add("doubtful", tool, key)
        return self._watch.world.doubtful(tool, key)

    def spelled(self, tool: str, key: str) -> str | None:
        self._watch.notes.add("spelled", tool, key)
        return self._watch.world.spelled(tool, key)

    def answers_to(self, tool: str, key: str) -> list[tuple[str, bool, bool]]:
        self._watch.notes.add("answers to", tool, key)
        return self._watch.world.answers_to(tool, key)

    def everywhere(self, tool: str) -> frozenset[str]:
        self._watch.notes.add("everywhere", tool)
        return self._watch.world.everywhere(tool)

    def lists(self, tool: str, names: frozenset[str]) -> bool:
        self._watch.notes.add("lists", tool, tuple(sorted(names)))
        return self._watch.world.lists(tool, names)

    def highest(self, entity_class: str, form: Form | None, instant: str) -> int | None:
        self._watch.notes.add("highest", entity_class, form and tuple(form), instant)
        return self._watch.world.highest(entity_class, form, instant)


class WatchedPrograms(Programs):
    """Programs that note which of them were asked, and what was asked of all together. It has no rows of its own either."""

    def __init__(self, programs: Programs, watch: Watch) -> None:
        super().__init__({})
        self._programs, self._watch = programs, watch

    def of_all(self, name: str) -> Any:
        """Return what follows from all programs together."""
        self._watch.notes.add("of all programs", name)
        return getattr(self._programs, name)

    def __getitem__(self, tool: str) -> Ready:
        self._watch.notes.add("program", tool)
        return self._programs[tool]

    def get(self, tool: str, otherwise: Any = None) -> Any:
        self._watch.notes.add("program", tool)
        return self._programs.get(tool, otherwise)

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)  # which tools there are is given to all

    def __contains__(self, tool: object) -> bool:
        return tool in self._programs

    def __len__(self) -> int:
        return len(self._programs)

    def items(self) -> ItemsView[str, Ready]:  # type: ignore[override]
        return {tool: self[tool] for tool in self}.items()

    def values(self) -> ValuesView[Ready]:  # type: ignore[override]
        return {tool: self[tool] for tool in self}.values()

    def bearing(self, acting: str, reading: str) -> str | None:
        self._watch.notes.add("bearing", acting, reading)
        return self._programs.bearing(acting, reading)


for _name in OF_ALL_PROGRAMS:
    setattr(WatchedPrograms, _name, property(partial(lambda name, programs: programs.of_all(name), _name)))


class WatchedQuestions:
    """Arguments of the calls on record, by tool."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def get(self, tool: str, otherwise: Sequence[str] = ()) -> Sequence[str]:
        self._watch.notes.add("asked", tool)
        return self._watch.world.questions.get(tool, otherwise)


class WatchedTable(Table):
    """Rows of a class that note which of them were searched."""

    def __init__(self, watch: Watch, kind: str, entity_class: str, table: Table) -> None:
        self._watch, self._kind, self._class, self._table = watch, kind, entity_class, table

    def matching(self, wanted: Wanted) -> list[TableRow]:
        self._watch.notes.add(self._kind, self._class, canonical(wanted))
        return self._table.matching(wanted)


class WatchedUser(ScriptedUser):
    """A task's user that notes what the agent says to it."""

    __slots__ = ("_watch",)

    def __init__(self, task: Task, watch: Watch) -> None:
        super().__init__(task.user, task.opening)
        self._watch = watch

    def reply(self, progress: UserProgress, text: str, habits: UserHabits | None = None) -> tuple[UserProgress, str | None]:
        self._watch.notes.add("reply", *progress, text)
        return super().reply(progress, text, habits)


class WatchedValues(Plausible):
    """Values on record that note which of them were taken."""

    def __init__(self, values: Plausible, watch: Watch) -> None:
        self._values, self._watch = values, watch

    def calls(self, tool: str, start: str) -> Iterator[dict[str, Any]]:
        return self._watch.notes.taken(self._values.calls(tool, start), "calls", tool, start)

    def shapes(self, tool: str) -> list[dict[str, Any]]:
        self._watch.notes.add("shapes", tool)
        return self._values.shapes(tool)

    def named(self, words: Iterable[str]) -> list[str]:
        self._watch.notes.words.update(words)
        self._watch.notes.add("named")
        return self._values.named(words)

    def fitting(self, tool: str, place: Place, words: Collection[str]) -> list[Any]:
        self._watch.notes.words.update(words)
        self._watch.notes.add("fitting", tool, place)
        return self._values.fitting(tool, place, words)

    def is_free(self, tool: str, place: Place) -> bool:
        self._watch.notes.add("free", tool, place)
        return self._values.is_free(tool, place)

    def class_of(self, text: str) -> str | None:
        self._watch.notes.add("class", text)
        return self._values.class_of(text)

    def others(self, tool: str, path: Spot, value: Any, shown: Sequence[str]) -> Iterator[Any]:
        self._watch.notes.shown = shown
        return self._watch.notes.taken(self._values.others(tool, path, value, shown), "others", tool, path, canonical(value))

    def is_optional(self, tool: str, name: str) -> bool:
        self._watch.notes.add("optional", tool, name)
        return self._values.is_optional(tool, name)
