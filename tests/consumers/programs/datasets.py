"""The datasets library reads the table of steps by its card, and every form of JSON lines, each row as it was written."""

from __future__ import annotations

import json
from typing import Any

import datasets
from telling import EXPORTS, WORK, tell

folder = EXPORTS / "datasets"


def calls(value: Any) -> list[Any]:
    """Names and arguments of all calls that a row holds, in order."""
    if isinstance(value, dict):
        own = [[call["function"]["name"], call["function"]["arguments"]] for call in value.get("tool_calls") or []
               if "function" in call]
        own += [[call["function_name"], call["arguments"]] for call in value.get("tool_calls") or [] if "function_name" in call]
        return own + [call for inner in value.values() for call in calls(inner)]
    return [call for inner in value for call in calls(inner)] if isinstance(value, list) else []


card = datasets.load_dataset(str(folder), cache_dir=str(WORK / "cache"))
n_rows, n_calls = sum(side.num_rows for side in card.values()), 0
assert {"train", "validation", "held_out"} >= set(card) and "train" in card
assert {"episode_id", "action_arguments", "return_to_go"} <= set(card["train"].column_names)
files = [path for path in sorted(folder.glob("*.jsonl")) if path.stat().st_size]
forms = {path.name.partition(".")[0] for path in files}
assert {"sft", "kto", "grpo", "openai", "atif"} <= forms, forms
for path in files:
    read = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(WORK / "cache"))
    n_rows += read.num_rows
    with path.open(encoding="utf-8") as lines:
        written = [json.loads(line) for line in lines]
    assert read.num_rows == len(written), path
    for row, there in zip(read, written, strict=True):
        assert calls(row) == calls(there), f"{path}: a call is not what was written"
        n_calls += len(calls(there))
assert n_calls
tell(f"the table of steps by its card, every row of {len(forms)} forms; {n_calls} tool calls as they were written", rows=n_rows,
     calls=n_calls)
