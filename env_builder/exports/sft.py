"""Good sessions as chat messages for supervised fine-tuning: one JSON line a session, one file a side.

A line is {"messages": […], "tools": "…"} in OpenAI's chat format. `arguments` and `tools` are JSON text: Arrow would
give every tool the argument names of all others (with null) if they were objects. Call ids are made new (`call_0`,
…), as logs reuse and lose them. Where nobody spoke (requests of an application) the task's goal stands as the user's
words.

Left out, with a verdict: sessions not known to be good, and sessions with a call that was never answered, whose
arguments are no JSON object, or without any word or call of the assistant. A user's own calls are not the policy's
and are not told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from env_builder.exports.exporter import Exported, Exporter, Source, members
from warehouse.records import SIDES, Verdict, frame

_REASONS = {
    "not_known_good": "session {} is not known to have succeeded; it stays in the trajectories",
    "unanswered_call": "session {} holds a call without an answer, which no chat format can tell",
    "unreadable_arguments": "session {} holds a call whose arguments are no JSON object",
    "no_action": "session {} holds no word and no call of the assistant",
}


def _write(out: Path, source: Source) -> Exported:
    chosen = _choose(source)
    kept = chosen.filter(pl.col("reason").is_null())
    tools = {str(service): _tools(part) for (service,), part in source.tools.group_by("service")}
    conversations = _conversations(kept, source.turns)
    paths = []
    for side in SIDES:
        lines = (
            _line(conversations[session_id], goal, tools.get(service, "[]"))
            for session_id, goal, service in kept.filter(pl.col("split") == side)
            .select("session_id", "goal", "service")
            .iter_rows()
        )
        path = out / f"sft.{side}.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        paths.append(path)
    return Exported(sorted(paths), _left(chosen.filter(pl.col("reason").is_not_null())))


def _choose(source: Source) -> pl.DataFrame:
    """Members of tasks with the reason to leave them out, or null."""
    call = pl.col("kind") == "call"
    acted = call | ((pl.col("role") == "assistant") & (pl.col("content").str.strip_chars() != ""))
    facts = (
        source.turns.filter(_told())
        .group_by("session_id")
        .agg(
            (call & pl.col("content").is_null()).any().alias("unanswered"),
            (call & pl.col("arguments").is_null()).any().alias("unreadable"),
            acted.fill_null(False).any().alias("acted"),
        )
    )
    reason = (
        pl.when(~pl.col("good"))
        .then(pl.lit("not_known_good"))
        .when(~pl.col("acted").fill_null(False))
        .then(pl.lit("no_action"))
        .when(pl.col("unanswered"))
        .then(pl.lit("unanswered_call"))
        .when(pl.col("unreadable"))
        .then(pl.lit("unreadable_arguments"))
    )
    return (
        members(source.tasks)
        .join(facts, on="session_id", how="left")
        .with_columns(reason.alias("reason"))
        .sort("session_id", "task_id")
    )


def _told() -> pl.Expr:
    return (pl.col("kind") == "message") | (pl.coalesce("requestor", pl.lit("assistant")) != "user")


def _conversations(kept: pl.DataFrame, turns: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    told = (
        turns.filter(_told())
        .join(kept.select("session_id").unique(), on="session_id", how="semi")
        .sort("session_id", "position")
    )
    listed = told.group_by("session_id", maintain_order=True).agg(
        pl.struct("kind", "role", "content", "tool", pl.coalesce("arguments_raw", "arguments").alias("arguments")).alias(
            "turns"
        )
    )
    return {session_id: _messages(parts) for session_id, parts in listed.iter_rows()}


def _messages(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns as chat messages; a call joins the assistant's words just before it."""
    messages: list[dict[str, Any]] = []
    n_calls = 0
    for turn in turns:
        if turn["kind"] == "message":
            if turn["content"]:
                messages.append({"role": turn["role"], "content": turn["content"]})
            continue
        call = {"id": f"call_{n_calls}", "type": "function", "function": {"name": turn["tool"], "arguments": turn["arguments"]}}
        n_calls += 1
        spoke = bool(messages) and messages[-1]["role"] == "assistant" and "tool_calls" not in messages[-1]
        if not spoke:
            messages.append({"role": "assistant", "content": None})
        messages[-1]["tool_calls"] = [call]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": turn["content"]})
    return messages


def _line(messages: list[dict[str, Any]], goal: str, tools: str) -> str:
    if not any(message["role"] == "user" for message in messages):
        n_system = sum(message["role"] in ("system", "developer") for message in messages[:1])
        messages = [*messages[:n_system], {"role": "user", "content": goal}, *messages[n_system:]]
    return json.dumps({"messages": messages, "tools": tools}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _tools(tools: pl.DataFrame) -> str:
    """A service's tools as JSON text of OpenAI function tools, by name."""
    functions = []
    for name, description, schema in tools.sort("tool").select("tool", "description", "input_schema").iter_rows():
        function = {"name": name, "parameters": json.loads(schema)}
        if description:
            function["description"] = description
        functions.append({"type": "function", "function": function})
    return json.dumps(functions, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _left(rows: pl.DataFrame) -> pl.DataFrame:
    return frame(
        Verdict,
        [
            {
                "stage": "datasets",
                "subject": session_id,
                "kept": False,
                "reason": reason,
                "detail": _REASONS[reason].format(session_id),
                "file_id": None,
                "line": None,
            }
            for session_id, reason in rows.select("session_id", "reason").iter_rows()
        ],
    )


EXPORTER = Exporter("sft", _write)
