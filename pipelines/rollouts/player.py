"""One episode after the other: a policy acts in an environment, and the result is recorded and graded.

In: a job and orders. Out: trajectories (env_builder/runtime/trajectory.py) with rewards. The grader's side never leaves this
process: if the environment runs elsewhere, each move is made again in a copy of the grader's own, the witness, and that one is
graded, so no answer of the other process is trusted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from env_builder.process import EnvironmentProcess
from env_builder.runtime import Environment
from env_builder.runtime.admission import FAILURES
from env_builder.runtime.canonical import written
from env_builder.runtime.files import rows_of
from env_builder.runtime.grading import lost
from env_builder.runtime.records import Task
from env_builder.runtime.rubrics import ParsedRubric
from env_builder.runtime.trajectory import Recorder
from pipelines import playing
from pipelines.rollouts import policies
from pipelines.rollouts.orders import Job, Order, digests, rewards_of
from pipelines.rollouts.policies import Call, Named, Observation, Turn
from warehouse.errors import EnvironmentBroken, EpisodeFailed, PolicyFailed, Refused, Unavailable

FORMAT = "traceroom-rollout/1"
TRIES = 3
"""How often an episode is started if its environment process ends."""
Row = dict[str, Any]


class Grader:
    """The grader's side of an environment, loaded once for many players; forks share it."""

    def __init__(self, job: Job, kind: type[Environment] = Environment) -> None:
        rewards = rewards_of(job)
        self.environment = playing.load(Path(job.environment), rewards if rewards.is_dir() else None, kind)
        self.tasks: dict[str, Task] = {task.task_id: task for task in self.environment.tasks}
        self.digests = digests(job)
        rubrics = rewards / "rubrics.jsonl"
        if job.prune and not rubrics.is_file():
            raise EnvironmentBroken("there are no rubrics to prune by", str(rubrics), "name the rewards folder with --rewards")
        self.rubrics = {row["task_id"]: ParsedRubric.read(row) for row in rows_of(rubrics)} if job.prune else {}
        """For pruning."""


class Seat:
    """Where a policy acts: in an environment of this process, which is its own witness, or in a process or container."""

    def __init__(self, grader: Grader, job: Job, order: Order, process: EnvironmentProcess | None) -> None:
        witness = grader.environment.fork()
        observation = witness.reset(order.task_id, order.seed, perturbations=job.perturbations)
        self.beginning: Row = {"messages": observation.messages, "tools": observation.tools}
        if process is not None:
            self.beginning = process.reset(order.task_id, order.seed, job.perturbations)
        self._process = process
        self.recorder = Recorder(witness) if process is None else Recorder(process, witness)

    def ended(self) -> str | None:
        """None while the episode runs."""
        ended: str | None = None if self._process is None else self._process.request("traceroom/state")["ended"]
        return ended or self.recorder.witness.ended


class Player:
    """Plays one order at a time, in an environment of this process or in processes that `start` starts."""

    def __init__(
        self, job: Job, grader: Grader | None = None, policy: Named | None = None,
        start: Callable[[], EnvironmentProcess] | None = None, lasting: bool = True,
    ) -> None:
        """`lasting`: a process plays all episodes, else each episode gets one of its own."""
        self._job = job
        self._grader = grader or Grader(job)
        self._policy = policy or policies.named(job)
        self._start = start
        self._lasting = lasting
        self._process: EnvironmentProcess | None = None
        self._stopped = False

    def stop(self) -> None:
        """Take no further turn: no caller waits for the episode. From any thread."""
        self._stopped = True

    def play(self, order: Order) -> Row:
        """Return the episode's trajectory. Raises PolicyFailed, EpisodeFailed if what was said or done could not be answered or
        graded, and Unavailable if its environment process ends repeatedly."""
        for tries_left in reversed(range(TRIES)):
            try:
                if self._start is not None and self._process is None:
                    self._process = self._start()
                return self._play(order, self._seat(order))
            except PolicyFailed:
                raise
            except FAILURES as error:
                self.close()
                what = f"the episode could not be played ({type(error).__name__}: {error})"
                raise EpisodeFailed(what, order.task_id) from error
            except Unavailable:
                self.close()
                if not tries_left:
                    raise
            finally:
                if not self._lasting:
                    self.close()
        raise AssertionError("unreachable")

    def close(self) -> None:
        """End the environment process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.close()

    def _seat(self, order: Order) -> Seat:
        """Begin the episode."""
        return Seat(self._grader, self._job, order, self._process)

    def _play(self, order: Order, seat: Seat) -> Row:
        begun = time.monotonic()
        conversation = Conversation(seat, self._grader.tasks[order.task_id].goal)
        pruned, note = self._take_turns(order, seat, conversation)
        ended = "pruned" if pruned else seat.ended() or "truncated"
        seconds = round(time.monotonic() - begun, 6)
        witness, task = seat.recorder.witness, self._grader.tasks[order.task_id]
        journal, perturbations = witness.journal, self._job.perturbations
        grade = witness.grade()
        try:
            trained = witness.grade("train").reward
            rewards = witness.shaped(order.task_id, journal, order.seed, perturbations) if journal and grade.checks else None
        except ValueError as error:
            raise EpisodeFailed(f"the episode cannot be graded ({error})", order.task_id, "see docs/rewards.md") from error
        content, rewards_digest = self._grader.digests
        return seat.recorder.trajectory(self._policy.name, {
            "format": FORMAT, "episode_id": order.episode_id, "task_id": task.task_id, "family": task.family,
            "split": task.split, "goal": task.goal, "environment": Path(self._job.environment).name,
            "content_digest": content, "rewards_digest": rewards_digest, "policy": self._policy.name, "seed": order.seed,
            "perturbations": sorted(perturbations), "attempt": order.attempt,
            "ended": ended, "pruned": pruned, "note": note, "n_refused": conversation.n_refused, "seconds": seconds,
            **({"sampling": self._policy.sampling} if self._policy.sampling else {}),
            "n_moves": len(journal), "n_unknown": sum(row.get("tier") == "unknown" for row in journal),
            "reward_train": trained, **self._further()}, grade, rewards)

    def _further(self) -> Row:
        """Return what else is to be recorded of the episode that was played."""
        return {}

    def _take_turns(self, order: Order, seat: Seat, conversation: Conversation) -> tuple[str | None, str | None]:
        """Play until the episode ends; return the gate that cannot pass, and why the policy could not go on, if so."""
        most = self._grader.tasks[order.task_id].limits.steps
        rubric = self._grader.rubrics.get(order.task_id)
        n_turns = 0
        while seat.ended() is None and conversation.n_refused <= most:
            observation = Observation(
                order.task_id, order.seed, order.attempt, list(conversation.messages), seat.beginning["tools"], n_turns)
            try:
                turn = self._policy.act(observation)
            except Refused as error:
                if not n_turns:
                    raise PolicyFailed(error.what, error.where, error.hint) from error
                return None, error.what
            n_turns += 1
            if self._stopped:
                raise PolicyFailed("the rollout was stopped", order.episode_id)
            if not turn.text and not turn.calls:
                if turn.n_asked or turn.usage:
                    seat.recorder.turn(turn.model, turn.reasoning, turn.usage, turn.n_asked)
                seat.recorder.finish()
                break
            conversation.take(turn)
            gone = lost(rubric, seat.recorder.witness.episode()) if rubric is not None else None
            if gone is not None:
                return gone, None
        return None, None


class Conversation:
    """The messages between policy and environment, as chat messages."""

    def __init__(self, seat: Seat, goal: str) -> None:
        self._seat = seat
        self._tools = {tool["name"] for tool in seat.beginning["tools"]}
        opening = list(seat.beginning["messages"])
        if not any(message["role"] == "user" for message in opening):  # without a user, the goal is the message
            opening.append({"role": "user", "content": goal})
        self.messages: list[Row] = opening
        self.n_refused = 0
        """Calls that never reached the environment."""
        self._n_thought = 0
        """Reasoning tokens, which no later prompt contains."""
        seat.recorder.begin(opening)

    def begin_turn(self, turn: Turn) -> None:
        """Record that a turn begins, and count its tokens."""
        recorder = self._seat.recorder
        recorder.turn(turn.model, turn.reasoning, turn.usage, turn.n_asked)
        if turn.usage and "prompt_tokens" in turn.usage:
            self._n_thought += (turn.usage.get("extra") or {}).get("reasoning_tokens") or 0
            recorder.witness.used(turn.usage["prompt_tokens"] + self._n_thought)

    def take(self, turn: Turn) -> None:
        """Say the turn's text, then make its calls; the user's reply comes after the answers of the tools."""
        recorder = self._seat.recorder
        self.begin_turn(turn)
        if turn.recorded:  # written in the environment's own names: use those of this episode
            rewrite = recorder.witness.carried
            turn = turn._replace(text=rewrite(turn.text), calls=tuple(
                call._replace(arguments=rewrite(call.arguments)) for call in turn.calls))
        turn = turn._replace(calls=tuple(
            call._replace(call_id=call.call_id or f"call_{len(self.messages)}_{position}")
            for position, call in enumerate(turn.calls)))
        self.messages.append(turn.as_message())
        reply = recorder.say(turn.text) if turn.text else None
        for call in turn.calls:
            content = self._call(call) if self._seat.ended() is None else "the episode has ended"
            self.messages.append({"role": "tool", "tool_call_id": call.call_id, "content": content})
        if reply is not None:
            self.messages.append({"role": "user", "content": reply})

    def _call(self, call: Call) -> str:
        error = None
        if call.tool not in self._tools:
            error = f"no tool {call.tool!r}; there are: {', '.join(sorted(self._tools))}"
        elif not isinstance(call.arguments, dict) or written(call.arguments) is None:
            error = "the arguments are no JSON object"
        if error is None:
            return str(self._seat.recorder.call(call.tool, call.arguments, call.call_id).content)
        self.n_refused += 1
        self._seat.recorder.refuse(call.tool, call.arguments, call.call_id, error)
        return error
