"""Which sessions are one witness: the same case worked on several times, from the same state.

In: the calls of a service whose sessions start from states of their own. Out: the same calls, each with the witness that its
session is part of. Two sessions are one witness if most of what they asked is the same, and it is something that few others
asked: questions weigh as much as they are rare (the logarithm of the share of sessions that asked them), and one alone is no
sign. Several runs of one case repeat one observation; what they agree on says nothing about a session of another case.
Sees: calls with equal arguments. Does not see: runs of one case that hardly asked the same, and sessions of one or two calls.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import groupby

from env_builder.runtime.world import SURE
from env_builder.world.beginnings import Beginnings, FirstLook
from env_builder.world.calls import LoggedCall
from env_builder.world.looks import Question, first_looks, suspects_of

SAME_SHARE = 0.5
"""Share of the weight of what the shorter of two sessions asked, from which on they work on the same case."""
MINIMUM_SHARED = 2
"""Questions that two sessions must share."""
MINIMUM_BITS = 5.0
"""Weight of the questions that they must share: few sessions share so much by chance."""
RARE = 3.0
"""Weight of one of them, at least: one session in eight asks it."""
MOST_SESSIONS = 200
"""Sessions that ask a question, above which it weighs nothing."""
OTHERWISE = 0.2
"""Share of the first looks that both had which may differ, at most."""


def marked(calls: list[LoggedCall]) -> list[LoggedCall]:
    """Return the calls, those of sessions that are one witness with the witness's name; as they are where different cases are
    told the same anyway."""
    by_session = {name: list(session) for name, session in groupby(calls, key=lambda call: call.session_id)}
    suspects = suspects_of(list(by_session.values()))
    first = {name: {(call.tool, call.key): call.content for call in first_looks(session, suspects)}
             for name, session in by_session.items()}
    witnesses = find({name: {**dict.fromkeys((call.tool, call.key) for call in session), **first[name]}
                      for name, session in by_session.items()})
    begun = Beginnings(FirstLook(*question, name, text, witnesses[name])
                       for name, texts in first.items() for question, text in texts.items())
    return calls if begun.overall >= SURE else [call._replace(case=witnesses[call.session_id]) for call in calls]


def find(answers: dict[str, dict[Question, str | None]]) -> dict[str, str]:
    """Return the witness of each session: the name of the first of its sessions. `answers`: what each session asked, and what
    it was told at first; None where it may have changed that before."""
    n_asking = Counter(question for own in answers.values() for question in own)
    weights = {question: math.log2(len(answers) / n) for question, n in n_asking.items() if n <= MOST_SESSIONS}
    totals = {name: sum(weights.get(question, 0.0) for question in own) for name, own in answers.items()}
    asking: dict[Question, list[str]] = defaultdict(list)
    members: dict[str, list[str]] = {}
    witness: dict[str, str] = {}
    for name, own in sorted(answers.items()):
        shared: dict[str, list[Question]] = defaultdict(list)
        for question in sorted(own.keys() & weights.keys()):
            for other in asking[question]:
                shared[other].append(question)
            asking[question].append(name)
        likeness = {
            other: sum(rarity) / min(totals[name], totals[other]) for other, questions in shared.items()
            if len(rarity := [weights[question] for question in questions]) >= MINIMUM_SHARED and sum(rarity) >= MINIMUM_BITS
            and max(rarity) >= RARE and not _contradict(own, answers[other], questions)}
        candidates = {witness[other] for other in likeness}
        best = max(sorted(candidates), key=lambda each: _mean(likeness, members[each]), default=None)
        if best is None or _mean(likeness, members[best]) < SAME_SHARE:
            best = name
        witness[name] = best
        members.setdefault(best, []).append(name)
    return witness


def _contradict(own: dict[Question, str | None], other: dict[Question, str | None], shared: list[Question]) -> bool:
    """Return whether two sessions were told different things at first, more often than an answer that changes by itself is."""
    pairs = ((own[question], other[question]) for question in shared)
    equal = [one == another for one, another in pairs if None not in (one, another)]
    return equal.count(False) > OTHERWISE * len(equal)


def _mean(likeness: dict[str, float], sessions: list[str]) -> float:
    return sum(likeness.get(each, 0.0) for each in sessions) / len(sessions)
