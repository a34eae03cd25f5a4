"""What an episode is worth: a rubric's checks over an episode that the grader replayed itself.

In: a rubric and an `Episode` (journal, difference, unknown answers). Out: a `Grade`.
Sees: the end state that the grader's own replay reached, the calls with the answers of that replay, the agent's words.
Does not see: what the journal claims of answers, what the agent thought, the meaning of its words beyond the facts
that `words.py` finds. The agent's text is searched for facts, never run and never used as a pattern or a format.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .checks import Ask, EpisodeView
from .records import Episode, Grade
from .rubrics import ParsedRubric

MODES = ("eval", "train")
"""`eval`: in [0, 1]. `train`: in [-1, 1], penalties go below 0."""


def grade(
    rubric: ParsedRubric | dict[str, Any], episode: Episode, mode: str = "eval", ask: Ask | None = None, seed: int = 0
) -> Grade:
    """Reward of `episode` by `rubric`, each check with its verdict and evidence.

    A failed gate gives 0 (in the mode `train` of a rubric with `partial`: that, times the share of its shaping checks);
    else the reward is the weighted share of passed `score` checks (1 where there are none);
    failed penalties subtract their weight; the sum is clamped to [0, 1], or to [-1, 1] in the mode `train`. A rubric without
    gates and scores gives 0 at most. None (unscored) where answers that the environment did not know, or a failed judge,
    could have turned the reward. `ask`: the model that judges ask, `seed`: of what they are asked.
    ValueError: an unknown mode, or a rubric that is none (one sentence).
    """
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}; there are: {', '.join(MODES)}")
    read = rubric if isinstance(rubric, ParsedRubric) else ParsedRubric.read(rubric)
    view = EpisodeView(episode, ask, seed)
    results = [check.judge(view) for check in read.checks]
    doubtful = [one.depends_on_unknown for one in results]
    passed = [one.passed for one in results]
    shares = [one.share for one in results]
    if any(doubtful):  # what hangs on what nobody knows: had it passed, had it failed
        both = [[sure if sway else one for one, sway in zip(passed, doubtful, strict=True)] for sure in (True, False)]
        best, worst = (reward_of(read, one, mode, shares) for one in both)
    else:
        best = worst = reward_of(read, passed, mode, shares)
    return Grade(best if best == worst else None, tuple(zip(read.checks, results, strict=True)))


def reward_of(
    rubric: ParsedRubric, passed: Sequence[bool | None], mode: str, shares: Sequence[float | None] | None = None,
) -> float:
    """Return the reward where each of the rubric's checks held or not. `shares`: how far each has come, where it can tell."""
    total = reached = lost = reward = 0.0
    for at, weight in rubric.scores:
        total += weight
        reached += weight if passed[at] else 0.0
    if all(map(passed.__getitem__, rubric.gates)) and (rubric.gates or rubric.scores):
        reward = reached / total if total else float(not rubric.scores)
    elif rubric.partial and mode == "train":
        reward = rubric.partial * _progress(rubric, passed, shares)
    for at, weight in rubric.penalties:
        modes = rubric.checks[at].modes
        if not modes or mode in modes:   # one that counts in a mode alone costs by how far it has not come
            share = shares[at] if shares is not None and modes else None
            lost += 0.0 if passed[at] else weight * (1 - (share or 0.0))
    return max(0.0 if mode == "eval" else -1.0, min(1.0, reward - lost))


def _progress(rubric: ParsedRubric, passed: Sequence[bool | None], shares: Sequence[float | None] | None) -> float:
    """Return the weighted share of the shaping checks, in [0, 1]."""
    total = reached = 0.0
    for at, check in enumerate(rubric.checks):
        if check.role == "shaping":
            share = shares[at] if shares is not None else None
            total += check.weight
            reached += check.weight * (float(bool(passed[at])) if share is None else share)
    return reached / total if total else 0.0


def potential(rubric: ParsedRubric, episode: Episode) -> float:
    """How far an episode has come, in [0, 1]: the weighted share of `shaping` checks; where none is, of gates and scores.

    A check that can tell counts by how far it has come (2 of 3 facts told); a judge is not asked and counts as nothing.
    """
    shaping = [check for check in rubric.checks if check.role == "shaping"]
    checks = shaping or [check for check in rubric.checks if check.role in ("gate", "score")]
    total = sum(check.weight for check in checks)
    if not total:
        return 0.0
    view = EpisodeView(episode)
    founds = ((check.weight, check.judge(view)) for check in checks)
    return sum(weight * (float(bool(result.passed)) if result.share is None else result.share) for weight,
               result in founds) / total


def shaped(
    rubric: ParsedRubric | dict[str, Any], episodes: Sequence[Episode], discount: float = 1.0, ask: Ask | None = None,
    seed: int = 0
) -> tuple[float, ...] | None:
    """Reward of each step, for training: `episodes` before the first step and after each; None where it is unscored.

    A step is worth discount · potential after - potential before, the last one the episode's reward (mode `train`) beside it,
    with a potential of 0 at the end: so whatever is best stays best (Ng, Harada, Russell 1999; for ends Grześ 2017). Discounted
    and added up, the steps are discount**(n - 1) · reward - the first potential, whatever was done between.
    ValueError: a discount that is not in (0, 1], or no step.
    """
    if not 0 < discount <= 1:
        raise ValueError(f"the discount must be above 0 and at most 1, not {discount}")
    if len(episodes) < 2:
        raise ValueError("an episode without a step has no rewards of steps")
    read = rubric if isinstance(rubric, ParsedRubric) else ParsedRubric.read(rubric)
    reward = grade(read, episodes[-1], "train", ask, seed).reward
    if reward is None:
        return None
    heights = [*(potential(read, episode) for episode in episodes[:-1]), 0.0]
    steps = [discount * after - before for before, after in pairwise(heights)]
    return (*steps[:-1], steps[-1] + reward)


def lost(rubric: ParsedRubric, episode: Episode) -> str | None:
    """Return the id of the first gate that no continuation of the episode can pass, None where every gate can still be passed.

    What the episode may yet come to is a reward of 0, or none where the agent goes on to ask what nobody knows. Each kind says
    what it takes (`CheckKind.is_lost`). Where an answer that the environment did not know leaves a doubt, nothing is lost. Does
    not see: an end state that is out of reach because an entity is used up; a document that nobody can change back.
    """
    view = EpisodeView(episode)
    gates = (check for check in rubric.checks if check.role == "gate")
    return next((check.check_id for check in gates if check.rule.is_lost(check.parameters, view)), None)
