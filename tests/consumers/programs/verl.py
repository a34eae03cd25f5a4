"""verl reads every row with its own dataset class, and its agent loop and reward manager play known solutions in the room."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from moves import can_wait, moves, text
from telling import EXPORTS, WORK, episodes, tell
from tiny_model import CHAT, make

FOLDER = EXPORTS / "verl"
PACKAGE = next(FOLDER.glob("traceroom_*")).name
sys.path.insert(0, str(FOLDER))
os.chdir(FOLDER)

import hydra  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from tensordict import TensorDict  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap  # noqa: E402
from verl.tools.tool_registry import load_all_tools  # noqa: E402
from verl.trainer.ppo.reward import load_reward_manager  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.workers.rollout.replica import TokenOutput  # noqa: E402


class Script:
    """A model's server that writes the next turn of a script."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.turns = tokenizer, list[str]()

    async def generate(self, **asked: Any) -> TokenOutput:
        """Return the next turn."""
        written = self.turns.pop(0) + "<|im_end|>"
        return TokenOutput(token_ids=self.tokenizer.encode(written, add_special_tokens=False), stop_reason="completed")


def configured() -> Any:
    """verl's own configuration with ours on top."""
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        config = hydra.compose("ppo_trainer", overrides=["actor_rollout_ref.rollout.name=vllm"])
    OmegaConf.set_struct(config, False)
    config = OmegaConf.merge(config, OmegaConf.load("config.yaml"))
    config.actor_rollout_ref.rollout.prompt_length = config.data.max_prompt_length = 16_000
    config.actor_rollout_ref.rollout.response_length = 16_000
    config.data.cache_dir = str(WORK / "cache")
    config.data.filter_overlong_prompts_workers = 1
    return config


async def main() -> None:
    """Read, play and grade."""
    config = configured()
    prompts = [message["content"] for path in FOLDER.glob("*.parquet") for row in rows_of(path) for message in row["prompt"]]
    tokenizer = AutoTokenizer.from_pretrained(make(WORK / "tiny", [*prompts, (FOLDER / "tools.yaml").read_text()], CHAT))
    files = [str(config.data[name]) for name in ("train_files", "val_files") if str(config.data.get(name)).endswith(".parquet")]
    data = RLHFDataset([str(FOLDER / name) for name in files], tokenizer, config.data)
    assert len(data) == sum(len(rows_of(FOLDER / name)) for name in files), "rows were filtered out"
    rows = [data[index] for index in range(len(data))]
    assert len(collate_fn(rows)["raw_prompt"]) == len(rows)
    tools = load_all_tools("tools.yaml", None)
    loops = {loop.name: loop for loop in OmegaConf.load(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)}
    manager = load_reward_manager(config, tokenizer)
    script = Script(tokenizer)

    async def run(row: dict[str, Any], turns: list[str]) -> dict[str, Any]:
        script.turns = turns
        loop = hydra.utils.instantiate(
            loops[row["agent_name"]], trainer_config=DictConfigWrap(config), server_manager=script, tokenizer=tokenizer,
            processor=None, dataset_cls=RLHFDataset, data_config=DictConfigWrap(config.data), tools=ToolListWrap(tools))
        output = await loop.run({}, **row)
        assert not script.turns, "it ended before the last turn"
        assert len(output.response_ids) == len(output.response_mask) and 1 in output.response_mask
        ids = torch.tensor([output.response_ids])
        extra = np.array([output.extra_fields], dtype=object)
        told: dict[str, Any] = await manager.run_single(DataProto(
            batch=TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1),
            non_tensor_batch={**{name: np.array([row[name]], dtype=object) for name in (
                "data_source", "reward_model", "extra_info")}, "tool_extra_fields": extra}))
        return told

    import importlib

    room = importlib.import_module(f"{PACKAGE}.verl_room").KIT
    n_oracles = 0
    for row in rows:
        task_id = row["extra_info"]["task_id"]
        assert (await run(row, [""]))["reward_score"] == 0.0, row
        if can_wait(room, task_id):
            n_oracles += 1
            told = await run(row, [text(move) for move in moves(room, task_id, room.solution(task_id))])
            assert told["reward_score"] == 1.0 and told["reward_extra_info"]["scored"] == 1.0, told
    assert n_oracles, "no known solution could be played"
    by_task = {row["extra_info"]["task_id"]: row for row in rows}
    rewards = {each["name"]: (await run(by_task[each["task_id"]], [
        text(move) for move in moves(room, each["task_id"], each["steps"])]))["reward_score"] for each in episodes()}
    tell(f"{len(rows)} rows read by RLHFDataset; in its agent loop doing nothing 0, {n_oracles} known solutions 1",
         digest=room.digest, rewards=rewards, rows=len(rows))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return a Parquet file's rows."""
    import pyarrow.parquet

    found: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return found


json.loads((FOLDER / PACKAGE / "kit.json").read_text("utf-8"))
asyncio.run(main())
