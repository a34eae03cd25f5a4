"""An exported environment, opened and played: what all consumers' adapters share, so that one episode has one reward.

In: a folder with `room/`, `grader/` and `kit.json` (docs/consumers.md). Out: episodes. Standard library only, Python 3.11+:
the environment's own runtime answers, and its grader replays the journal. Loads both into one process: for trusted policies
alone, or behind a server.

A turn of an agent that speaks and calls in one message: what is written without a call is said to the user, and where the user
answers nothing, the episode ends. Words beside calls are said first; thoughts (`<think>…</think>`) are nobody's. Calls in text
are those of Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

Sees: calls, words and the end of the episode. Does not see: what a model thought; a judge's criteria without `ask`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
Ask = Callable[[str], str]
"""A model: a prompt in, its text out."""
OVER = "the episode has ended"
SPEAKING = ("say", "say_to_user", "speak_with_the_user")
RESERVED = frozenset({"verify", "seed_session", "aggregate_metrics", "reverify_mode", "mcp"})
"""Routes of NeMo Gym's own servers."""
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_opened: dict[Path, KitEnvironment] = {}
_opening = threading.Lock()


def open(directory: str | Path) -> KitEnvironment:
    """Open the environment in `directory`; the same object for the same folder. OSError, ValueError if there is none."""
    path = Path(directory).resolve()
    with _opening:
        if path not in _opened:
            _opened[path] = KitEnvironment(path)
        return _opened[path]


class KitEnvironment:
    """An environment with its tasks; any number of its episodes run side by side."""

    def __init__(self, directory: Path) -> None:
        about: Row = json.loads((directory / "kit.json").read_text("utf-8"))
        self.name: str = about["name"]
        self.digest: str = about["digest"]
        """Content digest of what was exported, the same in every consumer's export of it."""
        self.figures: Row = about["figures"]
        """What the published environment says of its fidelity and audit."""
        folder, self._grader = directory / "room", directory / "grader"
        self.runtime = _runtime(folder / "runtime", self.digest)
        """The environment's own runtime package."""
        kind = self.runtime.Environment
        self._environment: Any = kind.load(folder, self._grader) if self._grader.is_dir() else kind.load_room(folder)
        self.descriptors: list[Row] = shown(self._environment.tools)
        """The tools as MCP descriptors, under names that every model's API takes."""
        self.tools: list[Row] = functions(self._environment.tools)
        """The same as OpenAI function tools."""
        names = callable_names(tool["name"] for tool in self._environment.tools)
        self.own: dict[str, str] = {name: own for own, name in names.items()}
        """A tool's own name by the one it is shown under."""
        self.tasks: list[Row] = list(_rows(folder / "tasks.jsonl"))
        """Rows of tasks.jsonl, by task_id."""
        self.by_id: dict[str, Row] = {row["task_id"]: row for row in self.tasks}
        self._solutions: dict[str, list[Row]] | None = None

    def begin(self, task_id: str, seed: int = 0, perturbations: Iterable[str] = ()) -> KitEpisode:
        """Begin an episode; KeyError where there is no such task."""
        return KitEpisode(self, self._environment.fork(), task_id, seed, tuple(perturbations))

    def solution(self, task_id: str) -> list[Row]:
        """Return the known solution's steps: {"tool", "arguments"} | {"say"}; for tests, never for a policy."""
        if self._solutions is None:
            self._solutions = {row["task_id"]: row["steps"] for row in _rows(self._grader / "solutions.jsonl")}
        return self._solutions[task_id]

    def grade(
        self, task_id: str, journal: Iterable[Row], seed: int = 0, perturbations: Iterable[str] = (), mode: str = "eval",
        ask: Ask | None = None,
    ) -> Any:
        """Grade a journal, replayed on a world of the grader's own."""
        return self._environment.fork().grade_journal(task_id, journal, seed, perturbations, mode, ask)


class TurnResult(NamedTuple):
    """What came of a turn."""

    answers: list[str]
    """Of the calls, in order."""
    reply: str | None
    """The user's."""
    over: bool


class KitEpisode:
    """One episode of one task."""

    def __init__(self, kit: KitEnvironment, environment: Any, task_id: str, seed: int, perturbations: tuple[str, ...]) -> None:
        self._kit, self._environment = kit, environment
        self.task_id, self.seed, self.perturbations = task_id, seed, perturbations
        self.digest, self.tools = kit.digest, kit.tools
        observation = environment.reset(task_id, seed, perturbations=perturbations)
        self.messages: list[Row] = [dict(message) for message in observation.messages]
        """The conversation before the agent's first move: {"role", "content"}, and calls that were made before it."""
        shown = {own: name for name, own in kit.own.items()}
        for function in (call["function"] for message in self.messages for call in message.get("tool_calls", ())):
            function["name"] = shown[function["name"]]
        n_opening = len(kit.by_id[task_id]["opening"])
        if not any(message["role"] == "user" for message in self.messages[:n_opening]):  # nobody speaks: the task says it
            self.messages.insert(n_opening, {"role": "user", "content": kit.by_id[task_id]["goal"]})
        self.n_made = len(environment.journal)
        """Steps of the journal that were made before the agent's first move."""
        self.n_refused = 0
        """Calls that never reached the environment: of tools that are not there, or without an object of arguments."""
        self._own_names = frozenset(kit.own.values())

    def call(self, name: str, arguments: Any) -> tuple[str, bool]:
        """Return a tool's answer, and whether it is an error. `name`: its own or the shown one; `arguments`: an object or its
        JSON text."""
        if self.ended is not None:
            return OVER, True
        name = self._kit.own.get(name, name)
        if isinstance(arguments, str):
            arguments = _parsed(arguments or "{}")
        if name not in self._own_names or not isinstance(arguments, dict):
            self.n_refused += 1
            return (f"no tool {name!r}; there are: {', '.join(sorted(self._kit.own))}" if name not in self._own_names
                    else "the arguments are no JSON object"), True
        result = self._environment.call(name, arguments)
        return result.content, result.is_error

    def say(self, text: str) -> str | None:
        """Return the user's answer; None: the user waits, has nothing more to say, or has left."""
        return None if self.ended is not None else self._environment.say(text)

    def take(self, text: str, calls: Iterable[tuple[str, Any]]) -> TurnResult:
        """Take a turn: say, call, and end where nothing was called and nobody answers."""
        reply = self.say(text) if text.strip() else None
        answers = [self.call(name, arguments)[0] for name, arguments in calls]
        if not answers and reply is None:
            self.finish()
        return TurnResult(answers, reply, self.ended is not None)

    def finish(self) -> None:
        """End the episode."""
        self._environment.finish()

    @property
    def ended(self) -> str | None:
        """None while it runs, then "terminated" or "truncated"."""
        too_many = self.n_refused > self._kit.by_id[self.task_id]["limits"]["steps"]
        return self._environment.ended or ("truncated" if too_many else None)

    def play(self, steps: Iterable[Row]) -> KitEpisode:
        """Make known steps, {"tool", "arguments"} | {"say"}, and finish."""
        for step in steps:
            if "say" in step:
                self.say(step["say"])
            else:
                self.call(step["tool"], step["arguments"])
        self.finish()
        return self

    def reward(self, mode: str = "eval", ask: Ask | None = None) -> float | None:
        """Return the reward so far, in [0, 1] (mode "train": [-1, 1]); None if it is unknown."""
        return self._graded(mode, ask).reward

    def findings(self, mode: str = "eval", ask: Ask | None = None) -> list[Row]:
        """Return each check's result: check_id, kind, role, weight, passed (None: unknown), description, evidence."""
        return [check._asdict() for check in self._graded(mode, ask).checks]

    def journal(self) -> list[Row]:
        """Everything that happened, all that a grader gets."""
        return list(self._environment.journal)

    def _graded(self, mode: str, ask: Ask | None) -> Any:
        return self._kit.grade(self.task_id, self.journal(), self.seed, self.perturbations, mode, ask)


class Routes(NamedTuple):
    """Names under which tools can be called where some names are taken, and a tool that speaks with the user."""

    tools: dict[str, str]
    """The tool's own name by the name that a model calls."""
    speak: str
    """Name of the tool that speaks with the user; empty where no task has a user who answers."""
    functions: list[Row]
    """OpenAI's descriptions of them all, under the names that a model calls."""

    def call(self, episode: KitEpisode, name: str, arguments: Any) -> str:
        """Call a tool by the model's name for it, or speak; return the answer's text."""
        if self.speak and name == self.speak:
            return episode.say(str(arguments.get("text", "") if isinstance(arguments, dict) else "")) or ""
        return episode.call(self.tools.get(name, name), arguments)[0]


def routes_of(tools: Iterable[Row], tasks: Iterable[Row], taken: Collection[str] = RESERVED) -> Routes:
    """Routes of OpenAI function tools; `tasks` tell whether there is a user to speak with."""
    named: dict[str, str] = {}
    described = []
    for tool in tools:
        name = own = tool["function"]["name"]
        while name in taken or name in named or name.startswith("_"):
            name = f"{name.lstrip('_')}_"
        named[name] = own
        described.append({**tool, "function": {**tool["function"], "name": name}})
    if not any((task.get("user") or {}).get("turns") for task in tasks):
        return Routes(named, "", described)
    speak = next(name for name in SPEAKING if name not in named)
    text = {"type": "string", "description": "What to say."}
    described.append({"type": "function", "function": {
        "name": speak, "description": "Say something to the user and hear the answer; empty where there is none.",
        "parameters": {"type": "object", "properties": {"text": text}, "required": ["text"]}}})
    return Routes(named, speak, described)


def callable_names(tools: Iterable[str]) -> dict[str, str]:
    """Names that every model's API takes (64 letters, digits, `_` and `-`), by the tools' own; what is such a name stays."""
    every = sorted(set(tools))
    names = {own: own for own in every if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", own)}
    taken = set(names)
    for own in every:
        if own not in names:
            short = re.sub(r"[^A-Za-z0-9_-]+", "_", own).strip("_")[:56] or "tool"
            choices = (short, *(f"{short}_{n}" for n in range(2, len(every) + 2)))
            names[own] = next(name for name in choices if name not in taken)
            taken.add(names[own])
    return names


def shown(descriptors: Iterable[Row]) -> list[Row]:
    """MCP descriptors under names that every model's API takes; a tool that goes by another says its own first."""
    tools = list(descriptors)
    names = callable_names(tool["name"] for tool in tools)
    return [tool if names[tool["name"]] == tool["name"] else {
        **tool, "name": names[tool["name"]], "description": ": ".join(filter(None, (tool["name"], tool.get("description"))))}
        for tool in tools]


def functions(descriptors: Iterable[Row]) -> list[Row]:
    """MCP descriptors as OpenAI function tools, as they are shown."""
    return [{"type": "function", "function": {
        "name": tool["name"], "description": tool.get("description") or "",
        "parameters": tool.get("inputSchema") or {"type": "object", "properties": {}}}} for tool in shown(descriptors)]


def words_of(text: str) -> str:
    """Return what a message says to the user: without thoughts and calls."""
    return _CALL.sub("", _THOUGHT.sub("", text).rpartition("</think>")[2]).strip()


def calls_of(text: str) -> list[tuple[str, Any]]:
    """Return the calls (name, arguments) in a message, in order; one that cannot be parsed has no name and None."""
    parsed = [_parsed(each) for each in _CALL.findall(_THOUGHT.sub("", text).rpartition("</think>")[2])]
    return [(call["name"], call.get("arguments", {})) if isinstance(call, dict) and isinstance(call.get("name"), str)
            else ("", None) for call in parsed]


def guide(tools: list[Row]) -> str:
    """How to call these tools, in words for a model that is given text alone."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions. Their signatures stand within <tools></tools>:\n"
        f"<tools>\n{listed}\n</tools>\n\nFor each call write a JSON object with its name and arguments within these tags:\n"
        '<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>\nEverything else you write is said to the user.')


def _runtime(folder: Path, digest: str) -> Any:
    """Import the environment's own runtime under a name of its own: other environments of this process keep theirs."""
    name = f"traceroom_runtime_{digest[:16]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None:
            raise ValueError(f"{folder} holds no runtime: export the environment again")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    for loaded, package in list(sys.modules.items()):   # what is imported later comes from here too: the first folder may go
        own = str(folder.joinpath(*loaded.split(".")[1:]))
        if loaded.partition(".")[0] == name and own not in getattr(package, "__path__", [own]):
            package.__path__.append(own)
    return sys.modules[name]


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
