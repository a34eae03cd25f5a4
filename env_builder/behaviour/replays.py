"""How a tool's rules do on sessions that they were not found from: each half of the sessions is answered by the other half's.

In: a tool's steps, and the way to its rules. Out: (share exact of what is answered, share not answered). The answer on record
is left out: it would only say itself again. Of the thing that a call names is known what its own session saw before it, else
what all looks of the other half agree on. Sees: rules over the arguments and that one thing. Does not see: rules that search
things or rows, which are not measured; that a room lays looks out in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from env_builder.runtime.behaviour import answer
from env_builder.runtime.canonical import digest
from env_builder.runtime.episode import Room
from env_builder.runtime.world import Name, View, World
from env_builder.world.replay import Step

MOST_STEPS = 400
"""Calls of each half that are answered, by the hash of their event."""
MEASURED = ("constant", "arithmetic", "document", "text", "refuse")
TELLING = ("makes", "changes")
"""Rules that answer nothing."""
Rules = list[dict[str, Any]]


def held_out(
    steps: list[Step], program: dict[str, Any], induced: Callable[[list[Step]], Rules]
) -> tuple[float | None, float | None]:
    """(exact of answered, share not answered); None, None where the program has no rule that can be measured so."""
    own = [rule["rule"] for rule in program["rules"] if rule["rule"] not in ("recorded", *TELLING)]
    if not own or not set(own) <= set(MEASURED):
        return None, None
    exact = answered = n = 0
    for half in (0, 1):
        rest = [step for step in steps if _half(step) != half]
        rules = [rule for rule in induced(rest) if rule["rule"] in MEASURED]
        asked = sorted((step for step in steps if _half(step) == half), key=lambda step: digest(step.call.event_id))
        known = _agreed(rest)
        n += len(asked[:MOST_STEPS])
        for step in asked[:MOST_STEPS]:
            found = _said(program | {"rules": rules}, step, known)
            answered += found is not None
            exact += found == step.call.content
    return (exact / answered if answered else None), (1 - answered / n if n else None)


def _agreed(steps: list[Step]) -> dict[Name, str]:
    """Text of each thing that all looks saw alike."""
    seen: dict[Name, set[str]] = defaultdict(set)
    for step in steps:
        if step.shown:
            seen[step.shown[:2]].add(step.shown[2])
    return {name: next(iter(texts)) for name, texts in seen.items() if len(texts) == 1}


def _said(program: dict[str, Any], step: Step, known: dict[Name, str]) -> str | None:
    call = step.call
    shown = [rule for rule in program["rules"] if rule["rule"] == "document"]
    names = [(rule["class"], str(call.arguments.get(rule["argument"]))) for rule in shown]
    facts = [{"class": name[0], "key": name[1], "value": text, "session": None, "from": None, "to": None}
             for name in names if (text := step.before or known.get(name)) is not None]
    room = Room(World(facts, []), {program["tool"]: program}, View(None, frozenset()))
    found = answer(program, call.key, call.arguments, room)
    return None if found is None else found.content


def _half(step: Step) -> int:
    return int(digest(step.call.session_id), 16) % 2
