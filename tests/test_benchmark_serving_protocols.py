"""The benchmark of protocols: what it sends, and that a thousand episodes at once are each as if alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import serving_load
import serving_protocols


def test_a_step_of_every_session_comes_before_the_next() -> None:
    asked = serving_protocols.interleaved([[b"a1", b"a2", b"a3"], [b"b1"], [b"c1", b"c2"]])
    assert asked == [b"a1", b"b1", b"c1", b"a2", b"c2", b"a3"]


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_frames_say_how_long_they_are(size: int) -> None:
    frame = serving_load.frame_of("x" * size)
    head = 6 if size < 126 else 8 if size < 65536 else 14
    assert len(frame) == head + size and frame[0] == 0x81 and frame[1] & 0x80


@pytest.mark.slow
def test_a_thousand_sessions_at_once_are_each_as_if_alone(sample_environment: Path) -> None:
    played = serving_protocols.plays(sample_environment, 1000)
    found = serving_protocols.mcp_figures(sample_environment, played, "constant", 1)
    assert (found["concurrent_episodes"], found["journal_differences"]) == (1000, 0)
    assert found["mcp_share_of_constant"] > 0.1  # a busy machine: what it is on a quiet one stands in docs/benchmarks.md
