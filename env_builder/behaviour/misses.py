"""Which questions find nothing: what decides it, found from those that found something and those that did not.

In: the calls of a tool that only looks, before any act that matters. Out: a `nothing` rule, or None. What the tool says to
several questions, while it says something of their own to the others, is that it found nothing.
Sees: arguments by which emptiness never varied; arguments with an order beyond whose range nothing was found. Does not see:
what is not in a collection for any other reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from env_builder.runtime.misses import LEAST, Asked, is_beyond, order
from env_builder.world.replay import Step

MINIMUM_EMPTY = 3
"""Questions that must have found nothing, and as many that found something."""
MINIMUM_GROUPS = 10
"""Groups of questions with the same values that must agree: some of them full, some empty."""
MINIMUM_OF_KIND = 3


def induce(steps: list[Step]) -> dict[str, Any] | None:
    """The `nothing` rule of one tool."""
    said: dict[str, Step] = {}
    for step in steps:
        if not step.after and step.call.arguments:
            said.setdefault(step.call.key, step)
    names = Counter(tuple(sorted(step.call.arguments)) for step in said.values())
    if not names:
        return None
    usual = min(names, key=lambda one: (-names[one], one))
    mine = [step for _, step in sorted(said.items()) if tuple(sorted(step.call.arguments)) == usual]
    miss = _miss(mine)
    if miss is None:
        return None
    asked = [(step.call.arguments, step.call.content != miss.call.content) for step in mine]
    beyond = [name for name in usual if _has_ends(name, asked)]
    inside = [one for one in asked if not any(is_beyond(one[0], name, asked) for name in beyond)]
    by = list(_deciding(usual, inside))
    if not beyond and not by:
        return None
    return {
        "rule": "nothing", "content": miss.call.content, "is_error": miss.call.failed, "names": list(usual), "beyond": beyond,
        "by": by}


def _miss(steps: list[Step]) -> Step | None:
    """A call that found nothing: its answer was given to several questions, the other answers each to few."""
    counts = Counter(step.call.content for step in steps)
    if not counts:
        return None
    (content, n), *others = counts.most_common()
    empty = [step for step in steps if step.call.content == content]
    if n < MINIMUM_EMPTY or len(steps) - n < MINIMUM_EMPTY or any(2 * times > n for _, times in others):
        return None
    return empty[0] if not empty[0].call.parsed else None


def _has_ends(name: str, asked: list[Asked]) -> bool:
    """Is there nothing beyond a range of the argument?"""
    full = {order(given[name]) for given, found in asked if found}
    return len(full) >= LEAST and None not in full and any(is_beyond(given, name, asked) for given, found in asked if not found)


def _deciding(names: tuple[str, ...], asked: list[Asked]) -> Iterator[list[str]]:
    """The smallest sets of arguments by which questions that find nothing and others never mix."""
    found: list[frozenset[str]] = []
    for n in range(1, len(names)):
        for some in combinations(names, n):
            if any(smaller <= frozenset(some) for smaller in found):
                continue
            groups: dict[str, list[bool]] = defaultdict(list)
            for given, full in asked:
                groups[str([given[name] for name in some])].append(full)
            several = [group for group in groups.values() if len(group) > 1]
            alike = Counter(group[0] for group in several if len(set(group)) == 1)
            enough = len(several) >= MINIMUM_GROUPS and min(alike[True], alike[False]) >= MINIMUM_OF_KIND
            if enough and alike.total() == len(several):
                found.append(frozenset(some))
                yield list(some)
