"""The image: its bytes without an engine, and with one what a running room may and may not do."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from env_builder import archive, image
from env_builder.room import Room, arguments
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import EnvironmentBroken, Unavailable


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("rooms") / "hall")


def test_the_layer_depends_on_the_content_alone(room: Path, tmp_path: Path) -> None:
    elsewhere = write_room(tmp_path / "another_name", dockerfile="FROM other\n")
    for path in sorted(elsewhere.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    assert archive.room_layer(elsewhere) == archive.room_layer(room)
    manifest = json.loads((elsewhere / "manifest.json").read_text())
    world = elsewhere / "world.jsonl"
    world.write_text(world.read_text().replace("closed", "ajar"))
    with pytest.raises(EnvironmentBroken, match=r"world\.jsonl: the file is not what the manifest says"):
        archive.room_layer(elsewhere)
    manifest["files"]["world.jsonl"] = archive.digest(world.read_bytes())
    (elsewhere / "manifest.json").write_text(json.dumps(manifest))
    assert archive.room_layer(elsewhere) != archive.room_layer(room)


def test_only_the_rooms_user_may_read_the_layer(room: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive.room_layer(room))) as layer:
        entries = layer.getmembers()
    assert {entry.uid for entry in entries} == {archive.ROOM_USER}
    assert {entry.mode for entry in entries if entry.isfile()} == {0o400}
    assert {entry.mode for entry in entries if entry.isdir()} == {0o500}
    assert {entry.mtime for entry in entries} == {0}
    names = [entry.name for entry in entries]
    assert names == sorted(names) and "room/runtime/mcp.py" in names and "room/Dockerfile" not in names


def test_an_image_on_top_keeps_the_base(room: Path, tmp_path: Path) -> None:
    below, base, out = tmp_path / "layer.tar", tmp_path / "base.tar", tmp_path / "out.tar"
    with tarfile.open(below, "w") as tar:
        tar.addfile(tarfile.TarInfo("bin/thing"))
    archive.write_base(base, below, "base:1")
    archive.write_on_top(out, base, archive.room_layer(room), "room:1")
    with tarfile.open(out) as tar:
        listed: Any = json.load(tar.extractfile("manifest.json") or io.BytesIO())[0]
        document: Any = json.load(tar.extractfile(listed["Config"]) or io.BytesIO())
        layers = [(tar.extractfile(path) or io.BytesIO()).read() for path in listed["Layers"]]
    assert listed["RepoTags"] == ["room:1"]
    assert layers == [below.read_bytes(), archive.room_layer(room)]
    assert document["rootfs"]["diff_ids"] == ["sha256:" + archive.digest(layer) for layer in layers]
    assert document["config"]["User"] == f"{archive.ROOM_USER}:{archive.ROOM_USER}"
    assert document["config"]["Env"][0].startswith("PATH=")
    assert listed["Config"] == archive.digest(archive.canonical(document)) + ".json"


def test_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentBroken, match=r"no manifest\.json"):
        archive.room_layer(tmp_path)


@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "nonsense://"])
def test_without_an_engine_the_image_is_left_at_once(room: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    began = time.monotonic()
    result = image.build(room)
    assert time.monotonic() - began < 3
    assert (result.image_id, result.base) == (None, None)
    assert result.left == (
        f"{host}: no Docker engine answers; start one (Debian: apt-get install docker.io), or go on without images.")
    with pytest.raises(Unavailable, match="no Docker engine answers"):
        image.start("sha256:0", TASK)


def test_without_mmdebstrap_no_base_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match="mmdebstrap is not installed; apt-get install mmdebstrap"):
        image.make_base()


@pytest.fixture(scope="module")
def built(room: Path, base_image: str) -> str:
    result = image.build(room, base_image)
    assert result.left is None and result.image_id
    assert result.base == f"{base_image}@{image.engine().images.get(base_image).id}"
    return result.image_id


@pytest.mark.docker
def test_the_same_environment_is_the_same_image_in_any_folder(built: str, base_image: str, tmp_path: Path) -> None:
    assert image.build(write_room(tmp_path / "elsewhere"), base_image).image_id == built


@pytest.mark.docker
def test_a_base_that_is_nowhere_leaves_the_image(room: Path, docker_engine: None) -> None:
    result = image.build(room, "localhost:1/no/such:base")
    assert result.image_id is None
    assert result.left and "the base image localhost:1/no/such:base is not here and cannot be pulled" in result.left


def containers() -> set[str | None]:
    """Ids of the containers that are there, running or not."""
    return {one.id for one in image.engine().containers.list(all=True, filters={"label": "traceroom=room"})}


@pytest.mark.docker
def test_a_room_in_a_container_plays_and_is_gone(built: str) -> None:
    carrier = image.ContainerCarrier(image.engine(), built, arguments(TASK), image.DEFAULT_LIMITS)
    room = Room(carrier, "hall")
    try:
        assert carrier.container_id in containers()
        assert room.call("read_sign", {"at": "gate"}).content == "Mind the gap\n — 雨"
        assert room.call("open_door", {"door": "7"}).content == OPEN
        assert room.say("Which?") == "The seventh, please."
        assert [row["kind"] for row in room.journal()] == ["call", "call", "say"]
    finally:
        room.close()
    assert carrier.container_id not in containers()
    with pytest.raises(Unavailable, match="the room is gone"):
        room.tools()


@pytest.mark.docker
def test_a_room_that_cannot_begin_says_why(built: str) -> None:
    with pytest.raises(Unavailable, match="no task 'none' in this environment"):
        image.start(built, "none")
    with pytest.raises(Unavailable, match="no such image"):
        image.start("sha256:" + "0" * 64, TASK)


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
    """What a program in the room's place may do."""
    directory = tmp_path_factory.mktemp("probe") / "hall"
    shutil.copytree(room, directory)
    (directory / "runtime" / "__main__.py").write_text(PROBE)
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["files"]["runtime/__main__.py"] = archive.digest(PROBE)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    result = image.build(directory, base_image)
    assert result.image_id
    carrier = image.ContainerCarrier(image.engine(), result.image_id, [], image.DEFAULT_LIMITS)
    with Room(carrier, "probe") as host:
        return host.request("what may I do")


@pytest.mark.docker
def test_a_room_is_confined(probed: dict[str, Any]) -> None:
    assert probed["uid"] == archive.ROOM_USER
    assert probed["capabilities"] == 0
    assert probed["no_new_privileges"] == "1"
    assert probed["write_root"] == "OSError"  # read-only file system
    assert probed["write_room"] in ("OSError", "PermissionError")
    assert probed["write_tmp"] == "allowed"
    assert probed["network"] == "OSError"
    assert probed["interfaces"] == ["lo"]
    assert probed["fork"] == "BlockingIOError"
    assert probed["memory"] in ([], [str(image.DEFAULT_LIMITS.memory_mb * 1024 * 1024)])
