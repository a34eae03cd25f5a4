"""A reply leaves a whole number of even times after its request, whatever its answer took."""

from __future__ import annotations

import asyncio
import io
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime import Environment, mcp, pacing
from pipelines.serving.pacing import Pacing
from tests.rooms import TASK, write_room

CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "read_sign", "arguments": {"at": "gate"}}}).encode() + b"\n"


@given(st.floats(0, 0.05))
def test_a_reply_is_due_at_the_next_even_time(took: float) -> None:
    began = time.perf_counter() - took
    parts = (pacing.due(began) - began) / pacing.EVEN_S
    assert abs(parts - round(parts)) < 1e-3 and parts > 1 - 1e-3
    assert pacing.due(began) >= time.perf_counter() - 0.01


@pytest.mark.parametrize("control", [False, True])
def test_an_agent_s_replies_over_stdio_are_held_back_and_a_host_s_are_not(tmp_path: Path, control: bool) -> None:
    server = mcp.McpServer(Environment.load(write_room(tmp_path / "hall")), control=control)
    server.begin(TASK)
    took = []
    for _ in range(5):
        sink, began = io.BytesIO(), time.perf_counter()
        server.serve(io.BytesIO(CALL), sink)
        took.append(time.perf_counter() - began)
        assert b"Mind the gap" in sink.getvalue()
    assert (min(took) >= pacing.EVEN_S) != control


def test_replies_of_a_loop_wait_together() -> None:
    async def wait() -> float:
        held_back = Pacing()
        began = time.perf_counter()
        await asyncio.gather(*(held_back.pause(began) for _ in range(100)))
        first = time.perf_counter() - began
        cancelled = asyncio.ensure_future(held_back.pause(time.perf_counter()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await held_back.pause(time.perf_counter())
        return first

    assert asyncio.run(wait()) >= pacing.EVEN_S
