"""Each platform, by its own client, from a server on loopback that replays its pages: the events are those of a dump.

The pull is killed in the middle of a page, continued, limited in its rate, and repeated.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from tests.conftest import lacking
from tests.consumers.interpreters import Lacking
from tests.sources import clients
from tests.sources.pulls import Puller, events_of, write_dump
from tests.sources.replays import KEY, REPLAYS
from tests.sources.server import serving

REQUIRED = ("braintrust", "langfuse", "langsmith", "openai")
"""What CI runs; the others run with TRACEROOM_CONSUMERS=all."""
CHOSEN = [name for name in REPLAYS if name in REQUIRED or os.environ.get("TRACEROOM_CONSUMERS") == "all"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tests/sources/test_platforms.py")]


@pytest.fixture(scope="module")
def python() -> str:
    """Return an interpreter with the clients, or skip with the reason; where nothing may be lacking, fail."""
    try:
        return str(clients.python())
    except Lacking as error:
        lacking(str(error))


@pytest.mark.parametrize("name", CHOSEN)
def test_a_killed_pull_continues_and_gives_the_events_of_the_dump(name: str, python: str, tmp_path: Path) -> None:
    replay = REPLAYS[name]()
    with serving(replay.respond) as server:
        puller = Puller(tmp_path, replay, server, python)
        puller.add()
        tested = puller.run("test")
        assert tested.returncode == 0 and "waiting" in tested.stderr, tested.stderr
        server.n_pages = 0
        puller.kill_while_hanging(page=2)
        assert puller.files() == [] and len(list(puller.spooled())) == 1, "one whole page, and nothing that a run reads"
        server.limit_pages, server.fail_pages = {server.n_pages + 1}, {server.n_pages + 2}
        row = puller.pull()
        assert server.n_limited == 2 and row["is_complete"]
        dump = write_dump(tmp_path / "dump", replay)
        told_only = not replay.same_shape
        assert_frame_equal(events_of(puller.inbox, told_only), events_of(dump, told_only))
        files = [path.read_bytes() for path in puller.files()]
        assert puller.pull()["n_records"] == 0, "what was pulled is not written twice"
        assert [path.read_bytes() for path in puller.files()] == files
    shown = puller.run("list")
    assert shown.returncode == 0 and replay.platform in shown.stderr and "complete" in shown.stderr


@pytest.mark.parametrize("name", CHOSEN)
def test_a_wrong_key_is_one_sentence_without_the_key(name: str, python: str, tmp_path: Path) -> None:
    replay = REPLAYS[name]()
    wrong = dict.fromkeys(replay.credentials, f"not-{KEY[::-1]}")
    with serving(replay.respond) as server:
        puller = Puller(tmp_path, replay, server, python)
        puller.add()
        done = puller.run("test", **wrong)
    assert done.returncode == 2 and "rejects the key" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert KEY[::-1] not in done.stderr and KEY[::-1] not in puller.config.read_text("utf-8")
