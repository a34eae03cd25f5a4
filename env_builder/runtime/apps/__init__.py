"""Say what an app of an environment offers, join several into one, and load the apps that a manifest names.

An environment is a set of apps with one clock, one journal and one rubric. An app holds state and answers tools; its kind says
how: `records` (programs over JSON records), `worlds` (records of several worlds), `files` (a tree of files), `office` (a
product that is implemented, such as a chat), or a kind that ships its own runtime in `apps/<name>/runtime`. Everything that
grading, forking, serving and exports need of an app stands in the protocols below. One app may hand files to another one, which
the option `downloads` of its row in the manifest names. A class of a shipped runtime may inherit from them
(`from ..apps import App, AppState, Result`: it is loaded as a subpackage of this runtime), and then has to define only what has
no default here.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from ..canonical import digest
from ..exchanges import NameClasses
from ..records import Result

__all__ = ["KINDS", "App", "AppState", "DeliveringState", "DownloadFolder", "FileDelivery", "FolderState", "LeavingState",
           "ReceivingState", "Result", "Start", "load_app"]

Name = tuple[str, str]
"""(class, key) of an entity."""
KINDS = ("files", "office", "records", "site", "worlds")
"""Kinds that this runtime has; each is a module of this package with a function `load`."""


class Start(NamedTuple):
    """Where an episode begins: the same for all apps of an environment."""

    instant: str | None
    """ISO instant of the clock: nothing that happened after it is visible; None: there is no clock."""
    session_ids: frozenset[str] = frozenset()
    """Sessions of the log that the task begins together with."""
    seed: int | None = None
    """Of everything that an app samples; None: it samples nothing, and what it cannot know is unknown."""
    layout: int | None = None
    """Seed of the order in which an app shows what has none; None: as recorded."""
    task_id: str | None = None
    """The task, where an app holds something for it alone."""
    expiry: int | None = None
    """Seed of when sessions of an app run out; None: they do not."""
    user: str | None = None
    """Who acts; None: the sessions tell."""


class FileDelivery(NamedTuple):
    """A file that an app hands over to the app that keeps files."""

    name: str
    """As the deliverer calls it; the receiver chooses a free name like it."""
    content: bytes | None
    """None: the logs do not hold what was delivered."""
    origin: str | None
    """Where its bytes first came from: canonical JSON (`origins.origin_text`), which stays with the file."""


class DownloadFolder(NamedTuple):
    """Where the files are stored that an app hands over: the option `downloads` of its row in the manifest."""

    app: str
    """Name of an app of the same environment that takes files."""
    folder: str
    """A path there; `{user}` stands for the user of the episode."""


class AppState(Protocol):
    """The state of one episode of one app."""

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        """Answer a call and change the state. `key`: the canonical arguments, where the caller has them.

        Arguments that make no sense give an error and change nothing. What the app cannot know is answered with the tier
        `unknown`, never guessed.
        """

    def snapshot(self) -> Any:
        """Return the state as a value that nobody changes; takes microseconds."""

    def restore(self, snapshot: Any) -> None:
        """Return to a state of this episode, or of one with the same start, as `snapshot` gave it."""

    def fork(self) -> AppState:
        """Return the same state, independent from here on."""

    def difference(self) -> dict[str, Any]:
        """Return what the episode changed: {"documents": {"class/key": JSON text, or None if removed}, "write_calls": [[tool,
        canonical arguments], …]} (of write calls without a document), empty after a reset and after do-and-undo.

        A file is an entity: class `file`, key its path, value {"hash", "mode", "size"}. Optional keys: `made`, `volatile`.
        """

    def read(self, name: Name) -> tuple[str | None, str | None]:
        """Return the JSON text of an entity at the start and now, None where there is none; for the grader."""

    def may_write(self, tool: str) -> bool:
        """Return whether the tool may change the state, as far as anybody knows."""

    def is_simulated_write(self, tool: str) -> bool:
        """Return whether calls of the tool change this state; of a tool that may write but only seems to read they do not."""
        return self.may_write(tool)

    def names_known(self, tool: str, key: str) -> bool | None:
        """Return whether a call without a known answer names only what exists; False: something that does not, so that it is
        refused and changes nothing; None: nobody can say. `key`: its canonical arguments."""
        return None

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """Return (tool, canonical arguments) of calls without a known answer that changed nothing, as they came too late."""
        return ()

    def close(self) -> None:
        """Release what the state holds outside of this process."""
        return

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        """Return (canonical arguments, answer) of recorded calls like this one, nearest first."""
        return []

    def bind(self, bound: dict[str, Any]) -> None:
        """Let bindings (bindings.py) answer what is not on record."""
        if bound:
            raise ValueError("this kind of app takes no bindings")

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        """Take in what the real tool answered to the last call. `passing`: it failed by itself."""
        raise ValueError("this kind of app does not learn")


class FolderState(AppState, Protocol):
    """The state of an app whose records are also files of the agent's working folder; its tool `save_file` {"path", "content":
    base64}, which stands in no list of tools, takes one that was saved."""

    def folder(self) -> Mapping[str, bytes]:
        """Return path -> content of the files as they are now."""


class LeavingState(AppState, Protocol):
    """The state of an app whose calls leave what no replay can make again, such as files after a command."""

    def since(self, snapshot: Any) -> Any:
        """Return, as a JSON value, what changed since a snapshot and no replay could make again; it stands as `left` in the
        journal's row of the call. None where calls explain everything."""
        return None

    def again(self, row: Mapping[str, Any]) -> Result | None:
        """Take a call as a row of a journal has it, without making it again; None: it is made again."""
        return None

    def verified(self, grader: Path, task_id: str, seed: int = 0) -> Any:
        """Return what the app's own verifier says of the state, for checks of the kind `verified`; None: it has none.

        `grader`: the folder of rewards, whose `apps/<name>` holds what only the verifier knows.
        """
        return None


class DeliveringState(AppState, Protocol):
    """The state of an app that hands files over to the one that keeps them."""

    def deliveries(self) -> Sequence[FileDelivery]:
        """Return the files that the last call hands over; asked right after the call, and no part of the state."""


class ReceivingState(AppState, Protocol):
    """The state of an app that keeps files, also those that other apps hand over."""

    def receive(self, file: FileDelivery, folder: str) -> str | None:
        """Store a file under a free name; return its path, or None if the folder can be none."""

    def received(self) -> tuple[tuple[str, str | None], ...]:
        """Return (path, origin) of every file that was handed over in this episode, in order, wherever it is now."""


class App(Protocol):
    """One app: its tools, and the state in which its episodes begin; shared by all episodes and changed by none."""

    name: str
    """Of the app, unique in the environment."""
    answers: Collection[str]
    """Names of the tools that it answers."""
    writes: frozenset[str]
    """Names of those that may change its state."""
    unclear: frozenset[str] = frozenset()
    """Names of those of which nothing tells whether they do: they show something, and are not known to change anything."""
    explained: frozenset[str] = frozenset()
    """Names of tools that are implemented, not induced: all that a call of theirs changes is in `difference`."""
    leaves: bool = False
    """Whether its states are `LeavingState`s."""
    takes_files: bool = False
    """Whether its states are `ReceivingState`s."""
    folders: tuple[str, ...] = ()
    """Folders of the agent's working folder that hold its files; if there is one, its states are `FolderState`s."""
    downloads: DownloadFolder | None = None
    """Where the files go that its states hand over, which are then `DeliveringState`s; None: nowhere."""

    def reset(self, start: Start) -> AppState:
        """Begin an episode: the same start gives the same bytes in every process."""

    def next_episode(self, state: AppState, start: Start, from_reset: bool) -> AppState:
        """Begin an episode without a task after another one, keeping what that was taught by real tools.

        `from_reset`: every session begins from the same state, not from where the one before ended.
        """
        return self.reset(start)

    def carried(self, state: AppState, value: Any) -> Any:
        """Return recorded arguments of the next call as they have to be in this episode, such as refs of elements."""
        return value

    def id_forms(self, tools: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        """Return the forms of the app's ids, which a relabelling may exchange (relabelling.py). `tools`: descriptors."""
        return frozenset()

    def name_classes(self, tools: Iterable[Mapping[str, Any]]) -> NameClasses:
        """Return names that a relabelling may exchange among each other in all apps (exchanges.py). `tools`: descriptors of
        all tools of the environment, whose words are none of them."""
        return NameClasses()

    def stored_files(self) -> Mapping[str, Path]:
        """Return sha256 -> where the bytes lie, of files whose text may hold such names."""
        return {}


def load_app(row: Mapping[str, Any], directory: Path) -> App:
    """Load the app of a manifest's row {"name", "kind", "path", …} from an environment's directory.

    ValueError where nothing there implements the kind.
    """
    folder = directory / row["path"]
    shipped = folder / "runtime" / "__init__.py"
    if row["kind"] in KINDS:
        module = importlib.import_module(f".{row['kind']}", __package__)
    elif row["path"] != "." and shipped.is_file():
        module = _shipped(shipped)
    else:
        raise ValueError(f"no runtime for the kind {row['kind']!r} of the app {row['name']!r}; this runtime has "
                         f"{', '.join(KINDS)}, others are stored in {row['path']}/runtime")
    app: App = module.load(folder, row)
    if "downloads" in row:
        app.downloads = DownloadFolder(row["downloads"]["app"], row["downloads"]["folder"])
    return app


def _shipped(path: Path) -> Any:
    """Import the runtime that an app ships, as a subpackage of this runtime."""
    parent = (__package__ or "").rpartition(".")[0]
    name = f"{parent}.app_{digest(str(path.absolute()))[:16]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[str(path.parent)])
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} is no package of Python")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


class CompositeApp(App):
    """Several apps with one clock."""

    def __init__(self, apps: Sequence[App]) -> None:
        """ValueError: two apps have the same name or answer the same tool, or an app that should take files does not."""
        self.name = "+".join(app.name for app in apps)
        self._apps = tuple(apps)
        self._names = [app.name for app in apps]
        self._app_of: dict[str, int] = {}
        for number, app in enumerate(self._apps):
            for tool in app.answers:
                if tool in self._app_of:
                    other = self._apps[self._app_of[tool]].name
                    raise ValueError(f"the apps {other!r} and {app.name!r} both answer the tool {tool!r}")
                self._app_of[tool] = number
        if len({app.name for app in self._apps}) < len(self._apps):
            raise ValueError(f"two apps have one name: {self.name}")
        takers = {app.name: number for number, app in enumerate(self._apps) if app.takes_files}
        self._takers = {number: (takers.get(app.downloads.app, -1), app.downloads.folder)
                        for number, app in enumerate(self._apps) if app.downloads}
        if wrong := [self._names[number] for number, (taker, _) in self._takers.items() if taker < 0]:
            raise ValueError(f"the app {wrong[0]!r} hands its files to no app that takes files; there are: {', '.join(takers)}")
        self.answers = self._app_of
        self.writes = frozenset().union(*(app.writes for app in self._apps))
        self.unclear = frozenset().union(*(app.unclear for app in self._apps))
        self.explained = frozenset().union(*(app.explained for app in self._apps))
        self.leaves = any(app.leaves for app in self._apps)
        self.takes_files = any(app.takes_files for app in self._apps)
        self.folders = tuple(folder for app in self._apps for folder in app.folders)
        self._leaving = [app.leaves for app in self._apps]

    def reset(self, start: Start) -> AppState:
        return self._state([app.reset(start) for app in self._apps])

    def next_episode(self, state: AppState, start: Start, from_reset: bool) -> AppState:
        assert isinstance(state, CompositeState)
        return self._state([
            app.next_episode(own, start, from_reset) for app, own in zip(self._apps, state.states, strict=True)])

    def carried(self, state: AppState, value: Any) -> Any:
        assert isinstance(state, CompositeState)
        for app, own in zip(self._apps, state.states, strict=True):
            value = app.carried(own, value)
        return value

    def _state(self, states: list[AppState]) -> CompositeState:
        return CompositeState(self._names, self._app_of, states, self._leaving, self._takers)

    def id_forms(self, tools: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        descriptors = list(tools)
        return frozenset().union(*(
            app.id_forms([tool for tool in descriptors if tool["name"] in app.answers]) for app in self._apps))

    def name_classes(self, tools: Iterable[Mapping[str, Any]]) -> NameClasses:
        classes, descriptors = NameClasses(), list(tools)
        for app in self._apps:
            classes = classes.joined(app.name_classes(descriptors))
        return classes

    def stored_files(self) -> Mapping[str, Path]:
        return {sha256: path for app in self._apps for sha256, path in app.stored_files().items()}


class CompositeState(LeavingState, ReceivingState, FolderState):
    """One episode of several apps."""

    def __init__(
        self, names: Sequence[str], app_of: Mapping[str, int], states: list[AppState], leaving: Sequence[bool],
        takers: Mapping[int, tuple[int, str]],
    ) -> None:
        self.states = states
        self._names = names
        self._app_of = app_of
        self._leaving = leaving
        """Of each state whether it is a `LeavingState`."""
        self._takers = takers
        """By an app that hands over files, the app that takes them, and the folder there."""

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        if tool not in self._app_of:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app_of))}", True, "unknown")
        number = self._app_of[tool]
        result = self.states[number].call(tool, arguments, key)
        return self._deliver(number, result) if number in self._takers else result

    def _deliver(self, number: int, result: Result) -> Result:
        """Store the files that a call hands over, and say in its answer where each of them is."""
        taker, folder = self._takers[number]
        lines = []
        for file in cast(DeliveringState, self.states[number]).deliveries():
            path = cast(ReceivingState, self.states[taker]).receive(file, folder)
            lines.append(f"- Downloaded file {file.name} to {path}" if path else
                         f"- The file {file.name} was not stored: {folder} is no folder")
        return result._replace(content="\n".join([result.content, *lines])) if lines else result

    def folder(self) -> dict[str, bytes]:
        return {path: content for state in self.states for path, content in getattr(state, "folder", dict)().items()}

    def receive(self, file: FileDelivery, folder: str) -> str | None:
        raise ValueError("several apps together take no files")

    def received(self) -> tuple[tuple[str, str | None], ...]:
        takers = sorted({taker for taker, _ in self._takers.values()})
        return tuple(each for taker in takers for each in cast(ReceivingState, self.states[taker]).received())

    def snapshot(self) -> tuple[Any, ...]:
        return tuple([state.snapshot() for state in self.states])

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        for state, own in zip(self.states, snapshot, strict=True):
            state.restore(own)

    def fork(self) -> CompositeState:
        states = [state.fork() for state in self.states]
        return CompositeState(self._names, self._app_of, states, self._leaving, self._takers)

    def difference(self) -> dict[str, Any]:
        """Return what the episode changed in all apps; classes of entities begin with the name of their app."""
        merged: dict[str, Any] = {"documents": {}, "write_calls": []}
        for name, state in zip(self._names, self.states, strict=True):
            own = state.difference()
            merged["documents"] |= {f"{name}:{entity}": text for entity, text in own["documents"].items()}
            merged["write_calls"] += own["write_calls"]
            if "made" in own:
                merged.setdefault("made", []).extend([f"{name}:{kind}", key] for kind, key in own["made"])
            if "volatile" in own:
                merged.setdefault("volatile", {}).update({f"{name}:{kind}": paths for kind, paths in own["volatile"].items()})
        merged["write_calls"].sort()
        return merged

    def read(self, name: Name) -> tuple[str | None, str | None]:
        app, _, kind = name[0].partition(":")
        return self.states[self._names.index(app)].read((kind, name[1])) if app in self._names else (None, None)

    def may_write(self, tool: str) -> bool:
        return tool in self._app_of and self.states[self._app_of[tool]].may_write(tool)

    def is_simulated_write(self, tool: str) -> bool:
        return tool in self._app_of and self.states[self._app_of[tool]].is_simulated_write(tool)

    def names_known(self, tool: str, key: str) -> bool | None:
        return self.states[self._app_of[tool]].names_known(tool, key) if tool in self._app_of else None

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        return tuple(call for state in self.states for call in state.refused)

    def close(self) -> None:
        for state in self.states:
            state.close()

    def since(self, snapshot: tuple[Any, ...]) -> Any:
        each = {name: cast(LeavingState, state).since(own) for name, state, own, leaves in zip(
            self._names, self.states, snapshot, self._leaving, strict=True) if leaves}
        return {name: remains for name, remains in each.items() if remains is not None} or None

    def again(self, row: Mapping[str, Any]) -> Result | None:
        number = self._app_of.get(str(row.get("tool")))
        if number is None or not self._leaving[number]:
            return None
        remains = row.get("left")
        state = cast(LeavingState, self.states[number])
        return state.again({**row, "left": remains.get(self._names[number]) if isinstance(remains, dict) else None})

    def verified(self, grader: Path, task_id: str, seed: int = 0) -> Any:
        each = (cast(LeavingState, state).verified(grader, task_id, seed) for state, leaves in zip(
            self.states, self._leaving, strict=True) if leaves)
        return next((answer for answer in each if answer is not None), None)

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        return self.states[self._app_of[tool]].examples(tool, arguments) if tool in self._app_of else []

    def bind(self, bound: dict[str, Any]) -> None:
        for number, state in enumerate(self.states):
            state.bind({tool: source for tool, source in bound.items() if self._app_of.get(tool) == number})

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        if tool not in self._app_of:
            raise ValueError(f"no app answers the tool {tool!r}")
        self.states[self._app_of[tool]].learn(tool, arguments, content, passing)
