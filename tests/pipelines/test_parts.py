"""A night that brings news of one service: the worlds of the others are kept, and all is as if built at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder import world
from tests.pipelines.conftest import SAMPLE, Traceroom, files, same, tables


def write_night(folder: Path, number: int, lines: list[str], service: str) -> None:
    """Sessions of the sample as a service's log of one night."""
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({**json.loads(line), "service": service}) + "\n" for line in lines]
    (folder / f"{service}-{number}.jsonl").write_text("".join(rows), "utf-8")


@pytest.mark.slow
def test_services_without_news_are_kept(tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = next((SAMPLE / "logs").glob("*.jsonl")).read_text("utf-8").splitlines()
    built: list[list[str]] = []
    build = world.build

    def building(sessions: pl.DataFrame, *rest: Any) -> world.World:
        built.append(sessions["service"].unique().sort().to_list())
        return build(sessions, *rest)

    monkeypatch.setattr(world, "build", building)
    run = ("run", "--no-image", "--json", tmp_path / "logs", "--out")
    write_night(tmp_path / "logs", 1, lines[:5], "north")
    write_night(tmp_path / "logs", 1, lines[5:9], "south")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert built == [["north"], ["south"]]
    built.clear()
    write_night(tmp_path / "logs", 2, lines[9:10], "south")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert built == [["south"]], "north had no news"
    assert traceroom(*run, tmp_path / "at_once").returncode == 0
    assert same(tables(tmp_path / "grown"), tables(tmp_path / "at_once")) == []
    assert files(tmp_path / "grown") == files(tmp_path / "at_once")
