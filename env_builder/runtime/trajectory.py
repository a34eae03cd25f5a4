"""An episode as a trajectory in the Agent Trajectory Interchange Format (ATIF v1.8), recorded step by step.

In: an environment in which an agent acts, and where it is apart (a process, a container) a witness: an `Environment` in which
each move is made again. Out: one JSON object that ATIF's own models accept; what they have no field for (tier, latency, state
hash, reward) stands in `extra`. Where a rollout gives the agent other names than its own (relabelling.py) a step holds
what the agent saw and gave, and `own` in its `extra` what the journal holds.
Sees: moves, answers, how long each took by the clock, the state after each. Does not see: what the agent thought, unless it is
told by `turn`. An environment that nobody records is as fast as before: nothing in it knows of this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from .admission import admitted, well_formed
from .canonical import written
from .environment import LONGEST, Environment
from .records import Grade

VERSION = "ATIF-v1.8"
OWN = "traceroom"
"""The key under which our own stands in `extra` of a trajectory."""
DRAWN = ("fault", "expired", "paged", "latency_ms", "left")
"""What a journal row of a call says beside the answer, where a perturbation drew it or a command left it."""
_SOURCES = {"assistant": "agent", "user": "user"}
Row = dict[str, Any]
Value = TypeVar("Value")


class Acting(Protocol):
    """What is recorded: an `Environment`, or the host's end of one that is apart."""

    def call(self, tool: str, arguments: Any) -> Any:
        """Return the tool's answer: content, is_error, tier."""
    def say(self, text: str) -> str | None:
        """Return the user's answer."""
    def finish(self) -> Any:
        """End the episode: the agent is done."""


class Recorder:
    """Passes moves on to an environment, and keeps what came of each and how long it took."""

    def __init__(self, room: Acting, witness: Environment | None = None) -> None:
        if witness is None and not isinstance(room, Environment):
            raise ValueError("a room apart is recorded beside a witness: an Environment that begins with the same task")
        self._room = room
        self._apart = witness is not None
        self._witness: Environment = witness or room  # type: ignore[assignment]
        self._opening: list[Row] = []
        self._steps: list[Row] = []
        self._moves: list[Row] = []
        """Of each move of the journal its own part of `extra`, to which its reward is added at the end."""
        self._turn: Row | None = None
        self._n_calls = 0

    def begin(self, messages: Iterable[Row]) -> None:
        """Set what stands before the agent's first move: [{"role", "content"}]."""
        self._opening = [
            {"source": _SOURCES.get(message["role"], "system"), "message": message["content"] or ""} for message in messages]

    def turn(self, model: str | None = None, reasoning: str | None = None, usage: Row | None = None, n_asked: int = 0) -> None:
        """Begin a turn: the moves until the next one are one answer of the agent, its words, then its calls side by side.

        `usage`: token counts as ATIF's metrics name them; `n_asked`: how many inferences of a model it took.
        """
        fields = {"model_name": model, "reasoning_content": reasoning or None, "metrics": usage or None}
        self._turn = {"source": "agent", "message": "", **{name: value for name, value in fields.items() if value is not None},
                      "llm_call_count": n_asked}
        self._steps.append(self._turn)

    def say(self, text: str) -> str | None:
        """Tell the user something; where the episode has ended nothing is recorded."""
        if self._witness.ended is not None:
            return None
        text = admitted(text)
        reply, took = _timed(lambda: self._room.say(text))
        if self._apart:
            self._witness.say(text)
        step, move, row = self._step("say"), self._move(took), self._witness.journal[-1]
        own = {name: row[name] for name, shown in (("content", text), ("reply", reply)) if row[name] != shown}
        move |= {"own": own} if own else {}
        step["message"] = text
        step["extra"] = {**step.get("extra", {}), "say": move}
        if reply is not None:
            step["replies"] = reply
        return reply

    def call(self, tool: str, arguments: Any, call_id: str | None = None) -> Any:
        """Return the tool's answer, as the environment gave it; where the episode has ended it is no move."""
        over = self._witness.ended is not None
        tool, arguments = well_formed(tool), well_formed(arguments)
        result, took = _timed(lambda: self._room.call(tool, arguments))
        if over or result.tier is None:
            self.refuse(tool, arguments, call_id, result.content)
            return result
        if self._apart:
            self._witness.call(tool, arguments)
        row = self._witness.journal[-1]
        drawn = {name: row[name] for name in DRAWN if name in row}
        pairs = (("arguments", arguments), ("content", result.content))
        own = {name: row[name] for name, shown in pairs if row[name] != shown}
        move = self._move(took)
        move |= {"is_error": result.is_error, "tier": result.tier,
                 **({"drawn": drawn} if drawn else {}), **({"own": own} if own else {})}
        self._answered(tool, arguments, call_id, result.content, move)
        return result

    def refuse(self, tool: str, arguments: Any, call_id: str | None, content: str) -> None:
        """Record a call that never reaches the environment (no such tool, arguments that are no object), and its answer."""
        given: Any = well_formed(arguments) if written(arguments) is not None else str(arguments)[:LONGEST]
        details = {} if isinstance(given, dict) else {"arguments": given}
        self._answered(well_formed(tool), given if isinstance(given, dict) else {}, call_id, content,
                       {"is_error": True, "refused": True, **details})

    def finish(self) -> None:
        """End the episode: the agent is done."""
        if self._witness.ended is not None:
            return
        _, took = _timed(self._room.finish)
        if self._apart:
            self._witness.finish()
        if not self._steps:
            self.turn()
        step = self._steps[-1]
        step["extra"] = {**step.get("extra", {}), "finish": self._move(took)}

    @property
    def witness(self) -> Environment:
        """The environment that knows what came of it."""
        return self._witness

    def trajectory(self, agent: str, about: Row, grade: Grade | None = None, rewards: Sequence[float] | None = None) -> Row:
        """Return the episode so far as one ATIF trajectory.

        `agent`: who acted; `about`: what else is known of the episode, `episode_id` among it; `grade`: of the mode `eval`;
        `rewards`: of each move of the journal, for training (`Environment.shaped`).
        """
        for place, move in enumerate(self._moves):
            move["reward"] = rewards[place] if rewards is not None and place < len(rewards) else None
        graded = {} if grade is None else {
            "reward": grade.reward, "tally": grade.tally, "checks": [check._asdict() for check in grade.checks]}
        steps = list(self._all_steps())
        metrics = [step["metrics"] for step in steps if step.get("metrics")]
        tokens = {f"total_{name}": sum(each.get(name) or 0 for each in metrics)
                  for name in ("prompt_tokens", "completion_tokens", "cached_tokens") if any(name in each for each in metrics)}
        return {
            "schema_version": VERSION, "session_id": about.get("episode_id"), "trajectory_id": about.get("episode_id"),
            "agent": {"name": agent, "version": "1", "tool_definitions": functions(self._witness.tools)},
            "steps": [{"step_id": place, **step} for place, step in enumerate(steps, 1)],
            "final_metrics": {**tokens, "total_steps": len(steps)},
            "extra": {OWN: {**about, **graded}},
        }

    def _all_steps(self) -> Iterator[Row]:
        """Return steps as ATIF has them: what the user answers is a step of its own, after what the agent did."""
        yield from self._opening
        for step in self._steps:
            yield {name: value for name, value in step.items() if name != "replies"}
            if "replies" in step:
                yield {"source": "user", "message": step["replies"], "extra": {"reply": True}}
        if not self._opening and not self._steps:
            yield {"source": "agent", "message": ""}

    def _step(self, kind: str) -> Row:
        """Return the step that a move belongs to: the turn that was begun, else one of its own."""
        step = self._turn if self._turn is not None and self._steps[-1] is self._turn else None
        late = step is not None and kind == "say" and ("extra" in step or "tool_calls" in step)
        if step is None or late or "finish" in step.get("extra", {}):
            self._steps.append({"source": "agent", "message": ""})
        return self._steps[-1]

    def _answered(self, tool: str, arguments: Row, call_id: str | None, content: str, extra: Row) -> None:
        step = self._step("call")
        name = call_id or f"call_{self._n_calls}"
        self._n_calls += 1
        step.setdefault("tool_calls", []).append({"tool_call_id": name, "function_name": tool, "arguments": arguments})
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": name, "content": content, "extra": extra})

    def _move(self, took: float) -> Row:
        move = {"latency_ms": took, "state_hash": self._witness.state_hash()}
        self._moves.append(move)
        return move


def journal(trajectory: Row) -> list[Row]:
    """Return the moves of a recorded trajectory as rows of a journal, as far as a grader needs them: it replays them."""
    rows: list[Row] = []
    steps = trajectory["steps"]
    for step, after in zip(steps, [*steps[1:], {}], strict=True):
        extra = step.get("extra") or {}
        if "say" in extra:
            replied = (after.get("extra") or {}).get("reply")
            rows.append({"kind": "say", "content": step["message"], "reply": after["message"] if replied else None,
                         **extra["say"].get("own", {})})
        results = {result["source_call_id"]: result for result in (step.get("observation") or {}).get("results", ())}
        for call in step.get("tool_calls") or ():
            result = results.get(call["tool_call_id"])
            if result is None or result["extra"].get("refused"):
                continue
            marks = result["extra"]
            rows.append({"kind": "call", "tool": call["function_name"], "arguments": call["arguments"],
                         "content": result["content"], "is_error": marks["is_error"], "tier": marks["tier"],
                         **marks.get("drawn", {}), **marks.get("own", {})})
        if "finish" in extra:
            rows.append({"kind": "finish"})
    return rows


def functions(tools: Iterable[Row]) -> list[Row]:
    """MCP descriptors as OpenAI function tools."""
    return [{"type": "function", "function": {
        "name": tool["name"], **({"description": tool["description"]} if tool.get("description") else {}),
        "parameters": tool.get("inputSchema") or {"type": "object", "properties": {}}}} for tool in tools]


def _timed(act: Callable[[], Value]) -> tuple[Value, float]:
    """Return what it gives, and how many milliseconds it took."""
    begun = time.perf_counter()
    value = act()
    return value, round((time.perf_counter() - begun) * 1000, 3)
