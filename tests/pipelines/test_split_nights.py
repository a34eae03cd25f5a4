"""Spans of a conversation that come on two nights: the second one extends the session of the first."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pipelines.building.sessions import sessions
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from tests.extractors.test_split_files import samples
from warehouse.lock import writing
from warehouse.store import Store

_COLUMNS = ("session_id", "position", "kind", "role", "content", "tool", "arguments", "call_id", "happened_at", "answered_at",
            "is_error")


def night(out: Path, logs: Path) -> pl.DataFrame:
    """Ingest what is new and assemble the sessions; return the turns."""
    settings = Settings(logs=(str(logs),), out=str(out), privacy=False)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        sessions(store, settings)
        return store.table("core.turns").select(_COLUMNS).sort("session_id", "position")


@pytest.mark.parametrize("name", ["langfuse", "otlp"])
def test_a_session_whose_spans_come_on_two_nights_is_one(name: str, tmp_path: Path) -> None:
    records = next(each.values[0] for each in samples() if each.id == name)
    lines = [f"{json.dumps(each)}\n" for each in records]
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "monday.jsonl").write_text("".join(lines[::2]), "utf-8")
    first = night(tmp_path / "out", logs)
    (logs / "tuesday.jsonl").write_text("".join([*lines[1::2], lines[2]]), "utf-8")   # and a span is exported again
    second = night(tmp_path / "out", logs)
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "all.jsonl").write_text("".join(lines), "utf-8")
    whole = night(tmp_path / "at once", tmp_path / "whole")
    assert first["session_id"].unique().to_list() == whole["session_id"].unique().to_list()
    assert second.equals(whole) and not first.equals(whole)
