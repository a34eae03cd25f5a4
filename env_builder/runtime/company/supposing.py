"""What an act may have written whose answer is not known.

In: a desk just before the act, and the act. Out: the desk with everything open that the act may have written.
The act is carried out once more on a copy on which doubts are left aside: what may be refused goes through, a value that is not
known is the one that the exports show later. What it writes there is what it may have written; the other outcome is that
nothing happened. Where the run meets no doubt until it has written everything, it happened: only its answer is unknown.
Values that such a run computes are not used, but those of a new record if the run rests on no unknown value.
Sees: every write of that run. Where the run cannot go on, or is refused because of an unknown value, every record of the
classes that the tool writes is open. Does not see: other records that the act would have written with another value in the
place of an unknown one, unless the tool names the candidates (`one_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .desk import CompanyDesk, PossibleWrite, ProductRefusal, Undecided
from .world import PRESENT

V = TypeVar("V")
_MOST_CHOICES = 300
"""Records that a call may mean, of which each is tried."""


class _AllWritten(Exception):
    """The act has written all that it writes."""


class SupposedDesk(CompanyDesk):
    """A copy of a desk on which an act goes on where it is in doubt."""

    __slots__ = ("_choice", "is_doubtful", "is_guessing", "n_choices", "touches")

    def __init__(self, desk: CompanyDesk, choice: int) -> None:
        super().__init__(desk._start, desk._overlay, desk.n_acts, desk._open)
        self.touches: list[PossibleWrite] = []
        """What the run wrote."""
        self.is_guessing = False
        """Whether the run rests on a value that is not known."""
        self.is_doubtful = False
        """Whether it is in doubt that the product goes so far."""
        self.n_choices = 1
        """How many records a call may mean, of which the run took one."""
        self._choice = choice

    def value(self, entity_class: str, entity_id: str, field: str, otherwise: Any = None) -> Any:
        try:
            return super().value(entity_class, entity_id, field, otherwise)
        except Undecided:
            if self._start.state.version(entity_class, entity_id, field) is None:
                raise
            self.is_guessing = True
            return self.last_known(entity_class, entity_id, field)

    def sees(self, entity_class: str, entity_id: str) -> bool:
        try:
            return super().sees(entity_class, entity_id)
        except Undecided:
            self.is_doubtful = True
            return True

    def of_record(self, name: str, entity_class: str, entity_id: str, compute: Callable[[], V]) -> V:
        return compute()   # nothing that rests on a guess is remembered

    def doubt(self, text: str) -> None:
        self.is_doubtful = True

    def one_of(self, entity_ids: Sequence[str], text: str) -> str | None:
        if not entity_ids:
            return None
        if self.n_choices > 1 or len(entity_ids) > _MOST_CHOICES:
            raise Undecided(text)
        self.is_guessing, self.n_choices = True, len(entity_ids)
        return entity_ids[self._choice]

    def acted(self) -> None:
        raise _AllWritten

    def write(self, entity_class: str, entity_id: str, **values: Any) -> None:
        self.touches.append(PossibleWrite(entity_class, entity_id, values))
        super().write(entity_class, entity_id, **values)

    def remove(self, entity_class: str, entity_id: str) -> None:
        self.touches.append(PossibleWrite(entity_class, entity_id, {PRESENT: False}))
        super().remove(entity_class, entity_id)


def open_what_may_follow(desk: CompanyDesk, act: Callable[[CompanyDesk], object], classes: frozenset[str],
                         then: Callable[[CompanyDesk, CompanyDesk], None] | None = None) -> None:
    """Open on a desk what an act may have written. `classes`: all that the act, and what follows, could write at most; `then`:
    writes what follows in other apps, from the desk before."""
    touches: list[PossibleWrite] = []
    choice, n_choices, is_sure = 0, 1, True
    while choice < n_choices:
        supposed = SupposedDesk(desk, choice)
        is_stuck = _is_stuck(supposed, act)
        if then is not None and not is_stuck:
            then(supposed, desk)
        if not (is_stuck or supposed.is_doubtful or supposed.is_guessing):
            desk.restore(supposed.snapshot())   # only the answer is unknown
            return
        touches += supposed.touches
        if is_stuck:
            desk.open_up(touches, classes)
            return
        is_sure = is_sure and not supposed.is_guessing
        choice, n_choices = choice + 1, supposed.n_choices
    desk.open_up(touches, is_sure_of_new=is_sure)


def _is_stuck(supposed: SupposedDesk, act: Callable[[CompanyDesk], object]) -> bool:
    """Carry out an act on a supposed desk; return whether it could not go on. What is refused without a guess is refused in any
    case."""
    try:
        act(supposed)
    except ProductRefusal:
        return supposed.is_guessing
    except Undecided:
        return True
    except _AllWritten:
        return False
    return False
