"""The form of an answer: what stays of it where other values are asked for.

In: a logged call. Out: its arguments' names with the fields that it answers, or with its words without the arguments' values
and without words that hold digits. Does not see: fields inside fields.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

from env_builder.runtime.relevance import leaves
from env_builder.world.replay import LoggedStep


def form_of(step: LoggedStep) -> Hashable:
    """Return the form of the call's answer."""
    value = step.call.parsed
    if isinstance(value, dict):
        return (*sorted(step.call.arguments), "→", *value)
    words = step.call.content
    for leaf in sorted({str(leaf) for leaf in leaves(step.call.arguments)}, key=lambda text: (-len(text), text)):
        words = words.replace(leaf, "·") if len(leaf) > 2 else words
    return (*sorted(step.call.arguments), "→", type(value).__name__ if value is not None else re.sub(r"\S*\d\S*", "·", words))
