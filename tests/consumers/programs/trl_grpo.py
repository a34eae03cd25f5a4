"""GRPOTrainer takes a step in the room, and in one with awkward tools: a tiny model that was taught to make one call rolls
out, is rewarded and changes; the trainer makes a schema of every tool's method, and arguments arrive as they were given.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
import trl
import trl.chat_template_utils
from datasets import load_dataset
from telling import EXPORTS, WORK, episodes, tell
from tiny_model import WINDOW, make
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import get_json_schema

torch.manual_seed(0)
torch.set_num_threads(2)
SURE = 0.04
"""Loss at which about half of what is drawn is the call, and half is not: rollouts call, and differ."""


class Export(NamedTuple):
    """An export to train in, and the call that the model is taught."""

    folder: Path
    package: Any
    taught: dict[str, Any]


def opened(folder: Path, taught: dict[str, Any]) -> Export:
    """Return the package of an export, imported."""
    sys.path.insert(0, str(folder))
    return Export(folder, importlib.import_module(f"{next(folder.glob('traceroom_*')).name}.trl_room"), taught)


def taught(folder: Path, export: Export, rows: list[dict[str, Any]]) -> Path:
    """Return a tiny model that answers the first prompt with the call that it is to be taught, most of the time."""
    package, call = export.package, {**export.taught, "tool": methods(export.package)[export.taught["tool"]]}
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text("utf-8")
    tools, words = functions(package), [message["content"] for row in rows for message in row["prompt"]]
    make(folder, [json.dumps(tools), json.dumps(call), *words], template)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    made = f"<tool_call>\n{json.dumps({'name': call['tool'], 'arguments': call['arguments']})}\n</tool_call><|im_end|>"
    examples = []
    for own in (None, trl.chat_template_utils.get_training_chat_template(tokenizer)):
        asked = tokenizer.apply_chat_template(
            rows[0]["prompt"], tools=tools, add_generation_prompt=True, tokenize=False, chat_template=own)
        prompt, answer = (tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"] for text in (asked, made))
        prompt = prompt[:, -3 * WINDOW:]
        examples.append((torch.cat([prompt, answer], dim=1), torch.cat([torch.full_like(prompt, -100), answer], dim=1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(200):
        loss = sum(model(input_ids=ids, labels=labels).loss for ids, labels in examples)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() < SURE:
            break
    model.save_pretrained(folder)
    return folder


def brevity(completions: list[Any], **row: Any) -> list[float]:
    """Return a second reward, so that rollouts of a model that knows nothing differ and the step has a gradient."""
    return [-len(json.dumps(completion)) / 10_000 for completion in completions]


def stepped(export: Export, seed: int) -> dict[str, float]:
    """One step of the trainer; what it logged. AssertionError where no rollout called, or all were alike."""
    rows = load_dataset("json", data_files=str(export.folder / "train.jsonl"), split="train", cache_dir=str(WORK / "cache"))
    data = rows.select([0])   # the one that the model is taught to answer
    package, model = export.package, taught(WORK / "tiny", export, data.to_list())
    before = {name: value.clone() for name, value in AutoModelForCausalLM.from_pretrained(model).state_dict().items()}
    trainer = trl.GRPOTrainer(
        model=str(model), environment_factory=package.TrlEnvironment, reward_funcs=[package.reward, brevity],
        train_dataset=data,
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
    wanted = (export.taught["tool"], export.taught["arguments"])
    assert wanted in [(row["tool"], row["arguments"]) for row in calls], f"not as the model wrote it: {calls}"
    return {"calls": len(calls), **{name: value for name, value in logged.items() if "reward" in name or "tools" in name}}


def functions(package: Any) -> list[dict[str, Any]]:
    """Return the tools as the trainer tells them to the model: it makes schemas of the methods."""
    names = sorted(tool["function"]["name"] for tool in package.ROUTES.functions)
    shown = [name for name, _ in inspect.getmembers(package.TrlEnvironment, inspect.isfunction) if not name.startswith("_")]
    assert shown == sorted([*names, "reset"]), shown
    return [get_json_schema(getattr(package.TrlEnvironment(), name)) for name in names]


def methods(package: Any) -> dict[str, str]:
    """Names of methods by the tools' own names."""
    return {package.KIT.own[shown]: name for name, shown in package.ROUTES.tools.items()}


def played(package: Any, steps: list[dict[str, Any]], task_id: str) -> Any:
    """Return the steps as the trainer makes them: methods of the environment, arguments by the names of their parameters."""
    own = methods(package)
    room = package.TrlEnvironment()
    room.reset(task_id=task_id)
    for step in steps:
        if "say" in step:
            getattr(room, package.ROUTES.speak)(text=step["say"])
        else:
            method = getattr(room, own[step["tool"]])
            method(**renamed(package, own[step["tool"]], step["arguments"]))
    return room


def renamed(package: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments under the names that the schema made of the method has for them: it tells them in the order of the tool's."""
    tool = next(tool["function"] for tool in package.ROUTES.functions if tool["function"]["name"] == name)
    parameters = list(inspect.signature(getattr(package.TrlEnvironment, name)).parameters)[1:]
    called = dict(zip(tool["parameters"].get("properties") or {}, parameters, strict=True))
    return {called.get(argument, argument): value for argument, value in arguments.items()}


def rewarded(package: Any, steps: list[dict[str, Any]], task_id: str) -> float | None:
    """Return what the steps are worth; the last words stand in the completion."""
    words = steps[-1].get("say") if steps else None
    room = played(package, steps[:-1] if words else steps, task_id)
    return package.reward([[{"role": "assistant", "content": words or ""}]], [room])[0]


def drawn(export: Export) -> dict[str, float]:
    """Return a step whose rollouts differ and call, of three: random models sample differently by processor."""
    for seed in range(2):
        try:
            return stepped(export, seed)
        except AssertionError as error:
            print(error, file=sys.stderr)
    return stepped(export, 2)


def checked(package: Any) -> None:
    """Has each tool the arguments that it had, and the same required ones? As many, where they go by other names."""
    made = {tool["function"]["name"]: tool["function"] for tool in functions(package)}
    for tool in package.ROUTES.functions:
        wanted, own = tool["function"]["parameters"], made[tool["function"]["name"]]["parameters"]
        assert len(own["properties"]) == len(wanted.get("properties") or {}), tool
        assert len(own.get("required", ())) == len(wanted.get("required") or ()), tool
        assert all(each["description"] for each in own["properties"].values()), own


def hostile() -> dict[str, float]:
    """Return a step in the room with awkward tools; what is called and worth there is what the room itself says."""
    place = EXPORTS / "hostile"
    (told,) = json.loads((place / "episodes.json").read_text("utf-8"))
    call = next(step for step in told["steps"] if not step["tool"].isascii())
    export = opened(place / "trl", call)
    checked(export.package)
    journal = played(export.package, told["steps"], told["task_id"])._playing().journal()
    assert [(row["tool"], row["arguments"]) for row in journal if row["kind"] == "call"] == [
        (step["tool"], step["arguments"]) for step in told["steps"] if "tool" in step]
    assert rewarded(export.package, told["steps"], told["task_id"]) == 1.0
    return drawn(export)


told = {each["name"]: each for each in episodes()}
sample = opened(EXPORTS / "trl", next(step for step in told["good"]["steps"] if "tool" in step))
checked(sample.package)
figures = {"sample": drawn(sample), "hostile": hostile()}
tell("GRPOTrainer took a step with the room as its environment, and one in a room of awkward tools",
     digest=sample.package.KIT.digest, figures=figures, rewards={
         name: rewarded(sample.package, each["steps"], each["task_id"]) for name, each in told.items()})
