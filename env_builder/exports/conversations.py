"""Episodes of the table of steps as chat messages in OpenAI's format, and datasets of JSON lines made of them.

A call joins the assistant's words just before it. Call ids are new (`call_0`, …), as logs reuse and lose them. A tool has the
name that an environment shows it under (`adapters/play.py`): its own, unless no model's API would take it. `arguments` are JSON
text: Arrow would give every tool the argument names of all others (with null) if they were objects. Where nobody spoke
(requests of an application) the task's goal stands as the user's words. A user's own calls are not the policy's and are left
out. A dataset has one file a split (`NAME.train.jsonl` …), empty where the split has no rows, and a decision on each rejected
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl

from env_builder.exports.adapters.play import callable_names, shown
from env_builder.exports.exporter import DatasetSource, Exported, Exporter
from env_builder.exports.steps import batches, episodes
from warehouse.records import SPLITS, Decision, frame

REASONS = {
    "not_succeeded": "session {} is not known to have succeeded; it stays in the trajectories",
    "no_label": "session {} has no probability of success and no reward",
    "unanswered_call": "session {} holds a call without an answer, which no chat format can tell",
    "unreadable_arguments": "session {} holds a call whose arguments are no JSON object",
    "no_action": "session {} holds no word and no call of the assistant",
    "no_pair": "session {} has no counterpart: a successful and a failed one of the same task that part in the same state",
    "no_rubric": "task {} has no published rubric, so nothing would reward what is tried",
}
Row = dict[str, Any]
DRAWN = ("sampling", "prompt_token_ids", "completion_token_ids", "behaviour_logprobs")
_COLUMNS = ("episode_id", "task_id", "kind", "role", "observation", "action_text", "action_name", "action_arguments",
            "turn_idx", "policy_id", "happened_at", *DRAWN)


class LoggedConversation(NamedTuple):
    """An episode as a conversation."""

    about: Row
    """Its row of `steps.episodes`: episode_id, task_id, family_id, split, service, goal, good, final, label_prob, weight …"""
    messages: list[Row]
    turns: list[int]
    """Of each message the turn that it is from; -1: none."""
    details: list[Row]
    """Of each message what else the log says: `happened_at`, and of the policy's own how they were drawn (`DRAWN`)."""
    policy: str | None
    """The model that the log names, of its first act that names one."""
    reject_reason: str | None
    """Why no chat format can tell it, a key of `REASONS`."""


def conversations(source: DatasetSource, splits: Sequence[str]) -> Iterator[LoggedConversation]:
    """Return the episodes of the sides, by task and episode."""
    names = callable_names(source.tools["tool"])
    about = {(row["task_id"], row["session_id"]): row for row in episodes(source).iter_rows(named=True)}
    for rows in batches(source, splits):
        for episode, steps in groupby(rows.select(_COLUMNS).iter_rows(named=True), itemgetter("task_id", "episode_id")):
            yield _episode(about[episode], [*steps], names)


def _episode(about: Row, steps: list[Row], names: Mapping[str, str]) -> LoggedConversation:
    entries: list[tuple[Row, int, Row]] = []
    reject_reason, n_calls, acted, passed = None, 0, False, -1
    for place, step in enumerate(steps):
        kind, mine = step["kind"], step["role"] == "assistant"
        if kind == "message":
            text = step["observation"] if step["action_text"] is None else step["action_text"]
            if text:
                entries.append(({"role": step["role"], "content": text}, step["turn_idx"], _details(step)))
                acted = acted or (mine and bool(text.strip()))
        elif kind == "call" and step["role"] == "user":
            passed = step["turn_idx"]
        elif kind == "call":
            acted = True
            answered = place + 1 < len(steps) and steps[place + 1]["kind"] == "result"
            reject_reason = reject_reason or (None if answered else "unanswered_call")
            reject_reason = reject_reason if reject_reason or is_object(step["action_arguments"]) else "unreadable_arguments"
            name = names.get(step["action_name"], step["action_name"])
            call = {"id": f"call_{n_calls}", "type": "function",
                    "function": {"name": name, "arguments": step["action_arguments"]}}
            if not entries or entries[-1][0]["role"] != "assistant" or "tool_calls" in entries[-1][0]:
                entries.append(({"role": "assistant", "content": None}, step["turn_idx"], {}))
            message, turn, details = entries[-1]
            entries[-1] = message | {"tool_calls": [call]}, turn, _details(step) | details
            n_calls += 1
        elif step["turn_idx"] != passed:
            answer = {"role": "tool", "tool_call_id": f"call_{n_calls - 1}", "content": step["observation"]}
            entries.append((answer, step["turn_idx"], _details(step)))
    conversation = spoken([message for message, _, _ in entries], about["goal"])
    if len(conversation) > len(entries):
        goal = {"role": "user", "content": about["goal"]}
        entries.insert(conversation.index(goal), (goal, -1, {}))
    policy = next((step["policy_id"] for step in steps if step["policy_id"]), None)
    return LoggedConversation(about, conversation, [turn for _, turn, _ in entries], [each for _, _, each in entries], policy,
                              reject_reason if acted else "no_action")


def _details(step: Row) -> Row:
    """Return what the log says of a step beside its words."""
    return {name: step[name] for name in ("happened_at", *DRAWN) if step[name] is not None}


def spoken(messages: Sequence[Row], goal: str) -> list[Row]:
    """Return the messages, with the goal as the user's words where no user says anything."""
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
    """Return the tools of an environment as OpenAI function tools, by their own name; as a room shows them (`play.shown`)."""
    rows = tools.sort("tool").select("tool", "description", "input_schema").iter_rows()
    return [{"type": "function", "function": {
        "name": tool["name"], **({"description": tool["description"]} if tool["description"] else {}),
        "parameters": orjson.loads(tool["schema"])}} for tool in shown(
            {"name": name, "description": description, "schema": schema} for name, description, schema in rows)]


def dumps(value: Any) -> str:
    """`value` as compact JSON text, keys as they stand."""
    return orjson.dumps(value).decode()


def rejected(stage_rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Decisions on what was left: (session or task, reason)."""
    return frame(Decision, [
        {"stage": "datasets", "subject": subject, "kept": False, "reason": reason, "detail": REASONS[reason].format(subject),
         "file_id": None, "line": None} for subject, reason in sorted(set(stage_rows))])


Rejections = list[tuple[str, str]]
"""(session or task, reason) of what a form left out."""


def form(name: str, rows: Callable[[DatasetSource, str, Rejections], Iterator[Any]], by_default: bool = False) -> Exporter:
    """Make an exporter of what `rows(source, split, missed)` gives for each split; it adds to `missed` what it leaves out."""
    def write(out: Path, source: DatasetSource) -> Exported:
        missed: Rejections = []
        paths = [out / f"{name}.{split}.jsonl" for split in SPLITS]
        for split, path in zip(SPLITS, paths, strict=True):
            with path.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(dumps(row) + "\n" for row in rows(source, split, missed))
        return Exported(sorted(paths), rejected(missed))

    return Exporter(name, write, by_default)


def accepted(source: DatasetSource, split: str, missed: Rejections,
             wanted: Callable[[LoggedConversation], str | None]) -> Iterator[LoggedConversation]:
    """Yield the episodes of a split that a chat format can tell and `wanted` has no reason against; the others are missed."""
    for episode in conversations(source, (split,)):
        reason = wanted(episode) or episode.reject_reason
        if reason is None:
            yield episode
        else:
            missed.append((episode.about["session_id"], reason))


def good(episode: LoggedConversation) -> str | None:
    """Why the episode is not known to be good, a reason; None: it is."""
    return None if episode.about["good"] else "not_succeeded"


def labelled(episode: LoggedConversation) -> str | None:
    """Why the episode is neither good nor bad, a reason; None: it is one of them."""
    return None if episode.about["good"] or is_bad(episode.about) else "no_label"


def is_bad(about: Row) -> bool:
    """Has the episode more likely failed than not, by its reward or its probability of success?"""
    return not about["good"] and about["final"] is not None and (about["label_source"] == "rubric" or about["final"] < 0.5)
