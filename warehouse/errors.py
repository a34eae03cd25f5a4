"""Every error of the house: one sentence that says what failed, where, and the hint.

    TraceroomError
    ├── InputError            what the user gave cannot be used (a path, an option, a configuration file)
    │   ├── Unreadable        a log file, or a line of it, cannot be read
    │   └── Refused           an endpoint will not go on with a conversation
    ├── Missing               a name that does not exist, with the names that do
    ├── StoreError            the warehouse cannot be used
    │   ├── NotAWarehouse     the file is something else, or damaged
    │   ├── SchemaTooOld      made by an older Traceroom, and cannot be migrated
    │   ├── SchemaTooNew      made by a newer Traceroom
    │   └── Busy              another run holds it for longer than we wait
    ├── EnvironmentBroken     an environment's directory is not whole, or not what its manifest says
    ├── ReleaseBroken         a release is not whole, not what its id says, or withdrawn
    ├── Overtaken             somebody else promoted a release first
    ├── Unavailable           something outside is not there (an engine, an endpoint, a registry)
    │   ├── PolicyFailed      who plays an episode could not act
    │   │   └── EpisodeFailed one episode went wrong, whatever comes of the others
    │   ├── RetryableFault    a platform that holds logs cannot answer now
    │   └── CursorExpired     a platform does not accept the cursor of an earlier page any more
    └── GateFailed            it ran, and a gate that was asked for does not hold

A bad *row* is no exception: it is a `Decision` (warehouse/records.py). The command line turns an error into its
`exit_code`: 1, it ran and a gate failed; 2, it could not run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

MOST = 24
"""Names that a miss lists."""


class TraceroomError(Exception):
    """What failed, where, and the hint; its text is the one sentence that a person reads."""

    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(what, where, hint)
        self.what = what
        """What failed, without a full stop."""
        self.where = where
        """File, line, table or name that it is about; empty where `what` says it."""
        self.hint = hint
        """What to do about it, as an imperative."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.what}{hint}{'' if hint.endswith('?') else '.'}"


class InputError(TraceroomError):
    """What the user gave cannot be used."""


class Unreadable(InputError):
    """A log file, or a line of it, cannot be read."""


class Refused(InputError):
    """The endpoint will not go on with this conversation (it grew too long)."""


class Missing(TraceroomError):
    """A name that does not exist."""

    @classmethod
    def named(cls, kind: str, name: str, valid_names: Iterable[str], hint: str = "") -> Missing:
        """Error for `name`, with the valid names: `no exporter 'harbr'; there are: harbor, verifiers`."""
        names = sorted(valid_names)
        shown = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
        near = difflib.get_close_matches(name, names, n=1)
        guess = f"did you mean {near[0]!r}?" if near and len(names) > 8 else ""
        there = f"there are: {shown}" if names else "there are none"
        return cls(f"no {kind} {name!r}", hint="; ".join(part for part in (there, guess, hint) if part))


class StoreError(TraceroomError):
    """The warehouse cannot be used."""


class NotAWarehouse(StoreError):
    """The file is something else, or damaged."""


class SchemaTooOld(StoreError):
    """The warehouse was made by an older Traceroom, and cannot be migrated."""


class SchemaTooNew(StoreError):
    """The warehouse was made by a newer Traceroom."""


class Busy(StoreError):
    """Another run holds the warehouse for longer than we wait."""


class EnvironmentBroken(TraceroomError):
    """An environment's directory is not whole, or not what its manifest says."""


class ReleaseBroken(TraceroomError):
    """A release is not whole, not what its id says, or withdrawn."""


class Overtaken(TraceroomError):
    """Somebody else promoted a release first."""

    exit_code: ClassVar[int] = 1


class Unavailable(TraceroomError):
    """Something outside is not there."""


class RetryableFault(Unavailable):
    """The platform cannot answer now (a lost connection, status 429 or 5xx); the same request may be sent again."""

    def __init__(self, what: str, where: str = "", hint: str = "", wait_s: float | None = None) -> None:
        super().__init__(what, where, hint)
        self.wait_s = wait_s
        """Seconds that the platform asks to wait (`Retry-After`); None: it does not state any."""


class CursorExpired(Unavailable):
    """The platform does not accept the cursor of an earlier page any more; its window is listed again from the beginning."""


class PolicyFailed(Unavailable):
    """The policy could not act: its endpoint is gone, its script is broken."""


class EpisodeFailed(PolicyFailed):
    """One episode went wrong: what its policy said cannot be read, or answering or grading it failed."""


class GateFailed(TraceroomError):
    """It ran, and a gate that was asked for does not hold."""

    exit_code: ClassVar[int] = 1
