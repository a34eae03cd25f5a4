"""One episode after the other: a policy acts in a room, and what came of it is recorded and graded.

In: a job and orders. Out: trajectories (env_builder/runtime/trajectory.py) with rewards. The grader's side never leaves this
process: where the room is apart, each move is made again in a room of the grader's own, and that one is graded, so no word of
the room is trusted.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from env_builder.room import Room
from env_builder.runtime import Environment
from env_builder.runtime.files import rows_of
from env_builder.runtime.pruning import lost
from env_builder.runtime.records import Task
from env_builder.runtime.rubrics import Rubric
from env_builder.runtime.trajectory import Recorder
from pipelines.rollouts import policies
from pipelines.rollouts.orders import Job, Order, digests, rewards_of
from pipelines.rollouts.policies import Call, Named, Observation, Turn
from warehouse.errors import EnvironmentBroken, InputError, PolicyFailed, Refused, Unavailable

FORMAT = "traceroom-rollout/1"
TRIES = 3
"""How often an episode is begun whose room goes away."""
Row = dict[str, Any]


class Grader:
    """The grader's side of an environment, loaded once for many players; forks share it."""

    def __init__(self, job: Job) -> None:
        path, rewards = Path(job.environment), rewards_of(job)
        try:
            self.environment = Environment.load(path, rewards=rewards if rewards.is_dir() else None)
            written = {row["task_id"]: row for row in rows_of(rewards / "rubrics.jsonl")} if job.prune else {}
        except (OSError, ValueError, KeyError) as error:
            raise EnvironmentBroken(
                f"the environment cannot be loaded ({error})", job.environment, "build it again with: traceroom run") from error
        self.tasks: dict[str, Task] = {task.task_id: task for task in self.environment.tasks}
        self.digests = digests(job)
        self._written = written

    def rubric(self, task_id: str) -> Rubric | None:
        """The task's rubric, for pruning."""
        return Rubric.read(self._written[task_id]) if task_id in self._written else None


class Seat(Protocol):
    """Where a policy acts."""

    recorder: Recorder
    beginning: Row
    """{"messages", "tools"}"""

    def ended(self) -> str | None:
        """None while the episode runs."""


class Here:
    """A room in this process, which is its own witness."""

    def __init__(self, grader: Grader, job: Job, order: Order) -> None:
        self._room = grader.environment.fork()
        seen = self._room.reset(order.task_id, order.seed, conditions=job.conditions)
        self.beginning = {"messages": seen.messages, "tools": seen.tools}
        self.recorder = Recorder(self._room)

    def ended(self) -> str | None:
        """None while the episode runs."""
        return self._room.ended


class Apart:
    """A room that is a process or a container of its own, beside a witness of the grader's."""

    def __init__(self, grader: Grader, job: Job, order: Order, room: Room) -> None:
        self._room = room
        self.beginning = room.reset(order.task_id, order.seed, job.conditions)
        witness = grader.environment.fork()
        witness.reset(order.task_id, order.seed, conditions=job.conditions)
        self.recorder = Recorder(room, witness)

    def ended(self) -> str | None:
        """None while the episode runs."""
        ended: str | None = self._room.request("traceroom/state")["ended"]
        return ended or self.recorder.witness.ended


class Player:
    """Plays one order at a time, in a room of this process or in those that `begin` begins."""

    def __init__(
        self, job: Job, grader: Grader | None = None, policy: Named | None = None, begin: Callable[[], Room] | None = None,
        lasting: bool = True,
    ) -> None:
        """`lasting`: a room apart is begun once and then reset for each episode, else each episode has one of its own."""
        self._job = job
        self._grader = grader or Grader(job)
        self._policy = policy or policies.named(job)
        self._begin = begin
        self._lasting = lasting
        self._room: Room | None = None
        self._stopped = False

    def stop(self) -> None:
        """Take no further turn: whoever waited for the episode does not any more. From any thread."""
        self._stopped = True

    def play(self, order: Order) -> Row:
        """The episode's trajectory. Raises PolicyFailed, and Unavailable where its room goes away again and again."""
        for left in reversed(range(TRIES)):
            try:
                return self._played(order, self._seat(order))
            except PolicyFailed:
                raise
            except Unavailable:
                self.close()
                if not left:
                    raise
            finally:
                if not self._lasting:
                    self.close()
        raise AssertionError("unreachable")

    def close(self) -> None:
        """End the room apart, where there is one."""
        room, self._room = self._room, None
        if room is not None:
            with contextlib.suppress(OSError):
                room.close()

    def _seat(self, order: Order) -> Seat:
        if self._begin is None:
            return Here(self._grader, self._job, order)
        if self._room is None:
            self._room = self._begin()
        return Apart(self._grader, self._job, order, self._room)

    def _played(self, order: Order, seat: Seat) -> Row:
        begun = time.monotonic()
        told = Conversation(seat, self._grader.tasks[order.task_id].goal)
        pruned, note = self._act(order, seat, told)
        ended = "pruned" if pruned else seat.ended() or "truncated"
        return self._recorded(order, seat, {
            "ended": ended, "pruned": pruned, "note": note, "n_refused": told.n_refused,
            "seconds": round(time.monotonic() - begun, 6)})

    def _act(self, order: Order, seat: Seat, told: Conversation) -> tuple[str | None, str | None]:
        """Play until the episode ends: the gate that was lost for good, and why the policy could not go on, if so."""
        most = self._grader.tasks[order.task_id].limits.steps
        rubric = self._grader.rubric(order.task_id) if self._job.prune else None
        n_turns = 0
        while seat.ended() is None and told.n_refused <= most:
            seen = Observation(order.task_id, order.seed, order.attempt, list(told.messages), seat.beginning["tools"], n_turns)
            try:
                turn = self._policy.act(seen)
            except Refused as error:
                if not n_turns:
                    raise PolicyFailed(error.what, error.where, error.mend) from error
                return None, error.what
            n_turns += 1
            if self._stopped:
                raise PolicyFailed("the rollout was stopped", order.episode_id)
            if not turn.said and not turn.calls:
                if turn.n_asked or turn.usage:
                    seat.recorder.turn(turn.model, turn.reasoning, turn.usage, turn.n_asked)
                seat.recorder.finish()
                break
            told.take(turn)
            gone = lost(rubric, seat.recorder.witness.episode()) if rubric is not None else None
            if gone is not None:
                return gone, None
        return None, None

    def _recorded(self, order: Order, seat: Seat, about: Row) -> Row:
        witness, task = seat.recorder.witness, self._grader.tasks[order.task_id]
        journal, conditions = witness.journal, self._job.conditions
        grade = witness.grade()
        try:
            trained = witness.grade("train").reward
            rewards = witness.shaped(order.task_id, journal, order.seed, conditions) if journal and grade.checks else None
        except ValueError as error:
            raise InputError(f"the episode cannot be graded ({error})", order.task_id, "see docs/rewards.md") from error
        content, graded = self._grader.digests
        return seat.recorder.trajectory(self._policy.name, {
            "format": FORMAT, "episode_id": order.episode_id, "task_id": task.task_id, "family": task.family,
            "split": task.split, "goal": task.goal, "environment": Path(self._job.environment).name,
            "content_digest": content, "rewards_digest": graded, "policy": self._policy.name, "seed": order.seed,
            "conditions": sorted(conditions), "attempt": order.attempt, **about,
            **({"sampling": self._policy.sampling} if self._policy.sampling else {}),
            "n_moves": len(journal), "n_unknown": sum(row.get("tier") == "unknown" for row in journal),
            "reward_train": trained}, grade, rewards)


class Conversation:
    """What policy and room have told each other, as chat messages."""

    def __init__(self, seat: Seat, goal: str) -> None:
        self._seat = seat
        self._tools = {tool["name"] for tool in seat.beginning["tools"]}
        opening = list(seat.beginning["messages"])
        if not any(message["role"] == "user" for message in opening):  # where nobody speaks, what is to be done is said
            opening.append({"role": "user", "content": goal})
        self.messages: list[Row] = opening
        self.n_refused = 0
        """Calls that never reached the room."""
        self._n_thought = 0
        """Tokens of thoughts, which no later prompt shows."""
        seat.recorder.begin(opening)

    def take(self, turn: Turn) -> None:
        """Say the turn's words, then make its calls; what the user answers comes after the answers of the tools."""
        recorder = self._seat.recorder
        recorder.turn(turn.model, turn.reasoning, turn.usage, turn.n_asked)
        if turn.recorded:
            turn = _carried(turn, recorder.witness)
        if turn.usage and "prompt_tokens" in turn.usage:
            self._n_thought += (turn.usage.get("extra") or {}).get("reasoning_tokens") or 0
            recorder.witness.used(turn.usage["prompt_tokens"] + self._n_thought)
        calls = [call._replace(call_id=call.call_id or f"call_{len(self.messages)}_{place}")
                 for place, call in enumerate(turn.calls)]
        message: Row = {"role": "assistant", "content": turn.said or None}
        if calls:
            message["tool_calls"] = [
                {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": _text(call.arguments)}}
                for call in calls]
        self.messages.append(message)
        reply = recorder.say(turn.said) if turn.said else None
        for call in calls:
            content = self._called(call) if self._seat.ended() is None else "the episode has ended"
            self.messages.append({"role": "tool", "tool_call_id": call.call_id, "content": content})
        if reply is not None:
            self.messages.append({"role": "user", "content": reply})

    def _called(self, call: Call) -> str:
        wrong = None
        if call.tool not in self._tools:
            wrong = f"no tool {call.tool!r}; there are: {', '.join(sorted(self._tools))}"
        elif not isinstance(call.arguments, dict):
            wrong = "the arguments are no JSON object"
        if wrong is None:
            content: str = self._seat.recorder.call(call.tool, call.arguments, call.call_id).content
            return content
        self.n_refused += 1
        self._seat.recorder.refuse(call.tool, call.arguments, call.call_id, wrong)
        return wrong


def _carried(turn: Turn, witness: Environment) -> Turn:
    """A turn that is written in the room's own names, as the agent has to take it in this episode."""
    calls = tuple(call._replace(arguments=witness.carried(call.arguments)) for call in turn.calls)
    return turn._replace(said=witness.carried(turn.said), calls=calls)


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
