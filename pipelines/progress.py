"""Progress of a run, for a watcher: the command line draws it, Dagster logs it, and a file shows it to the browser.

The time left of a stage is estimated from its own pace: (total - done) times the seconds for each of those done. Does not see
how long later stages will take, or that the last parts of a stage are slower than the first.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple


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


NAME = "progress.json"
"""File of a run's folder that exists while the run is going."""
_EVERY_S = 1.0
"""Seconds between two versions of the file."""


class RunProgress:
    """What the stages of a run have done so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[str, tuple[float, int]] = {}
        self.stages: dict[str, dict[str, Any]] = {}
        """Stage -> {"stage", "done", "total", "note", "finished", "seconds_left"}, in the order in which they began."""

    def add(self, step: Step) -> None:
        """Take a report of a stage into account."""
        if step.warning:
            return
        begun, first = self._began.setdefault(step.stage, (self._clock(), step.done))
        spent, n_done = self._clock() - begun, step.done - first
        remaining = (step.total - step.done) * spent / n_done if step.total and n_done > 0 and not step.finished else None
        self.stages[step.stage] = {
            "stage": step.stage, "done": step.done, "total": step.total, "note": step.note, "finished": step.finished,
            "seconds_left": None if remaining is None else round(max(remaining, 0.0), 1)}


@contextlib.contextmanager
def written_to(folder: Path, n_stages: int) -> Iterator[None]:
    """Write the progress inside to a file in `folder`, at most once a second, besides telling the watcher; then remove it."""
    outer, state, written, path, draft = _watcher.get(), RunProgress(), [0.0], folder / NAME, folder / f".{NAME}"

    def watch(step: Step) -> None:
        if outer:
            outer(step)
        state.add(step)
        now = time.monotonic()
        if step.finished or now - written[0] >= _EVERY_S:
            written[0] = now
            with contextlib.suppress(OSError):   # the work fails by itself on a disk that is full
                folder.mkdir(parents=True, exist_ok=True)
                draft.write_text(json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), "n_stages": n_stages,
                                             "stages": list(state.stages.values())}), "utf-8")
                draft.replace(path)

    try:
        with watched_by(watch):
            yield
    finally:
        for each in (path, draft):
            with contextlib.suppress(OSError):
                each.unlink(missing_ok=True)
