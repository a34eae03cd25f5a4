"""The browser over the environment of a repository: it is listed, with its tasks, their rubric and a replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extractors.workspaces.repository import Repository
from tests.pipelines.test_browser import Server
from tests.pipelines.test_code_rooms import SOLVED, repository, room, scratch
from warehouse.records import CodeRoomRow, frame
from warehouse.store import Store

__all__ = ["repository", "scratch"]
pytestmark = pytest.mark.xdist_group("browser")


def test_the_environment_of_a_repository_is_listed_with_its_tasks(repository: Repository, scratch: Path) -> None:
    place, _ = room(repository, scratch, right=SOLVED)
    manifest = json.loads((place / "manifest.json").read_text())
    with Store.open(scratch / "warehouse.duckdb") as store:
        store.append("mart.code_rooms", frame(CodeRoomRow, [CodeRoomRow(
            environment=place.name, repository="lamp", content_digest=manifest["content_digest"], rewards_digest="0" * 64,
            n_tasks=1)]))
        store.publish()
    server = Server(scratch)
    try:
        texts = {path: server.ask(path) for path in (
            "/", f"/environment?id={place.name}", "/task?id=oil", "/replay?id=oil&way=solution&step=1")}
    finally:
        server.stop()
    assert {path: status for path, (status, _, _) in texts.items()} == dict.fromkeys(texts, 200)
    assert f"/environment?id={place.name}" in texts["/"][2] and "repository lamp" in texts["/"][2]
    assert "/task?id=oil" in texts[f"/environment?id={place.name}"][2] and "It needs oil" in texts["/task?id=oil"][2]
    assert "<iframe" not in texts["/replay?id=oil&way=solution&step=1"][2]
