"""Sessions that run out: told from refusals with a reason, left out of what is learnt, and drawn where a rollout asks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder.perturbations import perturbations
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.world import faults
from env_builder.world.calls import LoggedCall
from tests.env_builder.world.calls import call
from tests.rooms import OPEN, TASK, write_room
from warehouse.records import Turn, frame

LIFE = 4
OUT = "Error: the pass has run out, enter again"


def sessions(n: int, hands_on: bool = False, tools: tuple[str, ...] = ("show", "move")) -> list[LoggedCall]:
    """Sessions at a gate that lets in for four calls; `hands_on`: its pass is an argument of every call."""
    choose = random.Random(3)
    made: list[LoggedCall] = []
    for session in range(n):
        steps: list[tuple[str, dict[str, Any], str]] = []
        passes = 0

        def enter(steps: list[tuple[str, dict[str, Any], str]] = steps, session: int = session) -> None:
            steps.append(("enter", {"clerk": "c-1"}, canonical({"pass": f"p-{session}-{len(steps)}"})))

        enter()
        for _ in range(choose.randrange(1, 10)):
            asked = {"box": f"box-{choose.randrange(90)}"}
            tool = choose.choice(tools)
            ticket = {"ticket": steps[-1 - passes][2][9:-2]} if hands_on and steps[-1 - passes][0] == "enter" else {}
            if passes == LIFE:
                steps.append((tool, asked | ticket, OUT))
                enter()
                passes, ticket = 0, {"ticket": steps[-1][2][9:-2]} if hands_on else {}
            steps.append((tool, asked | ticket, canonical({"at": "shelf"})))
            passes += 1
        made += [call(tool, asked, said, f"s{session:02}", place) for place, (tool, asked, said) in enumerate(steps)]
    return made


@pytest.mark.parametrize(("hands_on", "tools"), [(False, ("show", "move")), (True, ("show",))])
def test_what_runs_out_is_found_with_its_life(hands_on: bool, tools: tuple[str, ...]) -> None:
    calls = sessions(40, hands_on, tools)
    (found,) = faults.find_expiries(calls)
    assert (found.renewing, found.tools) == ("enter", tuple(sorted(tools)))
    assert {one.event_id for one in found.failures} == {one.event_id for one in calls if one.content == OUT}
    assert dict(found.hazards) == {life: float(life == LIFE) for life in range(LIFE + 1)}
    assert faults.find_faults(calls, {"enter": "unknown"}) == {one.event_id for one in found.failures}


def test_a_refusal_with_a_reason_is_none() -> None:
    assert not faults.find_expiries(sessions(40, False, ("show",))), "one tool, and nothing handed on"
    never_in = [call(tool, {"box": "b-1"} if tool != "enter" else {}, said, f"s{n}", place) for n in range(9) for place, (
        tool, said) in enumerate([(("show", "move")[n % 2], OUT), ("enter", "{}"), (("show", "move")[n % 2], "{}")])]
    assert not faults.find_expiries(never_in), "nobody was in before"
    about = [call(tool, {"box": "b-1"}, said, f"s{n}", place) for n in range(9) for place, (tool, said) in enumerate([
        (("show", "move")[n % 2], "{}"), (("show", "move")[n % 2], "Error: closed"), ("open", "{}"),
        (("show", "move")[n % 2], "{}")])]
    assert not faults.find_expiries(about), "what renews names the same thing"
    by_itself = [call(tool, {"box": "b-1"}, said, "t", place) for place, (tool, said) in enumerate([
        ("show", "{}"), ("show", OUT), ("show", "{}")])]
    assert not faults.find_expiries([*sessions(40), *by_itself]), "it passes by itself too"


def test_perturbations_hold_it_on_the_row_of_what_renews() -> None:
    turns = frame(Turn, [{
        "turn_id": one.event_id, "session_id": one.session_id, "service": "main", "position": one.position, "happened_at": None,
        "kind": "call", "role": None, "content": one.content, "call_id": None, "tool": one.tool, "arguments": one.key,
        "arguments_raw": None, "is_error": None, "requestor": None, "answered_at": None, "result_id": None, "latency_ms": None,
        "model": None} for one in sessions(40)])
    (row,) = perturbations(turns, {"enter": "unknown", "show": "read", "move": "write"})
    assert (row["tool"], row["faults"]) == ("enter", [])
    assert row["expiry"]["tools"] == ["move", "show"] and row["expiry"]["hazards"][-1] == [LIFE, 1.0]
    assert row["expiry"]["messages"] == [{"content": [OUT], "share": 1.0}]
    effects = pl.DataFrame({"service": ["main"], "tool": ["enter"], "presumed": ["unknown"]})
    assert faults.without(turns, effects).height == turns.height - turns.filter(pl.col("content") == OUT).height


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    room = write_room(tmp_path / "house")
    (room / "perturbations.jsonl").write_text(canonical({
        "tool": "read_sign", "n_calls": 9, "n_timed": 0, "latency_ms": None, "fault_rate": 0.0, "faults": [], "expiry": {
            "tools": ["open_door"], "messages": [{"content": ["No pass for ", ["door"]], "share": 1.0}],
            "hazards": [[0, 0.0], [1, 1.0]], "beyond": 0.5}}) + "\n")
    return Environment.load_room(room)


def test_a_rollout_runs_out_and_is_renewed(env: Environment) -> None:
    for _ in range(2):
        env.reset(TASK, seed=5, perturbations=("expiry",))
        said = [env.call("open_door", {"door": "7"}) for _ in range(3)]
        assert [one.content for one in said] == [OPEN, "No pass for 7", "No pass for 7"]
        assert said[1].is_error and env.journal[1]["expired"] and len(env.difference()["documents"]) == 1
    env.call("read_sign", {"at": "gate"})
    assert "expired" not in env.journal[-1] and env.call("open_door", {"door": "7"}).content != "No pass for 7"
    assert env.replay(TASK, env.journal, 5, ("expiry",)).journal == env.journal
    env.reset(TASK, seed=5)
    assert not any("pass" in env.call("open_door", {"door": "7"}).content for _ in range(3)), "off unless asked for"
