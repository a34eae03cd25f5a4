"""Tasks of an environment for Tinker's cookbook: groups of environments over messages, in batches.

    from traceroom_NAME.tinker_room import KitDatasetBuilder
    builder = KitDatasetBuilder(model_name_for_tokenizer=…, renderer_name=…, batch_size=16, group_size=8)
    config = tinker_cookbook.rl.train.Config(dataset_builder=builder, rollout_error_tolerance=True, …)

The tools are shown as the model's renderer shows tools. The reward comes with the last step and is the grader's, never the
cookbook's for a long or unreadable answer, unless `overflow_reward` says another. An unscored episode raises `Unscored`:
with `rollout_error_tolerance` the cookbook leaves it out of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chz
from tinker_cookbook import tokenizer_utils
from tinker_cookbook.renderers import get_renderer
from tinker_cookbook.renderers.base import Message, Renderer, ToolCall, get_text_content
from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder

from . import chat_room, play

KIT = play.open(Path(__file__).parent)


class KitMessageEnv(MessageEnv):
    """One episode: a message of the model in, tools' answers and the user's words out."""

    def __init__(self, renderer: Renderer, task_id: str, seed: int = 0) -> None:
        self.example_id = task_id
        self.episode = KIT.begin(task_id, seed)
        self._renderer = renderer
        self._messages: list[Message] = []

    async def initial_observation(self) -> list[Message]:
        """Return the tools as the model knows them, and the conversation before its first move."""
        if not self._messages:
            opening: list[Any] = [*map(_message, self.episode.messages)]
            n_system = next((n for n, message in enumerate(opening) if message["role"] != "system"), len(opening))
            system = "\n\n".join(message["content"] for message in opening[:n_system])
            tools: list[Any] = [tool["function"] for tool in self.episode.tools]
            self._messages = [*self._renderer.create_conversation_prefix_with_tools(tools, system), *opening[n_system:]]
        return self._messages

    async def step(self, message: Message) -> MessageStepResult:
        """Say and call what the message holds; calls that cannot be read count as refused ones."""
        calls = list(message.get("tool_calls") or [])
        unread = list(message.get("unparsed_tool_calls") or [])
        taken = self.episode.take(play.words_of(get_text_content(message)), [
            *((call.function.name, call.function.arguments) for call in calls), *(("", None) for _ in unread)])
        self._messages.append(message)
        for call, answer in zip([*calls, *unread], taken.answers, strict=True):
            self._messages.append({"role": "tool", "content": answer, **_named(call)})
        if taken.reply is not None:
            self._messages.append({"role": "user", "content": taken.reply})
        if not taken.over:
            return MessageStepResult(0.0, False, self._messages)
        truncated = self.episode.ended == "truncated"
        stop = "stop/max_turns" if truncated else "stop/completed"
        return MessageStepResult(chat_room.scored(self.episode), True, self._messages, metrics={stop: 1.0})


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as renderers take it."""
    calls = [ToolCall.model_validate(call) for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


def _named(call: Any) -> dict[str, Any]:
    """Return what a renderer wants to know of the call that a message answers; nothing of one that could not be read."""
    function = getattr(call, "function", None)
    return {"name": function.name, **({"tool_call_id": call.id} if call.id else {})} if function is not None else {}


@dataclass(frozen=True)
class PlaySettings:
    """How episodes are played."""

    model_name: str
    """Names the tokenizer."""
    renderer_name: str
    seed: int = 0
    max_trajectory_tokens: int | None = None
    max_generation_tokens: int | None = None
    overflow_reward: float = 0.0
    """Of an answer that does not end, cannot be read, or does not fit."""


@dataclass(frozen=True)
class KitGroupBuilder(EnvGroupBuilder):
    """A group of episodes of one task."""

    task_id: str
    how: PlaySettings
    group_size: int

    async def make_envs(self) -> Sequence[Env]:
        """Begin the episodes, all in the same world."""
        renderer = get_renderer(self.how.renderer_name, tokenizer_utils.get_tokenizer(self.how.model_name))
        return [EnvFromMessageEnv(
            renderer, KitMessageEnv(renderer, self.task_id, self.how.seed), failed_parse_reward=self.how.overflow_reward,
            max_trajectory_tokens=self.how.max_trajectory_tokens, max_generation_tokens=self.how.max_generation_tokens,
            context_overflow_reward=self.how.overflow_reward) for _ in range(self.group_size)]

    def logging_tags(self) -> list[str]:
        """Return the environment and the task's family."""
        return [KIT.name, str(KIT.by_id[self.task_id]["family"])]


@dataclass(frozen=True)
class KitDataset(RLDataset):
    """Groups in batches, one group a task."""

    groups: Sequence[KitGroupBuilder]
    batch_size: int

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """Return a batch; the last one may be smaller."""
        return self.groups[index * self.batch_size : (index + 1) * self.batch_size]

    def __len__(self) -> int:
        return -(-len(self.groups) // self.batch_size)


@chz.chz
class KitDatasetBuilder(RLDatasetBuilder):
    """The exported tasks: those of `train`, and those of `validation` to test on where there are any."""

    model_name_for_tokenizer: str
    renderer_name: str
    batch_size: int = 16
    group_size: int = 8
    seed: int = 0
    max_trajectory_tokens: int | None = None
    max_generation_tokens: int | None = None
    overflow_reward: float = 0.0

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        train, test = self._of("train", self.group_size), self._of("validation", 1)
        return train, test if len(test) else None

    def _of(self, split: str, group_size: int) -> KitDataset:
        how = PlaySettings(self.model_name_for_tokenizer, self.renderer_name, self.seed, self.max_trajectory_tokens,
                   self.max_generation_tokens, self.overflow_reward)
        tasks = [task["task_id"] for task in KIT.tasks if task["split"] == split]
        return KitDataset([KitGroupBuilder(task_id, how, group_size) for task_id in tasks], self.batch_size)
