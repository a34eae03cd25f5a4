"""Versions of tables by their content: what they see, and that a stage is let be whose tables did not change."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.running.stage import content_version
from pipelines.settings import Settings
from pipelines.stages import STAGES
from tests.extractors.workspaces.commits import commit_all
from tests.pipelines.conftest import Traceroom, files
from warehouse.records import Feedback, frame
from warehouse.store import Store

DAY = datetime(2026, 3, 2, tzinfo=UTC)
TEXT = st.text(alphabet='ab",\\ {}:NUL\0é', max_size=6)
REMEMBERED = ("mart.decisions", "raw.partitions", "raw.audits", "raw.cache", "raw.privacy")
"""What a stage finds of its own last time, and what never changes in a warehouse."""
ROWS = st.lists(st.tuples(TEXT, st.none() | st.just(DAY), TEXT), max_size=6, unique_by=lambda row: row[0])


def feedback(rows: list[tuple[str, datetime | None, str]]) -> pl.DataFrame:
    return frame(Feedback, [
        {"feedback_id": key, "session_id": "s", "happened_at": at, "name": "rating", "value": value, "source": "desk"}
        for key, at, value in rows])


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("versions") / "warehouse.duckdb"


@settings(max_examples=30)
@given(one=ROWS, other=ROWS)
def test_tables_have_one_version_where_they_hold_the_same_rows(
    empty: Path, one: list[tuple[str, datetime | None, str]], other: list[tuple[str, datetime | None, str]]
) -> None:
    with Store.open(empty) as store:
        versions = []
        for rows in (one, one[::-1], other):
            store.replace("core.feedback", feedback(rows))
            versions.append(store.version("core.feedback"))
    assert versions[0] == versions[1]
    assert (versions[0] == versions[2]) == (sorted(one, key=repr) == sorted(other, key=repr))


def test_what_gave_the_same_rows_lets_the_rest_be(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> None:
    out, again = tmp_path / "out", tmp_path / "again.jsonl"
    shutil.copytree(run_once[0], out)
    before = files(out)
    lines = next((run_once[0].parent / "logs").rglob("*.jsonl")).read_text("utf-8").splitlines(keepends=True)
    again.write_text("".join(lines[3:5]), "utf-8")
    done = traceroom("run", "--no-image", "--json", again, "--out", out)
    assert done.returncode == 0, done.stderr
    computed = [stage["stage"] for stage in json.loads(done.stdout)["stages"] if stage["computed"]]
    expected = ["extract", "sessions", "apps", "starts", "code_tasks", "site_rooms", "environments", "datasets", "funnel"]
    assert computed == expected, "only these read what the ledger names"
    assert files(out) == before
    with Store.published(out / "warehouse.duckdb") as store:
        tables = [table for stage in STAGES for table in stage.table_names if table != "mart.decisions"]
        assert {table: content_version(store, table) for table in tables} == {table: store.version(table) for table in tables}


@pytest.mark.slow
def test_a_stage_reads_what_it_stands_on(
    run_once: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage that read another table would be taken for up to date where that one changed."""
    out = tmp_path / "out"
    shutil.copytree(run_once[0], out)
    commit_all(tmp_path / "repository", ("first", {"a.py": "x = 1\n"}))
    told_so, seen = Settings(logs=(), out=str(out), image=False, repositories=(str(tmp_path / "repository"),)), set[str]()

    def told(sql: str) -> None:
        seen.update(re.findall(r"\b(?:raw|core|mart)\.\w+", sql))

    def spying(name: str, place: int) -> None:
        plain = getattr(Store, name)

        def spied(store: Store, *given: Any, **named: Any) -> Any:
            told(given[place])
            return plain(store, *given, **named)

        monkeypatch.setattr(Store, name, spied)

    with Store.open(told_so.warehouse) as store:
        spying("read", 0)
        spying("write_parquet", 1)
        for stage in (stage for stage in STAGES if not stage.always):
            seen.clear()
            stage.run(store, told_so)
            assert seen, "the spy sees nothing"
            below = {table for other in STAGES if other.name in stage.after for table in other.table_names}
            assert seen - below <= {*stage.table_names, *REMEMBERED}, stage.name
