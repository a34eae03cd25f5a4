"""Who acts in an episode: a function from what the agent sees to its next turn.

    openai:MODEL@URL   a model behind any OpenAI-compatible endpoint; tools go as functions, words are said to the user
    script:FILE.py     `policy(observation)` of a Python file, run in this process: trusted; where it has
                       `logprob(observation, moves)`, that says how likely a turn is
    script:FILE        JSON lines of moves {"tool", "arguments"} | {"say"}, or of {"task_id", "steps": [moves]}
    replay             the recorded sessions of the task, attempt by attempt
    oracle             the known solution of the task

A policy is asked once a turn and keeps nothing: what it sees holds the whole conversation, so turns of many episodes may be
asked side by side.
"""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import digest
from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import functions
from pipelines.rollouts.orders import Job, rewards_of
from warehouse.errors import InputError, Missing, PolicyFailed, Refused, Unavailable

KINDS = ("openai:MODEL@URL", "oracle", "replay", "script:FILE")
Row = dict[str, Any]


class Observation(NamedTuple):
    """What a policy sees before a turn."""

    task_id: str
    seed: int
    attempt: int
    messages: list[Row]
    """The conversation so far as OpenAI's chat messages: system, user, assistant (with tool_calls), tool."""
    tools: list[Row]
    """MCP descriptors."""
    n_turns: int
    """Turns that the policy has taken."""


class Call(NamedTuple):
    """A call that the agent makes."""

    tool: str
    arguments: Any
    """An object; anything else is refused before it reaches the room."""
    call_id: str | None = None


class Turn(NamedTuple):
    """What the agent does: says something, calls tools side by side, or with neither ends the episode."""

    said: str = ""
    calls: tuple[Call, ...] = ()
    model: str | None = None
    reasoning: str | None = None
    usage: Row | None = None
    """Token counts as ATIF's metrics name them."""
    n_asked: int = 0
    """Inferences of a model."""
    recorded: bool = False
    """Is it written in the room's own names, whatever names the episode gives its things?"""


Policy = Callable[[Observation], Turn]


class Named(NamedTuple):
    """A policy that a job names."""

    name: str
    """Its full name, by which its episodes are known."""
    act: Policy
    plays: frozenset[str] | None = None
    """Tasks that it knows what to do in; None: any."""
    logprob: Callable[[Observation, Turn], float] | None = None
    """Natural logarithm of the probability with which it takes a turn; None: it does not say."""
    sampling: Row | None = None
    """Parameters that its model is asked with; None: the endpoint's own, or it is no model."""


def named(job: Job) -> Named:
    """The job's policy. Raises InputError, Missing."""
    kind, _, what = job.policy.partition(":")
    if kind == "openai" and what:
        heat = "" if job.temperature is None else f" temperature {job.temperature:g}"
        return Named(f"{job.policy}{heat}", _model(what, job.temperature),
                     sampling=None if job.temperature is None else {"temperature": job.temperature})
    if kind == "script" and what:
        path = Path(what)
        if not path.is_file():
            raise InputError("there is no such script", what, "give a Python file with `policy`, or JSON lines of moves")
        name = f"script:{path.name} {digest(path.read_bytes())[:12]}"
        return _written(path, name) if path.suffix == ".py" else _moves_of(path, name)
    if job.policy == "oracle":
        return _listed("oracle", {task_id: [steps] for task_id, steps in _solutions(job).items()})
    if job.policy == "replay":
        return _listed("replay", _sessions(job))
    raise Missing.named("policy", job.policy, KINDS)


def action(move: Any) -> Turn:
    """The turn that a script's answer stands for: None, text, a move, or a list of moves. ValueError where it is none."""
    if isinstance(move, Turn):
        return move
    if move is None or isinstance(move, str):
        return Turn(said=move or "")
    said, calls = "", []
    for each in move if isinstance(move, list | tuple) else [move]:
        if not isinstance(each, dict) or ("say" in each) == ("tool" in each):
            raise ValueError(f"{each!r} is no move")
        if "say" in each:
            said = f"{said}\n{each['say']}" if said else str(each["say"])
        else:
            calls.append(Call(str(each["tool"]), each.get("arguments", {})))
    return Turn(said, tuple(calls))


def _listed(name: str, ways: dict[str, list[list[Row]]], recorded: bool = True) -> Named:
    """Plays lists of moves, one a turn: of a task's ways the one of the attempt's number, counted round."""
    def policy(seen: Observation) -> Turn:
        known = ways[seen.task_id]
        moves = known[seen.attempt % len(known)]
        return action(moves[seen.n_turns])._replace(recorded=recorded) if seen.n_turns < len(moves) else Turn()

    return Named(name, policy, frozenset(task_id for task_id, known in ways.items() if known))


def _solutions(job: Job) -> dict[str, list[Row]]:
    path = rewards_of(job) / "solutions.jsonl"
    if not path.is_file():
        raise InputError("there are no known solutions", str(path), "name the grader's side with --rewards")
    return {row["task_id"]: row["steps"] for row in _rows(path)}


def _sessions(job: Job) -> dict[str, list[list[Row]]]:
    """Moves of the tasks' recorded sessions: the one that gives the known solution, then the others by their ids."""
    path = rewards_of(job) / "sessions.jsonl"
    tasks = {row["task_id"]: row for row in _rows(Path(job.environment) / "tasks.jsonl")}
    own = {task_id: [steps] if tasks[task_id]["derived_from"] is None else []
           for task_id, steps in _solutions(job).items() if task_id in tasks}
    for row in _rows(path) if path.is_file() else ():
        own.setdefault(row["task_id"], []).append(row["steps"])
    return own


def _moves_of(path: Path, name: str) -> Named:
    from pipelines.playing import scripted

    rows = _rows(path)
    if rows and all(isinstance(row, dict) and "steps" in row for row in rows):
        return _listed(name, {row["task_id"]: [row["steps"]] for row in rows}, recorded=False)
    moves = list(scripted(path))
    return Named(name, lambda seen: action(moves[seen.n_turns]) if seen.n_turns < len(moves) else Turn())


def _written(path: Path, name: str) -> Named:
    """A Python file's policy; where it says how likely its turns are, each is recorded with that."""
    try:
        written = runpy.run_path(str(path))
    except (SyntaxError, ImportError, ValueError, LookupError, TypeError, AttributeError, NameError) as error:
        raise InputError(f"the script cannot be loaded ({error})", str(path)) from error
    if not callable(written.get("policy")):
        raise InputError("the script has no function `policy`", str(path), "define policy(observation)")

    def asked(function: str, *seen: Any) -> Any:
        try:
            return written[function](*seen)
        except (ValueError, LookupError, TypeError, AttributeError, NameError, ArithmeticError, AssertionError) as error:
            raise PolicyFailed(
                f"the script's {function} failed ({type(error).__name__}: {error})", str(path), "mend it") from error

    def logprob(seen: Observation, turn: Turn) -> float:
        said: list[Row] = [{"say": turn.said}] if turn.said else []
        chance = asked("logprob", seen, [*said, *({"tool": call.tool, "arguments": call.arguments} for call in turn.calls)])
        if not isinstance(chance, int | float) or not chance <= 0:
            raise PolicyFailed(f"the script's logprob gives {chance!r}, no logarithm of a probability", str(path), "mend it")
        return float(chance)

    def policy(seen: Observation) -> Turn:
        move = asked("policy", seen)
        try:
            turn = action(move)
        except (ValueError, LookupError) as error:
            raise PolicyFailed(f"the script's policy failed ({error})", str(path), "mend it") from error
        return turn._replace(usage={**(turn.usage or {}), "logprobs": [logprob(seen, turn)]}) if tells else turn

    tells = callable(written.get("logprob"))
    return Named(name, policy, None, logprob if tells else None)


def _model(what: str, temperature: float | None) -> Policy:
    """A turn is one answer of the model. Where the user has nothing more to say, it is not asked again: the episode ends."""
    from pipelines.resources import chat

    model, _, url = what.rpartition("@") if "@" in what else (what, "", os.environ.get("TRACEROOM_MODEL_URL", ""))
    if not model or not url:
        raise InputError("the policy names no endpoint", f"openai:{what}", "write openai:MODEL@http://HOST:PORT/v1")
    ask = chat(url, model, os.environ.get("TRACEROOM_MODEL_KEY") or os.environ.get("OPENAI_API_KEY") or "none", temperature)

    def policy(seen: Observation) -> Turn:
        if seen.n_turns and seen.messages[-1]["role"] == "assistant":
            return Turn()
        try:
            answer = ask(seen.messages, functions(seen.tools))
        except InputError as error:
            raise Refused(error.what, error.where, error.mend) from error
        except Unavailable as error:
            raise PolicyFailed(error.what, error.where, error.mend) from error
        calls = tuple(Call(call["name"], _object(call["arguments"]), call["id"]) for call in answer["calls"])
        return Turn(answer["content"], calls, answer["model"], answer["reasoning"], answer["usage"], 1)

    return policy


def _object(text: str) -> Any:
    """The arguments; the text itself where it is no JSON, which is then refused."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def _rows(path: Path) -> list[Row]:
    try:
        rows = list(rows_of(path))
    except ValueError as error:
        raise InputError(f"these are no JSON lines ({error})", str(path), "write an object a line") from error
    return rows
