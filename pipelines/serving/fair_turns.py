"""Turns of clients at one environment process: each client waits for its own requests alone.

In: requests, each of a client. Out: turns. At most `AT_ONCE` requests are at the process at a time; those that wait beyond get
their turns client by client, so one that asks a thousand times delays another by one request. A full server rejects a request
only of a client that has its share of the places already. Sees: how many requests of each client wait. Does not see: how long
one takes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

AT_ONCE = 64
"""Requests that are at the process at a time."""


class FairTurns:
    """The turns of one server's requests."""

    def __init__(self, most_waiting: int) -> None:
        self._most = most_waiting
        self._n_waiting = 0
        self._of_client: dict[str, int] = {}
        self._n_at_once = 0
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def admits(self, client: str) -> bool:
        """Return whether another request of this client may wait."""
        own = self._of_client.get(client, 0)
        n_clients = len(self._of_client) + (client not in self._of_client)
        return self._n_waiting < self._most or own < self._most // n_clients

    async def take(self, client: str) -> None:
        """Wait for the request's turn, which `give` ends; a caller that is cancelled meanwhile has none to give."""
        self._n_waiting += 1
        self._of_client[client] = self._of_client.get(client, 0) + 1
        if self._n_at_once < AT_ONCE and not self._queues:
            self._n_at_once += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(client)
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def give(self, client: str) -> None:
        """End a turn: the next client's request has it."""
        self._leave(client)
        self._pass_on()

    def _leave(self, client: str) -> None:
        self._n_waiting -= 1
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]

    def _pass_on(self) -> None:
        while self._queues:
            client, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._queues[client] = queue  # at the end: the others come first
            if not turn.done():
                turn.set_result(None)
                return
        self._n_at_once -= 1
