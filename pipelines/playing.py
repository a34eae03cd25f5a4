"""An episode by hand: moves of a person or a script in, steps and a grade out; and grades of journals.

Loads environment and grader into this process (docs/environment.md, "Three sides"): for people and trusted scripts.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import verify
from env_builder.audit import DEEP, Failure
from env_builder.runtime import Environment
from env_builder.runtime.bindings import kinds
from env_builder.runtime.files import rows_of
from env_builder.runtime.records import Grade, Observation
from env_builder.runtime.trajectory import DRAWN, OWN
from env_builder.runtime.trajectory import journal as journal_of
from extractors import configuration
from pipelines.resources import Ask, ask_from_environment
from warehouse.errors import EnvironmentBroken, InputError, Missing, Unavailable


def bindings(environment: Path, options: Iterable[str], config: str | None) -> dict[str, str]:
    """Tool -> source: those of the configuration whose tool is in this environment; `options` (TOOL=SOURCE) override them.
    Raises InputError (no source, an unknown kind) and Missing (no such tool)."""
    return _sources(tool_names(environment), options, configuration.load(config).bindings if config else {}, str(config))


def bindings_of_all(tools: set[str], options: Sequence[str]) -> dict[str, str]:
    """Tool -> source, where an option may name the source of all tools (SOURCE) next to those of one (TOOL=SOURCE). Raises
    InputError and Missing."""
    wide = [option for option in options if option.partition("=")[0] not in tools]
    if len(wide) > 1:
        raise InputError(f"two sources for all tools: {', '.join(wide)}", "--bind", "name one of them, others with TOOL=SOURCE")
    every = [f"{tool}={source}" for source in wide for tool in sorted(tools)]
    return _sources(tools, [*every, *(option for option in options if option not in wide)], {}, "")


def _sources(tools: set[str], options: Iterable[str], configured: Mapping[str, str], config: str) -> dict[str, str]:
    sources = {tool: source for tool, source in configured.items() if tool in tools}
    for option in options:
        tool, _, source = option.partition("=")
        if tool not in tools:
            raise Missing.named("tool", tool, tools, "write --bind TOOL=SOURCE")
        sources[tool] = source
    for tool, source in sources.items():
        where = config if configured.get(tool) == source else f"--bind {tool}={source}"
        check_source(source, where, f" for the tool {tool!r}")
    return dict(sorted(sources.items()))


def tool_names(environment: Path) -> set[str]:
    """Return the names of an environment's tools."""
    return {tool["name"] for tool in rows_of(environment / "tools.jsonl")}


def check_source(source: str, where: str, purpose: str = "") -> None:
    """Raise InputError if this names no source of answers."""
    kind, colon, what = source.partition(":")
    if not (colon and what and kind in kinds()):
        raise InputError(f"invalid source {source!r}{purpose}", where,
                         f"write KIND:WHAT with one of these kinds: {', '.join(kinds())}")


def live(wanted: bool) -> Ask | None:
    """Return the model that answers unknown calls, None if it is not wanted. Raises InputError if none is configured. If the
    model fails, the call stays unknown, with a warning."""
    ask = ask_from_environment() if wanted else None
    if ask is None:
        if wanted:
            raise InputError("no model is configured to answer", "--ask",
                             "set TRACEROOM_MODEL and TRACEROOM_MODEL_URL (docs/configuration.md)")
        return None

    def answer_or_empty(prompt: str) -> str:
        try:
            return ask(prompt)
        except Unavailable as error:
            logging.getLogger(__name__).warning("the call stays unknown: %s", error)
            return ""

    return answer_or_empty


Move = dict[str, Any]
"""{"tool", "arguments"} or {"say"}."""
_LIKE_A_CALL = re.compile(r"\S+(?: \S+)?\s*\{.*\}")
"""A word or two and something in braces: no plain text."""
_MOVE_HINT = 'write {"tool": "…", "arguments": {…}} or {"say": "…"}'


class Room(NamedTuple):
    """An environment in which a task has begun."""

    environment: Environment
    observation: Observation


def begin(
    path: Path, rewards: Path | None, task_id: str, seed: int, perturbations: Sequence[str] = (),
    bindings: Mapping[str, str] | None = None, ask: Ask | None = None,
) -> Room:
    """Load the environment at `path` and begin a task. Raises EnvironmentBroken. `perturbations`: names as `Environment.reset`
    takes them; `bindings`: tool -> source as `Environment.bind` takes them; `ask`: a model that answers what would be
    `unknown`."""
    environment = load(path, rewards)
    try:
        for tool, source in (bindings or {}).items():
            environment.bind(tool, source)
        environment.live(ask)
        return Room(environment, environment.reset(task_id, seed=seed, perturbations=perturbations))
    except (KeyError, ValueError, ImportError, AttributeError, OSError) as error:
        reason = error if isinstance(error, OSError) or not error.args else error.args[0]
        raise InputError(f"cannot start the environment: {reason}", str(path), "see docs/environment.md") from error


def load(path: Path, rewards: Path | None, kind: type[Environment] = Environment) -> Environment:
    """Load the environment at `path`, with the rewards at `rewards` or where a run puts them. Raises EnvironmentBroken."""
    try:
        return kind.load(str(path), rewards=str(rewards) if rewards else None)
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentBroken(
            f"the environment cannot be loaded ({error})", str(path), "build it again with: traceroom run") from error


def scripted(path: Path) -> Iterator[Move]:
    """Yield the moves of a file of JSON lines. Raises InputError with file and line."""
    if not path.is_file():
        raise InputError("there is no such script", str(path), "give a file of JSON lines")
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield _checked(json.loads(line), where)
            except ValueError as error:
                raise InputError(f"this is no JSON ({error})", where, _MOVE_HINT) from error


def _checked(move: Any, where: str) -> Move:
    """Return a well-formed move. Raises InputError."""
    is_say = isinstance(move, dict) and isinstance(move.get("say"), str)
    is_call = isinstance(move, dict) and isinstance(move.get("tool"), str) and isinstance(move.get("arguments", {}), dict)
    if is_say == is_call:
        raise InputError("this is neither a call nor a message to the user", where, _MOVE_HINT)
    return {"say": move["say"]} if is_say else {"tool": move["tool"], "arguments": move.get("arguments", {})}


def typed(line: str, tools: set[str]) -> Move:
    """Parse what a person typed: a tool's name and a JSON object, or text. Raises InputError, Missing."""
    called = [name for name in tools if line == name or line.startswith(f"{name} ")]
    if not called and _LIKE_A_CALL.fullmatch(line):
        raise Missing.named("tool", line.partition("{")[0].strip(), tools, "/tools lists them")
    if not called:
        return {"say": line}
    name = max(called, key=len)  # names may hold spaces, and one begin another
    text = line[len(name):].strip()
    try:
        return _checked({"tool": name, "arguments": json.loads(text) if text else {}}, "your line")
    except ValueError as error:
        raise InputError(f"the arguments are no JSON ({error})", "your line", 'write them as {"argument": 1}') from error


def played(room: Room, moves: Iterable[Move]) -> Iterator[dict[str, Any]]:
    """Make the moves until they or the episode end; yield each step as a row of the journal."""
    for move in moves:
        if "say" in move:
            reply = room.environment.say(move["say"])
            yield {"kind": "say", "content": move["say"], "reply": reply}
        else:
            result = room.environment.call(move["tool"], move["arguments"])
            yield {"kind": "call", **move, "content": result.content, "is_error": result.is_error, "tier": result.tier,
                   **{name: value for name, value in room.environment.journal[-1].items() if name in DRAWN}}
        if room.environment.ended:
            return
    room.environment.finish()


def graded(room: Room, mode: str = "eval", ask: Ask | None = None) -> dict[str, Any] | None:
    """{"reward", "tally", "checks"} of the episode; None where its task has no verified reward. `ask`: for judges."""
    try:
        grade = room.environment.grade(mode, ask)
    except ValueError as error:
        raise InputError(f"the episode cannot be graded ({error})", hint="see docs/rewards.md") from error
    return None if grade.reward is None and not grade.checks else _grade_row(grade)


def _grade_row(grade: Grade) -> dict[str, Any]:
    return {"reward": grade.reward, "tally": grade.tally, "checks": [check._asdict() for check in grade.checks]}


def graded_journals(
    path: Path, rewards: Path | None, journals: Path, bindings: Mapping[str, str], mode: str = "eval", ask: Ask | None = None,
    discount: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Grade each line of a file of journals: {"task_id", "seed", "reward", "tally", "checks", and "steps" with a `discount`}.
    `ask`: the model of judged checks. Raises InputError with file and line. Task, seed and perturbations of a line are trusted:
    they come from the server that wrote it."""
    if not journals.is_file():
        raise InputError("there is no such file of journals", str(journals), "write one with: traceroom serve --journals FILE")
    environment = load(path, rewards)
    for tool, source in bindings.items():
        environment.bind(tool, source)
    task_ids = {task.task_id for task in environment.tasks}
    own = {"environment": path.absolute().name, "content_digest": environment.manifest["content_digest"]}
    for number, line in enumerate(journals.read_bytes().split(b"\n"), 1):
        if not line:
            continue
        where = f"{journals}, line {number}"
        try:
            row = json.loads(line)
            if "schema_version" in row:  # a trajectory of `rollout`
                row = {**row["extra"][OWN], "journal": journal_of(row)}
            task_id, journal = row["task_id"], list(row["journal"])
            rolled = (row.get("seed", 0), tuple(row.get("perturbations", row.get("conditions", ()))))  # before format 2
            if not isinstance(task_id, str):
                raise TypeError(f"its task is {str(task_id)[:40]!r}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"this is no journal ({error})", where, "use the lines as serve or rollout wrote them") from error
        stated = next((name for name in ("content_digest", "environment") if name in row), None)
        if stated is not None and row[stated] != own[stated]:  # the digest tells it surely: a folder may have been renamed
            raise InputError(f"the episode is of another environment ({stated} {str(row[stated])[:40]!r}, this one's is "
                             f"{own[stated][:40]!r})", where, "grade it with the environment that it was played in")
        if task_id not in task_ids:
            raise Missing.named("task", str(task_id), task_ids, f"the line is {where}")
        try:
            grade = environment.grade_journal(task_id, journal, *rolled, mode, ask)
            steps = {} if discount is None else {"steps": environment.shaped(task_id, journal, *rolled, discount, ask)}
        except ValueError as error:
            raise InputError(f"the episode cannot be graded ({error})", where, "see docs/rewards.md") from error
        yield {"task_id": task_id, "seed": rolled[0], **_grade_row(grade), **steps}


def verified(path: Path, rewards: Path | None, deep: bool = False) -> dict[str, Any]:
    """{"n_tasks", "tasks": ids that hold, "decisions", "plays", "audit"} of the environment at `path`."""
    rewards = rewards or path.parent.parent / "rewards" / path.name
    verification = verify.verify(path, rewards, depth=DEEP if deep else None)
    return {
        "n_tasks": verification.decisions.height, "tasks": verification.task_ids,
        "decisions": verification.decisions.to_dicts(), "plays": verification.plays.to_dicts(),
        "audit": verification.report.totals}


def attacked(path: Path, rewards: Path | None, task_id: str | None = None) -> list[dict[str, Any]]:
    """Play the battery of attacks: {"task_id", "reason" why none was played, "attacks"} of a task, or of all."""
    rewards = rewards or path.parent.parent / "rewards" / path.name
    rows = []
    for name, attacks in verify.attack(path, rewards, [task_id] if task_id else None).items():
        reason, graded = (f"{attacks.reason}: {attacks.detail}", []) if isinstance(attacks, Failure) else (None, attacks)
        rows.append({
            "task_id": name, "reason": reason, "attacks": [{**each._asdict(), "passes": each.passes} for each in graded]})
    return rows
