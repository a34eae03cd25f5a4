"""Who acts in an episode: a function from the agent's observation to its next turn.

    openai:MODEL@URL   a model behind any OpenAI-compatible endpoint; tools are its functions, its text goes to the user
    script:FILE.py     `policy(observation)` of a Python file, run in this process: trusted; if it has
                       `logprob(observation, moves)`, that tells how likely a turn is
    script:FILE        JSON lines of moves {"tool", "arguments"} | {"say"}, or of {"task_id", "steps": [moves]}
    replay             the recorded sessions of the task, attempt by attempt
    oracle             the known solution of the task

A policy is called once per turn and has no state: an observation contains the whole conversation, so turns of many episodes may
be asked for in parallel.
"""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.admission import FAILURES, MAX_TEXT, well_formed
from env_builder.runtime.canonical import digest, written
from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import functions
from pipelines import playing
from pipelines.resources import chat
from pipelines.rollouts.orders import Job, rewards_of
from warehouse.errors import EpisodeFailed, InputError, Missing, PolicyFailed, Refused, Unavailable

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
    fields: Row | None = None
    """What an agent's own request says besides: its tools as it describes them, `tool_choice`, `response_format` …"""


class Call(NamedTuple):
    """A call that the agent makes."""

    tool: str
    arguments: Any
    """An object; anything else is rejected before it reaches the environment."""
    call_id: str | None = None


class Turn(NamedTuple):
    """What the agent does: speak, call tools in parallel, or with neither end the episode."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    model: str | None = None
    reasoning: str | None = None
    usage: Row | None = None
    """Token counts as ATIF's metrics name them."""
    n_asked: int = 0
    """Inferences of a model."""
    recorded: bool = False
    """Is it written in the environment's own names, whatever names the episode gives its records?"""
    document: Row | None = None
    """The chat completion that it is of, as the endpoint gave it; None: no endpoint was asked."""

    def well_formed(self) -> Turn:
        """Return the turn with texts that can be written as UTF-8. EpisodeFailed: it is no turn."""
        calls = tuple(call._replace(
            tool=well_formed(call.tool), arguments=well_formed(call.arguments), call_id=well_formed(call.call_id))
            for call in self.calls)
        texts = (self.text, *(call.tool for call in calls))
        if not all(isinstance(text, str) for text in texts) or max(map(len, texts)) > MAX_TEXT:
            what = f"the message or a tool's name is no text, or longer than {MAX_TEXT} characters"
            raise EpisodeFailed(what, ascii(self)[:80])
        return self._replace(
            text=well_formed(self.text), calls=calls, model=well_formed(self.model), reasoning=well_formed(self.reasoning),
            usage=well_formed(self.usage) if written(self.usage) is not None else None, document=well_formed(self.document))

    def as_message(self) -> Row:
        """Return the turn as an assistant's chat message."""
        message: Row = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {"id": call.call_id, "type": "function", "function": {
                    "name": call.tool, "arguments": call.arguments if isinstance(call.arguments, str)
                    else json.dumps(call.arguments, ensure_ascii=False)}} for call in self.calls]
        return message


Policy = Callable[[Observation], Turn]


class Named(NamedTuple):
    """A policy that a job names."""

    name: str
    """Its full name, which its episodes state."""
    act: Policy
    plays: frozenset[str] | None = None
    """Tasks that it can play; None: any."""
    logprob: Callable[[Observation, Turn], float] | None = None
    """Natural logarithm of the probability with which it takes a turn; None: it does not tell."""
    sampling: Row | None = None
    """Sampling parameters of its model; None: the endpoint's own, or it is no model."""
    is_model: bool = False
    """Can it be asked anything?"""


def named(job: Job) -> Named:
    """Return the job's policy, by the name of its agent if it has one. Raises InputError, Missing."""
    policy = _named(job)
    act = policy.act
    policy = policy._replace(act=lambda observation: act(observation).well_formed())
    return policy if job.agent is None else policy._replace(name=f"{policy.name} by {job.agent.name}")


def _named(job: Job) -> Named:
    kind, _, what = job.policy.partition(":")
    if kind == "openai" and what:
        tokens = {"logprobs": True, "return_token_ids": True} if job.tokens else {}
        if job.temperature is None:
            return Named(job.policy, _model(what, None, tokens), is_model=True)
        return Named(f"{job.policy} temperature {job.temperature:g}", _model(what, job.temperature, tokens),
                     sampling={"temperature": job.temperature}, is_model=True)
    if kind == "script" and what:
        path = Path(what)
        if not path.is_file():
            raise InputError("there is no such script", what, "give a Python file with `policy`, or JSON lines of moves")
        name = f"script:{path.name} {digest(path.read_bytes())[:12]}"
        return _python_policy(path, name) if path.suffix == ".py" else _scripted_policy(path, name)
    if job.policy == "none" and job.agent is not None:
        return Named("none", _no_model, is_model=True)
    if job.policy not in ("oracle", "replay"):
        raise Missing.named("policy", job.policy, KINDS)
    rewards = rewards_of(job)
    path = rewards / "solutions.jsonl"
    if not path.is_file():
        raise InputError("there are no known solutions", str(path), "name the rewards folder with --rewards")
    solutions = {row["task_id"]: row["steps"] for row in _rows(path)}
    if job.policy == "oracle":
        return _listed("oracle", {task_id: [steps] for task_id, steps in solutions.items()})
    tasks = {row["task_id"]: row for row in _rows(Path(job.environment) / "tasks.jsonl")}
    sessions = {task_id: [steps] if tasks[task_id]["derived_from"] is None else []
                for task_id, steps in solutions.items() if task_id in tasks}
    if (rewards / "sessions.jsonl").is_file():  # the session that gives the known solution, then the others by their ids
        for row in _rows(rewards / "sessions.jsonl"):
            sessions.setdefault(row["task_id"], []).append(row["steps"])
    return _listed("replay", sessions)


def action(move: Any) -> Turn:
    """Turn a script's answer (None, text, a move, or a list of moves) into a turn. Raises ValueError."""
    if isinstance(move, Turn):
        return move
    if move is None or isinstance(move, str):
        return Turn(text=move or "")
    text, calls = "", []
    for each in move if isinstance(move, list | tuple) else [move]:
        if not isinstance(each, dict) or ("say" in each) == ("tool" in each):
            raise ValueError(f"{each!r} is no move")
        if "say" in each:
            text = f"{text}\n{each['say']}" if text else str(each["say"])
        else:
            calls.append(Call(str(each["tool"]), each.get("arguments", {})))
    return Turn(text, tuple(calls))


def _listed(name: str, demonstrations: dict[str, list[list[Row]]], recorded: bool = True) -> Named:
    """Return a policy that plays lists of moves, one per turn; attempts of a task take its demonstrations in turn."""
    def policy(observation: Observation) -> Turn:
        own = demonstrations[observation.task_id]
        moves = own[observation.attempt % len(own)]
        return action(moves[observation.n_turns])._replace(recorded=recorded) if observation.n_turns < len(moves) else Turn()

    return Named(name, policy, frozenset(task_id for task_id, own in demonstrations.items() if own))


def _scripted_policy(path: Path, name: str) -> Named:
    rows = _rows(path)
    if rows and all(isinstance(row, dict) and "steps" in row for row in rows):
        return _listed(name, {row["task_id"]: [row["steps"]] for row in rows}, recorded=False)
    moves = list(playing.scripted(path))
    return Named(name, lambda observation: action(moves[observation.n_turns]) if observation.n_turns < len(moves) else Turn())


def _python_policy(path: Path, name: str) -> Named:
    """Return a Python file's policy; if it tells how likely its turns are, each is recorded with that."""
    try:
        script = runpy.run_path(str(path))
    except (SyntaxError, ImportError, ValueError, LookupError, TypeError, AttributeError, NameError) as error:
        raise InputError(f"the script cannot be loaded ({error})", str(path)) from error
    if not callable(script.get("policy")):
        raise InputError("the script has no function `policy`", str(path), "define policy(observation)")

    def call_script(function: str, *arguments: Any) -> Any:
        try:
            return script[function](*arguments)
        except (ValueError, LookupError, TypeError, AttributeError, NameError, ArithmeticError, AssertionError) as error:
            raise PolicyFailed(
                f"the script's {function} failed ({type(error).__name__}: {error})", str(path), "correct the script") from error

    def logprob(observation: Observation, turn: Turn) -> float:
        moves: list[Row] = [{"say": turn.text}] if turn.text else []
        moves += ({"tool": call.tool, "arguments": call.arguments} for call in turn.calls)
        chance = call_script("logprob", observation, moves)
        if not isinstance(chance, int | float) or not chance <= 0:
            raise PolicyFailed(f"the script's logprob gives {chance!r}, no logarithm of a probability", str(path),
                               "correct the script")
        return float(chance)

    def policy(observation: Observation) -> Turn:
        move = call_script("policy", observation)
        try:
            turn = action(move)
        except (ValueError, LookupError) as error:
            raise PolicyFailed(f"the script's policy failed ({error})", str(path), "correct the script") from error
        return turn._replace(usage={**(turn.usage or {}), "logprobs": [logprob(observation, turn)]}) if has_logprob else turn

    has_logprob = callable(script.get("logprob"))
    return Named(name, policy, None, logprob if has_logprob else None)


def _model(what: str, temperature: float | None, tokens: Row) -> Policy:
    """Return a policy whose turns are the model's answers. If the user has nothing more to say, the episode ends. `tokens`:
    fields that ask for token ids and log-probabilities."""
    model, _, url = what.rpartition("@") if "@" in what else (what, "", os.environ.get("TRACEROOM_MODEL_URL", ""))
    if not model or not url:
        raise InputError("the policy names no endpoint", f"openai:{what}", "write openai:MODEL@http://HOST:PORT/v1")
    ask = chat(url, model, os.environ.get("TRACEROOM_MODEL_KEY") or os.environ.get("OPENAI_API_KEY") or "none", temperature)

    def policy(observation: Observation) -> Turn:
        if observation.n_turns and observation.messages[-1]["role"] == "assistant":
            return Turn()
        try:
            answer = ask(observation.messages, functions(observation.tools), {**tokens, **(observation.fields or {})})
        except InputError as error:
            raise Refused(error.what, error.where, error.hint) from error
        except Unavailable as error:
            raise PolicyFailed(error.what, error.where, error.hint) from error
        except FAILURES as error:
            raise EpisodeFailed(f"the model's answer cannot be read ({type(error).__name__}: {error})", what) from error
        calls = tuple(Call(call["name"], _parse_arguments(call["arguments"]), call["id"]) for call in answer["calls"])
        return Turn(answer["content"], calls, answer["model"], answer["reasoning"], answer["usage"], 1,
                    document=answer["document"])

    return policy


def _no_model(observation: Observation) -> Turn:
    raise PolicyFailed("the agent asked for a model, and there is none", observation.task_id, "name it with --policy")


def _parse_arguments(text: Any) -> Any:
    """Parse the arguments; what is no JSON text is returned as it is, and rejected later."""
    try:
        return text if not isinstance(text, str) else json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _rows(path: Path) -> list[Row]:
    try:
        return list(rows_of(path))
    except ValueError as error:
        raise InputError(f"these are no JSON lines ({error})", str(path), "write one object per line") from error
