"""Transient faults are told from failures that mean something; latency and faults are drawn where a rollout asks for them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from env_builder.perturbations import perturbations
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.world import faults
from env_builder.world.calls import calls_of
from tests.rooms import OPEN, TASK, write_room

BEGAN = datetime(2024, 5, 1, tzinfo=UTC)
EFFECTS = {"show": "read", "move": "write"}
BUSY = "Error: busy, try box-7 again"


def _turns(*calls: tuple[str, str, str, float]) -> pl.DataFrame:
    """Return turns of one session from (tool, box, answer, minutes since it began)."""
    rows = [
        {"session_id": "s", "service": "main", "position": place, "kind": "call", "tool": tool,
         "arguments": canonical({"box": box}), "content": answer, "is_error": None,
         "happened_at": BEGAN + timedelta(minutes=at),
         "answered_at": BEGAN + timedelta(minutes=at, milliseconds=100 * place), "latency_ms": None, "result_id": None,
         "turn_id": f"{place}"} for place, (tool, box, answer, at) in enumerate(calls)]
    return pl.DataFrame(rows, schema_overrides={"latency_ms": pl.Float64(), "result_id": pl.String(), "is_error": pl.Boolean()})


def _found(*calls: tuple[str, str, str, float]) -> set[str]:
    return set(faults.find_faults(calls_of(_turns(*calls)), EFFECTS))


def test_a_failure_that_passed_by_itself_is_a_fault() -> None:
    assert _found(("show", "box-7", BUSY, 0), ("show", "box-7", BUSY, 1), ("show", "box-7", "fine", 2)) == {"0", "1"}
    assert _found(("move", "box-7", BUSY, 0), ("show", "box-8", "fine", 0), ("move", "box-7", "done", 1)) == {"0"}


def test_a_failure_with_a_reason_is_none() -> None:
    assert not _found(("show", "box-7", "Error: none", 0), ("move", "box-8", "done", 0), ("show", "box-7", "fine", 1)), "an act"
    assert not _found(("show", "box-7", BUSY, 0), ("show", "box-7", "fine", 60)), "an hour later"
    assert not _found(("show", "box-7", BUSY, 0), ("show", "box-8", "fine", 1)), "another call"
    assert not _found(("show", "box-7", "Error: none", 0), ("show", "box-7", BUSY, 1))


def test_a_message_that_always_passed_tells_a_fault_where_nobody_tried_again() -> None:
    passing = [("show", f"box-{n}", answer, float(n)) for n in range(3) for answer in (f"Error: box-{n} is busy", "fine")]
    assert _found(*passing, ("move", "box-9", "Error: box-9 is busy", 4)) == {"0", "2", "4", "6"}
    assert "4" not in _found(*passing[:4], ("move", "box-9", "Error: box-9 is busy", 4)), "seen too seldom"


def test_perturbations_are_learnt_with_slots_and_quantiles() -> None:
    turns = _turns(*[("show", "box-7", answer, float(n)) for n, answer in enumerate(["a", BUSY, "b", "c", "d", "e"])])
    (row,) = perturbations(turns, EFFECTS)
    assert (row["n_calls"], row["fault_rate"]) == (6, round(1 / 6, 6))
    assert row["faults"] == [{"content": ["Error: busy, try ", ["box"], " again"], "share": 1.0}]
    assert (row["latency_ms"][0], row["latency_ms"][10], row["latency_ms"][-1]) == (0, 250, 500)
    assert faults.without(turns, pl.DataFrame({"service": ["main"], "tool": ["show"], "presumed": ["read"]})).height == 5


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    room = write_room(tmp_path / "house")
    (room / "perturbations.jsonl").write_text(canonical({
        "tool": "open_door", "n_calls": 9, "n_timed": 9, "latency_ms": [10.0, 20.0, 40.0], "fault_rate": 0.5,
        "faults": [{"content": ["Error: door ", ["door"], " is busy"], "share": 1.0}]}) + "\n")
    return Environment.load_room(room)


def test_off_by_default_and_seeded_where_on(env: Environment) -> None:
    for seed in range(8):
        env.reset(TASK, seed=seed)
        assert env.call("open_door", {"door": "7"}) == (OPEN, False, "recorded")
        assert "latency_ms" not in env.journal[0]
    seen, took = Counter[str](), set()
    for seed in range(60):
        rows = []
        for _ in range(2):
            env.reset(TASK, seed=seed, perturbations=("latency", "faults"))
            env.call("open_door", {"door": "7"})
            rows.append(env.journal[0])
        assert rows[0] == rows[1], "the same seed, the same episode"
        seen[rows[0]["content"]] += 1
        took.add(rows[0]["latency_ms"])
        assert rows[0].get("fault", False) == (rows[0]["content"] == "Error: door 7 is busy") == rows[0]["is_error"]
        assert bool(env.difference()["documents"]) != rows[0]["is_error"], "a fault never reaches the room"
    assert 15 < seen[OPEN] < 45 and seen.total() == 60 and len(seen) == 2
    assert 10 <= min(took) < 20 < 30 < max(took) <= 40


def test_a_grader_replays_under_the_perturbations_of_the_rollout(env: Environment) -> None:
    faulty = next(seed for seed in range(20) if env.reset(TASK, seed=seed, perturbations=("faults",)) and
                  env.call("open_door", {"door": "7"}).is_error)
    assert env.replay(TASK, env.journal, faulty, ("faults",)).difference["documents"] == {}
    assert env.replay(TASK, env.journal).difference["documents"] == {"door/7": OPEN}
    with pytest.raises(ValueError, match="weather"):
        env.reset(TASK, perturbations=("weather",))


def test_a_message_of_several_tools_passes_as_often_as_somebody_tries_again() -> None:
    late = "Error: the depot does not answer"
    tried = [(tool, f"box-{n}", answer, float(n)) for n, tool in enumerate(("show", "weigh", "move"))
             for answer in (late, "fine")]
    given_up = [("show", f"box-{n}", late, float(n)) for n in range(10, 20)]
    assert _found(*tried, *given_up) == {"0", "2", "4", *(str(place) for place in range(6, 16))}
    assert _found(*[("show", *call[1:]) for call in tried], *given_up) == {"0", "2", "4"}, "one tool may mean it"
