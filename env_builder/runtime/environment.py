"""Play and grade the tasks of an environment: load it, reset it to a task, call tools, fork, grade (docs/environment.md).

An environment is a set of apps (apps/) with one clock, one journal and one rubric per task. This module loads environment and
grader into one process: for trusted policies only.
"""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from .admission import MAX_EPISODE, MAX_TEXT, admitted, is_well_formed, well_formed
from .apps import App, AppState, CompositeApp, FolderState, LeavingState, ReceivingState, Start, load_app
from .bindings import Binding, binding
from .canonical import UNWRITABLE, canonical, digest
from .changes import first_changes, last_changes
from .ends import same
from .exchanges import NameClasses
from .files import TASKS, rows_of, task_of
from .grading import grade, shaped
from .perturbations import Perturbations
from .records import Ended, Episode, Grade, Limits, Observation, Result, Task
from .relabelling import SWITCHES as RELABELLINGS
from .relabelling import Relabelling
from .remembering import Memory, MemoryNode
from .rubrics import ParsedRubric
from .tool_parts import ToolParts, by_part, part_in
from .user import CHARACTERS, ScriptedUser, UserConversation, UserProgress

_UNPROVEN = frozenset({"unknown", "model", "assumed"})
"""Tiers of answers that no log bears out."""


LONGEST, LATEST = 2000, 20
"""Characters of each answer, and steps of the episode, that a model is shown that stands in for a tool."""

_ASKS = """\
You stand in for one tool of a service. Answer the last call as the real tool would: in the form of its answers on record, in
agreement with what the episode has shown so far, and with an error in the tool's own words where it would refuse.

The tool:
{tool}

Calls of it on record, the nearest first, each with its answer:
{examples}

The episode so far:
{journal}

The call to answer:
{call}

Reply with one JSON object and nothing else: {{"content": "the answer as the text that the tool would send", "is_error": false}}
"""


def prefix_messages(
    environment: Environment, step: dict[str, Any], relabelling: Relabelling | None
) -> list[dict[str, Any]]:
    """Make a step that comes before the agent's first move; return it and what came of it as messages of OpenAI's form."""
    def shown(value: Any) -> Any:
        return relabelling.renaming.shown(value) if relabelling else value

    if "say" in step:
        reply = environment.say(step["say"])
        spoken = {"role": "assistant", "content": shown(step["say"])}
        return [spoken] if reply is None else [spoken, {"role": "user", "content": shown(reply)}]
    number = len(environment.journal)
    result = environment.call(step["tool"], step["arguments"])
    if relabelling:
        result = relabelling.shown(step["tool"], step["arguments"], result)
    function = {"name": step["tool"], "arguments": json.dumps(shown(step["arguments"]), ensure_ascii=False)}
    call_id = f"call_{number}"
    return [{"role": "assistant", "content": "", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call_id, "content": result.content}]


def model_answer(reply: str) -> Result | None:
    """Parse a model's answer in the place of a tool's, None if its reply is no such object.

    Such an answer stands in the journal alone: what the call may have changed stays unknown, and the grader, which replays
    without a model, treats the episode as one that depends on an unknown answer.
    """
    begin, end = reply.find("{"), reply.rfind("}")
    try:
        parsed = json.loads(reply[begin:end + 1])
    except (ValueError, RecursionError):
        return None
    content, is_error = (parsed.get("content"), parsed.get("is_error", False)) if isinstance(parsed, dict) else (None, None)
    if not isinstance(content, str) or not isinstance(is_error, bool) or len(content) > MAX_TEXT:
        return None
    return Result(well_formed(content), is_error, "model")


def _step(row: dict[str, Any]) -> str:
    if row["kind"] != "call":
        return canonical({name: row[name] for name in ("kind", "content", "reply") if name in row})
    return f"{row['tool']} {canonical(row['arguments'])}\n-> {row['content'][:LONGEST]}"


FORMAT = "traceroom-environment/2"
FORMAT_IN_SHARDS = "traceroom-environment/3"
"""Of an environment with files that are split."""
SAVE_FILE = "save_file"
"""The tool that saves a file of the working folder, in apps that have one."""
_FORMAT_1 = "traceroom-environment/1"
_NO_OBJECT = "the arguments are no JSON object"
_OVER = Result("the episode has ended; reset the environment to begin another", True, "unknown")


class AdmittedCall(NamedTuple):
    """A call as the environment takes it in."""

    tool: str
    arguments: Any
    """None: they were refused."""
    key: str | None
    """Their canonical text."""
    refusal: str | None
    """Why they were not given to a tool."""

    @classmethod
    def of(cls, tool: str, arguments: Any) -> AdmittedCall:
        """Admit a call: its texts made well-formed, its arguments refused where they are no JSON object or too long."""
        tool = well_formed(tool)
        try:
            key = canonical(arguments)
            if not is_well_formed(key):
                arguments = well_formed(arguments)
                key = canonical(arguments)
        except UNWRITABLE:
            return cls(tool, None, None, _NO_OBJECT)
        if len(key) > MAX_TEXT:
            return cls(tool, None, None, f"the arguments are longer than {MAX_TEXT} characters")
        return cls(tool, arguments, key, None if isinstance(arguments, dict) else _NO_OBJECT)


def _is_like(row: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Return whether an earlier row is the same call, and succeeded."""
    return (row["tool"] == earlier.get("tool") and not earlier.get("is_error")
            and same(row["arguments"], earlier.get("arguments")))


def _without_refused(unknown: Sequence[dict[str, Any]], refused: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rows without an answer but those that were surely refused, as often as they were."""
    n_refused = Counter(refused)
    rows = []
    for row in unknown:
        call = row["tool"], canonical(row.get("arguments")) if n_refused else ""
        n_refused[call] -= row.get("tier") == "unknown"
        rows += [row] if n_refused[call] < 0 or row.get("tier") != "unknown" else []
    return rows


class Environment:
    """One environment with many tasks; an instance plays one episode at a time."""

    _relabelling: Relabelling | None
    _node: MemoryNode | None
    """Where in memory the episode stands; None: it is not remembered."""
    _journal: list[dict[str, Any]]
    _marks: list[tuple[Any, MemoryNode | None, UserProgress, int]]
    """How it was before each step of the journal."""
    _ended: Ended | None

    def __init__(
        self, manifest: dict[str, Any], tasks: Iterable[Task], tools: list[dict[str, Any]], apps: Sequence[App],
        rubrics: dict[str, dict[str, Any]], perturbations: Perturbations | None = None,
    ) -> None:
        self.manifest = manifest
        self.tasks = tuple(tasks)
        self.tools = tools
        self.apps = tuple(apps)
        self._by_id = {task.task_id: task for task in self.tasks}
        self._app: App = self.apps[0] if len(self.apps) == 1 else CompositeApp(self.apps)
        self._parts = ToolParts(self._app.answers)
        self._rubrics = rubrics
        self._parsed: dict[str, ParsedRubric] = {}
        """By task, parsed once and shared by all forks."""
        self._perturbations = perturbations or Perturbations()
        self._bound: dict[str, Binding] = {}
        self._memory: Memory | None = None
        self._limits: Limits | None = None
        self._ask: Callable[[str], str] | None = None
        self._reword: Callable[[str], str] | None = None
        self._users: dict[str, tuple[Task, ScriptedUser]] = {}
        """By task, made once and shared by all episodes and forks."""
        self._grader: Path | None = None
        """The folder of rewards, where it is here."""
        self._id_forms: list[tuple[frozenset[str], NameClasses, Mapping[str, Path]]] = []
        """The forms and classes of the apps' ids, and their files, once they were computed; shared by all forks."""
        self._begin(None, Start(None))

    @classmethod
    def load(cls, path: str | Path, rewards: str | Path | None = None) -> Self:
        """Load an environment's directory; rewards from `rewards`, else from OUT/rewards/<name> if that exists.

        Raises ValueError if the directory holds no environment of this format, OSError if it cannot be read.
        """
        directory = Path(path).absolute()
        default = directory.parent.parent / "rewards" / directory.name
        grader = Path(rewards) if rewards is not None else default
        is_there = rewards is not None or grader.is_dir()
        environment = cls._read(
            directory, {row["task_id"]: row for row in rows_of(grader / "rubrics.jsonl")} if is_there else {})
        if is_there:
            environment.verify_with(grader)
        return environment

    def verify_with(self, grader: Path) -> None:
        """From now on let apps' own verifiers judge by what this folder of rewards knows, in this process."""
        self._grader = grader

    @classmethod
    def load_room(cls, path: str | Path) -> Self:
        """Load the environment without a grader's side, as a process or container of its own does."""
        return cls._read(Path(path), {})

    @classmethod
    def _read(cls, directory: Path, rubrics: dict[str, dict[str, Any]]) -> Self:
        manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
        written = manifest.get("format") if isinstance(manifest, dict) else None
        if written == _FORMAT_1:
            raise ValueError(f"{directory} has the format {_FORMAT_1}, this runtime reads {FORMAT}; hint: build it again with "
                             f"traceroom run, or serve it with its own runtime: python3 {directory / 'runtime'} "
                             f"--environment {directory}")
        if written not in (FORMAT, FORMAT_IN_SHARDS):
            raise ValueError(f"{directory} is not an environment: manifest.json has no format {FORMAT!r}")
        tasks, perturbations = directory / TASKS, directory / "perturbations.jsonl"
        return cls(
            manifest,
            map(task_of, rows_of(tasks) if tasks.exists() else ()),  # an image has none
            list(rows_of(directory / "tools.jsonl")),
            [load_app(row, directory) for row in manifest["apps"]],
            rubrics,
            Perturbations(rows_of(perturbations)) if perturbations.exists() else None,
        )

    def reset(
        self, task_id: str | Task | None, seed: int = 0, at: str | None = None, perturbations: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> Observation:
        """Begin an episode of a task, or with None an open episode as of the ISO instant `at`.

        A `Task` instead of an id need not be one of the environment's: a host hands it to an environment in a container.

        `perturbations` (`perturbations.SWITCHES`) switches on, for a task, what tools also do in production, sampled by `seed`.
        Without them every seed plays exactly as recorded. `limits`: instead of the task's own.
        An open episode after an open episode keeps what it was taught (`App.next_episode`).
        """
        self._perturbations = self._perturbations.switched(seed, () if task_id is None else perturbations)
        if task_id is None:
            start = Start(at)
            from_reset = self.manifest.get("starts_from") == "reset"
            self._begin(None, start, self._app.next_episode(self._state, start, from_reset) if self._task is None else None)
            return Observation([], self.tools, None)
        task = task_id if isinstance(task_id, Task) else self._by_id.get(task_id)
        if task is None:
            there = "see Environment.tasks" if self.tasks else "in an image tasks.jsonl is mounted, or a host hands it over"
            raise KeyError(f"no task {task_id!r} in this environment; it has {len(self.tasks)}, {there}")
        fresh = self._perturbations.seed if "fresh" in self._perturbations.switches else None
        self._begin(task, Start(task.starts_at, frozenset(task.session_ids), fresh, self._perturbations.layout, task.task_id,
                                self._perturbations.expiry, task.acting_for))
        self._limits = limits or task.limits
        opening = [*map(dict, task.opening)]
        if self._perturbations.switches and not set(RELABELLINGS).isdisjoint(self._perturbations.switches):
            if not self._id_forms:
                self._id_forms.append((
                    self._app.id_forms(self.tools), self._app.name_classes(self.tools), self._app.stored_files()))
            self._relabelling = self._perturbations.relabelling(*self._id_forms[0])
            for message in opening:
                message["content"] = self._relabelling.renaming.shown(message["content"])
        return Observation([*opening, *self._make_prefix(task.prefix)], self.tools, self._limits)

    def bind(self, tool: str, source: str | Binding) -> None:
        """From now on let the real tool answer what is not on record: `python:module:function`, `http:ADDRESS`,
        `mcp:ADDRESS`, `mcp:COMMAND`, the name of an entry point with its argument, or a callable (bindings.py).
        """
        if tool not in self._app.answers:
            raise KeyError(f"no tool {tool!r} to bind in this environment; there are: {', '.join(sorted(self._app.answers))}")
        bound = {**self._bound, **self._parts.bound(tool, binding(source))}
        self._state.bind(bound)
        self._bound, self._node = bound, None

    def remember(self, n_calls: int = 1_000_000) -> None:
        """From now on take calls that were made in the same state before, in any episode or fork, from memory: the same
        answers, faster. `n_calls`: how many are kept, a few KB each; 0: none any more."""
        self._memory = Memory(n_calls) if n_calls else None
        self._node = None

    def live(self, ask: Callable[[str], str] | None) -> None:
        """From now on let a model answer what would be `unknown`: a prompt in, its text out; None: no longer. Such answers have
        the tier `model`; nothing is learnt from them, and the grader replays without a model."""
        self._ask = ask

    def reword(self, ask: Callable[[str], str] | None) -> None:
        """From now on let a model rephrase the user's words, in every episode; None: the script's words again. Its words count
        only if they state the same facts, names, yes or no (`user.agrees`)."""
        self._reword = ask

    def prompt(self) -> str | None:
        """Return what to ask a model instead of the last call; None if that was answered or there is no such tool."""
        row = self._journal[-1] if self._journal else {}
        descriptor = next((each for each in self.tools if each["name"] == row.get("tool")), None)
        if row.get("tier") != "unknown" or descriptor is None or not isinstance(row["arguments"], dict):
            return None
        examples = self._state.examples(part_in(row), row["arguments"])
        shown = [f"{key}\n-> {content[:LONGEST]}" for key, content in examples]
        steps = [_step(step) for step in self._journal[:-1][-LATEST:]]
        return _ASKS.format(
            tool=canonical(descriptor), examples="\n".join(shown) or "none", journal="\n".join(steps) or "nothing was done yet",
            call=f"{descriptor['name']} {canonical(row['arguments'])}")

    def supply(self, reply: str) -> Result | None:
        """Put a model's reply to `prompt` in the place of the last answer; None if it is none: the call stays `unknown`."""
        result = model_answer(reply) if self.prompt() is not None else None
        if result is not None:
            self._talk.n_chars += len(result.content) - len(self._journal[-1]["content"])
            self._journal[-1] = self._journal[-1] | result._asdict()
            result = result._replace(
                content=self._relabelling.renaming.shown(result.content)) if self._relabelling else result
        return result

    def call(self, tool: str, arguments: Any) -> Result:
        """Return the tool's answer; arguments that are no JSON object are answered `unknown`."""
        if self._relabelling is not None:
            return self._call_relabelled(self._relabelling, tool, arguments)
        return self._call(tool, arguments) if self._is_open() else _OVER

    def _call(self, tool: str, arguments: Any, journaled: Mapping[str, Any] | None = None) -> Result:
        """Let the tool answer. `journaled`: the call's row in a journal that is replayed."""
        tool, arguments, key, refusal = AdmittedCall.of(tool, arguments)
        part, tool = self._parts.named(tool, arguments), self._parts.whole(tool)
        self._mark()
        sampled: dict[str, Any] | None = None
        answer = self._state.call if self._node is None else self._from_memory
        leaving = cast(LeavingState, self._state) if self._app.leaves else None
        try:
            if refusal is not None or key is None:
                result = Result(refusal or _NO_OBJECT, True, "unknown")
            elif journaled is not None and leaving is not None and (again := leaving.again(journaled)) is not None:
                result = again
            elif self._perturbations.switches:
                result, sampled = self._perturbations.answer(self._journal, part, arguments, answer)
            else:
                result = answer(part, arguments, key)
        except BaseException:  # the call has not been made: the episode goes on from where it stood
            snapshot, self._node, *_ = self._marks.pop()
            self._state.restore(snapshot)
            raise
        content, is_error, tier = result
        if tier == "unknown" and self._task is None and isinstance(arguments, dict) and part in self._app.answers:
            # for those who build the environment: in a task this would give recorded arguments away
            near = [on_record for on_record, _ in self._state.examples(part, arguments)]
            content += "; nearest calls on record: " + ", ".join(near) if near else "; no call of it is on record"
            result = Result(content, is_error, tier)
        self._talk.n_chars += len(tool) + len(key or "") + len(content)
        row = {"kind": "call", "tool": tool, "arguments": arguments, "content": content, "is_error": is_error, "tier": tier,
               **({"part": part} if part != tool else {})}
        if leaving is not None and (remains := leaving.since(self._marks[-1][0])) is not None:
            row["left"] = remains
        self._journal.append(row | sampled if sampled else row)
        events = () if is_error else self._talk.events_after(part, arguments)
        if events and not any(_is_like(row, earlier) for earlier in self._journal[:-1]):
            self._play(events)
        if self._ask is None:
            return result
        prompt = self.prompt()
        return (self.supply(self._ask(prompt)) if prompt else None) or result

    def retrace(self, row: Mapping[str, Any]) -> Result:
        """Make a call of a journal again; an app that runs commands takes what came of it from the row."""
        if self._relabelling is not None or not self._is_open():
            return self.call(row["tool"], row.get("arguments"))
        return self._call(row["tool"], row.get("arguments"), row)

    def folder(self) -> Mapping[str, bytes]:
        """Return path -> content of the files of the agent's working folder, as the apps have them now."""
        return cast(FolderState, self._state).folder() if self.folders else {}

    @property
    def folders(self) -> tuple[str, ...]:
        """Return the folders of the agent's working folder that hold files of apps."""
        return self._app.folders

    def save(self, path: str, content: bytes) -> Result:
        """Save a file of the working folder: a call of a tool that is in no list of tools."""
        return self.call(SAVE_FILE, {"path": path, "content": base64.b64encode(content).decode()})

    def say(self, text: str) -> str | None:
        """Say something to the user; return the answer, or None if the user waits, has no more to say or has left.

        ValueError if the text is longer than `admission.MAX_TEXT`: nothing is said.
        """
        if not self._is_open():
            return None
        text = admitted(text)
        if self._relabelling is not None:
            text = str(self._relabelling.renaming.meant(text))
        spoken = self._talk.progress.spoken
        self._mark()
        try:
            reply = self._talk.reply(text, self._reword, partial(self._perturbations.reworded, len(self._journal)))
        except BaseException:  # nothing was said
            self._marks.pop()
            raise
        self._journal.append({"kind": "say", "content": text, "reply": reply})
        self._play(self._talk.events_since(spoken))
        return reply if self._relabelling is None or reply is None else str(self._relabelling.renaming.shown(reply))

    def learn(self, tool: str, arguments: dict[str, Any], content: str) -> None:
        """Take in what the real tool answered to the last call of an open episode."""
        if self._task is not None:
            raise ValueError("a task's room does not learn: reset(None, at=…) opens one that does")
        tool = self._parts.named(tool, arguments)
        self._state.learn(tool, arguments, content, self._perturbations.passes(tool, arguments, content))

    def fork(self) -> Self:
        """Return the same state, independent from here on; the apps are shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._state = self._state.fork()
        twin._talk = self._talk.fork()
        twin._journal = list(self._journal)
        twin._marks = list(self._marks)
        return twin

    def rollback(self, n_steps: int) -> None:
        """Return to where the episode stood after its first `n_steps` steps; the time that has passed stays passed.

        ValueError: it has not come so far, or the episode is open (what it was taught cannot be taken back).
        """
        if self._task is None or not 0 <= n_steps <= len(self._journal):
            here = "the open room" if self._task is None else f"an episode of {len(self._journal)} steps"
            raise ValueError(f"{here} cannot be rolled back to step {n_steps}")
        if n_steps < len(self._journal):
            snapshot, node, self._talk.progress, self._talk.n_chars = self._marks[n_steps]
            self._state.restore(snapshot)
            self._node = None if self._bound else node
            del self._journal[n_steps:], self._marks[n_steps:]
            self._ended = None

    def state_hash(self) -> str:
        """Return the state as 64 hex digits: the task, what has changed since it began, and how far the user has come.

        Two sequences of calls that lead to the same state give the same; a read changes nothing.
        """
        task_id = self._task.task_id if self._task else None
        environment = self.manifest.get("room_digest") or self.manifest["content_digest"]
        return digest(canonical([environment, task_id, self._state.difference(), self._talk.progress]))

    def finish(self) -> None:
        """End the episode: the agent is done."""
        if self._is_open():
            self._ended = "terminated"
            self._mark()
            self._journal.append({"kind": "finish"})

    @property
    def ended(self) -> Ended | None:
        """Return how the episode ended, None while it runs."""
        self._is_open()
        return self._ended

    @property
    def user_left(self) -> bool:
        """Return whether the user has left, so that nothing will be answered any more."""
        return self._talk.progress.idle < 0

    @property
    def tokens(self) -> int:
        """Return the tokens that the agent wrote and was shown: as `used` last reported, and estimated since."""
        return -(-self._talk.n_chars // CHARACTERS)

    def used(self, tokens: int) -> None:
        """Report how many tokens were written and shown up to here, as the caller that runs the model counted them."""
        self._talk.n_chars = CHARACTERS * tokens

    def carried(self, steps: Any) -> Any:
        """Return recorded steps as an agent has to make them in this episode: its names, and refs of what is shown now."""
        return self._app.carried(self._state, self._relabelling.renaming.shown(steps) if self._relabelling else steps)

    def difference(self) -> dict[str, Any]:
        """Return what the episode changed (docs/environment.md)."""
        return self._state.difference()

    def read(self, name: str) -> tuple[str | None, str | None]:
        """Return the JSON text of the entity "class/key" at the start of the episode and now, None where there is none."""
        entity_class, _, key = name.partition("/")
        return self._state.read((entity_class, key))

    @property
    def writes(self) -> frozenset[str]:
        """Return the names of the tools that may change the state."""
        return self._app.writes

    @property
    def explained(self) -> frozenset[str]:
        """Return the names of the tools of which all changes are in `difference`."""
        return self._app.explained

    @property
    def journal(self) -> tuple[dict[str, Any], ...]:
        """Return everything that happened, all that a grader gets."""
        return tuple(self._journal)

    @property
    def unknown_writes(self) -> tuple[dict[str, Any], ...]:
        """Return the journal rows of tools that may write that were answered `unknown`, by a model or as assumed."""
        tiers = [row.get("tier") for row in self._journal]
        if _UNPROVEN.isdisjoint(tiers):
            return ()
        return tuple([row for row, tier in zip(self._journal, tiers, strict=True)
                      if tier in _UNPROVEN and self._state.may_write(part_in(row))])

    def grade(self, mode: str = "eval", ask: Callable[[str], str] | None = None) -> Grade:
        """Grade this episode; unscored if the task has no verified reward.

        `mode`: `eval` or `train` (grading.py); `ask`: the model that judges ask, without one they are unscored.
        A replay of the journal would reach what this episode has reached, unless something else than the apps answered.
        """
        if self._task is None:
            raise KeyError("the open room has no task to grade; reset to one")
        task_id, perturbations = self._task.task_id, self._perturbations
        if self._bound or "model" in [row.get("tier") for row in self._journal]:
            return self.grade_journal(task_id, self.journal, perturbations.seed, perturbations.switches, mode, ask)
        rubric = self._rubric(task_id)
        return Grade(None) if rubric is None else grade(rubric, self._episode_of(self._state), mode, ask, perturbations.seed)

    def grade_journal(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, perturbations: Iterable[str] = (),
        mode: str = "eval", ask: Callable[[str], str] | None = None,
    ) -> Grade:
        """Replay a journal's calls in an environment of the grader's own, and grade the episode that comes of it.

        `seed`, `perturbations`: of the rollout, as its runner states them; the journal is not asked.
        """
        rubric = self._rubric(task_id)
        return Grade(None) if rubric is None else grade(
            rubric, self.replay(task_id, journal, seed, perturbations), mode, ask, seed)

    def shaped(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, perturbations: Iterable[str] = (),
        discount: float = 1.0, ask: Callable[[str], str] | None = None,
    ) -> tuple[float, ...] | None:
        """Return the reward of each step of the journal, for training (`grading.shaped`); None if it is unscored."""
        rubric = self._rubric(task_id)
        if rubric is None:
            return None
        return shaped(rubric, [twin.episode() for twin in self._replayed(task_id, journal, seed, perturbations)], discount, ask,
                      seed)

    def replay(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int = 0, perturbations: Iterable[str] = ()
    ) -> Episode:
        """Return the episode that a journal's calls and words make of this environment."""
        *_, twin = self._replayed(task_id, journal, seed, perturbations)
        return twin.episode()

    def replaying(self, task_id: str, seed: int = 0, perturbations: Iterable[str] = ()) -> Self:
        """Return a twin at the start of a task in which a journal can be replayed: without limits and without a model."""
        twin = self.fork()
        twin.reset(task_id, seed, perturbations=perturbations)
        twin._limits = None  # the journal was written under them
        twin._ask = twin._relabelling = twin._reword = None  # it has the environment's own names and words
        return twin

    def episode(self) -> Episode:
        """Return the episode so far as a grader sees it, as far as the apps themselves answered it."""
        return self._episode_of(self._state.fork())

    def _episode_of(self, state: AppState) -> Episode:
        """Return the episode of a state that nobody changes while it is graded."""
        journal = by_part(self._journal)
        unknown = _without_refused(by_part(self.unknown_writes), state.refused)
        names_known = [state.names_known(row["tool"], canonical(row.get("arguments"))) for row in unknown]
        may_have_worked = tuple(row for row, named in zip(unknown, names_known, strict=True) if named is not False)
        attempts = tuple(row for row, named in zip(unknown, names_known, strict=True) if named)
        received = cast(ReceivingState, state).received() if self._app.takes_files else ()
        called = self.writes.intersection(row["tool"] for row in journal if row.get("kind") == "call")
        presumed = frozenset(tool for tool in called if tool in self._app.unclear or not state.is_simulated_write(tool))
        return Episode(journal, state.difference(), may_have_worked, self.writes,
                       lambda name: state.read((name.partition("/")[0], name.partition("/")[2])), attempts,
                       self._verifier_of(state), received, partial(last_changes, state, [*self._marks]),
                       partial(first_changes, state, [*self._marks]), presumed)

    def _verifier_of(self, state: AppState) -> Callable[[int], Any] | None:
        """Return what the apps' own verifiers say of a state, by a seed; None where there is no grader's side, or no task."""
        grader, task = self._grader, self._task
        if grader is None or task is None or not self._app.leaves:
            return None
        return lambda seed: cast(LeavingState, state).verified(grader, task.task_id, seed)

    def _replayed(
        self, task_id: str, journal: Iterable[dict[str, Any]], seed: int, perturbations: Iterable[str]
    ) -> Iterator[Self]:
        """Yield one twin that replays the journal: before its first step and after each."""
        twin = self.replaying(task_id, seed, perturbations)
        yield twin
        n_made = len(twin._journal)  # the task's prefix, which the grader has made itself
        for place, row in enumerate(journal):  # from the untrusted side: a row that is no step is none
            row = row if isinstance(row, dict) and place >= n_made else {}
            kind, tool, content = row.get("kind"), row.get("tool"), row.get("content")
            if kind == "call" and isinstance(tool, str):
                twin.retrace(row)
            elif kind == "say" and isinstance(content, str):
                twin.say(content)
            yield twin

    def _rubric(self, task_id: str) -> ParsedRubric | None:
        """Return the task's rubric; None if it has no verified one here."""
        if task_id not in self._parsed and task_id in self._rubrics:
            self._parsed[task_id] = ParsedRubric.read(self._rubrics[task_id])
        return self._parsed.get(task_id)

    def _make_prefix(self, steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Make the steps that come before the agent's first move, exactly as recorded whatever is switched on; return them as
        messages of the conversation, in this episode's names."""
        if not steps:
            return []
        switched, relabelling, ask, reword = self._perturbations, self._relabelling, self._ask, self._reword
        self._perturbations, habits = switched.switched(switched.seed, ()), self._talk.habits
        self._relabelling = self._ask = self._reword = self._talk.habits = None
        try:
            return [message for step in steps for message in prefix_messages(self, step, relabelling)]
        finally:
            self._perturbations, self._relabelling, self._ask, self._reword = switched, relabelling, ask, reword
            self._talk.habits = habits

    def _user_of(self, task: Task) -> ScriptedUser:
        """Return the user of a task, made again where another task of the same id was handed over."""
        cached = self._users.get(task.task_id)
        if cached is None or cached[0] is not task:
            cached = self._users[task.task_id] = (task, ScriptedUser(task.user, task.opening))
        return cached[1]

    def _call_relabelled(self, relabelling: Relabelling, tool: str, arguments: Any) -> Result:
        """Answer an agent that sees other names and orders than the environment's own."""
        self._relabelling = None
        try:
            meant = relabelling.renaming.meant(arguments)
            return relabelling.shown(tool, meant, self.call(tool, meant))
        finally:
            self._relabelling = relabelling

    def _play(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Let other people make these calls: what they change is part of the world, and the agent does not see the answers."""
        answer = self._state.call if self._node is None else self._from_memory
        for event in events:
            answer(event["tool"], event["arguments"])

    def _from_memory(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        assert self._memory is not None and self._node is not None
        result, self._node = self._memory.call(
            self._node, self._state, tool, arguments, canonical(arguments) if key is None else key)
        return result

    def _begin(self, task: Task | None, start: Start, state: AppState | None = None) -> None:
        self._task = task
        self._limits = task.limits if task else None
        self._state = state or self._app.reset(start)
        if self._bound:
            self._state.bind(self._bound)
        remembers = task is not None and not self._bound
        self._node = self._memory.begin(start) if self._memory is not None and remembers else None
        self._relabelling = None
        habits = self._perturbations.habits(task) if task else None
        self._talk = UserConversation(task, self._user_of(task), habits) if task else UserConversation()
        self._journal, self._marks = [], []
        self._ended = None
        self._began = time.monotonic()

    def _mark(self) -> None:
        talk = self._talk
        self._marks.append((self._state.snapshot(), self._node, talk.progress, talk.n_chars))

    def _is_open(self) -> bool:
        """Return whether the agent may still act; a limit truncates the episode."""
        if self._ended is not None:
            return False
        limits = self._limits
        if limits is not None and (
            len(self._journal) >= limits.steps or time.monotonic() - self._began >= limits.seconds
            or (limits.tokens is not None and self._talk.n_chars > CHARACTERS * (limits.tokens - 1))
            or self._talk.n_chars > MAX_EPISODE
        ):
            self._ended = "truncated"
            return False
        return True
