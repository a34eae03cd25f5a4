"""What came of an attack."""

from __future__ import annotations

from typing import NamedTuple


class Report(NamedTuple):
    """What came of an attack, and figures that it measured."""

    n_tried: int
    """Requests, files or episodes of the attack."""
    problems: tuple[str, ...]
    """What got through; none if everything was kept out."""
    figures: dict[str, float] = {}  # noqa: RUF012  never changed


def counted(full: int, share: float, least: int = 1) -> int:
    """Return the share of a full count, at least `least`."""
    return max(least, round(full * share))
