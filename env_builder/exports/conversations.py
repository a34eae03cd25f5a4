"""Episodes of the table of steps as chat messages, in OpenAI's format, and who cannot be told so.

A call joins the assistant's words just before it. Call ids are made new (`call_0`, …), as logs reuse and lose them. A tool goes
by the name that a room shows it under (`adapters/play.py`): its own, unless no model's API would take it.
`arguments` are JSON text: Arrow would give every tool the argument names of all others (with null) if they were objects.
Where nobody spoke (requests of an application) the task's goal stands as the user's words. A user's own calls are not the
policy's and are not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import polars as pl

from env_builder.exports.adapters.play import callable_names, shown
from env_builder.exports.exporter import Source
from env_builder.exports.steps import batches, episodes
from warehouse.records import Verdict, frame

REASONS = {
    "not_known_good": "session {} is not known to have succeeded; it stays in the trajectories",
    "no_label": "session {} has no probability of success and no reward",
    "unanswered_call": "session {} holds a call without an answer, which no chat format can tell",
    "unreadable_arguments": "session {} holds a call whose arguments are no JSON object",
    "no_action": "session {} holds no word and no call of the assistant",
    "no_pair": "session {} has no counterpart: a good and a bad one of the same task that part in the same state",
    "no_rubric": "task {} has no published rubric, so nothing would reward what is tried",
}
Row = dict[str, Any]
DRAWN = ("sampling", "prompt_token_ids", "completion_token_ids", "behaviour_logprobs")
_COLUMNS = ("episode_id", "task_id", "kind", "role", "observation", "action_text", "action_name", "action_arguments",
            "turn_idx", "policy_id", "happened_at", *DRAWN)


class Episode(NamedTuple):
    """An episode as a conversation."""

    about: Row
    """Its row of `steps.episodes`: episode_id, task_id, family_id, split, service, goal, good, final, label_prob, weight …"""
    messages: list[Row]
    turns: list[int]
    """Of each message the turn that it is from; -1: none."""
    known: list[Row]
    """Of each message what else the log says: `happened_at`, and of the policy's own how they were drawn (`DRAWN`)."""
    policy: str | None
    """The model that the log names, of its first act that names one."""
    left: str | None
    """Why no chat format can tell it, a key of `REASONS`."""


def conversations(source: Source, sides: Sequence[str]) -> Iterator[Episode]:
    """The episodes of the sides, by task and episode."""
    names = callable_names(source.tools["tool"])
    about = {(row["task_id"], row["session_id"]): row for row in episodes(source).iter_rows(named=True)}
    for rows in batches(source, sides):
        for _, steps in rows.select(_COLUMNS).group_by("task_id", "episode_id", maintain_order=True):
            told = steps.rows(named=True)
            yield _episode(about[told[0]["task_id"], told[0]["episode_id"]], told, names)


def _episode(about: Row, steps: list[Row], names: Mapping[str, str]) -> Episode:
    messages: list[Row] = []
    turns: list[int] = []
    known: list[Row] = []
    left, n_calls, acted, passed = None, 0, False, -1
    for place, step in enumerate(steps):
        kind, mine = step["kind"], step["role"] == "assistant"
        if kind == "message":
            text = step["observation"] if step["action_text"] is None else step["action_text"]
            if text:
                messages.append({"role": step["role"], "content": text})
                turns.append(step["turn_idx"])
                known.append(_known(step))
                acted = acted or (mine and bool(text.strip()))
        elif kind == "call" and step["role"] == "user":
            passed = step["turn_idx"]
        elif kind == "call":
            acted = True
            answered = place + 1 < len(steps) and steps[place + 1]["kind"] == "result"
            left = left or (None if answered else "unanswered_call")
            left = left if left or is_object(step["action_arguments"]) else "unreadable_arguments"
            name = names.get(step["action_name"], step["action_name"])
            call = {"id": f"call_{n_calls}", "type": "function",
                    "function": {"name": name, "arguments": step["action_arguments"]}}
            if not messages or messages[-1]["role"] != "assistant" or "tool_calls" in messages[-1]:
                messages.append({"role": "assistant", "content": None})
                turns.append(step["turn_idx"])
                known.append({})
            messages[-1]["tool_calls"] = [call]
            known[-1] = _known(step) | known[-1]
            n_calls += 1
        elif step["turn_idx"] != passed:
            messages.append({"role": "tool", "tool_call_id": f"call_{n_calls - 1}", "content": step["observation"]})
            turns.append(step["turn_idx"])
            known.append(_known(step))
    told = spoken(messages, about["goal"])
    if len(told) > len(messages):
        turns.insert(told.index(goal := {"role": "user", "content": about["goal"]}), -1)
        known.insert(told.index(goal), {})
    policy = next((step["policy_id"] for step in steps if step["policy_id"]), None)
    return Episode(about, told, turns, known, policy, left if acted else "no_action")


def _known(step: Row) -> Row:
    """What the log says of a step beside its words."""
    return {name: step[name] for name in ("happened_at", *DRAWN) if step[name] is not None}


def spoken(messages: Sequence[Row], goal: str) -> list[Row]:
    """The messages, with the goal as the user's words where no user says anything."""
    if any(message["role"] == "user" for message in messages):
        return list(messages)
    n_system = sum(message["role"] in ("system", "developer") for message in messages[:1])
    return [*messages[:n_system], {"role": "user", "content": goal}, *messages[n_system:]]


def is_object(text: str | None) -> bool:
    """Is this the JSON text of an object?"""
    try:
        return isinstance(orjson.loads(text or ""), dict)
    except orjson.JSONDecodeError:
        return False


def acts(messages: Sequence[Row]) -> Iterator[int]:
    """Places of the assistant's messages that a policy would write: those after somebody else's first words."""
    heard = False
    for place, message in enumerate(messages):
        heard = heard or message["role"] not in ("assistant", "system", "developer")
        if message["role"] == "assistant" and heard:
            yield place


def functions(tools: pl.DataFrame) -> list[Row]:
    """The tools of an environment as OpenAI function tools, by their own name; as a room shows them (`play.shown`)."""
    rows = tools.sort("tool").select("tool", "description", "input_schema").iter_rows()
    return [{"type": "function", "function": {
        "name": tool["name"], **({"description": tool["description"]} if tool["description"] else {}),
        "parameters": orjson.loads(tool["schema"])}} for tool in shown(
            {"name": name, "description": description, "schema": schema} for name, description, schema in rows)]


def dumps(value: Any) -> str:
    """`value` as compact JSON text, keys as they stand."""
    return orjson.dumps(value).decode()


def left(stage_rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Verdicts on what was left: (session or task, reason)."""
    return frame(Verdict, [
        {"stage": "datasets", "subject": subject, "kept": False, "reason": reason, "detail": REASONS[reason].format(subject),
         "file_id": None, "line": None} for subject, reason in sorted(set(stage_rows))])
