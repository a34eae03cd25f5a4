"""The words around an agent's work: what was said before its first move, and what its user said afterwards.

In: the tasks and the turns of their sessions. Out: a frame with one row a task: its opening and its user's script, both
as JSON. Sees: the primary session of a task (its best good one, else the first). What the script holds: `scripting.py`.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.runtime.talking import CHARACTERS
from env_builder.scripting import Talk, user_rows, values_of
from warehouse.records import Remember, anew

SCHEMA = {"task_id": pl.String(), "session_id": pl.String(), "opening": pl.String(), "script": pl.String()}

SESSIONS = {"task_id": pl.String(), "session_id": pl.String(), "probability": pl.Float64(), "steps": pl.String()}


def scripts(tasks: pl.DataFrame, turns: pl.DataFrame, remember: Remember = anew) -> pl.DataFrame:
    """`opening` (JSON list of {"role", "content"}) and `script` (JSON, the task's `user` row) of every task of `tasks`.

    The opening holds all messages before the agent's first move: its first call, or its first words after the user's.
    A greeting that comes before the user's first words belongs to the opening. What the user says between two moves
    of the agent is one turn. A task whose session has no turns gets none of either.
    """
    talks, openings = talks_of(tasks, turns)
    rows: dict[str, dict[str, Any]] = {}
    for (_,), own in tasks.sort("service", "task_id").group_by("service", maintain_order=True):
        rows |= user_rows({task_id: talks[task_id] for task_id in own["task_id"].to_list()}, remember=remember)
    texts = [
        {"task_id": task_id, "session_id": session_id, "opening": canonical(openings[task_id]),
         "script": canonical(rows[task_id])}
        for task_id, session_id in primary(tasks).select("task_id", "session_id").iter_rows()
    ]
    return pl.DataFrame(texts, schema=SCHEMA).sort("task_id")


def talks_of(tasks: pl.DataFrame, turns: pl.DataFrame) -> tuple[dict[str, Talk], dict[str, list[dict[str, str]]]]:
    """Of every task its talk, and its opening."""
    talks = {task_id: Talk([], [], [[]], [], []) for task_id in tasks["task_id"].to_list()}
    openings: dict[str, list[dict[str, str]]] = {task_id: [] for task_id in talks}
    spoke: dict[str, int] = {}
    columns = ("task_id", "step", "kind", "role", "by_agent", "content", "arguments")
    rows = part(tasks, turns).sort("task_id", "position").select(columns).iter_rows()
    for task_id, step, kind, role, by_agent, content, arguments in rows:
        talk = talks[task_id]
        if kind == "call":
            talk.shown.extend(text for text in (arguments, content) if text)
            if by_agent and arguments is not None:
                talk.given.extend((len(talk.turns), name, value) for name, value in values_of(arguments))
        elif kind != "message" or content is None:
            continue
        elif step == 0:
            openings[task_id].append({"role": role, "content": content})
            talk.opening.extend([content] if role == "user" else [])
        elif role == "user" and spoke.get(task_id) == step:
            talk.turns[-1] = f"{talk.turns[-1]}\n{content}"
        elif role == "user":
            talk.turns.append(content)
            talk.heard.append([])
            spoke[task_id] = step
        elif by_agent and content.strip():
            talk.heard[-1].append(content)
    return talks, openings


def solutions(tasks: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """`solution` (JSON list of {"tool", "arguments"} | {"say"}) of every task: its agent's steps in its session.

    A call whose logged arguments are no JSON object cannot be made again and is left out.
    """
    is_call = (pl.col("kind") == "call") & pl.col("arguments").is_not_null()
    is_word = (pl.col("kind") == "message") & (pl.col("content").fill_null("").str.strip_chars() != "")
    moves = part(tasks, turns).filter((pl.col("step") > 0) & pl.col("by_agent") & (is_call | is_word))
    steps = moves.sort("task_id", "position").select("task_id", "kind", "tool", "arguments", "content")
    found: dict[str, list[dict[str, object]]] = {task_id: [] for task_id in tasks["task_id"].to_list()}
    for task_id, kind, tool, arguments, content in steps.iter_rows():
        step = {"tool": tool, "arguments": json.loads(arguments)} if kind == "call" else {"say": content}
        found[task_id].append(step)
    rows = {"task_id": list(found), "solution": [canonical(steps) for steps in found.values()]}
    return pl.DataFrame(rows, schema={"task_id": pl.String(), "solution": pl.String()}).sort("task_id")


def sessions_of(tasks: pl.DataFrame, turns: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """(task_id, session_id, probability, steps) of all sessions of the tasks but the good one that gives the solution.

    `outcomes`: (session_id, probability); `steps`: JSON as in `solutions`. Sorted by task_id, session_id.
    """
    others = tasks.select("task_id", "session_ids", "starts_at", "segment_of").explode("session_ids").rename(
        {"session_ids": "session_id"}).drop_nulls("session_id").join(
        primary(tasks.filter(pl.col("good_session_ids").list.len() > 0)).select("task_id", "session_id"),
        on=["task_id", "session_id"], how="anti")
    one = pl.concat_list("session_id")
    alone = others.with_columns(
        pl.concat_str("task_id", "session_id", separator=" ").alias("task_id"), one.alias("session_ids"),
        one.alias("good_session_ids"))
    steps = solutions(alone, turns).rename({"task_id": "both", "solution": "steps"})
    return others.with_columns(pl.concat_str("task_id", "session_id", separator=" ").alias("both")).join(
        steps, on="both").join(outcomes.select("session_id", "probability"), on="session_id", how="left").select(
        "task_id", "session_id", "probability", "steps").sort("task_id", "session_id")


def longest(turns: pl.DataFrame) -> int:
    """Tokens that the longest session takes, as the runtime estimates them (`runtime/talking.py`)."""
    signs = pl.sum_horizontal(pl.col("tool", "arguments", "content").str.len_chars().fill_null(0))
    most = turns.group_by("session_id").agg(signs.sum().alias("signs"))["signs"].max()
    return -(-most // CHARACTERS) if isinstance(most, int) else 0


def primary(tasks: pl.DataFrame) -> pl.DataFrame:
    """(task_id, session_id, starts_at, segment_of): the session that gives each task its words."""
    best = pl.coalesce(pl.col("good_session_ids").list.first(), pl.col("session_ids").list.first(), "segment_of")
    return tasks.select("task_id", best.alias("session_id"), "starts_at", "segment_of")


def part(tasks: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Turns of the tasks' primary sessions with `task_id`, `by_agent` and `step`: 0 before the agent's first move,
    then counted up at each of its moves. Of a later segment of a session, only the turns from its start on."""
    own = primary(tasks).join(turns, on="session_id").filter(
        pl.col("segment_of").is_null() | pl.col("starts_at").is_null() | (pl.col("happened_at") >= pl.col("starts_at")))
    is_call = pl.col("kind") == "call"
    by_agent = pl.when(is_call).then(pl.col("requestor").fill_null("assistant") != "user").otherwise(
        pl.col("role") == "assistant").fill_null(False)
    asked = ((pl.col("role") == "user") & ~is_call).fill_null(False).cum_sum().over("task_id") > 0
    return own.sort("task_id", "position").with_columns(by_agent.alias("by_agent")).with_columns(
        (pl.col("by_agent") & (asked | is_call)).cum_sum().over("task_id").alias("step"))
