"""What a reviewer is shown of a session: the request, the policy, what was done, what changed, the last words.

Input: the published warehouse and a session's id. Output: a `Case` of plain texts and calls, in the session's order.
Does not see: what the agent did outside of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pipelines.inspection.views import RowSource
from pipelines.reviewing.conditions import conditions_of_case
from pipelines.reviewing.policies import telling_sentences

Row = dict[str, Any]
_POLICY_ROLES = ("system", "developer")
READS = ("read", "pure", "constant")
"""Effects of calls that change nothing."""


class Case(NamedTuple):
    """A session as a reviewer sees it."""

    request: list[str]
    """The user's words."""
    policy: list[str]
    """What the system prompt says."""
    steps: list[Row]
    """Messages {"role", "content"} and calls {"tool", "arguments", "answer", "is_error", "changes"} in order."""
    end: list[Row]
    """Calls that succeeded and may have changed something."""
    last_words: str
    telling: Sequence[str] = ()
    """Sentences of the policy that speak of this case, if it has many."""
    conditions: Sequence[Row] = ()
    """Conditions that the policy states and that apply to this case (`conditions_of_case`)."""


def case_of(source: RowSource, session_id: str) -> Case:
    """Read the case of a session."""
    turns = source.rows(
        "select t.*, effect from core.turns t left join mart.behaviours using (service, tool) where session_id = $id "
        "order by position", id=session_id)
    messages = [row for row in turns if row["kind"] == "message" and (row["content"] or "").strip()]
    agent = [row["content"] for row in messages if row["role"] == "assistant"]
    steps = [_step(row) for row in turns if row["role"] not in _POLICY_ROLES]
    request = [row["content"] for row in messages if row["role"] == "user"]
    policy = list(dict.fromkeys(row["content"] for row in messages if row["role"] in _POLICY_ROLES))
    words = [*request, *(row["tool"] for row in turns if row["kind"] == "call"), *agent[-1:]]
    return Case(
        request, policy, steps,
        [step for step in steps if step.get("changes")], agent[-1] if agent else "",
        telling_sentences(policy, words), conditions_of_case(source, session_id))


def _step(row: Row) -> Row:
    if row["kind"] == "message":
        return {"role": row["role"] or "somebody", "content": row["content"] or ""}
    return {
        "tool": row["tool"], "arguments": row["arguments_raw"] or row["arguments"] or "", "answer": row["content"] or "",
        "is_error": bool(row["is_error"]), "changes": row["effect"] not in READS and not row["is_error"]}
