"""Tinker's cookbook builds groups of the exported tasks, rolls them out by its own code with local policies (no service), and
makes training data of them: a known solution, an agent that says nothing, and a tiny random model that samples."""

from __future__ import annotations

import asyncio
import importlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import tiny_model
import torch
from moves import can_wait, moves, text
from telling import EXPORTS, WORK, episodes, tell
from tinker import ModelInput
from tinker_cookbook.completers import StopCondition, TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import EnvGroupBuilder, TrajectoryGroup
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER = EXPORTS / "tinker"
sys.path.insert(0, str(FOLDER))
room = importlib.import_module(f"{next(FOLDER.glob('traceroom_*')).name}.tinker_room")
RENDERER = "qwen3_instruct"
WORDS = [json.dumps(room.KIT.tools), *(message["content"] for task in room.KIT.tasks for message in task["opening"])]
MODEL = tiny_model.make(Path(WORK) / "tiny", WORDS, tiny_model.CHAT, n_words=2000)
tokenizer = AutoTokenizer.from_pretrained(MODEL)
network = AutoModelForCausalLM.from_pretrained(MODEL).eval()


class Local(TokenCompleter):
    """A policy of this process: it takes known turns, those of each environment of the group in order, or samples."""

    def __init__(self, scripts: list[list[Any]], opening: list[dict[str, Any]]) -> None:
        self.scripts = [list(script) for script in scripts]
        self._n_before = sum(message["role"] == "assistant" for message in opening)
        self._begun: dict[int, list[Any]] = {}

    async def __call__(
        self, model_input: ModelInput, stop: StopCondition, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        """Return the next turn, with what the network gives its tokens."""
        prompt = model_input.to_ints()
        if not self.scripts and not self._begun:
            return self._sampled(prompt, stop)
        script = self._of_this_environment()
        tokens = [*tokenizer.encode(text(script.pop(0)), add_special_tokens=False), tokenizer.eos_token_id]
        return TokensWithLogprobs(tokens, self._logprobs(prompt, tokens))

    def _of_this_environment(self) -> list[Any]:
        task = id(asyncio.current_task())
        if task not in self._begun:
            self._begun[task] = self.scripts.pop(0)
        return self._begun[task]

    def _logprobs(self, prompt: list[int], tokens: list[int]) -> list[float]:
        seen = (prompt + tokens)[-tiny_model.WINDOW * 4 - len(tokens):]
        with torch.inference_mode():
            scores = network(torch.tensor([seen])).logits[0, -len(tokens) - 1 : -1].log_softmax(-1)
        return [float(row[token]) for row, token in zip(scores, tokens, strict=True)]

    def _sampled(self, prompt: list[int], stop: StopCondition) -> TokensWithLogprobs:
        tokens: list[int] = []
        for _ in range(8):
            with torch.inference_mode():
                scores = network(torch.tensor([(prompt + tokens)[-tiny_model.WINDOW * 4:]])).logits[0, -1]
            tokens.append(int(torch.multinomial(scores.softmax(-1), 1)))
            if tokens[-1] in stop:
                break
        return TokensWithLogprobs(tokens, self._logprobs(prompt, tokens), "stop" if tokens[-1] in stop else "length")


def turns(task_id: str, steps: list[dict[str, Any]]) -> list[Any]:
    """Return known steps as an agent's turns."""
    return moves(room.KIT, task_id, steps)


async def rolled(group: EnvGroupBuilder, *scripts: list[Any]) -> TrajectoryGroup:
    """Roll out a group, sent through pickle as to another process."""
    there = pickle.loads(pickle.dumps(group))
    return await do_group_rollout(there, Local(list(scripts), room.KIT.begin(there.task_id).messages))


async def main() -> None:
    """Build, roll out, make training data, and tell."""
    torch.manual_seed(0)
    builder = room.KitDatasetBuilder(model_name_for_tokenizer=str(MODEL), renderer_name=RENDERER, batch_size=4, group_size=2)
    train, test = await builder()
    groups = {group.task_id: group for index in range(len(train)) for group in train.get_batch(index)}
    assert set(groups) == {task["task_id"] for task in room.KIT.tasks if task["split"] == "train"}
    assert (test is None) == all(task["split"] == "train" for task in room.KIT.tasks)
    known = [group for task_id, group in groups.items() if can_wait(room.KIT, task_id)]
    rollouts = [await rolled(group, turns(group.task_id, room.KIT.solution(group.task_id)), [("", [])]) for group in known]
    assert rollouts and all(sorted(group.get_total_rewards()) == [0.0, 1.0] for group in rollouts)
    assert all(each.stop_reason == "completed" for group in rollouts for each in group.trajectories_G)
    data, _ = assemble_training_data(rollouts, compute_advantages(rollouts))
    assert data and all("advantages" in each.loss_fn_inputs for each in data)
    sampled = await rolled(known[0])
    assert sampled.get_total_rewards() == [0.0, 0.0]
    rewards = {}
    for each in episodes():
        alone = room.KitGroupBuilder(each["task_id"], known[0].how, 1)
        (rewards[each["name"]],) = (await rolled(alone, turns(each["task_id"], each["steps"]))).get_total_rewards()
    tell(f"{len(rollouts)} groups rolled out by its do_group_rollout with local policies: saying nothing 0, known solutions 1; "
         f"{len(data)} training data of them; the step itself needs Tinker's service and was not taken",
         digest=room.KIT.digest, rewards=rewards, rows=len(groups))


asyncio.run(main())
