"""A room that many episodes are asked of at once from one event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.channel import Channel
from env_builder.process import FrameDecoder, LocalProcess, parse_call_result, start_process
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import InputError, Unavailable


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


def test_answers_find_who_asked_and_refusals_too(room: Path) -> None:
    async def ask() -> None:
        channel = await Channel.over(start_process(room).transport, "hall")

        async def play(name: str) -> str:
            await channel.request("traceroom/reset", {"task_id": TASK}, name)
            call = {"name": "open_door" if int(name) % 2 else "read_sign", "arguments": {"door": "7", "at": "gate"}}
            call["arguments"] = {"door": "7"} if int(name) % 2 else {"at": "gate"}
            answer = parse_call_result(await channel.request("tools/call", call, name))
            with pytest.raises(InputError, match=f"no task 'of {name}'"):
                await channel.request("traceroom/reset", {"task_id": f"of {name}"}, f"not {name}")
            return answer.content

        answers = await asyncio.gather(*(play(str(n)) for n in range(300)))
        assert answers == [OPEN if n % 2 else "Mind the gap\n — 雨" for n in range(300)]
        for what, error in ((float("nan"), "cannot be written as JSON"), ("x" * 2**24, "is longer than")):
            with pytest.raises(InputError, match=error):  # the room would not know whom to answer
                await channel.request("tools/call", {"name": "read_sign", "arguments": {"at": what}}, "1")
        cut = asyncio.ensure_future(channel.request("traceroom/tasks"))
        cut.cancel()  # an answer that nobody waits for any longer is nobody else's
        assert (await channel.request("traceroom/state", None, "1"))["ended"] is None
        assert channel.n_waiting == 0
        await channel.close()
        with pytest.raises(Unavailable, match="the environment process was closed"):
            await channel.request("ping")

    run(ask())


def test_a_room_that_is_killed_is_said_to_be_gone(room: Path) -> None:
    async def ask() -> None:
        transport = start_process(room).transport
        assert isinstance(transport, LocalProcess)
        channel = await Channel.over(transport, "hall")
        os.kill(transport.process_id, signal.SIGKILL)
        with pytest.raises(Unavailable, match="the environment process is gone"):
            for _ in range(1000):
                await channel.request("ping")
        assert channel.gone
        await channel.close()

    run(ask())


def test_a_room_that_was_closed_is_said_to_be_gone(room: Path) -> None:
    closed = start_process(room)
    closed.close()
    with pytest.raises(Unavailable, match="the environment process is gone"):
        closed.request("ping")


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12), st.data())
def test_frames_are_taken_apart_wherever_they_are_cut(frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
    whole = b"".join(struct.pack(">BxxxL", stream, len(piece)) + piece for stream, piece in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    apart, out, err = FrameDecoder(), b"", b""
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        words, errors = apart.split(whole[begin:end])
        out, err = out + words, err + errors
    assert out == b"".join(piece for stream, piece in frames if stream == 1)
    assert err == b"".join(piece for stream, piece in frames if stream == 2)
