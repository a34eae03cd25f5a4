"""The kit of an online export and the module that plays it: laid out anywhere, graded as the environment itself grades."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from env_builder.exports.adapters import play
from env_builder.exports.kit import Kit, kit_of, lay
from env_builder.runtime import Environment
from tests.rooms import TASK, write_rewards, write_room
from warehouse.errors import EnvironmentBroken


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    room = write_room(tmp_path / "out" / "environments" / "house")
    return kit_of(room, write_rewards(room))


@pytest.fixture(scope="module")
def sample(sample_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's environment, laid out as exporters do."""
    out = tmp_path_factory.mktemp("laid")
    lay(kit_of(sample_environment, sample_environment.parent.parent / "rewards" / sample_environment.name), out)
    return out


def test_a_kit_is_laid_out_verbatim_and_twice_the_same(kit: Kit, tmp_path: Path) -> None:
    paths = lay(kit, tmp_path / "a", documents={"config.json": "{}\n"})
    assert paths == sorted(paths) and tmp_path / "a" / "config.json" in paths
    lay(kit, tmp_path / "elsewhere" / "b", documents={"config.json": "{}\n"})
    for path in paths:
        name = path.relative_to(tmp_path / "a")
        assert path.read_bytes() == (tmp_path / "elsewhere" / "b" / name).read_bytes(), name
        if name.parts[0] == "room":
            assert path.read_bytes() == kit.room.joinpath(*name.parts[1:]).read_bytes()
    assert json.loads((tmp_path / "a" / "kit.json").read_text())["digest"] == kit.digest == play.open(tmp_path / "a").digest


def test_another_reward_or_another_room_is_another_digest(kit: Kit) -> None:
    rewards = kit.grader / "rewards.json"
    rewards.write_text(json.dumps({"rewards_digest": "other"}))
    assert kit_of(kit.room, kit.grader).digest != kit.digest
    rewards.write_text(json.dumps({"rewards_digest": "other", "content_digest": "of another room"}))
    with pytest.raises(EnvironmentBroken, match="of another room"):
        kit_of(kit.room, kit.grader)
    with pytest.raises(EnvironmentBroken):
        kit_of(kit.grader, kit.room)


def test_episodes_play_side_by_side_and_each_has_its_own_reward(kit: Kit, tmp_path: Path) -> None:
    lay(kit, tmp_path)
    room = play.open(tmp_path)
    assert room is play.open(tmp_path / "room" / "..")
    good, idle, odd = (room.begin(TASK, seed) for seed in range(3))
    assert good.messages == [{"role": "user", "content": "Open the door."}]
    assert [tool["function"]["name"] for tool in good.tools] == ["open_door", "read_sign"]
    assert good.say("Which door?") == "The seventh, please."
    assert odd.call("read_sign", '{"at": "gate"}') == ("Mind the gap\n — 雨", False)
    assert odd.call("open_doors", {}) == ("no tool 'open_doors'; there are: open_door, read_sign", True)
    assert odd.call("open_door", '["7"]') == odd.call("open_door", "{") == ("the arguments are no JSON object", True)
    assert good.call("open_door", '{"door": "7"}')[1] is False
    idle.finish()
    good.finish()
    assert (good.ended, idle.ended, odd.ended) == ("terminated", "terminated", None)
    assert good.call("read_sign", {"at": "gate"}) == (play.OVER, True) and good.say("Bye.") is None
    assert (good.reward(), idle.reward(), odd.reward()) == (1.0, 0.0, 0.0)
    assert [finding["passed"] for finding in idle.findings()] == [False, True, True]
    assert odd.n_refused == 3 and [row["kind"] for row in odd.journal()] == ["call"]


def test_who_only_makes_calls_that_are_refused_comes_to_an_end(kit: Kit, tmp_path: Path) -> None:
    lay(kit, tmp_path)
    episode = play.open(tmp_path).begin(TASK)
    for _ in range(6):
        assert episode.ended is None
        episode.call("nothing", {})
    assert episode.ended == "truncated"


def test_the_sample_is_worth_in_a_kit_what_it_is_worth_at_home(sample: Path, sample_environment: Path) -> None:
    room, home = play.open(sample), Environment.load(sample_environment)
    assert Counter(task["split"] for task in room.tasks) == room.figures["n_tasks"]
    for task in room.tasks:
        solution = room.solution(task["task_id"])
        for steps in (solution, solution[:-2], []):
            episode = room.begin(task["task_id"]).play(steps)
            assert episode.messages[-1]["role"] != "system"
            home.reset(task["task_id"])
            for step in steps:
                if "say" in step:
                    home.say(step["say"])
                else:
                    home.call(step["tool"], step["arguments"])
            home.finish()
            assert episode.journal() == list(home.journal)
            assert episode.reward() == home.grade().reward
        assert room.begin(task["task_id"]).play(solution).reward() == 1.0


def test_a_laid_kit_plays_where_nothing_is_installed(sample: Path) -> None:
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import play; room = play.open(sys.argv[1]); "
            "print([room.begin(task['task_id']).play(room.solution(task['task_id'])).reward() for task in room.tasks])")
    words = [sys.executable, "-I", "-S", "-B", "-c", code, str(sample)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {1.0}
