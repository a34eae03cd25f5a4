"""Audits that need not be played again: while all that plays see is the same, so is what they come to.

In: a task as its room's files state it, its rubric, its solution, its recorded sessions. Out: a key, and an audit as text.
The key holds all that a play sees: the room without its tasks, the task, checks without where they come from, the solution, and
of the sessions their order, their steps and on which side of the depth's limits their probabilities lie. The probabilities
themselves move with every log: what they decide is decided anew (`again`).
Does not see: the code; who keeps audits keeps those of one version of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from env_builder.audit import EARLY, Audited, Depth, Failure, Session, in_order, judged, said
from env_builder.audit.plays import Play
from env_builder.runtime.canonical import canonical, digest

Row = Mapping[str, Any]


def key_of(
    room_digest: str, task: Row, rubric: Row, solution: Sequence[Row], sessions: Iterable[Session], depth: Depth
) -> str:
    """What names the audit of a task. `task`, `rubric`: rows of tasks.jsonl and rubrics.jsonl."""
    checks = [{name: value for name, value in check.items() if name != "provenance"} for check in rubric["checks"]]
    seen = [[one.session_id, _side(one.probability, depth), list(one.steps)] for one in in_order(sessions)]
    return digest(canonical([room_digest, dict(task), checks, list(solution), seen, depth._asdict()]))


def written(audited: Audited) -> str:
    """The audit as text."""
    return canonical({"failure": audited.failure, "plays": audited.plays})


def again(text: str, sessions: Sequence[Session]) -> Audited:
    """A kept audit with what today's probabilities make of it."""
    kept = json.loads(text)
    failure, plays = kept["failure"], [Play(*play) for play in kept["plays"]]
    if failure is not None and failure[0] in EARLY:
        return Audited(Failure(*failure), plays)
    chances = {one.session_id: one.probability for one in sessions}
    plays = [play._replace(says=said(chances[play.player])) if play.kind == "session" else play for play in plays]
    return Audited(judged(plays, sessions), plays)


def _side(chance: float | None, depth: Depth) -> str | None:
    if chance is None:
        return None
    return "good" if chance >= depth.good_from else "bad" if chance < depth.bad_below else "open"
