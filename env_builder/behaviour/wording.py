"""Messages of refusals as texts with slots, and what fills the slots.

In: refused calls, and terms with their values in them. Out: the skeleton of a message (ids, numbers and what the call gave are
its slots), what its slots say, and the pieces of which a room makes it. Does not see: slots that two terms fill together.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from env_builder.behaviour.comparisons import Truth
from env_builder.behaviour.terms import NOWHERE, UNKNOWN, Term
from env_builder.runtime.expressions import Scope
from env_builder.runtime.relevance import leaves
from env_builder.runtime.texts import written

_SLOT = re.compile(r"[\w\-.]*\d[\w\-]*(?:\.\d+)?")


class Case(NamedTuple):
    """A call, its canonical arguments, and the message it was refused with (None: it worked)."""

    scope: Scope
    key: str
    message: str | None


def skeleton(case: Case) -> str:
    """The message with its slots as dots."""
    text = case.message or ""
    given = {leaf for leaf in leaves(case.scope.arguments) if isinstance(leaf, str) and len(leaf) > 2}
    for leaf in sorted(given, key=lambda leaf: (-len(leaf), leaf)):
        text = re.sub(rf"(?<!\w){re.escape(leaf)}(?!\w)", "·", text)
    return _SLOT.sub("·", text)


def slots_of(case: Case) -> list[str]:
    """The texts of the message's slots."""
    pattern = "(.+?)".join(map(re.escape, skeleton(case).split("·")))
    found = re.fullmatch(pattern, case.message or "", re.DOTALL)
    return list(found.groups()) if found else []


def pieces_of(
    refused: list[Case], covers: frozenset[int], truth: Truth, terms: list[Term], anywhere: bool = False
) -> list[Any] | None:
    """The message's texts and slots, as they are where the condition first holds; None where a slot is not found."""
    if not covers:
        return None
    first = {place: [at for at, held in enumerate(truth[place]) if held] for place in covers}
    texts = {place: slots_of(refused[place]) for place in covers}
    parts = skeleton(refused[min(covers)]).split("·")
    if any(len(found) != len(parts) - 1 for found in texts.values()):
        return None
    pieces: list[Any] = [parts[0]] if parts[0] else []
    for slot, part in enumerate(parts[1:]):
        fitting = [term.expression for term in terms if all(
            any(fills(term.bad[place][at], texts[place][slot]) for at in (first[place] if anywhere else first[place][:1]))
            for place in covers)]
        if not fitting:
            return None
        pieces += [min(fitting, key=lambda e: (len(str(e)), str(e))), *([part] if part else [])]
    return pieces


def fills(seen: Any, text: str) -> bool:
    """Is this how the value is written in a message?"""
    return seen is not NOWHERE and seen is not UNKNOWN and written(seen, "plain", "as_given") == text
