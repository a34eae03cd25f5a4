"""Versions of a tool: instants at which it began to answer, or to act, in another way.

In: the steps of one tool. Out: the steps of each version in order, with the instant at which the version ended. Two things tell
a change: the form of its answers (arguments, fields, words; a tool that says few things: what it says) before and after an
instant have nothing in common; or no write rule explains all its calls, but one explains those before and another those after.
Sees: tools with at least ten calls in each version, and a clock. Does not see: a version that came back; a change that most
calls do not meet; fields that were renamed in things which nobody looked at again since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import NamedTuple

from env_builder.runtime.relevance import leaves
from env_builder.world.history import instant
from env_builder.world.replay import Step

MINIMUM_CALLS = 10
"""Calls of each version: fewer may be apart by chance."""
REPEATED = 5
"""Calls that each form has at least, on the average: forms that hardly repeat tell nothing apart."""
FEW_ANSWERS = 3


class Version(NamedTuple):
    """Calls of one version."""

    until: str | None
    """ISO instant from which the next version holds; None: it is the last."""
    steps: list[Step]


def versions(steps: list[Step], explained: Callable[[list[Step]], bool] | None = None) -> list[Version]:
    """The versions in order; one where nothing speaks for more. `explained`: does one rule explain these steps?"""
    timed = sorted((step for step in steps if step.call.called_at), key=_order)
    if len(timed) != len(steps) or len(steps) < 2 * MINIMUM_CALLS:
        return [Version(None, steps)]
    worked = [step for step in timed if not step.call.failed]
    starts = _apart(worked)
    if not starts and explained is not None and not explained(steps):
        starts = _bend(timed, explained)
    return _cut(steps, [instant(step.call.called_at) or "" for step in starts])


def _order(step: Step) -> tuple[str, str]:
    return instant(step.call.called_at) or "", step.call.event_id


def _cut(steps: list[Step], starts: list[str]) -> list[Version]:
    """Steps by version, in the order in which they were given."""
    ends: list[str | None] = [*starts, None]
    return [
        Version(end, [step for step in steps if begin <= (instant(step.call.called_at) or "") and
                      (end is None or (instant(step.call.called_at) or "") < end)])
        for begin, end in zip(["", *starts], ends, strict=True)]


def _apart(worked: list[Step]) -> list[Step]:
    """First steps of versions whose answers have no form in common with those before."""
    forms = _forms(worked)
    last = {form: index for index, form in enumerate(forms)}
    starts: list[int] = []
    begin, reach = 0, -1
    for index, form in enumerate(forms):
        if index > reach and index - begin >= MINIMUM_CALLS and len(forms) - index >= MINIMUM_CALLS:
            before, after = set(forms[begin:index]), set(forms[index:])
            if REPEATED * len(before) <= index - begin and REPEATED * len(after) <= len(forms) - index:
                starts.append(index)
                begin = index
        reach = max(reach, last[form])
    return [worked[index] for index in starts if worked[index].call.called_at != worked[index - 1].call.called_at]


def _forms(worked: list[Step]) -> list[Hashable]:
    contents = {step.call.content for step in worked}
    if len(contents) <= FEW_ANSWERS and not any(step.shown for step in worked):
        return [step.call.content for step in worked]
    return [_form(step) for step in worked]


def _form(step: Step) -> Hashable:
    value = step.call.parsed
    if isinstance(value, dict):
        return (*sorted(step.call.arguments), "→", *value)
    words = step.call.content
    for leaf in sorted({str(leaf) for leaf in leaves(step.call.arguments)}, key=lambda text: (-len(text), text)):
        words = words.replace(leaf, "·") if len(leaf) > 2 else words
    return (*sorted(step.call.arguments), "→", type(value).__name__ if value is not None else re.sub(r"\S*\d\S*", "·", words))


def _bend(timed: list[Step], explained: Callable[[list[Step]], bool]) -> list[Step]:
    """The one step from which on another rule explains what all before it explains no longer."""
    low, high = MINIMUM_CALLS, len(timed) - MINIMUM_CALLS
    if not explained(timed[:low]) or not explained(timed[high:]):
        return []
    while low < high:  # the longest beginning that one rule explains
        middle = (low + high + 1) // 2
        low, high = (middle, high) if explained(timed[:middle]) else (low, middle - 1)
    return [timed[low]] if explained(timed[low:]) else []
