"""A check with what speaks for and against it: the sessions, and in them the very calls and words.

In: kind, role, parameters and the witnesses on both sides. Out: a `Check` whose provenance names sessions and events (event ids
of the log, first ones first), how many sessions support it, and how sure these were to have gone well on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from env_builder.rewards.witness import Witness
from env_builder.runtime.canonical import canonical, digest
from warehouse.records import Check

Role = Literal["gate", "score", "penalty", "shaping", "diagnostic"]
Bears = Callable[[Witness], Iterable[str]]
"""Event ids in a session that a check stands on."""
MOST_EVENTS = 20
"""Events that a side of a check's provenance names."""


def check(
    kind: str, role: Role, says: str, parameters: dict[str, Any], supporting: Iterable[Witness], contrary: Iterable[Witness],
    bears: Bears, weight: float = 1.0,
) -> Check:
    """A check; the same kind, role and parameters have the same id."""
    return Check(
        check_id=check_id(kind, role, parameters), kind=kind, role=role, says=says, parameters=parameters, weight=weight,
        provenance=provenance(supporting, contrary, bears))


def check_id(kind: str, role: str, parameters: dict[str, Any]) -> str:
    """Id of a check: of what it asks for, whoever says so."""
    return digest(canonical([kind, role, parameters]))[:16]


def provenance(supporting: Iterable[Witness], contrary: Iterable[Witness], bears: Bears) -> dict[str, Any]:
    """What speaks for and against, whatever the order of the witnesses."""
    sides = {name: sorted(who, key=lambda one: one.session_id) for name, who in (
        ("supporting", supporting), ("contrary", contrary))}
    known = [one.probability for one in sides["supporting"] if one.probability is not None]
    return {
        **{name: [one.session_id for one in who] for name, who in sides.items()},
        "support": len(sides["supporting"]),
        "confidence": round(sum(known) / len(known), 6) if known else None,
        "events": {name: _events(who, bears) for name, who in sides.items()},
    }


def _events(who: list[Witness], bears: Bears) -> list[str]:
    """One event of each session, then the next of each, as many as are named."""
    found = [list(bears(one)) for one in who]
    longest = max(map(len, found), default=0)
    rows = [events[n] for n in range(min(longest, MOST_EVENTS)) for events in found if n < len(events)]
    return list(dict.fromkeys(rows))[:MOST_EVENTS]
