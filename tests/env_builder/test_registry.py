"""The image in a registry: pushed by an engine, and laid there by hand from its archive; pulled, it is the same."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from env_builder import image
from tests.conftest import lacking
from tests.rooms import OPEN, TASK, write_room

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """HOST:PORT of a registry on loopback."""
    if shutil.which("docker-registry") is None:
        lacking("docker-registry is not installed (Debian: apt-get install docker-registry)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    configured = tmp_path / "registry.yml"
    configured.write_text(json.dumps({
        "version": "0.1", "http": {"addr": address}, "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}}}))
    process = subprocess.Popen(["docker-registry", "serve", configured], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(4000):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/v2/", timeout=1):
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def sent(method: str, url: str, data: bytes = b"", kind: str = "application/octet-stream") -> Any:
    """Return the answer to a request; urllib's errors where it is refused."""
    request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
    return urllib.request.urlopen(request, timeout=60)


def laid(archive: Path, name: str) -> str:
    """Put an OCI archive into a registry by its own interface (distribution-spec); its manifest's digest."""
    host, _, repository = name.partition("/")
    with tarfile.open(archive) as tar:
        held = {entry.name: tar.extractfile(entry).read() for entry in tar.getmembers()}  # type: ignore[union-attr]
    assert json.loads(held["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    described = json.loads(held["index.json"])["manifests"][0]
    manifest = held[f"blobs/sha256/{described['digest'][7:]}"]
    for blob in (json.loads(manifest)["config"], *json.loads(manifest)["layers"]):
        data = held[f"blobs/sha256/{blob['digest'][7:]}"]
        assert len(data) == blob["size"]
        place = sent("POST", f"http://{host}/v2/{repository}/blobs/uploads/").headers["Location"]
        sent("PUT", f"{place}{'&' if '?' in place else '?'}digest={blob['digest']}", data)
    sent("PUT", f"http://{host}/v2/{repository}/manifests/{described['digest']}", manifest, described["mediaType"])
    digest: str = described["digest"]
    return digest


def test_an_image_is_the_same_through_a_registry(registry: str, base_image: str, tmp_path: Path) -> None:
    room = write_room(tmp_path / "hall")
    made = image.build(room, base_image)
    archive = tmp_path / "hall.tar"
    assert made.image_id == image.save(room, archive, base_image), made.skip_reason
    by_hand, by_engine = f"{registry}/by/hand", f"{registry}/by/engine"
    digest = laid(archive, by_hand)
    with contextlib.closing(image.engine()) as client:
        client.images.get(made.image_id).tag(by_engine, "1")
        told = [json.loads(line) for line in client.images.push(by_engine, "1").splitlines()]
        assert not [line for line in told if "error" in line]
        client.images.remove(f"{by_engine}:1")
        names = [f"{by_hand}@{digest}", f"{by_engine}:1"]
        try:
            assert {client.images.pull(name).id for name in names} == {made.image_id}
            with image.start(room, TASK, image_id=names[1]) as playing:
                assert playing.call("open_door", {"door": "7"}).content == OPEN
            with archive.open("rb") as stream:
                assert [one.id for one in client.images.load(stream)] == [made.image_id]
        finally:
            for name in names:
                client.images.remove(name)


def test_the_image_alone_answers_and_takes_mounted_tasks(base_image: str, tmp_path: Path) -> None:
    """`docker run`: the room without a task; with the tasks' file mounted, `--task` begins one."""
    if shutil.which("docker") is None:
        lacking("the docker command is not installed")
    room = write_room(tmp_path / "hall")
    made = image.build(room, base_image)
    assert made.image_id, made.skip_reason
    run = ["docker", "run", "-i", "--rm", "--network", "none", "--read-only"]
    asked = [{"id": 1, "method": "tools/list"}, {"id": 2, "method": "tools/call", "params": {
        "name": "read_sign", "arguments": {"at": "gate"}}}]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in asked)
    mounted = ["-v", f"{room / 'tasks.jsonl'}:/room/tasks.jsonl:ro"]
    for command, talk in (([*run, made.image_id], []), ([*run, *mounted, made.image_id, "--task", TASK], ["say", "finish"])):
        done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=60)
        listed, called = [json.loads(line)["result"] for line in done.stdout.splitlines()]
        assert [tool["name"] for tool in listed["tools"]] == ["open_door", "read_sign", *talk]
        assert called["content"][0]["text"] == "Mind the gap\n — 雨"
    done = subprocess.run([*run, made.image_id, "--task", TASK], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no task" in done.stderr
