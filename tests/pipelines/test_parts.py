"""A night that brings news of one service: what was made of the others is kept, and all is as if built at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder import world
from pipelines.building import worlds
from tests.pipelines.conftest import SAMPLE, Traceroom, files, same, tables


def write_night(folder: Path, number: int, lines: list[str], service: str) -> None:
    """Sessions of the sample as a service's log of one night, with tools and calls of its own: outcomes are judged by kind of
    service, and sessions with the same ids stay on one split."""
    folder.mkdir(exist_ok=True)
    sessions = [json.loads(line) for line in lines]
    rows = [json.dumps({**each, "session_id": f"{service}-{each['session_id']}", "service": service}) + "\n"
            for each in sessions]
    tools = {call["function"]["name"] for row in rows for told in json.loads(row)["messages"]
             for call in told.get("tool_calls") or []}
    text = re.sub(rf'"({"|".join(sorted(tools))})"', rf'"{service}_\1"', "".join(rows)) if tools else "".join(rows)
    (folder / f"{service}-{number}.jsonl").write_text(text.replace('"call_', f'"{service}_call_'), "utf-8")


def sealed(out: Path) -> dict[str, tuple[int, int]]:
    """When the grader's side of each environment was written, and where."""
    return {path.parent.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in out.glob("rewards/*/rewards.json")}


@pytest.mark.slow
def test_services_without_news_are_kept(tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = next((SAMPLE / "logs").glob("*.jsonl")).read_text("utf-8").splitlines()
    built: list[list[str]] = []
    build = world.build

    def building(sessions: pl.DataFrame, *rest: Any) -> world.InducedWorld:
        built.append(sessions["service"].unique().sort().to_list())
        return build(sessions, *rest)

    monkeypatch.setattr(worlds, "build", building)
    run = ("run", "--no-image", "--json", tmp_path / "logs", "--out")
    write_night(tmp_path / "logs", 1, lines, "north")
    write_night(tmp_path / "logs", 1, lines[:-1], "south")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert built == [["north"], ["south"]]
    built.clear()
    written = sealed(tmp_path / "grown")
    assert set(written) == {"north", "south"}
    write_night(tmp_path / "logs", 2, lines[-1:], "south")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert built == [["south"]], "north had no news"
    again = sealed(tmp_path / "grown")
    assert again["north"] == written["north"] and again["south"] != written["south"]
    assert traceroom(*run, tmp_path / "at_once", "--ledger", tmp_path / "grown").returncode == 0
    assert same(tables(tmp_path / "grown"), tables(tmp_path / "at_once")) == []
    assert files(tmp_path / "grown") == files(tmp_path / "at_once")
    (tmp_path / "grown" / "rewards" / "north" / "rewards.json").unlink()
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert files(tmp_path / "grown") == files(tmp_path / "at_once"), "what somebody took away is made again"
    assert sealed(tmp_path / "grown")["south"] == again["south"]
