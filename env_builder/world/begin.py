"""Does every session begin from the same world, put back each time, or do all share one? Found from what writes leave.

A write that the next session does not see speaks for `reset`, one that it sees for `shared`.
Sees: documents that one session changed and another looked at before it acted. Without such, sessions with a clock are
taken to share one world, sessions without any to begin anew.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, NamedTuple

from env_builder.world.calls import Call
from env_builder.world.documents import Documents

Begin = Literal["reset", "shared"]


class Change(NamedTuple):
    """A document that one session saw change by a call of its own."""

    session_id: str
    at: float | None
    before: str
    after: str


def find(calls: list[Call], documents: Documents) -> tuple[Begin, dict[str, int]]:
    """(how sessions begin, votes for each)."""
    changes, first = _changes(calls, documents)
    votes = {"reset": 0, "shared": 0}
    for name, changed in changes.items():
        for change in changed:
            for session_id, (at, text) in first[name].items():
                if session_id == change.session_id or (change.at is not None and at is not None and at < change.at):
                    continue
                votes["reset"] += text == change.before
                votes["shared"] += text == change.after
    if votes["reset"] != votes["shared"]:
        return ("reset" if votes["reset"] > votes["shared"] else "shared"), votes
    return ("shared" if any(call.called_at for call in calls) else "reset"), votes


def _changes(
    calls: list[Call], documents: Documents
) -> tuple[dict[tuple[str, str], list[Change]], dict[tuple[str, str], dict[str, tuple[float | None, str]]]]:
    """Changes within sessions, and each session's first look, by document."""
    changes: dict[tuple[str, str], list[Change]] = defaultdict(list)
    first: dict[tuple[str, str], dict[str, tuple[float | None, str]]] = defaultdict(dict)
    last: dict[tuple[str, str, str], str] = {}
    for call in calls:
        seen = documents.seen_in(call)
        if seen is None:
            continue
        name, text = seen[:2], seen[2]
        at = call.called_at.timestamp() if call.called_at else None
        before = last.get((call.session_id, *name))
        if before is None and documents.tools[call.tool].only_key:
            first[name].setdefault(call.session_id, (at, text))
        elif before is not None and before != text:
            changes[name].append(Change(call.session_id, at, before, text))
        last[call.session_id, *name] = text
    return changes, first
