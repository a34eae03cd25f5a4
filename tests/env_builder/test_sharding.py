"""An environment in shards answers as the whole one; what is added or taken away changes the shards that hold it."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder import bundle
from env_builder.layers import layers_of
from env_builder.runtime import Environment, files, shards
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.canonical import canonical, digest
from env_builder.sharding import Sharding, merkle_root
from tests.env_builder.test_bundle import LEFT, drafted
from tests.independent_reader import Room

INSTANTS = st.none() | st.sampled_from(["2031-05-01T10:00:00.000000Z", "2031-05-01T11:30:00.000000Z",
                                        "2031-06-01T10:00:00.000000Z", "2032-01-01T00:00:00.000000Z"])
ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "", "ä\u2028\r\n", '"']), INSTANTS,
                          st.sampled_from([None, "s1", "s2"]), st.text(max_size=40)), max_size=30)
PLAIN = {"is_error": False, "after": []}
BEGAN = {"s1": "2031-05-01T10:30:00.000000Z"}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write the same environment whole, and in shards of a kilobyte."""
    folder = tmp_path_factory.mktemp("environments")
    for name, sharding in (("whole", None), ("split", Sharding(1000))):
        bundle.write_room(drafted()._replace(sharding=sharding), folder / name, LEFT)
    return folder / "whole", folder / "split"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("*.jsonl")) for row in map(json.loads, path.read_text("utf-8").split("\n")[:-1])]


def opened(layer: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each)) is not None}


def split(folder: Path, rows: Iterable[dict[str, Any]], longest: int) -> dict[str, str]:
    """sha256 of each shard that rows of answers are split into."""
    folder.mkdir(parents=True)
    bundle.write_lines(folder / "world.jsonl", [])
    bundle.write_lines(folder / "recorded.jsonl", sorted(rows, key=lambda row: (row["arguments"], row["from"])))
    Sharding(longest, BEGAN).split(folder)
    return {path.name: digest(path.read_bytes()) for path in (folder / "shards" / "recorded").glob("*")}


def answers(*days: str, name: str = "") -> list[dict[str, Any]]:
    return [{**PLAIN, "tool": "look", "arguments": canonical({"at": name or str(number)}), "session": None, "content": "…",
             "from": f"{day}T0{number % 10}:00:00.000000Z"} for day in days for number in range(20)]


@settings(max_examples=20)
@given(ROWS, st.integers(1, 400))
def test_whatever_is_split_comes_back_in_order(own: list[tuple[Any, ...]], longest: int) -> None:
    rows = [{**PLAIN, "tool": tool, "arguments": canonical({"at": key}), "from": since, "session": session, "content": content}
            for tool, key, since, session, content in sorted(own, key=lambda row: row[:2])]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "recorded.jsonl")
        bundle.write_lines(path, rows)
        bundle.write_lines(Path(scratch, "world.jsonl"), [])
        before = path.read_bytes()
        Sharding(longest, BEGAN).split(Path(scratch))
        assert path.exists() == (len(before) <= longest)
        assert list(files.rows_of(path)) == rows
        if not path.exists():
            split_up = shards.Shards(path, files.NAMED_BY["recorded.jsonl"])
            assert b"".join(map(split_up.text, split_up.places)) == before
            assert sorted(map(canonical, rows_of(path.parent / "shards" / "recorded"))) == sorted(map(canonical, rows))
            read = files.named_rows(path)
            assert isinstance(read, files.Later)
            assert [row for own_rows in read.values() for row in own_rows] == rows


def test_an_environment_in_shards_knows_what_the_whole_one_knows(rooms: tuple[Path, Path]) -> None:
    whole, parts = map(Environment.load_room, rooms)
    (whole_app,), (split_app,) = whole.apps, parts.apps
    assert isinstance(whole_app, RecordsApp) and isinstance(split_app, RecordsApp)
    assert list(split_app.world.facts.items()) == list(whole_app.world.facts.items())
    assert list(split_app.world.answers.items()) == list(whole_app.world.answers.items())
    assert split_app.world.questions == whole_app.world.questions
    for task in whole.tasks:
        for environment in (whole, parts):
            environment.reset(task.task_id)
            for tool, questions in whole_app.world.questions.items():
                for question in questions[:3]:
                    environment.call(tool, json.loads(question))
                    environment.call(tool, json.loads(question) | {"code": "nowhere"})
        assert parts.journal == whole.journal and parts.difference() == whole.difference()


def test_which_names_there_are_is_known_without_the_rows(rooms: tuple[Path, Path]) -> None:
    (whole_app,), (split_app,) = (Environment.load_room(room).apps for room in rooms)
    assert isinstance(whole_app, RecordsApp) and isinstance(split_app, RecordsApp)
    calls = [(tool, canonical({name: value})) for tool, questions in whole_app.world.questions.items()
             for question in questions for name in json.loads(question) for value in ("L-1", "L-999", "nobody", "12")]
    for call in calls:
        assert split_app.world.strangers(*call) == whole_app.world.strangers(*call)
        assert split_app.world.doubtful(*call) == whole_app.world.doubtful(*call)
    assert calls and not any(dict.values(split_app.world.facts))


def test_the_manifest_states_the_root_over_the_shards(rooms: tuple[Path, Path]) -> None:
    whole, parts = (json.loads((room / "manifest.json").read_text("utf-8")) for room in rooms)
    assert "shards" not in whole and whole["format"] != parts["format"]
    own = {path: own for path, own in parts["files"].items() if path.startswith("shards/") and path.count("/") == 2}
    assert parts["shards"] == {"n": len(own), "root": merkle_root(own[path] for path in sorted(own))} and len(own) > 16
    one, two, three = "aa" * 32, "bb" * 32, "cc" * 32
    assert len({merkle_root(each) for each in ([one], [two], [one, two], [two, one], [one, two, three], [one, two, two])}) == 6


def test_each_of_several_worlds_has_shards_of_its_own(tmp_path: Path) -> None:
    draft = drafted()
    worlds = [bundle.WorldRows(draft.rows, sorted(row["session_ids"][0] for row in draft.tasks.to_dicts()))]
    for name, how in (("whole", None), ("split", Sharding(1000))):
        bundle.write_room(draft._replace(worlds=worlds, sharding=how), tmp_path / name, LEFT)
    assert (tmp_path / "split" / "apps" / "worlds" / "1" / "shards" / "names.json").is_file()
    whole, parts = (Environment.load_room(tmp_path / name) for name in ("whole", "split"))
    for task in whole.tasks[:5]:
        for environment in (whole, parts):
            environment.reset(task.task_id)
            for row in draft.rows.recorded[::5]:
                environment.call(row["tool"], json.loads(row["arguments"]))
        assert parts.journal == whole.journal


def test_files_that_are_short_enough_stay_whole(rooms: tuple[Path, Path], tmp_path: Path) -> None:
    bundle.write_room(drafted()._replace(sharding=Sharding(10_000_000)), tmp_path / "room", LEFT)
    assert (tmp_path / "room" / "manifest.json").read_bytes() == (rooms[0] / "manifest.json").read_bytes()
    assert (rooms[1] / "Dockerfile").read_text("utf-8").count("COPY shards /room/shards\n") == 1


def test_an_image_of_shards_holds_the_world_of_the_whole(rooms: tuple[Path, Path]) -> None:
    whole, parts = (opened(layers_of(room).world) for room in rooms)
    assert parts.items() > whole.items()
    assert parts.keys() - whole.keys() == {f"room/shards/{name}" for name in (shards.NAMES, shards.VALUES)}
    assert not any("shards" in path for path in opened(layers_of(rooms[1]).behaviour))


def test_another_reader_reads_shards(rooms: tuple[Path, Path]) -> None:
    whole, parts = map(Room, rooms)
    assert parts.facts == whole.facts and parts.answers == whole.answers and len(parts.facts) > 10


def test_what_a_night_adds_leaves_earlier_shards_as_they_were(tmp_path: Path) -> None:
    base = answers("2031-05-01", "2031-05-02", "2031-06-03")
    before = split(tmp_path / "before", base, 2500)
    after = split(tmp_path / "after", [*base, *answers("2031-06-04")], 2500)
    assert len(before) > 2 and before.items() < after.items()


def test_without_a_person_only_the_shards_that_held_them_are_others(tmp_path: Path) -> None:
    others = answers("2031-05-01", "2031-05-02", "2031-06-03")
    theirs = answers("2031-05-02", name="emma")[:2]
    before, after = split(tmp_path / "before", [*others, *theirs], 2500), split(tmp_path / "after", others, 2500)
    held_them = {path.name for path in (tmp_path / "before/shards/recorded").glob("*") if "emma" in path.read_text("utf-8")}
    assert held_them and held_them < before.keys()
    assert before.keys() == after.keys() and held_them == {name for name in before if before[name] != after[name]}


def test_rows_that_are_read_are_dropped_again(rooms: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "KEPT", 3)
    (app,), (whole_app,) = Environment.load_room(rooms[1]).apps, Environment.load_room(rooms[0]).apps
    assert isinstance(app, RecordsApp) and isinstance(whole_app, RecordsApp)
    for _ in range(2):
        assert list(app.world.facts.items()) == list(whole_app.world.facts.items())
        assert sum(value is not None for value in dict.values(app.world.facts)) == 3


def test_more_shards_than_are_held_open_are_read(rooms: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "OPEN", 1)
    assert list(files.rows_of(rooms[1] / "world.jsonl")) == list(files.rows_of(rooms[0] / "world.jsonl"))


def test_a_shard_that_is_gone_is_no_answer(rooms: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(rooms[1], tmp_path / "room")
    next((tmp_path / "room" / "shards" / "world").glob("*")).unlink()
    with pytest.raises(OSError):
        Environment.load_room(tmp_path / "room")
