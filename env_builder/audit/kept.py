"""Audits that need not be played again: while all that plays see is the same, so is what they come to.

In: a task as its room's files state it, its rubric, its solution, its recorded sessions. Out: a key, and an audit as text.
The key holds what is given to a play: tools and programs, the task, checks without where they come from, the solution, and
of the sessions their order, their steps and on which side of the depth's limits their probabilities lie. What plays asked their
room stands in the text, and is asked again before the audit counts (`notes.py`): a night adds facts and answers to a room of
which a task looks at few. The probabilities themselves move with every log: what they decide is decided anew (`again`).
Does not see: the code; who keeps audits keeps those of one version of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from env_builder.audit import EARLY, Audited, Depth, Failure, Session, in_order, judged, said
from env_builder.audit.notes import Sources, same
from env_builder.audit.plays import Play
from env_builder.runtime.canonical import canonical, digest

Row = Mapping[str, Any]
NO_PLAY_SEES = ("family", "split", "user")
"""Of a task: what no play asks for, and the user, of which it hears the words and asks for the replies."""


def given_to_all(tools: Iterable[Row], programs: Iterable[Row]) -> str:
    """Digest of what is given to the plays of every task: tools, and programs without what speaks for them."""
    plain = [{name: value for name, value in program.items() if name != "support"} for program in programs]
    return digest(canonical([list(tools), plain]))


def key_of(
    given: str, task: Row, rubric: Row, solution: Sequence[Row], sessions: Iterable[Session], depth: Depth
) -> str:
    """What names the audit of a task. `given`: to all; `task`, `rubric`: rows of tasks.jsonl and rubrics.jsonl."""
    checks = [{name: value for name, value in check.items() if name != "provenance"} for check in rubric["checks"]]
    seen = [[one.session_id, _side(one.probability, depth), list(one.steps)] for one in in_order(sessions)]
    told = {name: value for name, value in task.items() if name not in NO_PLAY_SEES}
    return digest(canonical(
        [given, told, task["user"]["turns"], checks, list(solution), seen, depth._asdict()]))


def written(audited: Audited, asked: Mapping[str, Any]) -> str:
    """The audit as text, without what probabilities make of it. `asked`: what its plays asked (`Notes.written`)."""
    failure, plays = audited.failure, [play._replace(says="") if play.kind == "session" else play for play in audited.plays]
    early = failure if failure is not None and failure.reason in EARLY else None
    return canonical({"failure": early, "plays": plays, "asked": asked})


def again(text: str, sessions: Sequence[Session], sources: Sources) -> Audited | None:
    """A kept audit with what today's probabilities make of it; None where its plays would be answered otherwise today."""
    kept = json.loads(text)
    if not same(kept["asked"], sources):
        return None
    failure, plays = kept["failure"], [Play(*play) for play in kept["plays"]]
    if failure is not None:
        return Audited(Failure(*failure), plays)
    chances = {one.session_id: one.probability for one in sessions}
    plays = [play._replace(says=said(chances[play.player])) if play.kind == "session" else play for play in plays]
    return Audited(judged(plays, sessions), plays)


def _side(chance: float | None, depth: Depth) -> str | None:
    if chance is None:
        return None
    return "good" if chance >= depth.good_from else "bad" if chance < depth.bad_below else "open"
