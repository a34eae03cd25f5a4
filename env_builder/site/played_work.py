"""A piece of work as it was played again with the tools: what it called, did and changed, and which task is made of it.

In: a piece of work, its verdict, and what came of the play. Out: ids, the split, a known solution. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from env_builder.runtime.canonical import digest
from env_builder.site.agreement import WorkVerdict
from env_builder.site.playing import Deed, PlayedCall
from env_builder.site.work import PieceOfWork
from warehouse.records import Split

Row = dict[str, Any]


class PlayedWork(NamedTuple):
    """A piece of work that was played again."""

    piece: PieceOfWork
    verdict: WorkVerdict
    reason: str
    """played; or why it is no task."""
    detail: str
    calls: tuple[PlayedCall, ...] = ()
    deeds: tuple[Deed, ...] = ()
    difference: Mapping[str, Any] = {}
    received: tuple[tuple[str, str | None], ...] = ()
    """(path, origin) of files that were downloaded."""

    variant: str = ""
    """Kind of the variant that it is (`honeypots.KINDS`); empty: as recorded."""

    @property
    def recorded_id(self) -> str:
        """Return the id of the task that is as recorded."""
        return digest(f"site task of {self.piece.session.session_id}")

    @property
    def task_id(self) -> str:
        return digest(f"{self.variant} of {self.recorded_id}") if self.variant else self.recorded_id

    @property
    def steps(self) -> list[Row]:
        """Return the calls alone, as a known solution has them."""
        return [{"tool": call.tool, "arguments": call.arguments} for call in self.calls]

    @property
    def split(self) -> Split:
        """Return the part of the data that the work belongs to, whether a task is made of it or not."""
        number = int(self.recorded_id[:8], 16) % 10
        return "train" if number < 8 else "validation" if number == 8 else "held_out"
