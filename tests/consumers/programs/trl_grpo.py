"""GRPOTrainer takes a step in the room: a tiny model that was taught to make one call rolls out, is rewarded and changes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
import trl
import trl.chat_template_utils
from datasets import load_dataset
from telling import EXPORTS, WORK, episodes, tell
from tiny_model import WINDOW, make
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import get_json_schema

FOLDER = EXPORTS / "trl"
sys.path.insert(0, str(FOLDER))
package = importlib.import_module(f"{next(FOLDER.glob('traceroom_*')).name}.trl_room")
told = {episode["name"]: episode for episode in episodes()}
torch.manual_seed(0)
torch.set_num_threads(2)


def taught(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A tiny model that answers each prompt with the first call of the good episode."""
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text("utf-8")
    make(folder, [json.dumps(package.ROOM.tools), *(message["content"] for row in rows for message in row["prompt"])], template)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    call = next(step for step in told["good"]["steps"] if "tool" in step)
    made = f"<tool_call>\n{json.dumps({'name': call['tool'], 'arguments': call['arguments']})}\n</tool_call><|im_end|>"
    examples = []
    for own in (None, trl.chat_template_utils.get_training_chat_template(tokenizer)):
        asked = tokenizer.apply_chat_template(
            rows[0]["prompt"], tools=package.ROOM.tools, add_generation_prompt=True, tokenize=False, chat_template=own)
        prompt, answer = (tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"] for text in (asked, made))
        prompt = prompt[:, -3 * WINDOW:]
        examples.append((torch.cat([prompt, answer], dim=1), torch.cat([torch.full_like(prompt, -100), answer], dim=1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(200):
        loss = sum(model(input_ids=ids, labels=labels).loss for ids, labels in examples)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() < 0.02:
            break
    model.save_pretrained(folder)
    return folder


def brevity(completions: list[Any], **row: Any) -> list[float]:
    """A second reward, so that rollouts of a model that knows nothing differ and the step has a gradient."""
    return [-len(json.dumps(completion)) / 10_000 for completion in completions]


def stepped(seed: int) -> dict[str, float]:
    """One step of the trainer; what it logged. AssertionError where no rollout called, or all were alike."""
    data = load_dataset("json", data_files=str(FOLDER / "train.jsonl"), split="train", cache_dir=str(WORK / "cache"))
    model = taught(WORK / "tiny", data.to_list())
    before = {name: value.clone() for name, value in AutoModelForCausalLM.from_pretrained(model).state_dict().items()}
    trainer = trl.GRPOTrainer(
        model=str(model), environment_factory=package.Room, reward_funcs=[package.reward, brevity], train_dataset=data,
        args=trl.GRPOConfig(
            output_dir=str(WORK / "out"), max_steps=1, per_device_train_batch_size=4, num_generations=4, temperature=1.0,
            max_completion_length=160, max_tool_calling_iterations=1, gradient_checkpointing=False, learning_rate=1e-3,
            use_cpu=True, bf16=False, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True, seed=seed))
    trainer.train()
    after = trainer.model.state_dict()
    assert any(not torch.equal(before[name], after[name].cpu()) for name in before), "no weight has changed"
    logged: dict[str, float] = trainer.state.log_history[0]
    calls = [row for room in trainer._environment_pool[None] for row in room._playing().journal() if row["kind"] == "call"]
    assert calls, f"no call has reached the room: {logged}"
    return {"calls": len(calls), **{name: value for name, value in logged.items() if "reward" in name or "tools" in name}}


def rewarded(steps: list[dict[str, Any]], task_id: str) -> float | None:
    """The steps as the trainer makes them: methods of the environment, the last words in the completion."""
    room = package.Room()
    room.reset(task_id=task_id)
    words = steps[-1].get("say") if steps else None
    for step in steps[:-1] if words else steps:
        if "say" in step:
            getattr(room, package.ROUTES.speak)(text=step["say"])
        else:
            getattr(room, step["tool"])(**step["arguments"])
    return package.reward([[{"role": "assistant", "content": words or ""}]], [room])[0]


def drawn() -> dict[str, float]:
    """A step whose rollouts differ and call, of three: what a random model samples is not the same on every processor."""
    for seed in range(2):
        try:
            return stepped(seed)
        except AssertionError as error:
            print(error, file=sys.stderr)
    return stepped(2)


figures = drawn()
schemas = {tool["function"]["name"]: get_json_schema(getattr(package.Room(), tool["function"]["name"]))["function"]
           for tool in package.ROOM.tools}
for tool in package.ROOM.tools:
    wanted, made = tool["function"]["parameters"], schemas[tool["function"]["name"]]["parameters"]
    assert set(made["properties"]) == set(wanted.get("properties", {})), tool
    assert set(made.get("required", ())) == set(wanted.get("required", ())), tool
tell("GRPOTrainer took a step with the room as its environment", digest=package.ROOM.digest, figures=figures,
     rewards={name: rewarded(episode["steps"], episode["task_id"]) for name, episode in told.items()})
