"""The log's agents end as well with the scripted user as in the log, where it tells them what they need to know."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.users_ends import SEEDS, ends
from env_builder.runtime.canonical import canonical
from tests.rooms import write_rewards, write_room


def room_with_user(out: Path, *turns: str) -> Path:
    """Write a room and its rewards: its good agent opens door 7 without a question, its bad one reads the sign at the gate."""
    room = write_room(out / "environments" / "house")
    rewards = write_rewards(room)
    task = json.loads((room / "tasks.jsonl").read_text())
    (room / "tasks.jsonl").write_text(canonical({**task, "user": {"turns": list(turns)}}) + "\n")
    solution = json.loads((rewards / "solutions.jsonl").read_text())
    steps = [{"tool": "read_sign", "arguments": {"at": "gate"}}, *solution["steps"]]
    (rewards / "solutions.jsonl").write_text(canonical({**solution, "steps": steps}) + "\n")
    return out


def test_agents_end_as_in_the_log(tmp_path: Path) -> None:
    figures = ends(room_with_user(tmp_path, "Look at the gate.", "Thanks."), 9)
    assert (figures["ends_well_log"], figures["ends_well"], figures["ends_well_difference"]) == (0.5, 0.5, 0.0)
    assert figures["values_heard"] == 1.0 and figures["n_values"] == 2 * len(SEEDS) and figures["n_ended"] == 2


def test_a_value_that_comes_too_late_is_not_known(tmp_path: Path) -> None:
    figures = ends(room_with_user(tmp_path, "Hm.", "Well.", "Look at the gate."), 9)
    assert figures["values_heard"] == 0.0 and figures["ends_well"] == 0.5, "reading the sign is no condition of the end"
