"""Logs that keep each request of a conversation as a conversation of its own, with the history so far.

In: the conversations of one log. Out: chains, each from the first request to the last, which tells all. Sees:
conversations that begin with all of another, one request at a time and none missing: three or more, or two in a log where most
are such chains.
Does not see: chains with gaps or without a clock, and requests of which the log has two alike within one pause (they stay
apart).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from extractors.tellings import LoggedTalk, SpokenPart

_SURE = 3
"""Requests of a chain that needs no other chains to speak for it; and chains that speak for a shorter one."""
_USUAL = 0.8


def chains(tellings: list[LoggedTalk], gap: int, n_apart: int = 0) -> list[list[LoggedTalk]]:
    """Return chains of two or more, first request first. `gap`: microseconds between requests, at most. `n_apart`:
    conversations of the log besides these that are in no chain, and no single request."""
    whole: dict[int, list[LoggedTalk]] = defaultdict(list)
    for telling in tellings:
        whole[marks_of(telling.parts)[-1]].append(telling)
    claimed: set[LoggedTalk] = set()
    complete: list[list[LoggedTalk]] = []
    n_broken = n_apart
    for telling in sorted(tellings, key=lambda each: (-len(each.parts), each.name)):
        if telling in claimed:
            continue
        chain = _chain(telling, whole, claimed, gap)
        if chain is not None:
            complete.append(chain)
            claimed.update(chain)
        elif not is_request(telling.parts):
            n_broken += 1
    n_long = sum(len(chain) >= _SURE for chain in complete)
    is_usual = n_long >= _SURE and n_long >= _USUAL * (n_long + n_broken)
    return [chain for chain in complete if len(chain) >= _SURE or is_usual]


def marks_of(parts: list[SpokenPart]) -> list[int]:
    """Return a hash of all parts up to each."""
    marks, before = [], 0
    for part in parts:
        before = hash((before, part.side, part.text))
        marks.append(before)
    return marks


def _chain(last: LoggedTalk, whole: dict[int, list[LoggedTalk]], claimed: set[LoggedTalk], gap: int) -> list[LoggedTalk] | None:
    """Return the requests up to this one; None where one is missing or not sure, or there is but one."""
    chain = [last]
    marks = marks_of(last.parts)
    for length in range(len(last.parts) - 1, 0, -1):
        after = chain[0]
        earlier = [each for each in whole.get(marks[length - 1], ()) if each not in claimed and _precedes(each, after, gap)]
        if len(earlier) > 1:
            return None
        if earlier:
            chain.insert(0, earlier[0])
    lengths = [0, *(len(each.parts) for each in chain)]
    pieces = [last.parts[begin:end] for begin, end in pairwise(lengths)]
    return chain if len(chain) > 1 and all(map(is_request, pieces)) else None


def is_request(parts: list[SpokenPart]) -> bool:
    """Whether these are what one request adds: what the user says, then an answer."""
    answers = [part.side != "user" for part in parts]
    return bool(answers) and answers == sorted(answers) and answers[-1]


def _precedes(one: LoggedTalk, two: LoggedTalk, gap: int) -> bool:
    return one.ends is not None and two.ends is not None and 0 <= two.ends - one.ends <= gap
