"""Replies that leave at even times after their requests, so that how long an answer took tells nothing of how it came about.

A recorded answer is looked up, another is computed: some tens of microseconds more, enough for an agent to tell which of its
calls the log knows. A reply waits until a whole number of `EVEN_S` has passed since its request. What takes longer than that,
such as a search over many rows, still tells by how many.

Sees: the time of one reply. Does not see: a client that measures over many episodes how often an answer passes a boundary.
"""

from __future__ import annotations

import math
import time

EVEN_S = 0.002
"""Seconds between the times at which replies may leave."""


def due(began: float) -> float:
    """Return when the reply to a request that came at `began` may leave, in seconds of `time.perf_counter`."""
    return began + EVEN_S * max(1, math.ceil((time.perf_counter() - began) / EVEN_S))


def wait_until(instant: float) -> None:
    """Wait until an instant of `time.perf_counter`."""
    time.sleep(max(0.0, instant - time.perf_counter()))
