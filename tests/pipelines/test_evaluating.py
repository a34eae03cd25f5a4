"""`traceroom evaluate`: a policy's worth from another one's rollouts, from the room, and from both."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from pipelines.commands.rolling import evaluate, rollout
from pipelines.rollouts import past, policies
from pipelines.rollouts.orders import Job
from tests.pipelines.conftest import Traceroom
from tests.rooms import TASK, write_rewards, write_room
from warehouse.errors import GateFailed, InputError, PolicyFailed

DRAWN = """
import math, random
def policy(seen):
    if seen.n_turns:
        return None
    opens = random.Random(f"{chance} {{seen.attempt}}").random() < {chance}
    return {{"tool": "open_door", "arguments": {{"door": "7"}}}} if opens else {{"say": "Which door?"}}
"""
TELLS = """
def logprob(seen, moves):
    if seen.n_turns:
        return 0.0 if not moves else -math.inf
    return math.log({chance} if "tool" in moves[0] else 1 - {chance})
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "out" / "environments" / "house")
    write_rewards(made)
    return made


def script(folder: Path, chance: float, text: str = DRAWN + TELLS) -> str:
    path = folder / f"opens_{chance}_{len(text)}.py"
    path.write_text(text.format(chance=chance))
    return f"script:{path}"


def told(capsys: pytest.CaptureFixture[str], *arguments: Any, **named: Any) -> dict[str, Any]:
    capsys.readouterr()
    evaluate(*arguments, **named, json=True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found | {one["method"]: one for one in found["estimates"]}


def test_a_policy_is_worth_what_its_episodes_come_to(
    room: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    rollout(room, script(tmp_path, 0.5), group=80, out=log)
    rows = list(past.trajectories([log]))
    n_opened = sum(row["extra"]["traceroom"]["reward"] == 1.0 for row in rows)
    assert len(rows) == 80 and 25 < n_opened < 55
    found = told(capsys, room, script(tmp_path, 0.8), log=[log], group=40)
    weight = {True: 0.8 / 0.5, False: 0.2 / 0.5}
    wis = n_opened * weight[True] / (n_opened * weight[True] + (80 - n_opened) * weight[False])
    assert found["wis"]["value"] == pytest.approx(wis)
    assert found["wis"]["n"] == 80 and found["wis"]["ess"] > 40
    assert found["dr"]["value"] == pytest.approx(found["direct"]["value"])  # the room gives the log's own rewards
    assert found["direct"]["value"] == pytest.approx(0.8, abs=0.2)
    assert found["log"] == {"n": 80, "mean_reward": pytest.approx(n_opened / 80), "left": 0}


def test_turns_are_recorded_with_what_was_seen_before(room: Path, tmp_path: Path) -> None:
    rollout(room, script(tmp_path, 0.5), group=12, out=tmp_path / "log")
    tools = Environment.load(room).tools
    for row in past.trajectories([tmp_path / "log" / "trajectories.jsonl"]):
        turns = list(past.taken(row, tools))
        assert [round(turn.logprob or 0.0, 9) for turn in turns] == [round(math.log(0.5), 9), 0.0]
        assert turns[0].observation.messages == [{"role": "user", "content": "Open the door."}]
        assert turns[1].turn == policies.Turn() and turns[1].observation.n_turns == 1
        said, called = turns[0].turn.text, turns[0].turn.calls
        assert turns[1].observation.messages[2]["role"] == ("user" if said else "tool") and bool(said) != bool(called)


def test_says_why_it_cannot_tell(room: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], traceroom: Traceroom) -> None:
    silent, log = tmp_path / "silent", tmp_path / "log"
    rollout(room, script(tmp_path, 0.5, DRAWN), group=20, out=silent)
    rollout(room, script(tmp_path, 0.5), group=20, out=log)
    found = told(capsys, room, script(tmp_path, 0.8), log=[silent])
    assert "log-probabilities of its turns" in found["wis"]["refused"] == found["dr"]["refused"]
    assert found["direct"]["refused"] is None
    found = told(capsys, room, "oracle", log=[log])
    assert "does not say how likely" in found["wis"]["refused"] and found["direct"]["value"] == 1.0
    assert "no log" in told(capsys, room, "oracle")["wis"]["refused"]
    with pytest.raises(InputError, match="no episode of another policy"):
        evaluate(room, script(tmp_path, 0.5), log=[log])
    with pytest.raises(InputError, match="no log of episodes"):
        evaluate(room, "oracle", log=[tmp_path])
    (room.parent.parent / "rewards" / room.name / "rubrics.jsonl").write_text("")
    with pytest.raises(GateFailed, match="no method can estimate"):
        evaluate(room, "oracle", out=tmp_path / "unscored")
    shown = traceroom("evaluate", room, "--policy", script(tmp_path, 0.8), "--log", log, "--out", tmp_path / "own")
    assert shown.returncode == 0 and "knows too little" in shown.stderr and "The log's own episodes" in shown.stderr


def test_a_script_that_says_no_probability_is_told(room: Path, tmp_path: Path) -> None:
    text = DRAWN + "def logprob(seen, moves):\n    return {chance}\n"
    acts = policies.named(Job(str(room), None, script(tmp_path, 0.5, text)))
    seen = policies.Observation(TASK, 0, 0, [], [], 0)
    with pytest.raises(PolicyFailed, match="no logarithm of a probability"):
        acts.act(seen)
