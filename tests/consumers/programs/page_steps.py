"""The datasets library reads a site's steps and conversations, each row as it was written."""

from __future__ import annotations

import json

import datasets
from telling import EXPORTS, WORK, tell

n_steps, n_choices = 0, 0
for form in ("steps", "sft"):
    for path in sorted(EXPORTS.glob(f"{form}.*.jsonl")):
        if not path.stat().st_size:
            continue
        read = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(WORK / "cache"))
        written = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert read.num_rows == len(written), path
        for row, there in zip(read, written, strict=True):
            if form == "sft":
                calls = [[call["function"] for message in each["messages"] for call in message.get("tool_calls") or ()]
                         for each in (row, there)]
                assert calls[0] == calls[1], path
                continue
            assert {name: row[name] for name in there if name != "happened_at"} == {
                name: value for name, value in there.items() if name != "happened_at"}, path
            n_steps += 1
            positive = [each for each in row["candidates"] if each["positive"]]
            n_choices += len(positive) == 1 and positive[0]["name"] == row["action"]["name"]
assert n_choices
tell(f"{n_steps} steps on pages, {n_choices} with the one candidate that was acted on", steps=n_steps, choices=n_choices)
