"""Whether sessions that each begin from a state of their own are told the same.

In: looks, each a question or a record, a session and the first text that it was shown before it acted. Out: `Beginnings`, the
chance that one more session would be told what the others were. The first look of each session is held against those of all
others (leave one out): they foretell it where nearly all of them saw alike. Sessions of one case (`witnesses`) that saw the
same count once. What few sessions saw is judged by the looks of the same kind (tool or class), and these by all of the service.
Sees: looks at one thing in two sessions or more. Does not see: what tells sessions apart (a user, a day), and a state that only
some answers of a tool show. Where no look was ever repeated, nothing is known, and nobody speaks for others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from env_builder.runtime.world import SURE

PRIOR_LOOKS = 3.0
"""Looks that what is known of a kind, or of the whole service, weighs as much as."""
UNKNOWN_CHANCE = 0.5
"""Chance that sessions are told the same where no look was repeated."""


class FirstLook(NamedTuple):
    """What a session was shown before it acted."""

    kind: str
    """Tool, or class of records."""
    subject: str
    """The question's arguments, or the record's key."""
    session_id: str
    text: str
    witness: str | None = None
    """The case that several sessions work on: these count once. None: the session counts."""


class Beginnings:
    """How often sessions were told what others were, by kind of look."""

    def __init__(self, looks: Iterable[FirstLook]) -> None:
        first: dict[tuple[str, str], dict[str, FirstLook]] = defaultdict(dict)
        for look in looks:
            first[look.kind, look.subject].setdefault(look.session_id, look)
        self._n: Counter[str] = Counter()
        self._n_foretold: Counter[str] = Counter()
        for (kind, _), own in first.items():
            once = {(look.text, look.witness or look.session_id) for look in own.values()}
            n, n_foretold = foretold(Counter(text for text, _ in once))
            self._n[kind] += n
            self._n_foretold[kind] += n_foretold
        self.overall = shrunk(self._n_foretold.total(), self._n.total(), UNKNOWN_CHANCE)
        """Chance that one more session is told what others were, whatever the look."""

    def chance(self, kind: str) -> float:
        """Return the chance that one more session is told what one session was."""
        return shrunk(self._n_foretold[kind], self._n[kind], self.overall)

    def chances(self, entity_class: str | None, tool: str) -> list[float]:
        """Return the chance of each kind of look that a tool gives: at records of its class, and at what it answers itself,
        as far as such were counted."""
        return [self.chance(kind) for kind in (entity_class, tool) if kind and self._n[kind]] or [self.chance(tool)]

    def speak_for_all(self, kind: str, n_alike: int, n: int) -> bool:
        """Return whether what `n_alike` of `n` sessions were told would be told to any other."""
        return n_alike >= SURE * n and shrunk(n_alike - 1, n - 1, self.chance(kind)) >= SURE


def foretold(counts: Counter[str]) -> tuple[int, int]:
    """Return of how many sessions that were shown these texts others were shown one too, and how many of them they foretell."""
    n = counts.total()
    if n < 2:
        return 0, 0
    n_most = max(counts.values())
    return n, n_most if n_most - 1 >= SURE * (n - 1) else 0


def shrunk(n_right: float, n: float, otherwise: float) -> float:
    """Return a share, drawn to another where there is little evidence."""
    return (n_right + PRIOR_LOOKS * otherwise) / (n + PRIOR_LOOKS)
