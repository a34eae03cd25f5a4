"""Progress of a run, for a watcher: the command line draws it, Dagster logs it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """Progress of one stage."""

    stage: str
    done: int
    total: int | None
    """None: the total is unknown."""
    note: str
    finished: bool = False
    warning: bool = False
    """`note` is a sentence on something rejected, which a person should see now."""


_watcher: ContextVar[Callable[[Step], None] | None] = ContextVar("watcher", default=None)


def tell(stage: str, done: int = 0, total: int | None = None, note: str = "", finished: bool = False) -> None:
    """Report that `stage` has done `done` of `total`."""
    watcher = _watcher.get()
    if watcher:
        watcher(Step(stage, done, total, note, finished))


def warn(stage: str, sentence: str) -> None:
    """Report at once that `stage` rejected something that a person may want to fix."""
    watcher = _watcher.get()
    if watcher:
        watcher(Step(stage, 0, None, sentence, warning=True))


@contextlib.contextmanager
def watched_by(watcher: Callable[[Step], None]) -> Iterator[None]:
    """Pass every report inside to `watcher`."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
