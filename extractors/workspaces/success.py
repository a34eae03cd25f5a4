"""How likely a session of coding solved what it was asked for, before its tests are run.

In: what became of its change, what it left in files, its last words and tests. Out: a probability with the evidence by name, or
an abstention. Each piece of evidence adds to the log odds; the weights are general and no repository is fitted:

- people's decisions count most: merged and stayed, closed, reverted, never proposed although others are, solved by another
  commit later;
- then the user's last words, and CI of the head; tests that the session ran itself least;
- signs of cheating (`signs.py`) that the winner does not have too speak against it, unless its change was merged and stayed:
  then evidence is at odds, and it abstains, as only a verifier can tell.

It abstains where nothing was changed, or nothing is known of what became of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from extractors.workspaces.changes import CodeChange
from extractors.workspaces.frames import CommandRun, Frame

WORTH: Mapping[str, float] = {
    "merged": 3.0, "reverted": -5.0, "closed": -3.0, "not_proposed": -1.5, "replaced": -1.5, "rewritten": -1.0,
    "ci_green": 1.0, "ci_red": -1.0, "thanks": 1.0, "complaint": -2.0, "tests_passed": 0.5, "tests_failed": -1.0}
"""Log odds of each piece of evidence."""
SIGN = -4.0
"""Log odds of each sign of cheating."""
_OWN = frozenset(("tests_passed", "tests_failed"))
"""What the session itself says of its change, which is not enough to say anything."""
_TESTING = re.compile(
    r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest)\b|\b(?:npm|yarn|pnpm)(?: run)? test"
    r"|\b(?:go|cargo|mvn|gradle|gradlew|dotnet|mix|swift) test\b|\bmake (?:test|check)\b")
_FAILING = re.compile(r"\b[1-9]\d* (?:tests? )?(?:failed|failing|errors?)\b|\bFAILED\b|^FAIL\b", re.MULTILINE)
_PASSING = re.compile(r"\b[1-9]\d* (?:tests? )?(?:passed|passing)\b|^(?:OK|ok|PASS)\b", re.MULTILINE)
_COMPLAINT = re.compile(
    r"\b(?:doesn'?t|does not|didn'?t|did not|won'?t|isn'?t|is not|not) (?:really |actually |quite )?"
    r"(?:fix\w*|solv\w*|work\w*|help\w*|right|correct|what|enough|resolv\w*|do)\b"
    r"|\bstill (?:\w+ )?(?:broken|fail\w*|happen\w*|wrong|not|crash\w*|there|the same|see\w*|get\w*)\b"
    r"|\bi'?ll (?:take|do|fix|handle|finish|revert)\b|^no\b|\bwrong\b|\brevert\w*\b|\bnever ?mind\b|\bbroke\b|\bworse\b",
    re.IGNORECASE)
_THANKS = re.compile(
    r"\b(?:thanks|thank you|thx|cheers|perfect|great|nice|awesome|excellent|lgtm|looks good|works(?: for me| now)?|merging)\b",
    re.IGNORECASE)


class SessionEnd(NamedTuple):
    """What is known at a session's end."""

    change: CodeChange
    others_propose: bool
    """Whether the repository has pull requests at all."""
    is_rewritten: bool
    """Most lines of source that its merged commit put in are gone soon after."""
    signs: Mapping[str, str]
    """Signs of cheating, each with its file, without those of the winner."""
    last_words: str
    """Of the user, behind the request."""
    frames: Sequence[Frame]


class Success(NamedTuple):
    """How likely a session solved what it was asked for."""

    probability: float | None
    """None: it abstains."""
    evidence: tuple[str, ...]
    """Names of `WORTH`, and signs of cheating as `sign: file`."""


def success(end: SessionEnd) -> Success:
    """Combine what is known of a session that changed something."""
    evidence = list(_evidence(end))
    signs = tuple(f"{sign}: {file}" for sign, file in sorted(end.signs.items()))
    is_known = bool(signs) or not _OWN.issuperset(evidence)
    is_at_odds = bool(signs) and "merged" in evidence
    if not is_known or is_at_odds:
        return Success(None, (*evidence, *signs))
    odds = sum(WORTH[name] for name in evidence) + SIGN * len(signs)
    return Success(round(1.0 / (1.0 + math.exp(-odds)), 6), (*evidence, *signs))


def _evidence(end: SessionEnd) -> Iterable[str]:
    change = end.change
    if change.reverted_by is not None:
        yield "reverted"
    elif change.state == "merged":
        yield "merged"
        if end.is_rewritten:
            yield "rewritten"
    elif change.state == "closed":
        yield "closed"
    elif change.state == "none" and end.others_propose:
        yield "not_proposed"
    if change.won_by == "likeness":
        yield "replaced"
    if change.ci is not None:
        yield "ci_green" if change.ci == "success" else "ci_red"
    if _COMPLAINT.search(end.last_words):
        yield "complaint"
    elif _THANKS.search(end.last_words):
        yield "thanks"
    passed = last_tests(end.frames)
    if passed is not None:
        yield "tests_passed" if passed else "tests_failed"


def last_tests(frames: Iterable[Frame]) -> bool | None:
    """Return whether the last tests that a session ran passed; None where it ran none, or nothing tells."""
    passed = None
    for frame in frames:
        if isinstance(frame, CommandRun) and _TESTING.search(frame.command):
            if _FAILING.search(frame.output) or frame.exit_code not in (None, 0):
                passed = False
            elif _PASSING.search(frame.output) or frame.exit_code == 0:
                passed = True
    return passed
