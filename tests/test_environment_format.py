"""docs/environment.md is enough: a reader written from it alone agrees with the runtime on a built environment."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.world import View, World
from tests import independent_reader
from tests.independent_reader import Broken, Room

Steps = list[dict[str, Any]]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def rewards(sample_run: Path, sample_environment: Path) -> Path:
    return sample_run / "rewards" / sample_environment.name


@pytest.fixture(scope="module")
def ways(rewards: Path) -> list[Steps]:
    """Every way on file of doing a task: known solutions, recorded sessions, nothing."""
    return [[], *(row["steps"] for name in ("solutions", "sessions") for row in rows(rewards / f"{name}.jsonl"))]


def is_acting(program: dict[str, Any]) -> bool:
    """Return whether the tool may change the state that the runtime simulates."""
    return program["effect"] in independent_reader.ACTING and "presumed" not in program


def test_it_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(independent_reader.__file__).read_text("utf-8"))
    named = {name for node in ast.walk(tree) for name in (
        [alias.name for alias in node.names] if isinstance(node, ast.Import)
        else [node.module or ""] if isinstance(node, ast.ImportFrom) else [])}
    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names


def test_it_opens_what_was_built_and_nothing_that_was_changed(sample_environment: Path, tmp_path: Path) -> None:
    room, env = Room(sample_environment), Environment.load(sample_environment)
    assert list(room.tasks) == [task.task_id for task in env.tasks] and len(room.tasks) >= 5
    assert [tool["name"] for tool in room.tools] == sorted(room.programs)
    for number, change in enumerate((
            lambda copy: (copy / "tasks.jsonl").write_bytes((copy / "tasks.jsonl").read_bytes()[:-1]),
            lambda copy: (copy / "more.jsonl").write_text("{}\n"),
            lambda copy: (copy / "world.jsonl").unlink(),
            lambda copy: (copy / "manifest.json").unlink())):
        copy = shutil.copytree(sample_environment, tmp_path / str(number))
        Room(copy)
        change(copy)
        with pytest.raises(Broken):
            Room(copy)


def test_it_tells_things_as_the_runtime_does(sample_environment: Path) -> None:
    room = Room(sample_environment)
    world = World(rows(sample_environment / "world.jsonl"), [])
    told = 0
    for task in room.tasks.values():
        view = task["starts_at"], frozenset(task["session_ids"])
        for name in room.facts:
            assert room.thing(*name, *view) == world.document(name, View(*view)), (task["task_id"], name)
            told += room.thing(*name, *view) is not None
    assert told > 100


instants = st.sampled_from([None, *(f"2026-03-0{day}T10:00:00.000000Z" for day in range(1, 6))])
sessions = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.fixed_dictionaries({"from": instants, "to": instants, "session": st.none() | sessions,
                                       "value": st.sampled_from(['{"n":1}', '{"n":2}'])}), max_size=8),
       instants, st.frozensets(sessions, min_size=1))
def test_any_rows_hold_when_the_runtime_says(found: list[dict[str, Any]], instant: str | None, seen: frozenset[str]) -> None:
    held = [{**row, "class": "c", "key": "k", "derivation": "seen", "event": "e"} for row in found]
    row = independent_reader.holding(held, instant, seen, "value")
    assert (row and row["value"]) == World(held, []).document(("c", "k"), View(instant, seen))


def test_it_answers_from_the_record_as_the_runtime_does(sample_environment: Path, ways: list[Steps]) -> None:
    """Every task, done in every way on file: what the runtime has on record this reader has, word for word, and no more."""
    room, env = Room(sample_environment), Environment.load_room(sample_environment)
    n_recorded = n_others = n_ends = n_changed = 0
    for task_id in room.tasks:
        for steps in ways:
            env.reset(task_id)
            episode, whole = room.begin(task_id), True
            for step in steps:
                if "say" in step or env.ended:
                    continue
                known = episode.call(step["tool"], step["arguments"])
                told = env.call(step["tool"], step["arguments"])
                assert (known is not None) == (told.tier == "recorded"), (task_id, step)
                n_recorded += known is not None
                n_others += known is None
                if known is not None:
                    assert (known["content"], known["is_error"]) == told[:2]
                elif not told.is_error:
                    acting = is_acting(room.programs[step["tool"]])
                    episode.did(step["tool"], step["arguments"], told.content)
                    whole = whole and not acting
                elif told.tier == "unknown" and is_acting(room.programs[step["tool"]]):
                    break   # what such an act may have touched is unknown: behaviour.md
            else:
                if whole:
                    assert episode.difference() == env.difference(), (task_id, steps)
                    n_ends += 1
                    n_changed += episode.difference() != {"documents": {}, "write_calls": []}
    assert n_recorded > 300 and n_others > 100 and n_ends > 100 and n_changed > 20


def test_it_grades_as_the_runtime_does(sample_environment: Path, rewards: Path, ways: list[Steps]) -> None:
    env = Environment.load(sample_environment)
    given: dict[float, int] = {0.0: 0, 1.0: 0}
    n_unscored = 0
    for rubric in rows(rewards / "rubrics.jsonl"):
        for steps in ways:
            env.reset(rubric["task_id"])
            for step in steps:
                env.say(step["say"]) if "say" in step else env.call(step["tool"], step["arguments"])
            env.finish()
            reward = env.grade().reward
            if env.unknown_writes:
                n_unscored += 1
                continue   # an act that nobody knows: rewards.md, Unscored
            assert independent_reader.grade(rubric, env.journal, env.difference()) == reward, (rubric["task_id"], steps)
            given[reward] = given.get(reward, 0) + 1
    assert given[1.0] > 10 and given[0.0] > 100 and n_unscored < 10


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
                    | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_canonical_json_is_the_same(value: Any) -> None:
    assert independent_reader.canonical(value) == canonical(value)
