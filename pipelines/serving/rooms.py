"""The rooms behind a server: each holds many episodes, one that has ended is begun again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from env_builder import image
from env_builder.channel import Channel
from env_builder.room import Room, start_process
from warehouse.errors import InputError

BOUND_ROOMS = 8
"""Rooms where real things are bound: a room waits while one of them answers, the others do not."""
LIMITS = image.Limits(memory_mb=2048, seconds=10 * 365 * 86400.0)
"""What a container may use that holds many episodes, for as long as the server runs."""


def beginner(environment: Path, container: bool, bindings: Mapping[str, str]) -> Callable[[], Room]:
    """How a room of this environment is started; InputError where it cannot be."""
    if not container:
        return lambda: start_process(environment, bindings=bindings)
    if bindings:
        what = "a room in a container reaches nothing that is bound"
        raise InputError(what, ", ".join(bindings), "serve without --container")
    image.image_of(environment)
    return lambda: image.start(environment, limits=LIMITS)


class Rooms:
    """A fixed number of rooms, begun when they are first needed."""

    def __init__(self, begin: Callable[[], Room], name: str, n_rooms: int, first: Room) -> None:
        self.asked = first.asked
        """What `traceroom/reset` takes for an episode."""
        self._begin = begin
        self._name = name
        self._first: Room | None = first
        self._channels: list[Channel | None] = [None] * n_rooms
        self._starting = [asyncio.Lock() for _ in range(n_rooms)]
        self._n_given = 0

    async def next(self) -> Channel:
        """The room of the next episode, in turn; Unavailable where it does not begin."""
        place = self._n_given % len(self._channels)
        self._n_given += 1
        async with self._starting[place]:
            channel = self._channels[place]
            if channel is None or channel.gone:
                if channel is not None:
                    await channel.close()
                room = self._first if self._first is not None else await asyncio.to_thread(self._begin)
                self._first = None
                channel = self._channels[place] = await Channel.over(room.carrier, self._name)
            return channel

    async def close(self) -> None:
        """End them all."""
        if self._first is not None:
            self._first.close()
        for channel in self._channels:
            if channel is not None:
                await channel.close()
