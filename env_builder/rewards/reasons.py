"""Why a check is right: the condition on which the agent declines, and the sentence that asks for a step before an act.

In: the checks of a task, its good sessions, and the frame of `ConditionRow`. Out: the checks with a reason in their provenance.
A gate that nothing is written, or that the agent declines, has `conditions`: those that logs bear out, on which one of the good
sessions declined. A gate of order has `sentence`: what the instructions ask for.
Does not see: refusals whose condition is not borne out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from env_builder.rewards.witness import SAY, Witness
from warehouse.records import Check

NAMED = 3
"""Sessions that a condition names; `support` counts them all."""
_DECLINING = ("must_not_write", "declined")


class Reasons(NamedTuple):
    """What is known of why agents decline and what they do first."""

    by_session: dict[str, list[dict[str, Any]]]
    """Session -> the conditions borne out on which it declined."""
    by_step: dict[tuple[str, str, str], str]
    """Service, tool and the step that comes before it (`SAY`: words) -> a sentence of the instructions."""

    def checks(self, service: str, checks: Iterable[Check], good: Iterable[Witness]) -> list[Check]:
        """Return the checks with their reasons."""
        rows = [row for one in good for row in self.by_session.get(one.session_id, ())]
        declined = {(row["tool"], row["condition"]): row for row in reversed(rows)}   # of the best session
        return [self._with_reason(service, each, [row for _, row in sorted(declined.items())]) for each in checks]

    def _with_reason(self, service: str, check: Check, declined: list[dict[str, Any]]) -> Check:
        added: dict[str, Any] = {}
        if check.kind in _DECLINING and check.role == "gate" and check.parameters.get("wanted", True) and declined:
            added["conditions"] = declined
        if check.kind == "order" and (sentence := self._sentence(service, check.parameters)):
            added["sentence"] = sentence
        return check.model_copy(update={"provenance": check.provenance | added}) if added else check

    def _sentence(self, service: str, parameters: dict[str, Any]) -> str:
        """Return the sentence that asks for the first step before the second."""
        steps = [SAY if each.get("say") else each.get("tool") for each in parameters.get("first", ())]
        tools = [each.get("tool") for each in parameters.get("second", ())]
        named = (self.by_step.get((service, tool, step), "") for tool in tools for step in steps
                 if isinstance(tool, str) and isinstance(step, str))
        return next(filter(None, named), "")


def reasons_of(conditions: pl.DataFrame | None) -> Reasons:
    """Read the reasons from the frame of conditions; None: there are none."""
    by_session: dict[str, list[dict[str, Any]]] = defaultdict(list)
    by_step: dict[tuple[str, str, str], str] = {}
    for row in conditions.sort("condition_id").iter_rows(named=True) if conditions is not None else ():
        declined = sorted(row["declined_session_ids"])
        if row["status"] == "step":
            by_step[row["service"], row["tool"], row["field"]] = row["sentence"]
        for session_id in declined if row["status"] == "borne_out" else ():
            by_session[session_id].append({
                "condition": row["condition"], "tool": row["tool"], "sentence": row["sentence"], "support": len(declined),
                "contrary": len(row["acted_session_ids"]), "sessions": [session_id, *(
                    each for each in declined if each != session_id)][:NAMED]})
    return Reasons(dict(by_session), by_step)
