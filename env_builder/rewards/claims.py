"""Words that claim that something was done, as a service's own agents put them; and whether something was.

In: the sessions of a service. Out: a `Rule` of kind `promised`, where one is borne out.
A phrase claims where it stands in what agents say right after something was changed, and hardly ever before anything was. One
phrase is taken after another, each for the sessions that the former ones leave, while sessions without a change hardly say any.
Sees: phrases of two and three words in sentences that are no questions. Does not see: what is claimed (another thing may have
been done), claims in words that this service's agents never used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from env_builder.rewards.conduct import FEWEST, Rule, borne_out
from env_builder.rewards.witness import SAY, Witness

MOST_CLAIMS = 8
MOST_SESSIONS = 300
"""Sessions that phrases are sought in, the first by id; a service's agents do not speak otherwise in the others."""
TELLING = 0.05
"""Share of the sessions with a change that a phrase must add to what the former ones find."""
MISTAKEN = 0.02
"""Share of the sessions that have changed nothing yet in which the phrases, all together, may stand."""
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")

Sessions = dict[str, set[int]]
"""Phrase -> numbers of the sessions that hold it."""


def promises(good: list[Witness], bad: list[Witness]) -> Rule | None:
    """The rule that who claims that something was done has done something, where it is borne out."""
    phrases = claims([*good, *bad])
    if not phrases:
        return None
    parameters = {"claims": phrases, "calls": [{"tool": None, "effect": "write"}]}
    return borne_out(
        "promised", parameters, "Who says that something was done has changed something.", (SAY,), partial(_kept, phrases),
        good, bad)


def claims(sessions: Iterable[Witness]) -> list[str]:
    """Phrases that claim, the most telling first."""
    after: Sessions = {}
    before: Sessions = {}
    n_before, acted = 0, set()
    for number, one in enumerate(sorted(sessions, key=lambda each: each.session_id)[:MOST_SESSIONS]):
        has_acted, just_acted = False, False
        for step in one.steps:
            if step.tool != SAY:
                has_acted, just_acted = has_acted or step.acts, just_acted or step.acts
            elif just_acted or not has_acted:
                for phrase in _phrases(step.text):
                    (after if just_acted else before).setdefault(phrase, set()).add(number)
                acted |= {number} if just_acted else set()
                just_acted = False
        n_before += any(step.tool == SAY for step in one.steps)
    return _chosen(after, before, acted, n_before)


def _chosen(after: Sessions, before: Sessions, acted: set[int], n_before: int) -> list[str]:
    chosen: list[str] = []
    left, mistaken = set(acted), set[int]()
    while len(chosen) < MOST_CLAIMS:
        allowed = [
            (len(found & left), -len(before.get(phrase, ())), phrase) for phrase, found in after.items()
            if len(mistaken | before.get(phrase, set())) <= MISTAKEN * n_before]
        n_new, _, phrase = max(allowed, default=(0, 0, ""))
        if n_new < max(FEWEST, TELLING * len(acted)):
            return chosen
        chosen.append(phrase)
        left -= after[phrase]
        mistaken |= before.get(phrase, set())
    return chosen


def _kept(phrases: list[str], one: Witness) -> bool | None:
    """Did it change something, where it claims so? None: it claims nothing."""
    claimed = any(
        step.tool == SAY and any(f" {phrase} " in sentence for sentence in _sentences(step.text) for phrase in phrases)
        for step in one.steps)
    return bool(one.changes) if claimed else None


def _sentences(text: str) -> Iterable[str]:
    """Its sentences but questions: the words alone, in small letters, one blank before and after each."""
    for sentence in _SENTENCE.findall(text):
        if not sentence.endswith("?"):
            yield f" {' '.join(''.join(c if c.isalnum() else ' ' for c in sentence.casefold()).split())} "


def _phrases(text: str) -> set[str]:
    found: set[str] = set()
    for sentence in _sentences(text):
        words = sentence.split()
        found.update(" ".join(words[n:n + size]) for size in (2, 3) for n in range(len(words) - size + 1))
    return found
