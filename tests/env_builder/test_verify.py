"""Verify: a sound task is published, every kind of unsound one is unverified and says why."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime.canonical import canonical, digest
from env_builder.verify import verify
from warehouse.errors import EnvironmentBroken, Missing

LOOK = {"tool": "look", "arguments": {"door": 7}}
OPEN = {"tool": "open", "arguments": {"door": 7}}
SAY = {"say": "Door 7 is open now; the code is 4711."}
END = {"documents": {}, "write_calls": [["open", '{"door":7}']]}
GATES = [("state", {"accepted": [END]}), ("untouched", {"accepted": [END]})]


def gates(*kinds: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "check_id": digest(canonical(pair))[:8],
            "kind": pair[0],
            "role": "gate",
            "weight": 1.0,
            "description": "",
            "parameters": pair[1],
        }
        for pair in kinds
    ]


def recorded(tool: str, content: str, after: list[Any]) -> dict[str, Any]:
    return {
        "tool": tool,
        "arguments": '{"door":7}',
        "content": content,
        "is_error": False,
        "from": None,
        "to": None,
        "session": None,
        "after": after,
        "effects": [],
        "event": "e",
    }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8")


def built(
    out: Path, rubrics: dict[str, list[dict[str, Any]]], solutions: dict[str, list[dict[str, Any]]], steps: int = 9
) -> tuple[Path, Path]:
    """Return a room with one door and the tools that look at it and open it."""
    room, rewards = out / "environments" / "main", out / "rewards" / "main"
    programs = [
        {"tool": tool, "effect": effect, "rules": [{"rule": "recorded"}], "support": {}, "relation": {}}
        for tool, effect in (("look", "read"), ("open", "write"), ("burn", "write"))
    ]
    tasks = [
        {
            "task_id": task_id,
            "session_ids": ["s"],
            "split": "train",
            "family": "f",
            "slots": {},
            "goal": "Open door 7",
            "starts_at": None,
            "segment_of": None,
            "derived_from": None,
            "limits": {"steps": steps, "seconds": 60.0},
            "opening": [{"role": "user", "content": "Please open door 7"}],
            "user": {"turns": ["Thanks"]},
        }
        for task_id in sorted(solutions)
    ]
    write_lines(room / "manifest.json", [{
        "format": "traceroom-environment/2", "name": "main",
        "apps": [{"name": "records", "kind": "records", "path": "."}]}])
    write_lines(room / "tasks.jsonl", tasks)
    write_lines(
        room / "tools.jsonl",
        [{"name": program["tool"], "description": "", "inputSchema": {"type": "object"}} for program in programs],
    )
    write_lines(room / "behaviour.jsonl", programs)
    write_lines(room / "world.jsonl", [])
    write_lines(
        room / "recorded.jsonl",
        [
            recorded("look", "closed", []),
            recorded("open", "done", []),
            recorded("look", "open", [["open", '{"door":7}']]),
        ],
    )
    write_lines(
        rewards / "rubrics.jsonl",
        [{"rubric_id": name, "task_id": name, "checks": checks} for name, checks in sorted(rubrics.items())],
    )
    write_lines(
        rewards / "solutions.jsonl", [{"task_id": name, "steps": steps} for name, steps in sorted(solutions.items())]
    )
    return room, rewards


def decision_of(
    out: Path, checks: list[dict[str, Any]], solution: list[dict[str, Any]], steps: int = 9
) -> dict[str, Any]:
    found = verify(*built(out, {"t": checks}, {"t": solution}, steps))
    assert found.decisions.height == 1 and found.task_ids == (["t"] if found.decisions["kept"][0] else [])
    return found.decisions.row(0, named=True)


def test_a_sound_task_holds_against_every_player(tmp_path: Path) -> None:
    found = verify(*built(tmp_path, {"t": gates(*GATES)}, {"t": [LOOK, OPEN, SAY]}))
    assert found.task_ids == ["t"] and found.decisions["reason"].to_list() == ["verified"]
    played = dict(found.plays.select("player", "reward").iter_rows())
    assert played.pop("solution") == 1.0
    assert {"silent", "chatty", "judge_injection", "reader", "doubled"} <= set(played)
    assert not any(played.values()), "nobody else gets anything"


def test_a_solution_that_does_not_reach_the_end_fails(tmp_path: Path) -> None:
    got = decision_of(tmp_path, gates(*GATES), [LOOK, SAY])
    assert got["reason"] == "solution_fails" and "state" in got["detail"]


def test_a_solution_that_meets_the_unknown_names_the_call(tmp_path: Path) -> None:
    got = decision_of(tmp_path, gates(*GATES), [LOOK, OPEN, {"tool": "burn", "arguments": {"door": 7}}])
    assert got["reason"] == "solution_fails" and "burn" in got["detail"] and "unscored" in got["detail"]


def test_a_solution_longer_than_its_limits_fails(tmp_path: Path) -> None:
    got = decision_of(tmp_path, gates(*GATES, ("spoke", {})), [OPEN, SAY], steps=1)
    assert got["reason"] == "solution_fails" and "spoke" in got["detail"]


def test_a_rubric_that_asks_for_nothing_is_unverified(tmp_path: Path) -> None:
    got = decision_of(tmp_path, gates(("must_not_write", {})), [LOOK, SAY])
    assert got["reason"] == "nothing_passes" and not got["kept"]


@pytest.mark.parametrize(
    ("kinds", "player"),
    [
        ([("spoke", {"at_least": 1})], "chatty"),
        ([("said", {"facts": [{"type": "number", "value": "7"}]})], "chatty"),
        ([("call", {"calls": [LOOK], "at_least": 1})], "reader"),
    ],
)
def test_a_rubric_that_a_cheap_attacker_passes_is_unverified(tmp_path: Path, kinds: list[Any], player: str) -> None:
    got = decision_of(tmp_path, gates(*kinds), [LOOK, {"say": "Door 7 is closed: 7"}])
    assert got["reason"] == "attacker_passes" and player in got["detail"]


def test_a_write_that_the_rubric_does_not_see_is_unverified(tmp_path: Path) -> None:
    facts = {"facts": [{"type": "number", "value": "4711"}]}
    got = decision_of(tmp_path, gates(("said", facts), ("call", {"calls": [LOOK], "at_least": 1})), [LOOK, OPEN, SAY])
    assert got["reason"] == "attacker_passes" and "liar" in got["detail"]


def test_an_idle_task_with_explicit_gates_holds(tmp_path: Path) -> None:
    told = {"facts": [{"type": "words", "value": "may not"}]}
    idle = gates(("must_not_write", {}), ("said", told), ("call", {"calls": [LOOK], "at_least": 1}))
    assert decision_of(tmp_path, idle, [LOOK, {"say": "I may not open it."}])["reason"] == "verified"


def test_a_task_without_rubric_is_a_decision_and_a_chosen_task_is_the_only_one_asked(tmp_path: Path) -> None:
    room, rewards = built(tmp_path, {"a": gates(*GATES)}, {"a": [OPEN], "b": [OPEN]})
    assert verify(room, rewards).decisions.select("subject", "reason").rows() == [("a", "verified"), ("b", "no_rubric")]
    assert verify(room, rewards, ["a"]).decisions["subject"].to_list() == ["a"]
    with pytest.raises(Missing, match="'c'"):
        verify(room, rewards, ["c"])


def test_a_broken_directory_is_one_sentence(tmp_path: Path) -> None:
    room, rewards = built(tmp_path, {"t": gates(*GATES)}, {"t": [OPEN]})
    (rewards / "rubrics.jsonl").write_text("{", "utf-8")
    with pytest.raises(EnvironmentBroken, match="main"):
        verify(room, rewards)
    with pytest.raises(EnvironmentBroken):
        verify(tmp_path / "nowhere", rewards)


def test_shared_among_processes_it_comes_to_the_same(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e"]
    solutions = {name: [LOOK, OPEN, SAY] if name != "d" else [LOOK] for name in names}
    room, rewards = built(tmp_path, {name: gates(*GATES) for name in names if name != "b"}, solutions)
    alone = verify(room, rewards)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        shared = verify(room, rewards, executor=executor, n_beside=2)
    assert shared.task_ids == alone.task_ids == ["a", "c", "e"] and shared.report == alone.report
    assert shared.plays.equals(alone.plays) and shared.decisions.equals(alone.decisions)


def test_a_thousand_tasks_take_seconds(tmp_path: Path) -> None:
    names = [f"t{n:04}" for n in range(1000)]
    room, rewards = built(tmp_path, {name: gates(*GATES) for name in names}, {name: [LOOK, OPEN, SAY] for name in names})
    began = time.process_time()
    assert len(verify(room, rewards).task_ids) == 1000
    assert time.process_time() - began < 20
