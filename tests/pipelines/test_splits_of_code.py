"""The split of coding sessions: that of the task that their change solves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from pipelines.building.tasks import goals, tasks
from pipelines.settings import Settings
from tests.extractors.tasks.test_tasks import frames
from warehouse.records import CodeChangeRow, frame
from warehouse.store import Store


def change(session_id: str, digit: int) -> dict[str, Any]:
    return {"session_id": session_id, "repository": "lamp", "pull_request": None, "state": "merged", "merge_commit": None,
            "reverted_by": None, "ci": None, "winner": f"{digit:08x}" + "0" * 32, "won_by": "itself", "source_files": [],
            "test_files": [], "success": None, "evidence": []}


def test_no_session_shows_in_training_what_solves_a_held_out_change(tmp_path: Path) -> None:
    names = [f"s{n:02}" for n in range(12)]
    sessions, turns = frames(*((name, [("user", f"please paint wall{n} blue"), ("paint", {"at": f"wall{n}"}, "ok")])
                               for n, name in enumerate(names, 1000)))
    sessions = sessions.with_columns(pl.lit([], pl.List(pl.String)).alias("other_session_ids"))
    splits = []
    for changes in ([], [change("s00", 9), change("s01", 8), change("s11", 0)]):
        with Store.open(tmp_path / f"{len(changes)}" / "warehouse.duckdb") as store:
            store.replace("core.sessions", sessions)
            store.replace("core.turns", turns)
            store.replace("mart.code_changes", frame(CodeChangeRow, changes))
            settings = Settings(logs=(), out=str(tmp_path / f"{len(changes)}"))
            goals(store, settings)
            tasks(store, settings)
            splits.append({row["session_ids"][0]: row["split"] for row in store.table("mart.tasks").to_dicts()})
    assert [splits[0][name] for name in ("s00", "s01", "s11")] == ["train", "train", "held_out"]
    assert [splits[1][name] for name in ("s00", "s01", "s11")] == ["held_out", "validation", "train"]
    assert {side: list(splits[1].values()).count(side) for side in ("held_out", "validation")} == {
        "held_out": 3, "validation": 1}
