"""What a session of several goals owes its user, so that its rubric asks for each of them: a change, an answer or a refusal.

In: the goals of sessions (`mart.goals`), sessions as evidence, and the questions of each kind of goal. Out: `Due` of a session.
A sentence of the user that begins with "also", "and another thing" or the like is a goal too, also if `mart.goals` lacks it.
A goal is *done* if the session called the tool that names its kind, *answered* if it told what its kind asks for. Of the
others, as many must have been *declined* as there are no further write calls for; the rubric asks for these refusals. A
refusal repeats the one before if the user spoke in between and began no goal.

Does not see: goals that are joined within one sentence and that `mart.goals` misses, words of other languages than English, and
which refusal belongs to which goal. A goal that the user took back counts as left open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from env_builder.rewards.questions import Questions
from env_builder.rewards.witness import Witness
from env_builder.runtime.stances import declines
from env_builder.runtime.words import Fact, facts_in

_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\s*\n+\s*|;\s+")
_ADDS = re.compile(
    r"^(?:(?:and|oh|ok|okay|now|by the way|then)[, ]+)*"
    r"(?:also|additionally|besides|in addition|furthermore|moreover|secondly|plus|on top of (?:that|this)|"
    r"(?:another|one (?:more|other|last)|the other|a (?:second|further)) (?:thing|question|request|matter|point)|"
    r"while (?:you're|you are|we're|we are|i'm|i am) (?:at it|there|here))\b"
    r"|^and (?!(?:my|it|its|it's|that|that's|this|the|then|yes|no|so|thanks|thank|now|here|there)\b)[a-z]",
    re.IGNORECASE)
"""How a sentence begins that asks for one thing more."""


class SessionGoal(NamedTuple):
    """One goal of a session."""

    kind: str
    label: str
    """What names its kind: the tool that does it, else words, or nothing."""
    begins: int
    """Position of the turn that it begins with."""


class Due(NamedTuple):
    """What a session owed its user."""

    n_goals: int = 1
    answer: tuple[Fact, ...] = ()
    """Facts that its questions ask for."""
    n_refusals: int = 0
    """Goals that only a refusal is right for."""
    n_open: int = 0
    """Goals that it neither did, nor answered, nor declined."""

    @property
    def is_several(self) -> bool:
        """Were there several goals?"""
        return self.n_goals > 1


def goals_by_session(goals: pl.DataFrame | None) -> dict[str, list[SessionGoal]]:
    """Return the goals of each session, in their order."""
    by_session: dict[str, list[SessionGoal]] = {}
    rows = [] if goals is None else goals.sort("session_id", "place").select("session_id", "kind", "asks", "begins").iter_rows()
    for session_id, *goal in rows:
        by_session.setdefault(session_id, []).append(SessionGoal(*goal))
    return by_session


def due_of(one: Witness, named: Sequence[SessionGoal], questions: Questions, acting: Collection[str]) -> Due:
    """Return what a session owed. `named`: its goals in `mart.goals`; `acting`: tools that may change something."""
    added = [SessionGoal("", "", position) for position in _additions(one)]
    goals = [*(named or [SessionGoal("", "", 0)]), *added[max(0, len(named) - 1):]]
    if len(goals) < 2:
        return Due()
    n_calls = Counter(step.tool for step in one.steps if step.tool in acting)
    n_calls.update(call.tool for call in one.others if call.tool in acting and not call.failed)
    undone = []
    for goal in goals:
        if n_calls[goal.label] > 0:
            n_calls[goal.label] -= 1
        else:
            undone.append(goal)
    elsewhere = _facts_elsewhere(one, acting)
    answers = [_apart(questions.answer_to(goal.kind, one), elsewhere) for goal in undone if goal.label not in acting]
    n_unanswered = len(undone) - sum(map(bool, answers))
    n_declined = min(n_unanswered, n_refusals(one, {goal.begins for goal in (*named, *added)}))
    n_open = max(0, n_unanswered - n_declined - n_calls.total())
    return Due(len(goals), tuple(sorted({fact for facts in answers for fact in facts})), n_declined, n_open)


def _facts_elsewhere(one: Witness, acting: Collection[str]) -> frozenset[Fact]:
    """Return the facts that write calls answered, and those of the sentences that decline."""
    answers = [call.content or "" for call in one.calls if call.tool in acting]
    sentences = one.remembered("sentences that decline", None, lambda: [
        sentence for _, text in one.words for sentence in _SENTENCE.split(text) if declines(sentence)])
    return facts_in("\n".join([*answers, *sentences]))


def _apart(answer: list[Fact], elsewhere: Collection[Fact]) -> list[Fact]:
    """Return the facts of an answer; none if all stand elsewhere too: whoever reports a change or a refusal tells these."""
    plain = [fact for fact in answer if fact[0] != "words"]
    return [] if plain and all(fact in elsewhere for fact in plain) else answer


def n_additions(text: str) -> int:
    """Count the sentences of a user's words that ask for one thing more."""
    return sum(bool(_ADDS.search(sentence.strip())) for sentence in _SENTENCE.split(text))


def _additions(one: Witness) -> list[int]:
    """Return the positions of the user's messages that ask for one thing more, once for each such sentence."""
    return [position for position, is_agent, text in one.messages if not is_agent for _ in range(n_additions(text))]


def n_refusals(one: Witness, begins: Collection[int]) -> int:
    """Count the refusals that repeat no other. `begins`: positions at which goals begin."""
    n, since = 0, list[int]()
    for position, is_agent, text in one.messages:
        if not is_agent:
            since.append(position)
        elif text in one.declining:
            n += not n or not since or not set(since).isdisjoint(begins)
            since = []
    return n


def whole_sessions(
    good: Iterable[Witness], goals: Mapping[str, Sequence[SessionGoal]], questions: Questions, acting: Collection[str]
) -> tuple[list[Witness], Due]:
    """Return the good sessions that left no goal open, and what the first of them owed.

    They all ended alike. So where most of them left a goal open, it was only not recognised in the others, and none is whole.
    """
    dues = [(one, due_of(one, goals.get(one.session_id, ()), questions, acting)) for one in good]
    whole = [(one, due) for one, due in dues if not due.n_open]
    if 2 * len(whole) < len(dues):
        return [], Due()
    return [one for one, _ in whole], whole[0][1] if whole else Due()
