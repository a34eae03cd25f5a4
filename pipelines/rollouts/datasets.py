"""Rollouts as datasets: trajectories as the tables that every exporter takes.

In: the folder of an environment's rollouts, and the environment. Out: `datasets/` in the folder. An episode is a session of its
task, its reward is the session's grade; one with a reward of 1 is good. Rejects nothing; an exporter reports what it rejects.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from env_builder import exports
from env_builder.exports import DatasetSource
from env_builder.exports.steps import MARKS
from env_builder.layers import read_manifest
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import OWN
from pipelines.rollouts.kept import trajectories
from pipelines.rollouts.results import DATASETS, difficulty, is_good
from warehouse.records import Outcome, Task, Tool, Turn, empty, frame

Row = dict[str, Any]
ROLES = {"agent": "assistant", "user": "user", "system": "system"}


def write(folder: Path, environment: Path) -> list[Path]:
    """Write the rollouts of the environment in the formats that a run writes, and return the files. Episodes of an earlier
    version of the environment are only in `trajectories.jsonl`."""
    source = source_of(folder, environment)
    draft = folder / f".{DATASETS}"
    shutil.rmtree(draft, ignore_errors=True)
    exports.write(exports.by_default(), draft, source)
    shutil.rmtree(folder / DATASETS, ignore_errors=True)
    draft.rename(folder / DATASETS)
    return sorted(path for path in (folder / DATASETS).rglob("*") if path.is_file())


def source_of(folder: Path, environment: Path) -> DatasetSource:
    """Return the tables of an environment's rollouts, as exporters take them."""
    manifest = read_manifest(environment)
    service, content = manifest["service"], manifest["content_digest"]
    turns: list[Row] = []
    marks: list[Row] = []
    graded: list[Row] = []
    of_task: dict[str, list[Row]] = {}
    for trajectory in trajectories(folder):
        about = trajectory["extra"][OWN]
        if about["content_digest"] != content:
            continue
        for row, mark in _turns(trajectory, service):
            turns.append(row)
            marks.append(mark)
        graded.append({
            "session_id": about["episode_id"], "reward": about.get("reward"), "parts": canonical(about.get("checks") or []),
            "cut_off": about.get("ended") != "terminated"})
        of_task.setdefault(about["task_id"], []).append(about)
    rates = {row["task_id"]: row for row in difficulty(
        {**about, "policy": "any", "reward": about.get("reward")} for of in of_task.values() for about in of)}
    tasks = [_task(row, of_task[row["task_id"]], rates.get(row["task_id"], {}), service)
             for row in rows_of(environment / "tasks.jsonl") if row["task_id"] in of_task]
    tools = [{"service": service, "tool": tool["name"], "description": tool.get("description"),
              "input_schema": canonical(tool.get("inputSchema") or {}), "declared": True, "annotations": None, "n_calls": 0}
             for tool in rows_of(environment / "tools.jsonl")]
    grades = pl.DataFrame(
        graded, schema={"session_id": pl.String, "reward": pl.Float64, "parts": pl.String, "cut_off": pl.Boolean})
    return DatasetSource(environment.name, content, frame(Task, tasks), frame(Turn, turns), empty(Outcome), frame(Tool, tools),
                         grades, pl.DataFrame(marks, schema=MARKS))


def _task(row: Row, episodes: list[Row], rate: Row, service: str) -> Row:
    """Return the task with its episodes as its sessions; `rate`: their rate of success."""
    return {
        **{name: row[name] for name in ("task_id", "family", "goal", "derived_from", "split")}, "service": service,
        "slots": canonical(row["slots"]), "session_ids": sorted(about["episode_id"] for about in episodes),
        "succeeded_session_ids": sorted(about["episode_id"] for about in episodes if is_good(about.get("reward"))),
        **{name: rate.get(name) for name in ("rate", "rate_low", "rate_high", "difficulty_band")},
        **dict.fromkeys(("segment_of", "starts_at", "difficulty")),
        **dict.fromkeys(("call_sequences", "late_arguments", "reported_facts", "signature"), "[]")}


def _turns(trajectory: Row, service: str) -> Iterator[tuple[Row, Row]]:
    """Yield turns, each with its marks (`steps.MARKS`)."""
    about = trajectory["extra"][OWN]
    for position, (message, mark) in enumerate(_messages_of(trajectory)):
        turn_id = f"{about['episode_id']}:{position}"
        turn = {
            **dict.fromkeys(("happened_at", "role", "content", "call_id", "tool", "arguments", "arguments_raw", "is_error",
                             "requestor", "answered_at", "result_id", "latency_ms", "model")),
            "turn_id": turn_id, "session_id": about["episode_id"], "service": service, "position": position, **message}
        yield turn, {"turn_id": turn_id, **mark}


def _messages_of(trajectory: Row) -> Iterator[tuple[Row, Row]]:
    """Yield messages and calls of the steps, in order, as turns have them, with their marks."""
    policy, sampling = trajectory["agent"]["name"], trajectory["extra"][OWN].get("sampling")
    for step in trajectory["steps"]:
        model = (step.get("model_name") or policy) if step["source"] == "agent" else None
        metrics = step.get("metrics") or {}  # tokens of the whole turn; they go to its first part
        tokens = {"prompt_token_ids": metrics.get("prompt_token_ids"), "behaviour_logprobs": metrics.get("logprobs"),
                  "completion_token_ids": metrics.get("completion_token_ids")}
        request_marks = {"sampling": canonical(sampling)} if sampling and step.get("llm_call_count") else {}
        if step["message"]:
            say_marks = {**_marked((step.get("extra") or {}).get("say", {})), **tokens, **request_marks}
            yield {"kind": "message", "role": ROLES[step["source"]], "content": step["message"], "model": model}, say_marks
            tokens = {}
        results = {result["source_call_id"]: result for result in (step.get("observation") or {}).get("results", ())}
        for call in step.get("tool_calls") or ():
            result = results.get(call["tool_call_id"], {})
            marks = result.get("extra", {})
            raw = marks.get("arguments")
            yield {
                "kind": "call", "role": "assistant", "content": result.get("content"), "call_id": call["tool_call_id"],
                "tool": call["function_name"], "arguments": None if raw is not None else canonical(call["arguments"]),
                "arguments_raw": raw if isinstance(raw, str) else json.dumps(raw) if raw is not None else None,
                "is_error": marks.get("is_error"), "requestor": "assistant", "latency_ms": marks.get("latency_ms"),
                "model": model}, {**_marked(marks), **tokens, **request_marks}
            tokens = {}


def _marked(extra: Row) -> Row:
    """Return the environment's marks of a move: tier of the answer, state after it, training reward."""
    return {"tier": extra.get("tier"), "state_hash": extra.get("state_hash"), "shaped_reward": extra.get("reward")}
