"""What recorded calls teach of how a company has set up its apps.

In: calls that agents made, with their answers, and the company's world. Out: product -> what was learnt, which a desk gives to
the product's tools (`CompanyDesk.convention`). Each product has a function `learn_<product>(calls, world)` here, or none where
calls teach nothing that exports do not tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from env_builder.company.calendar_habits import learn_calendar
from env_builder.company.calls import AgentPrompt, RecordedCall
from env_builder.company.chat_conventions import learn_slack
from env_builder.company.gmail_habits import learn_gmail
from env_builder.company.jira_habits import learn_jira
from env_builder.company.wiki_conventions import learn_confluence
from env_builder.runtime.company import CompanyWorld

_END = 2**61
_SECOND = 1_000_000
_EACH, _TOGETHER = 3, 15
"""Observations that a law of ages needs of each kind, and of all together."""


def recorded_calls(sessions: pl.DataFrame, turns: pl.DataFrame) -> list[RecordedCall]:
    """Return the answered calls of sessions in the order of time. Frames: `core.sessions`, `core.turns`."""
    calls = turns.filter((pl.col("kind") == "call") & pl.col("content").is_not_null() & pl.col("arguments").is_not_null()
                         & pl.col("happened_at").is_not_null())
    joined = calls.join(sessions.select("session_id", "identity"), on="session_id", how="left")
    columns = joined.sort("happened_at", "session_id", "position").select(
        "happened_at", "identity", "tool", "arguments", "content", "is_error")
    return [RecordedCall(_microseconds(at), (owner or "").strip().lower(), tool, json.loads(arguments), content, bool(is_error))
            for at, owner, tool, arguments, content, is_error in columns.iter_rows()]


def agent_prompts(sessions: pl.DataFrame, turns: pl.DataFrame) -> list[AgentPrompt]:
    """Return what each session of somebody's agent was told, in the order of time. Frames: `core.sessions`, `core.turns`."""
    prompts = []
    timed = turns.filter(pl.col("happened_at").is_not_null()).sort("session_id", "position")
    owners = dict(sessions.filter(pl.col("identity").is_not_null()).select("session_id", "identity").iter_rows())
    for own in timed.partition_by("session_id", maintain_order=True):
        words = own.filter((pl.col("kind") == "message") & (pl.col("role") == "user"))
        called = own.filter(pl.col("kind") == "call")
        owner = str(owners.get(own["session_id"][0], "")).strip().lower()
        if not owner or not words.height or not called.height:
            continue
        is_whole = words["position"][-1] < called["position"][0]
        ends = own.select(pl.max_horizontal("happened_at", "answered_at"))["happened_at"].max()
        prompts.append(AgentPrompt(
            _microseconds(words["happened_at"][0]), _microseconds(ends),  # type: ignore[arg-type]
            owner, "\n\n".join(text for text in words["content"] if text) if is_whole else ""))
    return sorted(prompts)


def learn(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, dict[str, Any]]:
    """Return what calls teach of each product."""
    return {product: learnt for product, learner in LEARNERS.items() if (learnt := learner(calls, world))}


LEARNERS: dict[str, Callable[[Sequence[RecordedCall], CompanyWorld], dict[str, Any]]] = {
    "calendar_events": learn_calendar,
    "confluence": learn_confluence,
    "gmail": learn_gmail,
    "jira": learn_jira,
    "slack": learn_slack,
}
"""Product -> what learns from calls."""


def _microseconds(at: datetime) -> int:
    moment = at if at.tzinfo else at.replace(tzinfo=UTC)
    return int(moment.timestamp()) * _SECOND + moment.microsecond
