"""How the sessions of a service begin: does every session start from the same state, or do all share one world?

A write that the next session does not see is a vote for `reset`, one that it sees for `shared`. Sees: documents that one
session changed and another read before it wrote, with the tool that had shown them before the change (what a write call
confirms is the same in every session, whatever the world was like), if both texts have the same fields. Where such are few or
nearly balanced, `changes_last` compares the first answers of sessions over time: if none ever differs from those of earlier
sessions, all begin alike. Where these tell nothing either, the beginning is undecided, and sessions are taken to start from
states of their own: an answer to one then speaks for another only as far as answers to sessions agree (`beginnings`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.world.calls import LoggedCall
from env_builder.world.documents import Documents

Begin = Literal["reset", "shared"]
Evidence = Literal["configuration", "writes", "first_answers"]


class Beginning(NamedTuple):
    """How the sessions of a service begin, and what says so."""

    starts_from: Begin
    decided_by: Evidence | None
    """None: nothing tells, and sessions are taken to start from states of their own."""
    votes: dict[str, int]
    """How many looks spoke for `reset` and for `shared`; {} where the configuration says it."""


class FirstChange(NamedTuple):
    """A document that one session saw change by a call of its own."""

    session_id: str
    at: float | None
    tool: str
    """The tool that showed the document before the change."""
    before: str
    after: str


class FirstRead(NamedTuple):
    """What a session was shown of a document at first."""

    tool: str
    at: float | None
    text: str


def find(calls: list[LoggedCall], documents: Documents) -> Beginning:
    """Decide by what the sessions were shown."""
    changes, first = _changes(calls, documents)
    votes = {"reset": 0, "shared": 0}
    for name, changed in changes.items():
        for change in changed:
            for session_id, look in first[name].items():
                if session_id == change.session_id or look.tool != change.tool:
                    continue
                if change.at is not None and look.at is not None and look.at < change.at:
                    continue
                votes["reset"] += look.text == change.before
                votes["shared"] += look.text == change.after
    margin, lasts = votes["shared"] - votes["reset"], changes_last(calls)
    if margin and (lasts is None or abs(margin) > DEVIATIONS * math.sqrt(sum(votes.values()))):
        return Beginning("shared" if margin > 0 else "reset", "writes", votes)
    if lasts is None or (lasts and not any(call.called_at for call in calls)):
        return Beginning("reset", None, votes)
    return Beginning("shared" if lasts else "reset", "first_answers", votes)


DEVIATIONS = 2.0
"""Standard deviations by which votes must lie apart to decide alone: of many states that sessions begin in, some agree by
chance."""


RETURNS_SHARE = 0.5
"""Share of the returns expected by chance up to which changes last: a state that was left does not come back by itself."""
MINIMUM_RETURNS = 5.0
"""Returns that chance alone would give, from which on the comparison tells something."""
MINIMUM_CHANGES = 3
"""Changes within sessions that no later first answer shows, from which on nothing lasts."""
MINIMUM_SAME = 50
"""First answers to questions of earlier sessions, none of which ever differs, from which on sessions begin alike."""


def changes_last(calls: list[LoggedCall]) -> bool | None:
    """Return whether what a session changed is still so in later sessions; None if the answers do not tell.

    Compares each question's first answers, session after session. If changes last, a former answer seldom comes back (A A B B);
    if every session starts anew, differences between sessions come back at random (A B A B). The number of returns expected by
    chance is that of the same answers in random order (a test of runs, Wald and Wolfowitz 1940). Some answers come back where
    changes last too, as changes are undone: a number of returns up to a standard deviation above the bound tells nothing.
    """
    answers, n_changed = _first_answers(calls)
    returns, expected, variance, differs, n_same = 0, 0.0, 0.0, False, 0
    for texts in answers.values():
        kinds = Counter(texts)
        n_same += len(texts) - 1
        if len(kinds) < 2:
            continue
        differs = True
        turns_over = sum(one != other for one, other in pairwise(texts))
        returns += turns_over - (len(kinds) - 1)
        mean, spread = _random_turns(list(kinds.values()))
        expected += mean - (len(kinds) - 1)
        variance += spread
    if expected >= MINIMUM_RETURNS:
        beyond = returns - RETURNS_SHARE * expected
        return True if beyond <= 0 else None if beyond <= math.sqrt(variance) else False
    return False if not differs and (n_changed >= MINIMUM_CHANGES or n_same >= MINIMUM_SAME) else None


def _random_turns(counts: list[int]) -> tuple[float, float]:
    """Return mean and variance of the number of places where neighbours differ, of so many equal answers of each kind in random
    order (Barton and David 1957)."""
    n = sum(counts)
    squares, cubes = sum(count**2 for count in counts), sum(count**3 for count in counts)
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n * n * (n - 1))
    return n - squares / n, max(0.0, variance)


def _first_answers(calls: list[LoggedCall]) -> tuple[dict[tuple[str, str], list[str]], int]:
    """Return each question's first answer in every session, by time, and how many questions changed their answer within one."""
    sessions = [list(mine) for _, mine in groupby(calls, key=lambda call: call.session_id)]
    sessions.sort(key=lambda mine: (mine[0].called_at.timestamp() if mine[0].called_at else 0.0, mine[0].session_id))
    answers: dict[tuple[str, str], list[str]] = defaultdict(list)
    n_changed = 0
    for mine in sessions:
        first: dict[tuple[str, str], str] = {}
        for call in mine:
            if call.failed:
                continue
            if first.setdefault((call.tool, call.key), call.content) != call.content:
                n_changed += 1
        for question, text in first.items():
            answers[question].append(text)
    return answers, n_changed


def _changes(
    calls: list[LoggedCall], documents: Documents
) -> tuple[dict[tuple[str, str], list[FirstChange]], dict[tuple[str, str], dict[str, FirstRead]]]:
    """Return changes within sessions, and each session's first read, by document."""
    changes: dict[tuple[str, str], list[FirstChange]] = defaultdict(list)
    first: dict[tuple[str, str], dict[str, FirstRead]] = defaultdict(dict)
    last: dict[tuple[str, str, str], tuple[str, str]] = {}
    for call in calls:
        shown = documents.seen_in(call)
        if shown is None:
            continue
        name, text = shown[:2], shown[2]
        at = call.called_at.timestamp() if call.called_at else None
        before = last.get((call.session_id, *name))
        if before is None and documents.tools[call.tool].is_look:
            first[name].setdefault(call.session_id, FirstRead(call.tool, at, text))
        elif before is not None and before[1] != text and _form(parsed(before[1])) == _form(parsed(text)):
            changes[name].append(FirstChange(call.session_id, at, *before, text))
        last[call.session_id, *name] = call.tool, text
    return changes, first


def _form(value: Any) -> Any:
    """Return the names of a document's fields, at any depth of objects."""
    return {name: _form(inner) for name, inner in value.items()} if isinstance(value, dict) else None
