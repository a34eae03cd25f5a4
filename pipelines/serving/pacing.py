"""Replies of an event loop that leave at even times after their requests (`env_builder/runtime/pacing.py`).

One thread waits for all of them, in the order in which they were made: an event loop's own timers are exact to a millisecond.
"""

from __future__ import annotations

import asyncio
import queue
import threading

from env_builder.runtime import pacing

Waiting = tuple[float, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class Pacing:
    """Holds replies back until they may leave."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def pause(self, began: float) -> None:
        """Wait until the reply to a request that came at `began` may leave."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._release, name="pacing", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        leaves = loop.create_future()
        self._waiting.put((pacing.due(began), loop, leaves))
        await leaves

    def _release(self) -> None:
        while True:
            instant, loop, leaves = self._waiting.get()
            pacing.wait_until(instant)
            if not loop.is_closed():
                loop.call_soon_threadsafe(_let_go, leaves)


def _let_go(leaves: asyncio.Future[None]) -> None:
    if not leaves.done():  # its request may have been cancelled
        leaves.set_result(None)
