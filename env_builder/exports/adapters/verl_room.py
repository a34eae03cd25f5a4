"""The environment in verl: its tools, an agent loop in which the user answers, and the reward function.

    config.yaml        what to set in verl's configuration, relative to this export's folder (which is on PYTHONPATH)
    tools.yaml         a `KitTool` a tool; rows name `agent_name` NAME of agent_loop.yaml, which is `KitAgentLoop`

A trajectory is an episode. What the model writes without a call is said to the user and answered as a user's message; where
nobody answers the trajectory ends. `compute_score` grades the journal that the loop leaves in `extra_info`; an episode that
nobody can score has `scored` 0 and a score of 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.tool_agent_loop import AgentData, AgentState, ToolAgentLoop
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import ToolResponse

from . import play

KIT = play.open(Path(__file__).parent)
ID = __name__.partition(".")[0]
FIELD = "traceroom"
"""Name of what the loop leaves for the reward function."""


class KitTool(BaseTool):
    """A tool, called in the episode of its trajectory."""

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        episode: play.KitEpisode | None = getattr(kwargs.get("agent_data"), FIELD, None)
        if episode is None:
            raise ValueError(f"this tool needs an episode: set the rows' agent_name to {ID}")
        return ToolResponse(text=episode.call(self.name, parameters)[0]), 0.0, {}


class KitAgentLoop(ToolAgentLoop):
    """verl's tool agent, with a user who answers; one instance a trajectory."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tool_schemas = KIT.tools  # whole: verl's own type keeps the first level of a schema alone
        self._reply: str | None = None

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """Play an episode of the row's task."""
        info = kwargs["extra_info"]
        self._episode = KIT.begin(info["task_id"], int(info.get("seed") or 0))
        output = await super().run(sampling_params, priority, **kwargs)
        self._episode.finish()
        output.extra_fields[FIELD] = {"task_id": self._episode.task_id, "seed": self._episode.seed, "digest": KIT.digest,
                                     "journal": self._episode.journal()}
        return output

    async def _handle_pending_state(self, agent_data: AgentData, sampling_params: dict[str, Any]) -> AgentState:
        setattr(agent_data, FIELD, self._episode)
        return await super()._handle_pending_state(agent_data, sampling_params)

    async def _handle_generating_state(
        self, agent_data: AgentData, sampling_params: dict[str, Any], ignore_termination: bool = False
    ) -> AgentState:
        n_messages = len(agent_data.messages)
        state = await super()._handle_generating_state(agent_data, sampling_params, ignore_termination)
        if len(agent_data.messages) == n_messages:  # cut short: nothing was said
            return state
        content = str(agent_data.messages[-1]["content"])
        for token in self.tokenizer.all_special_tokens:
            content = content.replace(token, "")
        words = play.words_of(content)
        self._reply = self._episode.say(words) if words else None
        return state if state != AgentState.TERMINATED else await self._answered(agent_data)

    async def _handle_processing_tools_state(self, agent_data: AgentData) -> AgentState:
        state = await super()._handle_processing_tools_state(agent_data)
        if state == AgentState.TERMINATED or self._episode.ended is not None:
            return AgentState.TERMINATED
        return state if self._reply is None else await self._answered(agent_data)

    async def _answered(self, agent_data: AgentData) -> AgentState:
        """Append the user's message and let the model go on; without one the episode is over."""
        reply, self._reply = self._reply, None
        if reply is None or self._episode.ended is not None:
            return AgentState.TERMINATED
        before = list(agent_data.messages)
        agent_data.messages.append({"role": "user", "content": reply})
        merged, mask, logprobs = await self.ct_merge_context_msg(
            before, agent_data.messages, agent_data.prompt_ids, agent_data.response_mask,
            agent_data.response_logprobs or None, tools=self.tool_schemas)
        if len(mask) >= self.response_length:
            return AgentState.TERMINATED
        agent_data.prompt_ids, agent_data.response_mask = merged.token_ids, mask
        if agent_data.response_logprobs:
            agent_data.response_logprobs = logprobs or []
        agent_data.user_turns += 1
        return AgentState.GENERATING


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **kwargs: Any
) -> dict[str, float]:
    """verl's reward function: the grader replays the journal of the episode; `solution_str` is not read."""
    rejected = (extra_info or {}).get(FIELD)
    if not rejected or rejected["task_id"] != ground_truth:
        raise ValueError(f"no episode of {ground_truth} was left to grade: set the rows' agent_name to {ID}")
    reward = KIT.grade(rejected["task_id"], rejected["journal"], rejected["seed"]).reward
    return {"score": reward or 0.0, "scored": float(reward is not None)}
