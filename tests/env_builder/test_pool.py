"""A warm pool: rooms that stand ready, never more than there may be, and an engine that goes and comes back."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from env_builder import image
from env_builder.pool import Pool
from env_builder.runtime.canonical import digest
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import InputError, Unavailable

pytestmark = [pytest.mark.docker, pytest.mark.slow]


class Hall:
    """A room's directory, and its image."""

    def __init__(self, directory: Path, image_id: str) -> None:
        self.directory = directory
        self.image_id = image_id

    def pool(self, ready: int, most: int) -> Pool:
        return Pool(self.directory, ready, most, image_id=self.image_id)

    def n_containers(self) -> int:
        """How many there are of this image."""
        with contextlib.closing(image.engine()) as client:
            return len(client.containers.list(all=True, ignore_removed=True, filters={"ancestor": self.image_id}))


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory, base_image: str) -> Hall:
    directory = write_room(tmp_path_factory.mktemp("pool") / "hall")
    tools = directory / "tools.jsonl"
    tools.write_text(tools.read_text("utf-8").replace("in words", f"pooled {uuid.uuid4()}"), "utf-8")
    seal(directory)
    made = image.build(directory, base_image)
    assert made.image_id, made.skip_reason
    return Hall(directory, made.image_id)


def seal(directory: Path) -> None:
    """Let the manifest say what the files are now: an image of its own, so that no other test's containers are counted."""
    manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
    manifest["files"]["tools.jsonl"] = digest((directory / "tools.jsonl").read_bytes())
    (directory / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def test_rooms_stand_ready_and_each_plays_one_episode(hall: Hall) -> None:
    with hall.pool(2, 4) as pool:
        pool.wait()
        first, second = pool.take(), pool.take()
        for room in (first, second):
            assert room.reset(TASK)["messages"] == [{"role": "user", "content": "Open the door."}]
        assert first.call("open_door", {"door": "7"}).content == OPEN
        assert [row["kind"] for row in second.journal()] == [], "nothing is shared"
        first.close()
        first.close()
        with pytest.raises(Unavailable, match="the environment process is gone"):
            first.journal()
        pool.wait()
        third = pool.take()
        third.reset(TASK)
        assert third.journal() == [], "a new container, not a used one"
    assert hall.n_containers() == 0, "what was lent and what stood ready is removed"
    with pytest.raises(Unavailable, match="the pool is closed"):
        pool.take()


def test_there_are_never_more_than_there_may_be(hall: Hall) -> None:
    with pytest.raises(InputError, match="a pool of 3 ready of at most 2 processes"):
        hall.pool(3, 2)
    with hall.pool(2, 3) as pool:
        rooms = [pool.take() for _ in range(3)]
        assert hall.n_containers() == 3
        with pytest.raises(Unavailable, match=r"none of the pool's 3 processes is free within 0\.2 s; close processes"):
            pool.take(0.2)
        taken: list[bool] = []
        waiting = threading.Thread(target=lambda: taken.append(bool(pool.take().tools())))
        waiting.start()
        rooms.pop().close()
        waiting.join(300)
        assert taken == [True] and hall.n_containers() == 3, "the next one came when the one that was closed had gone"
    assert hall.n_containers() == 0


class Relay:
    """A way to the engine that can be cut and opened again, as when the engine is restarted."""

    def __init__(self, place: Path) -> None:
        self.address = f"unix://{place}"
        self._place = place
        self._ways: list[socket.socket] = []
        self.open()

    def open(self) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._place))
        self._listening.listen(64)
        threading.Thread(target=self._accept, args=[self._listening], daemon=True).start()

    def cut(self) -> None:
        self._listening.close()
        self._place.unlink()
        for way in self._ways:
            with contextlib.suppress(OSError):
                way.shutdown(socket.SHUT_RDWR)
        self._ways.clear()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = listening.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect("/var/run/docker.sock")
                self._ways += [here, there]
                for source, sink in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=[source, sink], daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, docker_engine: None) -> Iterator[Relay]:
    made = Relay(tmp_path / "engine")
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", made.address)
        yield made


def test_an_engine_that_goes_and_comes_back(hall: Hall, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    with hall.pool(2, 4) as pool:
        pool.wait()
        lent = pool.take()
        lent.reset(TASK)
        relay.cut()
        with pytest.raises(Unavailable, match="the environment process is gone"):
            lent.call("read_sign", {"at": "gate"})
        with pytest.raises(Unavailable, match=r"no Docker engine answers; start one"):
            for _ in range(4):  # one of those that stood ready may be asked before its way is seen to be cut
                pool.take()
        relay.open()
        again = pool.take()
        assert again.reset(TASK)["tools"] and again.call("read_sign", {"at": "gate"}).tier == "recorded"
        lent.close()
    with monkeypatch.context() as patched:  # undone before the address of the relay is, else that stays
        patched.delenv("DOCKER_HOST")
        deadline = time.monotonic() + 200
        while hall.n_containers() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert hall.n_containers() == 0, "rooms whose host has gone end by themselves"
