"""How far a run is, told to whoever watches: the command line draws it, Dagster logs it, tests listen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """One word about one stage."""

    stage: str
    done: int
    total: int | None
    """None: nobody knows how much there is."""
    note: str
    finished: bool = False
    warning: bool = False
    """`note` is a sentence on something that was left, which a person should see now."""


_watcher: ContextVar[Callable[[Step], None] | None] = ContextVar("watcher", default=None)


def tell(stage: str, done: int = 0, total: int | None = None, note: str = "", finished: bool = False) -> None:
    """Say that `stage` has done `done` of `total`."""
    watcher = _watcher.get()
    if watcher:
        watcher(Step(stage, done, total, note, finished))


def warn(stage: str, sentence: str) -> None:
    """Say at once that `stage` left something that somebody may want to mend."""
    watcher = _watcher.get()
    if watcher:
        watcher(Step(stage, 0, None, sentence, warning=True))


@contextlib.contextmanager
def watched_by(watcher: Callable[[Step], None]) -> Iterator[None]:
    """Everything told inside goes to `watcher`."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
