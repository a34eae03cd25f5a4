"""Where two episodes of one policy on one task part: one in the environment, one on the real service.

In: both journals, as rows of `docs/environment.md`. Out: a `Divergence`: the cause of different verdicts, and the step. Steps
are compared one to one. The first answer, or reply of the user, that differs although the policy did the same decides; if none
does, the policy itself differed, or, if it did not, the reward. Sees: what both sides answered. Does not see: whether the first
difference mattered (values that a service samples, as new ids, differ in any two runs); what else parted the episodes after it;
whether the real verdict is right.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from env_builder.runtime.answers import failed, parse

CAUSES = ("answer_wrong", "answer_unknown", "reward_wrong", "user_differs", "perturbation", "policy_differs")
Row = dict[str, Any]


class Divergence(NamedTuple):
    """Why two episodes end with different verdicts."""

    cause: str
    """One of `CAUSES`."""
    place: int | None = None
    """The journal's row at which they part, from 0; None: they are alike to the end."""
    tool: str | None = None
    """The tool whose answer differs."""


def divergence(environment: Sequence[Row], real: Sequence[Row], is_perturbed: bool = False) -> Divergence:
    """Return the cause of different verdicts. `is_perturbed`: the episode in the environment had perturbations, the real one
    did not: then whatever differs first, except an unknown answer, is theirs."""
    here, there = (_steps(each) for each in (environment, real))
    words_differ = False
    for place, (one, other) in enumerate(zip(here, there, strict=False)):
        if one["kind"] != other["kind"] or (one["kind"] == "call" and not _is_same_call(one, other)):
            return _parted("policy_differs", place, None, is_perturbed)
        if one["kind"] == "call":
            if not _is_same_answer(one, other):
                return _answer(one, place, is_perturbed)
            continue
        words_differ |= one["content"] != other["content"]
        if one.get("reply") != other.get("reply"):
            return _parted("policy_differs" if words_differ else "user_differs", place, None, is_perturbed)
    if words_differ or len(here) != len(there):
        return _parted("policy_differs", min(len(here), len(there)), None, is_perturbed)
    return Divergence("reward_wrong")


def _answer(row: Row, place: int, is_perturbed: bool) -> Divergence:
    if row.get("tier") == "unknown":
        return Divergence("answer_unknown", place, row["tool"])
    return _parted("answer_wrong", place, row["tool"], is_perturbed)


def _parted(cause: str, place: int, tool: str | None, is_perturbed: bool) -> Divergence:
    return Divergence("perturbation" if is_perturbed else cause, place, tool)


def _steps(journal: Sequence[Row]) -> list[Row]:
    """Return the calls and words: that an episode ended is no step of its own."""
    return [row for row in journal if row["kind"] in ("call", "say")]


def _is_same_call(one: Row, other: Row) -> bool:
    return one["tool"] == other["tool"] and _canonical(one["arguments"]) == _canonical(other["arguments"])


def _is_same_answer(one: Row, other: Row) -> bool:
    """Return whether two answers say the same: as text, or as JSON in whatever layout and order of fields."""
    return _is_failure(one) == _is_failure(other) and (
        one["content"] == other["content"] or _parsed(one["content"]) == _parsed(other["content"]))


def _is_failure(row: Row) -> bool:
    """Return whether an answer is flagged as a failure or says so: not every service flags its own."""
    return bool(row.get("is_error")) or failed(row["content"], parse(row["content"]))


def _parsed(content: Any) -> Any:
    try:
        return _canonical(json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return content


def _canonical(value: Any) -> str:
    """Return the JSON text of a value: true is not 1 there."""
    return json.dumps(value, sort_keys=True)
