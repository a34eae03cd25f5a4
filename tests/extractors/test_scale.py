"""Assembling takes time in proportion to the events, whatever their shape.

Measured against itself: four times the events may take six times as long, not sixteen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from extractors.sessions import assemble
from warehouse.records import Event, frame_schema

T0 = 1_772_446_500_000_000
Made = dict[str, list[Any]]


def events(columns: Made) -> pl.DataFrame:
    n = len(columns["kind"])
    ids = [f"{number * 2654435761 % 2**32:08x}{number:024x}" for number in range(n)]
    given: Made = {"event_id": ids, "record_id": ids, "file_id": ["f"] * n, "source": ["main"] * n, "format": ["x"] * n,
                   "happened_at": [T0 + number * 1000 for number in range(n)], **columns}
    made = [pl.Series("happened_at", given["happened_at"], pl.Int64()).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
            if name == "happened_at" else pl.Series(name, given.get(name, [None] * n), kind)
            for name, kind in frame_schema(Event).items()]
    return pl.DataFrame(made)


def one_id_for_all(n: int) -> Made:
    """Conversations that share a session id and their instructions, as where an id is a default."""
    roles, texts = ["system", "user", "assistant", "user"], ["you are a desk", "u{}", "a{}", "v{}"]
    return {"kind": ["message"] * n, "role": [roles[i % 4] for i in range(n)], "session_id": ["default"] * n,
            "content": [texts[i % 4].format(i // 4) for i in range(n)], "position": [i % 4 for i in range(n)],
            "record_id": [f"r{i // 4}" for i in range(n)]}


def calls_before_results(n: int) -> Made:
    ids = [f"c{number}" for number in range(n // 2)]
    return {"kind": ["call"] * (n // 2) + ["result"] * (n // 2), "role": ["assistant"] * n, "call_id": ids + ids,
            "tool": ["t"] * n, "arguments": ["{}"] * n, "content": ["x"] * n, "session_id": ["s"] * n,
            "position": list(range(n)), "record_id": ["r"] * n}


def files_that_go_on(n: int) -> Made:
    """Return a session of which each file tells two parts more."""
    return {"kind": ["message"] * n, "role": ["user", "assistant"] * (n // 2), "session_id": ["s"] * n,
            "content": [f"t{number}" for number in range(n)], "position": list(range(n)),
            "file_id": [f"f{number // 2}" for number in range(n)], "record_id": [f"r{number // 2}" for number in range(n)]}


def the_same_words(n: int) -> Made:
    """Two histories of one word said over and over, with another end."""
    half = n // 2
    return {"kind": ["message"] * n, "role": ["user"] * n, "session_id": ["s"] * n, "position": [*range(half), *range(half)],
            "content": ["ok"] * (half - 1) + ["end"] + ["no"] + ["ok"] * (half - 1), "record_id": ["a"] * half + ["b"] * half,
            "file_id": ["a"] * half + ["b"] * half}


def links(n: int) -> Made:
    """Return a chain of aliases as long as the log."""
    return {"kind": ["link"] * n, "session_id": [f"a{number}" for number in range(n)],
            "value": [f"a{number + 1}" for number in range(n)]}


def seconds(make: Callable[[int], Made], n: int) -> float:
    frame = events(make(n))
    spent = []
    for _ in range(3):
        began = time.process_time()
        assemble(frame)
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.parametrize("make", [one_id_for_all, calls_before_results, files_that_go_on, the_same_words, links])
def test_four_times_the_events_take_no_sixteen_times_as_long(make: Callable[[int], Made]) -> None:
    seconds(make, 400)
    small, large = seconds(make, 4_000), seconds(make, 16_000)
    assert large < 8 * small + 0.3, f"{small:.2f} s, then {large:.2f} s"
