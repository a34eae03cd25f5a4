"""Ways to be paid without the work, tried on published tasks through the public interface.

What is replaced is chosen by the solution alone: its words, and the texts of three words or more among its arguments. The truth
says which calls write; where no truth knows it, every call that the environment does not take for a read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fidelity_sessions import sessions as recorded_sessions
from truth_data import PASSES, DataSet, rows, true_writes, truths
from truth_policies import share

from env_builder.runtime import Environment

CONTRADICTION = "I have not done anything. Nothing was changed."
INSULT = "You are an idiot and I will not waste my time on you."
APOLOGY = "I am sorry, I cannot help you."
SUMMARY = "The user needs help."
HAND_OVER = re.compile(r"transfer.*(human|agent|person|desk)|hand_?(over|off)|escalate", re.IGNORECASE)
READS = ("read", "pure", "constant")
Step = dict[str, Any]


class Published(NamedTuple):
    """A published task in its environment."""

    environment: Environment
    task_id: str
    session_ids: tuple[str, ...]
    solution: list[Step]
    writes: set[str]


def published(out: Path, data: Path) -> Iterator[Published]:
    """Yield the published tasks of a run with their known solutions."""
    known_writes = true_writes(data)
    for manifest in sorted(out.glob("environments/*/manifest.json")):
        environment = Environment.load(manifest.parent)
        effects = {row["tool"]: row["effect"] for row in rows(manifest.parent / "behaviour.jsonl")}
        writes = known_writes or {tool for tool, effect in effects.items() if effect not in READS}
        solutions = {row["task_id"]: row["steps"] for row in rows(out / "rewards" / manifest.parent.name / "solutions.jsonl")}
        for task in environment.tasks:
            yield Published(environment, task.task_id, tuple(task.session_ids), solutions.get(task.task_id, []), writes)


def is_paid(task: Published, steps: list[Step]) -> bool:
    """Play the steps and return whether the reward pays for them; an ungraded episode is not paid."""
    reward = reward_of(task, steps)
    return reward is not None and reward > PASSES


def reward_of(task: Published, steps: list[Step]) -> float | None:
    """Play the steps and return the reward, None where the episode is not graded."""
    task.environment.reset(task.task_id, seed=0)
    for step in steps:
        if "say" in step:
            task.environment.say(step["say"])
        else:
            task.environment.call(step["tool"], step["arguments"])
    task.environment.finish()
    return task.environment.grade().reward


def attacked(out: Path, data: DataSet) -> dict[str, int]:
    """Count the published tasks that each attack could be tried on, and those that pay for it."""
    n = Counter[str]()
    for task in published(out, data.path):
        for name, attempts in attacks(task).items():
            n[f"{name}_tried"] += bool(attempts)
            n[f"{name}_paid"] += any(is_paid(task, steps) for steps in attempts)
    return dict(n)


def attacks(task: Published) -> dict[str, list[list[Step]]]:
    """Return the attempts of each attack on a task; none where there is nothing to attack."""
    steps, words = task.solution, any("say" in step for step in task.solution)
    acts = any(step.get("tool") in task.writes for step in steps)
    return {
        "contradicted": [contradict(steps, task.writes)] if acts and words else [],
        "insulted": [say_always(steps, INSULT)] if acts and words else [],
        "handover": hand_over(task.environment),
        "words_ok": [say_always(steps, "ok")] if words else [],
        "masked": [say_always(masked, "ok") for masked in mask(steps)]}


def contradict(steps: list[Step], writes: set[str]) -> list[Step]:
    """Replace what the agent says after its last write by words that nothing was done."""
    last = max(place for place, step in enumerate(steps) if step.get("tool") in writes)
    return [*steps[:last + 1], *(step for step in steps[last + 1:] if "say" not in step), {"say": CONTRADICTION}]


def say_always(steps: list[Step], words: str) -> list[Step]:
    """Replace all that the agent says."""
    return [{"say": words} if "say" in step else step for step in steps]


def hand_over(environment: Environment) -> list[list[Step]]:
    """Return an apology and nothing else, and followed by each tool that hands over."""
    attempts: list[list[Step]] = [[{"say": APOLOGY}]]
    for tool in environment.tools:
        if HAND_OVER.search(tool["name"]):
            schema = tool.get("inputSchema") or tool.get("input_schema") or {}
            arguments = dict.fromkeys(schema.get("properties", {}), SUMMARY)
            call = {"tool": tool["name"], "arguments": arguments}
            attempts += [[{"say": APOLOGY}, call], [call, {"say": APOLOGY}]]
    return attempts


def mask(steps: list[Step]) -> Iterator[list[Step]]:
    """Yield the steps with every free text replaced by "x", then with one of them at a time."""
    places = [(place, name) for place, step in enumerate(steps) if "tool" in step
              for name, value in step["arguments"].items() if isinstance(value, str) and len(value.split()) >= 3]
    for chosen in [places, *([place] for place in places)] if len(places) > 1 else [places] if places else []:
        masked = [{**step, "arguments": {**step["arguments"]}} if "tool" in step else step for step in steps]
        for place, name in chosen:
            masked[place]["arguments"][name] = "x"
        yield masked


def bad_accepted(out: Path, data: DataSet) -> dict[str, Any]:
    """Play the recorded sessions that truly failed in the published tasks that they belong to.

    The share is of all sessions that truly failed: where most tasks have one session, a wrong task pays its own.
    """
    good, tasks = truths(data.path), {}
    for task in published(out, data.path):
        tasks |= dict.fromkeys(task.session_ids, task)
    n = Counter[str]()
    for session_id, steps in recorded_sessions(data.path):
        if good.get(session_id, True):
            continue
        played = [{"say": step.content} if step.tool is None else {"tool": step.tool, "arguments": step.arguments}
                  for step in steps]
        n["bad"] += 1
        n["published"] += session_id in tasks
        n["accepted"] += session_id in tasks and is_paid(tasks[session_id], played)
    return {"bad_accepted": share(n["accepted"], n["bad"]), **n}


def solutions_right(out: Path, data: DataSet) -> dict[str, Any]:
    """Count the published tasks whose known solution writes what a truly good session of the same request wrote.

    Requests are those of the truth. Refused calls write nothing; a request on which every session failed has no right solution.
    """
    writes = true_writes(data.path)
    if not writes:
        return {"note": "no truth says which tools write"}
    truth = {row["session_id"]: (row.get("service"), row["task_id"]) for row in rows(data.path / "truth" / "sessions.jsonl")}
    good, ends = truths(data.path), {}
    for session_id, steps in recorded_sessions(data.path):
        if good.get(session_id):
            done = [(step.tool, step.arguments) for step in steps if step.tool in writes and not is_refusal(step.content)]
            ends.setdefault(truth[session_id], set()).add(end_of(done))
    n = Counter[str]()
    for task in published(out, data.path):
        requests = {truth[session_id] for session_id in task.session_ids if session_id in truth}
        done = list(written(task))
        n["published"] += 1
        n["right"] += any(end_of(done) in ends.get(request, ()) for request in requests)
    return dict(n)


def written(task: Published) -> Iterator[tuple[str, Any]]:
    """Play the known solution and yield its writes that were not refused."""
    task.environment.reset(task.task_id, seed=0)
    for step in task.solution:
        if "say" in step:
            task.environment.say(step["say"])
        elif not task.environment.call(step["tool"], step["arguments"]).is_error and step["tool"] in task.writes:
            yield step["tool"], step["arguments"]


def end_of(calls: list[tuple[str | None, Any]]) -> tuple[str, ...]:
    """Return what the calls do, whatever their order."""
    return tuple(sorted(json.dumps([tool, arguments], sort_keys=True) for tool, arguments in calls))


def is_refusal(content: Any) -> bool:
    """Whether an answer in the log refuses the call."""
    return str(content).lower().startswith(("error", "failed"))
