"""A player whose turns an agent takes: it starts the agent with the episode's addresses, and waits for its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from env_builder.process import EnvironmentProcess
from pipelines.rollouts.agents import launching
from pipelines.rollouts.agents.server import SeatServer
from pipelines.rollouts.agents.talks import AgentTalk
from pipelines.rollouts.orders import AgentCommand, Job, Order
from pipelines.rollouts.player import Conversation, Grader, Player, Seat
from pipelines.rollouts.policies import Named
from warehouse.errors import InputError, PolicyFailed

Row = dict[str, Any]


class AgentPlayer(Player):
    """Plays one order at a time, by an agent."""

    def __init__(
        self, job: Job, grader: Grader, policy: Named, start: Callable[[], EnvironmentProcess] | None, lasting: bool,
        server: SeatServer,
    ) -> None:
        if job.agent is None:
            raise InputError("the job names no agent", job.environment, "write --agent")
        super().__init__(job, grader, policy, start, lasting)
        self._agent: AgentCommand = job.agent
        self._server = server
        self._aside: list[Row] = []

    def _further(self) -> Row:
        """Return the requests to the model that were no turns."""
        return {"aside": self._aside} if self._aside else {}

    def _take_turns(self, order: Order, seat: Seat, conversation: Conversation) -> tuple[str | None, str | None]:
        """Let the agent play until it ends; return the gate that cannot pass, and why the model would not go on, if so."""
        talk = AgentTalk(order, seat, conversation, self._policy, self._agent.talk)
        talk.rubric = self._grader.rubrics.get(order.task_id)
        talk.most_refused = self._grader.tasks[order.task_id].limits.steps
        with self._server.seated(talk) as url:
            about = {"task_id": order.task_id, "seed": order.seed, "attempt": order.attempt}
            briefing = launching.AgentBriefing(url, about, conversation.messages, list(talk.tools.values()))
            end = launching.run(self._agent, briefing, talk.is_over, lambda: self._stopped)
        talk.close()
        self._aside = talk.aside
        self._check(order, talk, end)
        if talk.pruned is None and talk.note is None:
            talk.finish()
        return talk.pruned, talk.note

    def _check(self, order: Order, talk: AgentTalk, end: launching.AgentEnd) -> None:
        """Raise PolicyFailed if the episode tells nothing of the agent. Once it has ended, it does not matter how the agent
        does."""
        if self._stopped:
            raise PolicyFailed("the rollout was stopped", order.episode_id)
        if talk.failure is not None:
            raise talk.failure
        if end.failure is not None and not talk.is_over() and talk.note is None:
            raise PolicyFailed(end.failure, f"task {order.task_id[:12]}", "see docs/howto/agent.md")
