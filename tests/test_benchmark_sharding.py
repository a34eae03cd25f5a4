"""What the benchmark of shards says of environments that are known to be alike, and of one that is not."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from env_builder import bundle
from env_builder.runtime import Environment
from env_builder.runtime.apps.records import RecordsApp
from env_builder.sharding import Sharding
from tests.conftest import ROOT
from tests.env_builder.test_bundle import LEFT, drafted

sys.path.insert(0, str(ROOT))

from benchmarks import sharding


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write an environment whole and in shards, each with its rewards."""
    made = []
    for name, how in (("whole", None), ("split", Sharding(1000))):
        folder = tmp_path_factory.mktemp(name)
        made.append(folder / "environments" / "main")
        bundle.write(drafted()._replace(sharding=how), made[-1], folder / "rewards" / "main", LEFT)
    return made[0], made[1]


def calls(room: Path) -> list[list[sharding.Call]]:
    """Return a session with some calls on record."""
    (app,) = Environment.load(room).apps
    assert isinstance(app, RecordsApp)
    return [[(tool, json.loads(own)) for tool, questions in app.world.questions.items() for own in questions[:4]]]


def test_environments_that_are_alike_answer_alike(rooms: tuple[Path, Path]) -> None:
    figures = sharding.answers(*rooms, calls(rooms[0]))
    assert figures["sharded_equal"] and figures["n_probes"] > 20 and figures["n_shards"] > 16


def test_an_answer_that_a_shard_tells_otherwise_is_seen(rooms: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(rooms[1], tmp_path / "other")
    for shard in (tmp_path / "other" / "shards").glob("*/*.jsonl"):
        shard.write_text(shard.read_text("utf-8").replace("open", "OPEN").replace("locked", "LOCKED"), "utf-8")
    figures = sharding.answers(rooms[0], tmp_path / "other", calls(rooms[0]))
    assert not figures["sharded_equal"] and figures["n_different"] > 0


def test_shards_that_are_others_or_gone_are_not_unchanged() -> None:
    before = {"a": ("1", 10), "b": ("2", 30), "c": ("3", 60), "d": ("4", 0)}
    assert sharding.unchanged(before, {"a": ("1", 10), "b": ("9", 30), "d": ("4", 0), "e": ("5", 1)}) == {
        "shards_unchanged": 0.5, "bytes_unchanged": 0.1}


def test_each_argument_is_left_out_replaced_by_nothing_and_by_what_others_gave() -> None:
    own = [("look", {"at": "x", "n": 1})]
    probes = list(sharding.changed(own, sharding.given_values([own, [("look", {"at": "y", "n": 2})]]), 0))
    assert ("look", {"n": 1}) in probes and ("look", {"at": sharding.NOWHERE, "n": 1}) in probes
    assert ("look", {"at": "y", "n": 1}) in probes and len(probes) == 6
