"""Inspect runs the exported task with its mock model: known solutions, doing nothing, and the episodes of the comparison."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[:] = [path for path in sys.path if Path(path) != Path(__file__).parent]  # the standard library has an `inspect`
from inspect_ai import eval as evaluate  # noqa: E402
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.tool import ToolCall  # noqa: E402
from telling import EXPORTS, WORK, episodes, tell  # noqa: E402

package = next(path.parent for path in (EXPORTS / "inspect").glob("*/kit.json"))
sys.path.insert(0, str(package.parent))
module = __import__(f"{package.name}.inspect_room", fromlist=["room", "play"])
opened = module.play.open(package)
os.chdir(package)


def turns(task_id: str, steps: list[dict]) -> list[ModelOutput]:
    """Return what a model says that makes these steps: words that nobody answers stand beside the call after them."""
    episode, outputs, said = opened.begin(task_id), [], ""
    for number, step in enumerate([*steps, {"say": ""}]):
        calls = []
        if "tool" in step:
            calls = [ToolCall(id=f"call_{number}", function=step["tool"], arguments=step["arguments"])]
            episode.call(step["tool"], step["arguments"])
        elif step["say"] and episode.say(step["say"]) is None:
            said = "\n".join(filter(None, [said, step["say"]]))
            continue
        message = ChatMessageAssistant(content=step.get("say") or said, tool_calls=calls or None, model="mockllm/model")
        said = ""
        outputs.append(ModelOutput(model="mockllm", choices=[ChatCompletionChoice(message=message)],
                                   usage=ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)))
    return outputs


def scores(steps: dict[str, list[dict]]) -> dict[str, float]:
    """Return what the scorer gives each sample in which the mock model makes these steps."""
    order = [row["task_id"] for row in opened.tasks if row["task_id"] in steps]
    model = get_model("mockllm/model", custom_outputs=[each for task_id in order for each in turns(task_id, steps[task_id])])
    (log,) = evaluate("inspect_room.py", model=model, sample_id=order, max_samples=1, display="none",
                      log_dir=str(WORK.resolve() / "logs"), log_format="json")
    assert log.status == "success", log.error
    assert [sample.id for sample in log.samples] == order and not any(sample.error for sample in log.samples)
    return {sample.id: sample.scores["rubric"].value for sample in log.samples}


tasks = [row["task_id"] for row in opened.tasks]
oracle = scores({task_id: opened.solution(task_id) for task_id in tasks})
noop = scores({task_id: [] for task_id in tasks})
assert set(oracle.values()) == {1.0} and set(noop.values()) == {0.0}, (oracle, noop)
rewards = {each["name"]: scores({each["task_id"]: each["steps"]})[each["task_id"]] for each in episodes()}
kit = json.loads((package / "kit.json").read_text("utf-8"))
tell(f"inspect eval with mockllm: {len(tasks)} samples, known solutions 1, doing nothing 0, no sample in error",
     digest=kit["digest"], rewards=rewards, oracle=1.0, noop=0.0)
