"""An exported environment as an Inspect task: `inspect eval inspect_room.py`, or `PACKAGE/room` once it is installed.

In: the kit beside this module. Out: the task `room`: a sample for each exported task, a solver in which a model acts, with the
tools and the user of the task, and a scorer that is the environment's own grader. Environment and grader share the process
with Inspect; the model sees answers alone. A sample that nobody can score is unscored, never 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai import model as models
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCallError, ToolInfo, ToolParams

try:
    from . import play
except ImportError:  # loaded by its path: its folder is where Python looks
    import play  # type: ignore[import-not-found,no-redef]

HERE = Path(__file__).parent
MESSAGES = {"system": models.ChatMessageSystem, "user": models.ChatMessageUser, "assistant": models.ChatMessageAssistant}


@task
def room(split: str | None = None) -> Task:
    """Return the exported tasks, those of one split if `split` names it."""
    opened = play.open(HERE)
    samples = [
        Sample(id=row["task_id"], metadata={"family": row["family"], "split": row["split"], "goal": row["goal"]}, input=[
            MESSAGES[message["role"]](content=message["content"]) for message in opened.begin(row["task_id"]).messages])
        for row in opened.tasks if split in (None, row["split"])]
    return Task(dataset=MemoryDataset(samples, name=opened.name), solver=acting(), scorer=rubric(),
                metadata={"digest": opened.digest, **opened.figures})


@solver
def acting() -> Solver:
    """Lets the model act until the episode ends, or until it says something that nobody answers."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        opened = play.open(HERE)
        episode = opened.begin(str(state.sample_id))
        tools = [_info(tool["function"]) for tool in opened.tools]
        model = models.get_model()
        while episode.ended is None and not state.completed:
            state.output = await model.generate(state.messages, tools=tools)
            message = state.output.message
            calls = message.tool_calls or []
            state.messages.append(message)
            reply = episode.say(message.text) if message.text.strip() else None
            for call in calls:
                text, is_error = episode.call(call.function, None if call.parse_error else call.arguments)
                error = ToolCallError("unknown", text) if is_error else None
                state.messages.append(models.ChatMessageTool(
                    content=text, tool_call_id=call.id, function=call.function, error=error))
            if reply is not None:
                state.messages.append(models.ChatMessageUser(content=reply))
            elif not calls:
                episode.finish()
        state.store.set("journal", episode.journal())
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def rubric() -> Scorer:
    """Score the grader's own replay of the journal."""

    async def score(state: TaskState, target: Target) -> Score:
        grade = play.open(HERE).grade(str(state.sample_id), state.store.get("journal", []))
        findings = [{"check_id": each.check_id, "kind": each.kind, "passed": each.passed, "description": each.description}
                    for each in grade.checks]
        if grade.reward is None:
            why = "an answer that nobody knows could turn the reward"
            return Score.unscored(explanation=why, metadata={"findings": findings})
        failed = [each["description"] for each in findings if each["passed"] is False]
        return Score(value=grade.reward, explanation="\n".join([grade.tally, *failed]), metadata={"findings": findings})

    return score


def _info(function: dict[str, Any]) -> ToolInfo:
    schema = function["parameters"]
    shown = {"properties": schema.get("properties", {}), "required": schema.get("required", []),
             "additionalProperties": schema.get("additionalProperties", False)}
    return ToolInfo(
        name=function["name"], description=function["description"] or function["name"],
        parameters=ToolParams.model_validate(shown))
