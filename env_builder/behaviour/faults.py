"""Failures that say something of the tool, told from faults that passed: the same call succeeded soon after.

Sees: the same call of the same session, with no other act of the session in between. Does not see: a fault that nobody
tried again, a failure that somebody else's act in between mended.
"""

from __future__ import annotations

from collections import defaultdict

from env_builder.world.replay import Step


def lasting(steps: list[Step]) -> list[Step]:
    """Failed calls of a tool, without faults that passed. `steps`: the tool's calls, in order within each session."""
    by_question: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in steps:
        by_question[step.call.session_id, step.call.key].append(step)
    passed = {
        one.call.event_id
        for asked in by_question.values() for index, one in enumerate(asked)
        if one.call.failed and any(
            not later.call.failed and later.after == one.after for later in asked[index + 1: index + 3])}
    return [step for step in steps if step.call.failed and step.call.event_id not in passed]
