"""A run with environments in shards: verified, released, pulled, exported and played as others are, and forgotten by shard."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.files import rows_of
from pipelines.erasing.forgetting import forget
from pipelines.releases.releasing import registry_of
from pipelines.settings import Settings
from tests.pipelines.conftest import Traceroom
from tests.pipelines.test_forgetting import somebody


def shards(environment: Path) -> dict[str, bytes]:
    return {path.relative_to(environment).as_posix(): path.read_bytes() for path in environment.glob("shards/*/*.jsonl")}


def played(environment: Environment, steps: list[dict[str, Any]], task_id: str) -> tuple[Any, ...]:
    environment.reset(task_id)
    for step in steps:
        if "tool" in step:
            environment.call(step["tool"], step["arguments"])
        else:
            environment.say(step["say"])
    return environment.journal, environment.difference(), environment.grade()


@pytest.mark.slow
def test_a_run_in_shards_is_as_good_as_a_whole_one(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out, whole, config = tmp_path / "out", tmp_path / "whole", tmp_path / "traceroom.toml"
    config.write_text("[environments]\nshard_mb = 0.005\n", "utf-8")
    run = ("run", logs, "--out", out, "--no-image", "--privacy", "off")

    def done(*command: Any) -> str:
        made = traceroom(*command)
        assert made.returncode == 0, made.stderr
        return made.stdout

    done(*run)
    shutil.copytree(out, whole)
    done(*run, "--config", config)
    (room,) = (out / "environments").iterdir()
    before = shards(room)
    assert len(before) > 8 and not (room / "world.jsonl").exists(), "another length writes the environment again"
    done("verify", room)
    done("release", "--out", out, "--config", config)
    done("pull", "current", "--to", tmp_path / "pulled", "--out", out)
    assert shards(tmp_path / "pulled" / "environments" / room.name) == before
    done("export", "sft", room, "--to", tmp_path / "exported")
    rooms = [Environment.load(folder / "environments" / room.name) for folder in (whole, tmp_path / "pulled")]
    for row in rows_of(out / "rewards" / room.name / "solutions.jsonl"):
        one, other = (played(each, row["steps"], row["task_id"]) for each in rooms)
        assert one == other and one[-1].reward == 1
    who = somebody(out)
    settings = Settings(logs=(), out=str(out), configuration=str(config))
    forget(settings, registry_of(settings), who)
    done(*run, "--config", config)
    after = shards(room)
    assert not any(who.encode() in path.read_bytes() for path in room.rglob("*") if path.is_file())
    assert json.loads((room / "manifest.json").read_text("utf-8"))["shards"]["n"] == len(after)
    remaining = {line for content in after.values() for line in content.splitlines()}
    held_them = {path for path, content in before.items() if not remaining.issuperset(content.splitlines())}
    assert held_them >= {path for path, content in before.items() if who.encode() in content} and held_them < before.keys()
    for path in before.keys() - held_them:   # as it was, or one with its neighbours where little is there any more
        wider = [other for other in after if path.removesuffix(".jsonl").startswith(other.removesuffix(".jsonl"))]
        assert wider and (path not in wider or after[path] == before[path])
