"""A field's past from its last value and a log of its changes.

In: the last value on record and the logged changes. Out: versions from the record's birth on.
Sees: whether the log is whole: each change begins where the one before it ended, and the last one ends at the last value.
Where it does not, the value between the two is a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from extractors.apps.version import BEGINNING, NEVER_KNOWN, AppVersion


class FieldChange(NamedTuple):
    """A logged change of a field."""

    at: int
    sequence: int
    before: Any
    after: Any
    actor: str | None = None


class FieldSource(NamedTuple):
    """Where versions of a field come from."""

    entity_class: str
    entity_id: str
    field: str
    born: int
    record: str
    author: str | None = None

    def version(self, value: Any, at: int, sequence: int = 0, actor: str | None = None,
                guessed_until: int = BEGINNING) -> AppVersion:
        """Return a version of the field."""
        return AppVersion(self.entity_class, self.entity_id, self.field, value, at, sequence, actor, guessed_until, self.record)


def scalar_versions(source: FieldSource, last: Any, changes: Iterable[FieldChange], guessed_until: int = BEGINNING,
                    ) -> Iterator[AppVersion]:
    """Yield the versions of a field with one value; `guessed_until`: before this instant the log may lack changes."""
    log = sorted(changes)
    if not log:
        yield source.version(last, source.born, 0, source.author, guessed_until)
        return
    first = log[0]
    yield source.version(first.before, source.born, 0, source.author, max(guessed_until, BEGINNING))
    for change, following in zip(log, [*log[1:], None], strict=True):
        goes_on = following.before if following else last
        doubt = guessed_until
        if change.after != goes_on:
            doubt = following.at if following else NEVER_KNOWN
        yield source.version(change.after if change.after == goes_on else goes_on, max(change.at, source.born), change.sequence,
                             change.actor, doubt)


def set_versions(source: FieldSource, last: Iterable[Any], changes: Iterable[FieldChange], guessed_until: int = BEGINNING,
                 ) -> Iterator[AppVersion]:
    """Yield the versions of a list without repetitions: `before` and `after` of a change are what it removed and added.

    Removed members are put back at the end: exports do not log their place.
    """
    log = sorted(changes, key=lambda change: change[:2])
    members = list(last)
    states = [list(members)]
    for change in reversed(log):
        members = [member for member in members if member not in change.after]
        members += [member for member in change.before if member not in members]
        states.append(list(members))
    states.reverse()
    yield source.version(states[0], source.born, 0, source.author, guessed_until)
    for change, state in zip(log, states[1:], strict=True):
        yield source.version(state, max(change.at, source.born), change.sequence, change.actor, guessed_until)


def latest_versions(source: FieldSource, instants: Iterable[tuple[int, str | None]]) -> Iterator[AppVersion]:
    """Yield the versions of "last updated": the last of the instants (microseconds, with actors) that had passed."""
    for at, actor in sorted({source.born: source.author, **dict(sorted(instants, key=lambda each: each[0]))}.items()):
        if at >= source.born:
            yield source.version(at / 1_000_000, at, 0, actor)


def count_versions(source: FieldSource, instants: Iterable[tuple[int, str | None]]) -> Iterator[AppVersion]:
    """Yield the versions of a count of what happened at the instants."""
    yield source.version(0, source.born, 0, source.author)
    for count, (at, actor) in enumerate(sorted(instants, key=lambda each: each[0]), start=1):
        yield source.version(count, max(at, source.born), count, actor)
