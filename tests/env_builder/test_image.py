"""The image: its bytes without an engine, and with one what a running room may and may not do."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder import image, layers
from env_builder.process import EnvironmentProcess
from env_builder.runtime import Environment, files
from env_builder.runtime.apps.records import RecordsApp
from tests.conftest import ROOT
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import EnvironmentBroken, InputError, Unavailable


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def test_the_layer_depends_on_the_content_alone(room: Path, tmp_path: Path) -> None:
    elsewhere = write_room(tmp_path / "another_name", dockerfile="FROM other\n")
    for path in sorted(elsewhere.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    assert layers.layers_of(elsewhere) == layers.layers_of(room)
    world = elsewhere / "world.jsonl"
    world.write_text(world.read_text().replace("closed", "ajar"))
    with pytest.raises(EnvironmentBroken, match=r"world\.jsonl: the file is not what the manifest says"):
        layers.layers_of(elsewhere)
    changed, before = resealed(elsewhere), layers.layers_of(room)
    assert changed.runtime == before.runtime, "all environments share the runtime's layer"
    assert changed.world != before.world and changed.behaviour != before.behaviour  # its manifest names the room


def resealed(room: Path) -> layers.Layers:
    """Layers of a room whose files were changed, with a manifest that says so."""
    manifest = json.loads((room / "manifest.json").read_text())
    manifest["files"] = {path: layers.digest((room / path).read_bytes()) for path in manifest["files"]}
    (room / "manifest.json").write_text(json.dumps(manifest))
    return layers.layers_of(room)


@pytest.mark.parametrize(("file", "touched"), [
    ("tasks.jsonl", set[str]()), ("behaviour.jsonl", {"behaviour"}), ("recorded.jsonl", {"world", "behaviour"}),
    ("runtime/mcp.py", {"runtime", "behaviour"})])
def test_a_change_touches_its_own_layer(room: Path, tmp_path: Path, file: str, touched: set[str]) -> None:
    """And that of the behaviour, which is the smallest and holds what names the room; a task's is none at all."""
    own = write_room(tmp_path / "own")
    with (own / file).open("a") as lines:
        last = (own / file).read_text().splitlines()[-1]
        lines.write("# another line\n" if file.endswith(".py") else last.replace("t" * 64, "u" * 64) + "\n")
    before, after = layers.layers_of(room), resealed(own)
    assert {name for name in layers.Layers._fields if getattr(before, name) != getattr(after, name)} == touched


BUILD = """
import os, sys
from pathlib import Path
from env_builder import layers
if os.geteuid() == 0:
    os.setuid(int(sys.argv[3]))
layers.write_base(Path("base.tar"), Path(sys.argv[2]), "base:1")
made = layers.write_on_top(Path("out.tar"), Path("base.tar"), layers.layers_of(Path(sys.argv[1])), "room:1", layers.ROOM_WAY)
print(made, layers.digest(Path("out.tar").read_bytes()))
"""


def pythons() -> list[str]:
    """Every Python of this machine that the project supports; the one that runs the tests among them."""
    named = [shutil.which(f"python3.{minor}", path=folder) for minor in (11, 12, 13) for folder in (
        "/usr/bin", "/usr/local/bin", *map(str, Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin")))]
    return sorted({sys.executable, *(path for path in named if path)})


def test_the_image_is_the_same_whoever_builds_it() -> None:
    """Another folder, day, user, umask, time zone, locale, order of hashes, Python."""
    made = set()
    for number, python in enumerate([sys.executable, *pythons()]):
        odd, user = bool(number % 2), 65534 * (number % 2)
        with tempfile.TemporaryDirectory() as scratch:
            own = write_room(Path(scratch, str(number), "somewhere"))
            base = Path(scratch, "layer.tar")
            with tarfile.open(base, "w") as tar:
                tar.addfile(tarfile.TarInfo("bin/thing"))
            for path in (Path(scratch), *Path(scratch).rglob("*")):
                os.utime(path, (number * 1e8, number * 1e8))
                path.chmod(0o755 if odd else 0o700)
                if os.geteuid() == 0:
                    os.chown(path, user, user)
            about = {"TZ": f"Etc/GMT-{number}", "LC_ALL": "C" if odd else "C.UTF-8", "PYTHONHASHSEED": str(number)}
            done = subprocess.run(
                [python, "-P", "-B", "-c", BUILD, own, base, str(user)], cwd=own.parent, umask=0o077 if odd else 0o002,
                env={**about, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made.add(done.stdout)
    assert len(made) == 1, "image id and archive depend on the content alone"


def test_only_the_rooms_user_may_read_the_layers(room: Path) -> None:
    entries = []
    for layer in layers.layers_of(room):
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            entries += tar.getmembers()
    assert {entry.uid for entry in entries} == {layers.ROOM_USER}
    assert {entry.mode for entry in entries if entry.isfile()} == {0o400}
    assert {entry.mode for entry in entries if entry.isdir()} == {0o500}
    assert {entry.mtime for entry in entries} == {0}
    names = {entry.name for entry in entries if entry.isfile()}
    assert names >= {"room/runtime/mcp.py", "room/world.packed", "room/recorded.packed", "room/behaviour.jsonl"}
    assert not names & {"room/Dockerfile", "room/tasks.jsonl", "room/world.jsonl"}


def test_an_image_on_top_keeps_the_base(room: Path, tmp_path: Path) -> None:
    below, base, out = tmp_path / "layer.tar", tmp_path / "base.tar", tmp_path / "out.tar"
    with tarfile.open(below, "w") as tar:
        tar.addfile(tarfile.TarInfo("bin/thing"))
    layers.write_base(base, below, "base:1")
    image_id = layers.write_on_top(out, base, layers.layers_of(room), "room:1", layers.ROOM_WAY)
    with tarfile.open(out) as tar:
        listed: Any = json.load(tar.extractfile("manifest.json") or io.BytesIO())[0]
        document: Any = json.load(tar.extractfile(listed["Config"]) or io.BytesIO())
        contents = [(tar.extractfile(path) or io.BytesIO()).read() for path in listed["Layers"]]
        index: Any = json.load(tar.extractfile("index.json") or io.BytesIO())["manifests"][0]
        manifest: Any = json.load(tar.extractfile(f"blobs/sha256/{index['digest'][7:]}") or io.BytesIO())
    assert listed["RepoTags"] == ["room:1"]
    assert contents == [below.read_bytes(), *layers.layers_of(room)]
    assert document["rootfs"]["diff_ids"] == ["sha256:" + layers.digest(layer) for layer in contents]
    assert [layer["digest"] for layer in manifest["layers"]] == document["rootfs"]["diff_ids"]
    assert [layer["size"] for layer in manifest["layers"]] == list(map(len, contents))
    assert manifest["config"]["digest"] == image_id
    assert document["config"]["User"] == f"{layers.ROOM_USER}:{layers.ROOM_USER}"
    assert document["config"]["Env"][0].startswith("PATH=")
    assert listed["Config"] == "blobs/sha256/" + layers.digest(layers.canonical(document))
    assert image_id == "sha256:" + layers.digest(layers.canonical(document))


def test_a_base_that_its_engine_keeps_compressed_gives_the_same_image(room: Path, tmp_path: Path) -> None:
    below, base, packed = tmp_path / "layer.tar", tmp_path / "base.tar", tmp_path / "packed.tar"
    with tarfile.open(below, "w") as tar:
        tar.addfile(tarfile.TarInfo("bin/thing"))
    layers.write_base(base, below, "base:1")
    blob = "blobs/sha256/" + layers.digest(below.read_bytes())
    with tarfile.open(base) as tar, tarfile.open(packed, "w") as out:
        for entry in tar.getmembers():
            data = (tar.extractfile(entry) or io.BytesIO()).read()
            data = gzip.compress(data) if entry.name == blob else data
            layers.add(out, entry.name, io.BytesIO(data), len(data))
    made = [tmp_path / "one.tar", tmp_path / "other.tar"]
    for source, target in zip((base, packed), made, strict=True):
        layers.write_on_top(target, source, layers.layers_of(room), "room:1", layers.ROOM_WAY)
    assert made[0].read_bytes() == made[1].read_bytes()


def test_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentBroken, match=r"no manifest\.json"):
        layers.layers_of(tmp_path)


@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "nonsense://"])
def test_without_an_engine_the_image_is_left_at_once(room: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    began = time.monotonic()
    result = image.build(room)
    assert time.monotonic() - began < 30
    assert (result.image_id, result.base) == (None, None)
    assert result.skip_reason == (
        f"{host}: no Docker engine answers; start one (Debian: apt-get install docker.io), or go on without images.")
    with pytest.raises(Unavailable, match="no Docker engine answers"):
        image.start(room, TASK, image_id="sha256:0")


def test_without_mmdebstrap_no_base_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match="mmdebstrap is not installed; apt-get install mmdebstrap"):
        image.make_base()


@pytest.fixture(scope="module")
def built(room: Path, base_image: str) -> str:
    result = image.build(room, base_image)
    assert result.skip_reason is None and result.image_id
    assert result.base == f"{base_image}@{image.engine().images.get(base_image).id}"
    return result.image_id


@pytest.mark.docker
def test_the_same_environment_is_the_same_image_in_any_folder(built: str, base_image: str, tmp_path: Path) -> None:
    image._compile.cache_clear()  # compiled anew, in another container
    assert image.build(write_room(tmp_path / "elsewhere"), base_image).image_id == built


@pytest.mark.docker
def test_a_base_that_is_nowhere_leaves_the_image(room: Path, docker_engine: None) -> None:
    result = image.build(room, "localhost:1/no/such:base")
    assert result.image_id is None
    assert result.skip_reason
    assert "the base image localhost:1/no/such:base is not here and cannot be pulled" in result.skip_reason


def containers() -> set[str | None]:
    """Ids of the containers that are there, running or not."""
    there = image.engine().containers.list(all=True, ignore_removed=True, filters={"label": "traceroom=room"})
    return {one.id for one in there}


@pytest.mark.docker
def test_a_room_in_a_container_plays_and_is_gone(room: Path, built: str) -> None:
    hall = image.start(room, TASK, image_id=built)
    transport = hall.transport
    assert isinstance(transport, image.ContainerTransport)
    try:
        assert transport.container_id in containers()
        assert hall.call("read_sign", {"at": "gate"}).content == "Mind the gap\n — 雨"
        assert hall.call("open_door", {"door": "7"}).content == OPEN
        assert hall.say("Which?") == "The seventh, please."
        assert [row["kind"] for row in hall.journal()] == ["call", "call", "say"]
    finally:
        hall.close()
    assert transport.container_id not in containers()
    with pytest.raises(Unavailable, match="the environment process is gone"):
        hall.tools()


@pytest.mark.docker
def test_a_room_that_cannot_begin_says_why(room: Path, built: str) -> None:
    with pytest.raises(InputError, match="no task 'none' in this environment"):
        image.start(room, "none", image_id=built)
    with pytest.raises(Unavailable, match="no such image"):
        image.start(room, TASK, image_id="sha256:" + "0" * 64)
    with pytest.raises(InputError, match="the environment has no image"):
        image.start(room, TASK)


PROBE = """
import json, os, socket, sys
def tried(what):
    try:
        what()
        return "allowed"
    except OSError as error:
        return type(error).__name__
def reach():
    with socket.create_connection(("192.0.2.1", 80), timeout=2): pass
def fork():
    children = []
    try:
        for _ in range(200):
            child = os.fork()
            if child == 0:
                import time; time.sleep(5); os._exit(0)
            children.append(child)
    finally:
        for child in children: os.kill(child, 9)
sys.stdin.readline()
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {
    "uid": os.getuid(), "capabilities": int(status["CapEff"], 16), "no_new_privileges": status["NoNewPrivs"].strip(),
    "write_root": tried(lambda: open("/thing", "w")), "write_room": tried(lambda: open("/room/thing", "w")),
    "write_tmp": tried(lambda: open("/tmp/thing", "w")), "network": tried(reach), "fork": tried(fork),
    "interfaces": os.listdir("/sys/class/net"), "memory": open("/proc/self/cgroup").read() and [
        open(path).read().strip() for path in
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes") if os.path.exists(path)]}}), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def probed(room: Path, base_image: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a program in the room's place may do."""
    directory = tmp_path_factory.mktemp("probe") / "hall"
    shutil.copytree(room, directory)
    probe = 'if __name__ == "__main__":\n' + textwrap.indent(PROBE, "    ")
    (directory / "runtime" / "__main__.py").write_text(probe)
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["files"]["runtime/__main__.py"] = layers.digest(probe)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    result = image.build(directory, base_image)
    assert result.image_id
    transport = image.ContainerTransport(image.engine(), result.image_id, [], image.DEFAULT_LIMITS)
    with EnvironmentProcess(transport, "probe") as host:
        return host.request("what may I do")


@pytest.mark.docker
def test_a_room_is_confined(probed: dict[str, Any]) -> None:
    assert probed["uid"] == layers.ROOM_USER
    assert probed["capabilities"] == 0
    assert probed["no_new_privileges"] == "1"
    assert probed["write_root"] == "OSError"  # read-only file system
    assert probed["write_room"] in ("OSError", "PermissionError")
    assert probed["write_tmp"] == "allowed"
    assert probed["network"] == "OSError"
    assert probed["interfaces"] == ["lo"]
    assert probed["fork"] == "BlockingIOError"
    assert probed["memory"] in ([], [str(image.DEFAULT_LIMITS.memory_mb * 1024 * 1024)])


def test_packed_rows_are_the_rows(room: Path, tmp_path: Path) -> None:
    """Looked up, gone through, or never asked for: a room of packed rows knows what one of JSON lines knows."""
    own = tmp_path / "room"
    shutil.copytree(room, own)
    (own / "tasks.jsonl").unlink()
    for path, by in files.NAMED_BY.items():
        (own / Path(path).with_suffix(files.PACKED)).write_bytes(files.pack((own / path).read_text("utf-8"), by))
        (own / path).unlink()
    plain, packed = Environment.load_room(room), Environment.load_room(own)
    (plain_app,), (packed_app,) = plain.apps, packed.apps
    assert isinstance(plain_app, RecordsApp) and isinstance(packed_app, RecordsApp)
    assert dict(packed_app.world.facts.items()) == dict(plain_app.world.facts.items())
    assert dict(packed_app.world.answers.items()) == dict(plain_app.world.answers.items())
    assert packed_app.world.facts.get(("door", "no")) is None and packed.tasks == ()
    packed.reset(plain.tasks[0])
    plain.reset(TASK)
    for env in (plain, packed):
        assert env.call("open_door", {"door": "7"}).content == OPEN
    assert packed.state_hash() == plain.state_hash() and packed.journal == plain.journal


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner), max_leaves=8)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "", "ä\u2028", '"']), VALUES), max_size=8))
def test_whatever_is_packed_comes_back(rows: list[tuple[str, str, Any]]) -> None:
    named = [{"tool": tool, "arguments": key, "content": value} for tool, key, value in rows]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(layers.canonical(row) + "\n" for row in named)
        Path(folder, "recorded.packed").write_bytes(files.pack(lines, ("tool", "arguments")))
        read = files.named_rows(Path(folder, "recorded.jsonl"))
        assert isinstance(read, files.Later)
        for name in {(row["tool"], row["arguments"]) for row in named}:
            assert read[name] == [row for row in named if (row["tool"], row["arguments"]) == name]
        assert sum(map(len, read.values())) == len(named)
