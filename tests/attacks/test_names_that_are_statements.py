"""Tools, sessions and files whose names are SQL: all tables and views are there, and hold each of these names as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP, TOOLS, hostile_lines, hostile_run
from tests.attacks.report import Report
from warehouse.store import Store


def attack(folder: Path, share: float) -> Report:
    """Read every table and view, and hold the names in them against the log's."""
    sessions = {json.loads(line)["metadata"]["session_id"] for line in hostile_lines()}
    problems = []
    with Store.published(hostile_run() / "warehouse.duckdb") as store:
        tables = store.read("select table_schema || '.' || table_name as name from information_schema.tables order by all")[
            "name"
        ].to_list()
        for name in tables:
            try:
                store.read(f"select * from {name} limit 50")
            except Exception as error:
                problems.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        stored = set(store.read("select session_id from core.sessions")["session_id"])
        tools = set(store.read("select tool from core.tools")["tool"])
    problems += [f"{len(sessions - stored)} of {len(sessions)} sessions are missing"] if sessions - stored else []
    problems += [f"{tool!r} is no tool" for tool in TOOLS.values() if tool not in tools]
    problems += [] if len(tables) > 20 else [f"{len(tables)} tables"]
    return Report(len(tables) + len(sessions), tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_names_are_values_in_every_table(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
