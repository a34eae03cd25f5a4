"""When a login runs out: at a request for a page that only people see who are logged in, by chance or after a pause.

In: what the logs teach (`env_builder.site.expiring`), a seed, the number of the request, what is asked, and how long nobody
asked for anything. Out: whether the login has run out. The same seed, number and question give the same. Sees: the
environment's clock. Does not see: people who log out, logins that end at a time of day.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ..canonical import canonical

__all__ = ["SiteExpiry"]


class SiteExpiry(NamedTuple):
    """How logins of a site run out."""

    rate: float
    """Share of the requests for such pages at which they do."""
    idle_s: float | None
    """Seconds without a request after which they surely have; None: the logs show no such time."""
    seed: int

    @classmethod
    def of(cls, row: Mapping[str, Any], seed: int) -> SiteExpiry | None:
        """Return what a row of access.json says; None where the logs show no answer to people who are not logged in."""
        return None if "why_not" in row else cls(row["rate"], row["idle_s"], seed)

    def has_run_out(self, number: int, question: str, idle: timedelta) -> bool:
        """Return whether the login has run out at the request of this number."""
        if self.idle_s is not None and idle.total_seconds() >= self.idle_s:
            return True
        return random.Random(canonical([self.seed, "expiry", number, question])).random() < self.rate
