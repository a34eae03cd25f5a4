"""What an episode is worth: a rubric's checks over an episode that the grader replayed itself.

In: a rubric (JSON) and an `Episode` (journal, difference, unknown answers). Out: a `Grade`.
Sees: the end state that the grader's own replay reached, the calls with the answers of that replay, the agent's words.
Does not see: what the journal claims of answers, what the agent thought, the meaning of its words beyond the facts
that `words.py` finds. The agent's text is searched for facts, never run and never used as a pattern or a format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .ends import end_state, same, unreached
from .records import CheckVerdict, Episode, Grade
from .words import fact_of, facts_in, holds

Rubric = dict[str, Any]
Parameters = dict[str, Any]
Kind = Callable[[Parameters, Episode], tuple[bool, Any]]

ROLES = ("gate", "score", "penalty", "diagnostic")
LONGEST_EVIDENCE = 20
"""Items of a list that evidence holds."""


def grade(rubric: Rubric, episode: Episode) -> Grade:
    """Reward of `episode` by `rubric`, each check with its verdict and evidence.

    A failed gate gives 0; else the reward is the weighted share of passed `score` checks (1 where there are none);
    failed penalties subtract their weight; the sum is clamped to [-1, 1]. A rubric without gates and scores gives 0.
    None (unscored) where the answers that the room did not know could have turned the reward either way.
    ValueError: an unknown kind or role, or a weight that is no finite number from 0 up.
    """
    verdicts, at_best, at_worst = [], [], []
    for check in rubric["checks"]:
        verdict, swayed = _judge(check, episode)
        verdicts.append(verdict)
        at_best.append(verdict.passed or swayed)
        at_worst.append(verdict.passed and not swayed)
    best, worst = reward_of(verdicts, at_best), reward_of(verdicts, at_worst)
    return Grade(best if best == worst else None, tuple(verdicts))


def reward_of(verdicts: list[CheckVerdict], passed: list[bool]) -> float:
    """The reward in [-1, 1] if each check of `verdicts` had passed as `passed` says."""
    checks = list(zip(verdicts, passed, strict=True))
    gates = [held for check, held in checks if check.role == "gate"]
    scores = [(check.weight, held) for check, held in checks if check.role == "score"]
    reward = 0.0
    if all(gates) and (gates or scores):
        total = sum(weight for weight, _ in scores)
        reached = sum(weight for weight, held in scores if held)
        reward = reached / total if total else float(bool(gates) and not scores)
    reward -= sum(check.weight for check, held in checks if check.role == "penalty" and not held)
    return max(-1.0, min(1.0, reward))


def _judge(check: dict[str, Any], episode: Episode) -> tuple[CheckVerdict, bool]:
    """The verdict of one check, and whether unknown answers could have made it the other one."""
    kind, role, weight = check["kind"], check["role"], float(check.get("weight", 1.0))
    if kind not in KINDS:
        raise ValueError(f"check {check['check_id']}: no kind {kind!r}; there are: {', '.join(sorted(KINDS))}")
    if role not in ROLES:
        raise ValueError(f"check {check['check_id']}: no role {role!r}; there are: {', '.join(ROLES)}")
    if not math.isfinite(weight) or weight < 0:
        raise ValueError(f"check {check['check_id']}: weight {weight} is no finite number from 0 up")
    passed, evidence = KINDS[kind](check["parameters"], episode)
    swayed = kind in SWAYED and SWAYED[kind](check["parameters"], episode, passed)
    says = check.get("says", "")
    return CheckVerdict(check["check_id"], kind, role, weight, passed, says, evidence), swayed


def _state(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """One of the accepted end states is reached, in whatever order: {"accepted": [difference], "masked", "aside"}."""
    found = end_state(episode.difference, parameters)
    missing = [unreached(end_state(wanted, parameters), found) for wanted in parameters["accepted"]]
    reached = [index for index, left in enumerate(missing) if not left]
    nearest = min(missing, key=len, default=[])
    return bool(reached), {"reached": reached, "missing": _clip(nearest)}


def _untouched(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """Nothing changed beyond an accepted end state; where some are reached, beyond one of these."""
    found = end_state(episode.difference, parameters)
    accepted = [end_state(wanted, parameters) for wanted in parameters["accepted"]]
    reached = [wanted for wanted in accepted if not unreached(wanted, found)]
    beyond = [unreached(_within(found, wanted), wanted) for wanted in reached or accepted]
    return any(not left for left in beyond), {"beyond": _clip(min(beyond, key=len, default=[]))}


def _within(found: Any, wanted: Any) -> Any:
    """`found`, with the documents that `wanted` names taken as wanted: their values are the state check's matter."""
    documents, acts = found
    return {name: wanted[0].get(name, value) for name, value in documents.items()}, acts


def _must_not_write(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """The episode changed nothing."""
    changed = unreached(end_state(episode.difference, parameters), ({}, {}))
    return not changed, {"changed": _clip(changed)}


def _said(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """The agent told the user `at_least` (all by default) of {"facts": [{"type", "value"}]}."""
    facts = [fact_of(fact["type"], fact["value"]) for fact in parameters["facts"]]
    words = "\n".join(_words(episode))
    heard, plain = facts_in(words), None
    told = []
    for fact in facts:
        if fact[0] == "words":
            plain = plain or f" {' '.join(words.casefold().split())} "
            told.append(fact[1] in plain)
        else:
            told.append(holds(fact, heard))
    needed = parameters.get("at_least", len(facts))
    missing = [fact for fact, is_told in zip(parameters["facts"], told, strict=True) if not is_told]
    return bool(facts) and sum(told) >= max(1, needed), {"told": sum(told), "needed": needed, "missing": _clip(missing)}


def _spoke(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """The agent said something to the user, `at_least` times (1 by default)."""
    spoken = len(_words(episode))
    return spoken >= max(1, parameters.get("at_least", 1)), {"spoken": spoken}


def _call(parameters: Parameters, episode: Episode) -> tuple[bool, Any]:
    """Of {"calls": [{"tool", "arguments"}]} at least `at_least` were made, and matching calls at most `at_most` times.

    A call matches when it succeeded, the tool is the same and every argument named is equal; others are free.
    """
    wanted = parameters["calls"]
    counts = [_count(pattern, episode.journal) for pattern in wanted]
    made = sum(count > 0 for count in counts)
    passed = bool(wanted) and ("at_least" in parameters or "at_most" in parameters)
    if "at_least" in parameters:
        passed = passed and made >= max(1, parameters["at_least"])
    if "at_most" in parameters:
        passed = passed and sum(counts) <= parameters["at_most"]
    left = [pattern for pattern, count in zip(wanted, counts, strict=True) if not count]
    return passed, {"made": made, "times": sum(counts), "not_made": _clip(left)}


def _count(pattern: dict[str, Any], journal: Iterable[dict[str, Any]]) -> int:
    """How often it was done: what failed is not, but a look-up that the room had no answer to was asked for."""
    return sum(_matches(pattern, row) and (not row.get("is_error") or row.get("tier") == "unknown") for row in journal)


def _matches(pattern: dict[str, Any], row: dict[str, Any]) -> bool:
    if row.get("kind") != "call" or row.get("tool") != pattern["tool"]:
        return False
    given, named = row.get("arguments"), pattern.get("arguments", {})
    if not isinstance(given, dict):
        return not named
    return all(name in given and same(given[name], value) for name, value in named.items())


def _words(episode: Episode) -> list[str]:
    rows = (row.get("content") for row in episode.journal if row.get("kind") == "say")
    return [text for text in rows if isinstance(text, str) and text.strip()]


def _clip(items: list[Any]) -> list[Any]:
    return items[:LONGEST_EVIDENCE]


def _leaned(parameters: Parameters, episode: Episode) -> bool:
    """Whether something that counts may have changed without the room knowing.

    A tool that is not there changes nothing, nor does a call whose arguments are no JSON object: no way to go unscored.
    """
    counts = episode.writes.difference(parameters.get("aside", ()))
    return any(row.get("tool") in counts and isinstance(row.get("arguments"), dict) for row in episode.leaned)


def _state_swayed(parameters: Parameters, episode: Episode, _: bool) -> bool:
    return _leaned(parameters, episode)


def _untouched_swayed(parameters: Parameters, episode: Episode, passed: bool) -> bool:
    """Acts only ever add up: one too many stays one too many, whatever the unknown answers were."""
    found = end_state(episode.difference, parameters)[1]
    accepted = [end_state(wanted, parameters)[1] for wanted in parameters["accepted"]]
    certain = not passed and all(unreached(({}, found), ({}, wanted)) for wanted in accepted)
    return _leaned(parameters, episode) and not certain


def _must_not_write_swayed(parameters: Parameters, episode: Episode, _: bool) -> bool:
    return _leaned(parameters, episode) and not end_state(episode.difference, parameters)[1]


def _call_swayed(parameters: Parameters, episode: Episode, _: bool) -> bool:
    return any(_matches(pattern, row) for pattern in parameters["calls"] for row in episode.leaned)


KINDS: dict[str, Kind] = {
    "state": _state, "untouched": _untouched, "must_not_write": _must_not_write,
    "said": _said, "spoke": _spoke, "call": _call,
}
"""Name of a kind of check -> the function that judges it."""

SWAYED: dict[str, Callable[[Parameters, Episode, bool], bool]] = {
    "state": _state_swayed, "untouched": _untouched_swayed, "must_not_write": _must_not_write_swayed,
    "call": _call_swayed,
}
"""Kinds whose verdict may hang on answers that the room did not know; the others see only what the agent did."""
