"""The datasets library reads every file of the published datasets, row for row as it was written."""

from __future__ import annotations

import json

import datasets
from telling import EXPORTS, WORK, tell

folder = EXPORTS / "datasets"
n_rows = n_calls = 0
for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.parquet")]):
    kind = "json" if path.suffix == ".jsonl" else "parquet"
    if not path.stat().st_size:
        continue
    read = datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=str(WORK / "cache"))
    assert read.num_rows, path
    n_rows += read.num_rows
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            written = [json.loads(line) for line in lines]
        assert read.num_rows == len(written), path
        for row, there in zip(read, written, strict=True):
            for message, was in zip(row["messages"], there["messages"], strict=True):
                calls, were = message.get("tool_calls") or [], was.get("tool_calls") or []
                assert [call["function"] for call in calls] == [call["function"] for call in were], path
                n_calls += len(calls)
tell(f"every row of the published files read; {n_calls} tool calls as they were written", rows=n_rows, calls=n_calls)
