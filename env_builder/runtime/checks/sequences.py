"""Templates of order over finite traces, after Declare (van der Aalst, Pesic, Schonenberg 2009; Di Ciccio, Mecella 2015).

In: the places of a trace where the first and the second set of steps stand. Out: the places that speak against the template.
`alike` (first place, second place) says whether two steps speak of one thing (MP-Declare's correlation, Burattin et al. 2016);
without it all do. A step may be of both sets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

Places = list[int]


class Marks(NamedTuple):
    """Where the steps stand, in order."""

    first: Places
    second: Places
    trace: Places
    """All steps that count for what is next to what."""
    alike: Callable[[int, int], bool] | None = None

    def after(self, place: int, before: int | None = None) -> bool:
        """Is there a second step after this first one (and before a place)?"""
        if self.alike is None and before is None:
            return bool(self.second) and self.second[-1] > place
        later = self.second[bisect_right(self.second, place):None if before is None else bisect_left(self.second, before)]
        return bool(later) if self.alike is None else any(self.alike(place, other) for other in later)

    def before(self, place: int, after: int | None = None) -> bool:
        """Is there a first step before this second one (and after a place)?"""
        if self.alike is None and after is None:
            return bool(self.first) and self.first[0] < place
        earlier = self.first[0 if after is None else bisect_right(self.first, after):bisect_left(self.first, place)]
        return bool(earlier) if self.alike is None else any(self.alike(other, place) for other in earlier)

    def twin(self) -> Marks:
        """The same with the sets exchanged."""
        alike = self.alike
        return Marks(self.second, self.first, self.trace, None if alike is None else lambda one, other: alike(other, one))

    def apart(self, one: int, other: int) -> bool:
        """May these two, a first and a second step, speak of different things?"""
        return self.alike is not None and not self.alike(one, other)


class Template(NamedTuple):
    """Whether it takes a second set, what speaks against it, and whether steps may be told apart by what they speak of."""

    binary: bool
    against: Callable[[Marks], Places]
    apart: bool = True
    traces: bool = False
    """Does it ask what is next to what, or first, or last?"""


def _response(marks: Marks) -> Places:
    return [place for place in marks.first if not marks.after(place)]


def _precedence(marks: Marks) -> Places:
    return [place for place in marks.second if not marks.before(place)]


def _alternate_response(marks: Marks) -> Places:
    """Each first step is followed by a second one before the next first one."""
    ends: list[int | None] = [*marks.first[1:], None]
    return [place for place, end in zip(marks.first, ends, strict=False) if not marks.after(place, end)]


def _alternate_precedence(marks: Marks) -> Places:
    """Each second step has a first one since the second one before it."""
    begins: list[int | None] = [None, *marks.second[:-1]]
    return [place for place, begin in zip(marks.second, begins, strict=False) if not marks.before(place, begin)]


def _chain_response(marks: Marks) -> Places:
    return [place for place in marks.first if not _next_to(marks, place, 1)]


def _chain_precedence(marks: Marks) -> Places:
    twin = marks.twin()
    return [place for place in twin.first if not _next_to(twin, place, -1)]


def _next_to(marks: Marks, place: int, step: int) -> bool:
    """Does a second step stand right after (1) or right before (-1) this first one?"""
    at = bisect_left(marks.trace, place) + step
    return 0 <= at < len(marks.trace) and (near := marks.trace[at]) in marks.second and not marks.apart(place, near)


def _not_chain(marks: Marks) -> Places:
    return [place for place in marks.first if _next_to(marks, place, 1)]


def _responded(marks: Marks) -> Places:
    """Each first step has a second one, before or after."""
    return [place for place in marks.first if all(marks.apart(place, other) for other in marks.second)]


def _not_both(marks: Marks) -> Places:
    return [place for place in marks.first if not all(marks.apart(place, other) for other in marks.second)]


def _not_after(marks: Marks) -> Places:
    return [place for place in marks.first if marks.after(place)]


def _both(*sides: Callable[[Marks], Places]) -> Callable[[Marks], Places]:
    return lambda marks: sorted({place for side in sides for place in side(marks)})


def _nowhere(missing: bool) -> Places:
    """What is not there stands at no place."""
    return [-1] if missing else []


TEMPLATES: dict[str, Template] = {
    "response": Template(True, _response),
    "precedence": Template(True, _precedence),
    "succession": Template(True, _both(_response, _precedence)),
    "alternate_response": Template(True, _alternate_response, False),
    "alternate_precedence": Template(True, _alternate_precedence, False),
    "alternate_succession": Template(True, _both(_alternate_response, _alternate_precedence), False),
    "chain_response": Template(True, _chain_response, traces=True),
    "chain_precedence": Template(True, _chain_precedence, traces=True),
    "chain_succession": Template(True, _both(_chain_response, _chain_precedence), traces=True),
    "responded_existence": Template(True, _responded),
    "coexistence": Template(True, _both(_responded, lambda marks: _responded(marks.twin()))),
    "not_coexistence": Template(True, _not_both),
    "not_succession": Template(True, _not_after),
    "not_chain_succession": Template(True, _not_chain, traces=True),
    "choice": Template(True, lambda marks: _nowhere(not marks.first and not marks.second)),
    "exclusive_choice": Template(True, lambda marks: _nowhere(bool(marks.first) == bool(marks.second))),
    "existence": Template(False, lambda marks: _nowhere(not marks.first)),
    "absence": Template(False, lambda marks: list(marks.first)),
    "init": Template(False, lambda marks: _nowhere(not marks.first or marks.trace[0] != marks.first[0]), traces=True),
    "last": Template(False, lambda marks: _nowhere(not marks.first or marks.trace[-1] != marks.first[-1]), traces=True),
}
"""Name of a template -> what it asks for."""
