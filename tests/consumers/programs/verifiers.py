"""The verifiers library validates the exported taskset (known solutions, doing nothing), scores episodes with it, and takes our
judges' criteria as they stand."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path

from packaged import installed
from telling import EXPORTS, WORK, episodes, tell

source = EXPORTS / "verifiers"
site = installed(source)
package = next(path.name for path in source.iterdir() if (path / "kit.json").is_file())
validate = Path(sys.executable).with_name("vf-validate")
done = subprocess.run(
    [validate, package.replace("_", "-"), "--rich", "False", "--runtime.type", "subprocess", "-o", WORK / "outputs"],
    cwd=WORK, capture_output=True, text=True, check=False)
assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
summary = json.loads(next((WORK / "outputs").rglob("summary.json")).read_text("utf-8"))
outcomes = summary["outcomes"]
kit = json.loads((source / package / "kit.json").read_text("utf-8"))
assert outcomes["valid"] == summary["total"] == sum(kit["figures"]["n_tasks"].values()) > 0, summary

import verifiers.v1 as vf  # noqa: E402
from verifiers.v1.judges.rubric import RubricJudge, RubricJudgeConfig, load_criteria  # noqa: E402
from verifiers.v1.trace import TraceTask  # noqa: E402

taskset = importlib.import_module(f"{package}.taskset" if (source / package / "taskset.py").is_file()
                                  else f"{package}.verifiers_taskset")
tasks = {task.key: task for task in taskset.KitTaskset(taskset.KitConfig(id=package))}


async def rewarded(episode: dict) -> float:
    """Return what the library's own scoring gives an episode whose calls its tool server answered."""
    task = tasks[episode["task_id"]]
    tools = taskset.KitToolset(vf.SharedToolsetConfig())
    state = tools.state
    state.task_id = task.key
    assert {tool.name for tool in await tools.list_tools()} == {row["function"]["name"] for row in taskset.play.open(
        source / package).tools}
    for step in episode["steps"]:
        if "say" in step:
            state.heard(step["say"])
        else:
            await tools.call_tool(step["tool"], step["arguments"])
    trace = vf.Trace.model_construct(
        task=TraceTask(type="KitTask", data=task.data), state=state, rewards={}, metrics={}, info={})
    await task.score(trace)
    assert trace.info["findings"]
    return trace.rewards["rubric"].score


criteria = [{"name": "polite", "text": "The agent is polite.", "weight": 2.0, "choices": ["rude", "curt", "polite"]},
            {"name": "brief", "text": "The agent is brief.", "weight": 1.0, "choices": ["no", "yes"]}]
check = {"criteria": criteria, "votes": 3, "at_least": 0.5}
(WORK / "judge.json").write_text(json.dumps(check), "utf-8")
judge = RubricJudge(RubricJudgeConfig(path=WORK / "judge.json"))
assert [each.model_dump() for each in judge.criteria] == criteria
written = sorted((source / package).rglob("criteria/*.json"))
assert all(load_criteria(path) for path in written)

rewards = {episode["name"]: asyncio.run(rewarded(episode)) for episode in episodes()}
tell(f"wheel built; vf-validate: {outcomes['valid']} of {summary['total']} tasks valid (gold and no-op); episodes scored; "
     "RubricJudge took a judge's criteria unchanged", digest=kit["digest"], rewards=rewards, oracle=1.0, noop=0.0)
