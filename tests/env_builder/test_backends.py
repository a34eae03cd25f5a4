"""Every kind of apps keeps one contract, alone and together with the others: the kinds here, and a third party's."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from env_builder import Environment, backends, verify
from env_builder.backends import AppSource, FileVersion
from env_builder.exports import registered as exporters
from env_builder.exports.exporter import RoomExporter
from env_builder.exports.kit import kit_of
from env_builder.layers import layers_of
from env_builder.process import EnvironmentProcess, start_process
from pipelines.releases.registry import Registry, source
from tests.apps import CASES, LATER, SECRET, START, THIRD_PARTY, Steps, install, rubric, task
from warehouse.errors import InputError, Missing

TASK = "t" * 64
_WITHOUT_ARGUMENTS = ("find_files", "chat_channels", "lint", "test", "list_prs", "list_issues", "list_spreadsheets",
                      "conversations_unreads")
"""Tools that need none."""
KINDS = [*CASES, "composite"]
GARBAGE: list[Any] = [
    {}, {"": ""}, {"path": 7, "key": None}, {"path": ["x"]}, {"path": "../../etc/passwd"}, {"source": "\0"}, "x"]


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Install a third party's package for the tests of this module."""
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


class Built:
    """An environment of one kind, or of all, that was written and can be loaded."""

    def __init__(self, out: Path, kind: str) -> None:
        cases = list(CASES.values()) if kind == "composite" else [CASES[kind]]
        self.directory, self.rewards = out / "environments" / kind, out / "rewards" / kind
        self.change: Steps = tuple(step for case in cases for step in case.change)
        self.undo: Steps = tuple(step for case in cases for step in case.undo)
        self.reads: Steps = tuple(step for case in cases for step in case.reads)
        self.entities = {f"{case.source.name}:{case.entity}" if len(cases) > 1 else case.entity for case in cases}
        sources = [case.source for case in cases]
        backends.assemble(kind, sources, [task()], [], self.directory, self.rewards)
        played = self.load()
        played.reset(TASK)
        played_difference = play(played, self.change) and played.difference()
        steps = [{"tool": tool, "arguments": arguments} for tool, arguments in self.change]
        self.digests = backends.assemble(
            kind, sources, [task()], [rubric(played_difference)], self.directory, self.rewards,
            [{"task_id": TASK, "steps": steps}])

    def load(self) -> Environment:
        return Environment.load(self.directory)


def play(env: Environment, steps: Steps) -> list[Any]:
    return [env.call(tool, arguments) for tool, arguments in steps]


@pytest.fixture(scope="module", params=KINDS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("out"), request.param)


@pytest.fixture
def env(built: Built) -> Environment:
    environment = built.load()
    environment.reset(TASK)
    return environment


def test_a_change_is_done_and_undone(env: Environment, built: Built) -> None:
    assert env.difference() == {"documents": {}, "write_calls": []}
    assert not any(result.is_error for result in play(env, built.change))
    assert built.entities <= env.difference()["documents"].keys()
    for name, after in env.difference()["documents"].items():
        assert env.read(name)[1] == after != env.read(name)[0]
    assert not any(result.is_error for result in play(env, built.undo))
    assert env.difference() == {"documents": {}, "write_calls": []}


def test_a_reset_is_exact(env: Environment, built: Built) -> None:
    def played(seed: int) -> list[Any]:
        env.reset(TASK, seed=seed)
        return [env.state_hash(), play(env, built.reads + built.change + built.reads), env.difference(), env.journal,
                env.state_hash()]

    assert played(3) == played(3)


def test_forks_are_isolated(env: Environment, built: Built) -> None:
    before = env.state_hash()
    twin = env.fork()
    play(twin, built.change)
    assert env.state_hash() == before != twin.state_hash() and env.difference()["documents"] == {}
    play(env, built.change)
    assert env.difference() == twin.difference()
    play(env, built.undo)
    assert twin.difference()["documents"]


def test_snapshot_and_restore_are_inverse(env: Environment, built: Built) -> None:
    steps = built.change + built.reads + built.undo
    hashes = [env.state_hash()]
    for step in steps:
        play(env, (step,))
        hashes.append(env.state_hash())
    for n_steps in (*range(len(steps), -1, -1),):
        env.rollback(n_steps)
        assert env.state_hash() == hashes[n_steps]
    assert [result.content for result in play(env, steps)] == [result.content for result in play(built_again(env), steps)]


def built_again(env: Environment) -> Environment:
    twin = env.fork()
    twin.reset(TASK)
    return twin


def test_a_call_after_the_end_changes_nothing(env: Environment, built: Built) -> None:
    env.finish()
    before = env.state_hash(), env.journal
    assert all(result.is_error for result in play(env, built.change))
    assert (env.state_hash(), env.journal) == before


def test_garbage_gives_an_error_and_no_change(env: Environment) -> None:
    for tool in [*(tool["name"] for tool in env.tools if tool["name"] != "list_files"), "no_such_tool", ""]:
        for arguments in GARBAGE:
            if arguments != {} or tool not in _WITHOUT_ARGUMENTS:
                assert env.call(tool, arguments).is_error, (tool, arguments)
            assert env.difference() == {"documents": {}, "write_calls": []}


def test_a_replay_reaches_the_same_difference_and_grade(env: Environment, built: Built) -> None:
    play(env, built.reads + built.change)
    env.finish()
    assert env.replay(TASK, env.journal).difference == env.difference()
    assert env.grade().reward == env.grade_journal(TASK, env.journal).reward == (None if env.unknown_writes else 1.0)
    env.reset(TASK)
    play(env, built.change)
    assert env.grade().reward == 1.0
    play(env, built.undo)
    assert env.grade().reward == 0.0


def test_memory_changes_nothing(env: Environment, built: Built) -> None:
    twin = built.load()
    twin.remember()
    for _ in range(3):
        env.reset(TASK)
        twin.reset(TASK)
        assert play(env, built.change + built.reads) == play(twin, built.change + built.reads)
        assert env.state_hash() == twin.state_hash()


def test_nothing_from_after_the_instant_is_reachable(env: Environment, built: Built) -> None:
    play(env, built.reads + built.change + built.reads)
    shown = json.dumps([row for row in env.journal if "content" in row and row["tool"] != "find_files"])
    assert SECRET not in shown.replace(json.dumps({"text": SECRET}), "")


def test_two_processes_with_different_hash_seeds_agree(built: Built, site: Path) -> None:
    code = """
import json, sys
from env_builder import Environment
env = Environment.load(sys.argv[1])
env.reset(env.tasks[0].task_id, seed=1)
answers = [env.call(tool, arguments) for tool, arguments in json.loads(sys.argv[2])]
print(json.dumps([answers, env.difference(), env.state_hash(), env.tools, env.grade().reward]))
"""
    steps = json.dumps(built.reads + built.change)
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, built.directory, steps], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=THIRD_PARTY.parent.parent).stdout for seed in ("0", "1", "77")}
    assert len(printed) == 1


def test_the_environment_is_served_from_its_own_runtime(env: Environment, built: Built) -> None:
    """Isolated from all packages: what a third party's kind needs was shipped."""
    process: EnvironmentProcess = start_process(built.directory)
    try:
        process.reset(TASK)
        answers = [process.call(tool, arguments).content for tool, arguments in built.reads + built.change]
        assert answers == [result.content for result in play(env, built.reads + built.change)]
        assert env.grade_journal(TASK, process.journal()).reward == (None if env.unknown_writes else 1.0)
    finally:
        process.close()


def test_the_environment_is_audited_and_exported(built: Built, tmp_path: Path) -> None:
    audited = verify.verify(built.directory, built.rewards)
    assert audited.task_ids == [TASK], audited.decisions.to_dicts()
    kit = kit_of(built.directory, built.rewards)
    for name, exporter in exporters().items():
        if isinstance(exporter, RoomExporter):
            (tmp_path / name).mkdir()
            if name == ("harbor" if kit.workspace else "swebench"):   # cannot isolate commands; needs a repository
                with pytest.raises(InputError):
                    exporter.write(tmp_path / name, kit)
            else:
                exporter.write(tmp_path / name, kit)
                assert any((tmp_path / name).rglob("*")), name


def test_the_environment_is_released(built: Built, tmp_path: Path) -> None:
    out = built.directory.parent.parent
    registry = Registry(str(tmp_path / "registry"))
    files = {path.relative_to(out).as_posix(): source(path) for side in (built.directory, built.rewards)
             for path in side.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    release = registry.put({"predecessor": None, "figures": {}}, files)
    assert not list(registry.verify([release]))
    registry.fetch(release, tmp_path / "fetched")
    pulled = Environment.load(tmp_path / "fetched" / built.directory.relative_to(out))
    pulled.reset(TASK)
    play(pulled, built.change)
    assert pulled.grade().reward == 1.0


def test_an_image_holds_every_app(env: Environment, built: Built, tmp_path: Path) -> None:
    for layer in layers_of(built.directory):
        with tarfile.open(fileobj=io.BytesIO(layer)) as files:
            files.extractall(tmp_path, filter="tar")
    inside = Environment.load_room(tmp_path / "room")
    inside.reset(env.reset(TASK) and env.tasks[0])
    assert play(inside, built.reads + built.change) == play(env, built.reads + built.change)


def test_perturbations_apply_to_every_kind(built: Built, tmp_path: Path) -> None:
    tool, arguments = built.change[0]
    row = {"tool": tool, "n_calls": 9, "n_timed": 9, "latency_ms": [5.0] * 21, "fault_rate": 1.0,
           "faults": [{"content": ["busy"], "share": 1.0}]}
    folder = tmp_path / "perturbed"
    shutil.copytree(built.directory, folder)
    (folder / "perturbations.jsonl").write_text(json.dumps(row) + "\n")
    perturbed = Environment.load_room(folder)
    perturbed.reset(TASK, seed=1, perturbations=("faults", "latency"))
    assert perturbed.call(tool, arguments) == ("busy", True, "induced") and perturbed.journal[0]["latency_ms"] == 5.0
    assert perturbed.difference() == {"documents": {}, "write_calls": []}


def test_what_a_kind_needs_is_named_in_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = backends.Requirement("pond", "1.2", "0" * 64)
    monkeypatch.setattr(backends, "FILES", backends.FILES._replace(requires=(needs,)))
    backends.assemble("x", [CASES["files"].source], [task()], [], tmp_path / "environments" / "x", tmp_path / "rewards" / "x")
    manifest = json.loads((tmp_path / "environments" / "x" / "manifest.json").read_text("utf-8"))
    assert manifest["apps"][0]["requires"] == [{"package": "pond", "version": "1.2", "sha256": "0" * 64}]


def test_digests_cover_every_app(built: Built, tmp_path: Path) -> None:
    again = Built(tmp_path, built.directory.name)
    assert again.digests == built.digests
    manifest = json.loads((built.directory / "manifest.json").read_text("utf-8"))
    for app in manifest["apps"]:
        own = "behaviour.jsonl" if app["path"] == "." else f"{app['path']}/app.json"
        assert own in manifest["files"]
        if app["kind"] == "lined_notebook":
            assert f"{app['path']}/runtime/__init__.py" in manifest["files"]


def test_mistakes_of_who_builds_are_told(tmp_path: Path) -> None:
    where = tmp_path / "environments" / "x", tmp_path / "rewards" / "x"
    with pytest.raises(Missing, match="there are: files, lined_notebook, office, records, shell"):
        backends.assemble("x", [AppSource("a", "abacus", None)], [task()], [], *where)
    tree = [FileVersion("a", b"")]
    with pytest.raises(InputError, match="both answer the tool"):
        backends.assemble("x", [AppSource("a", "files", tree), AppSource("b", "files", tree)], [task()], [], *where)
    backends.assemble(
        "x", [AppSource("a", "files", tree), AppSource("b", "files", tree, {"prefix": "b_"})], [task()], [], *where)
    env = Environment.load(where[0])
    env.reset(TASK)
    env.call("b_write_file", {"path": "new", "content": "1"})
    assert list(env.difference()["documents"]) == ["b:file/new"]


def test_an_unknown_kind_and_an_older_format_are_refused(built: Built, tmp_path: Path) -> None:
    manifest = json.loads((built.directory / "manifest.json").read_text("utf-8"))
    for change, message in (({"format": "traceroom-environment/1"}, "hint: build it again .* or serve it with its own runtime"),
                            ({"apps": [{"name": "a", "kind": "fountain", "path": "apps/a"}]},
                             "no runtime for the kind 'fountain'")):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
        (tmp_path / "tools.jsonl").write_text("")
        with pytest.raises(ValueError, match=message):
            Environment.load_room(tmp_path)


def test_a_kind_takes_at_most_150_lines() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in (THIRD_PARTY / "lined_notebook").rglob("*.py")) <= 150


def test_files_show_the_times_of_the_task(tmp_path: Path) -> None:
    case = CASES["files"]
    where = tmp_path / "environments" / "x", tmp_path / "rewards" / "x"
    backends.assemble("x", [case.source], [task()], [], *where)
    env = Environment.load(where[0])
    env.reset(TASK)
    env.call("write_file", {"path": "new", "content": "x"})
    rows = {row["path"]: row["modified"] for row in json.loads(env.call("list_files", {}).content)}
    assert rows["new"] == START and max(filter(None, rows.values())) == START
    assert env.call("read_file", {"path": "inbox/d.txt"}).content == "before"
    env.reset(None, at=LATER)
    assert env.call("read_file", {"path": "inbox/d.txt"}).content == SECRET
