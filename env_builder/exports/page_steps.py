"""Steps on pages, one JSON line each, as Mind2Web (Deng et al. 2023) has them: (page, goal, history) -> action, in `steps`.

In: `DatasetSource` with `page_steps`. Out: a file a split: what was asked, what was done before, the page as a snapshot shows
it, what could be acted on there and which of it the action was on. Rows go by task, session and step. `reward` stands on the
last step, `return` is the episode's, discounted by the steps to come; both are null where nothing grades the episode.
Sees: episodes that are known to be good. Does not see: where on the page somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from env_builder.exports.exporter import DatasetSource, Exported
from env_builder.exports.steps import episodes
from warehouse.records import SPLITS, Decision, empty

NAME = "steps"
Row = dict[str, Any]


def write(out: Path, source: DatasetSource) -> Exported:
    """Write the steps of the source's good episodes into an existing folder."""
    about = episodes(source).filter("good").select("task_id", "session_id", "split", "goal", "final")
    steps = source.page_steps
    paths = [out / f"{NAME}.{split}.jsonl" for split in SPLITS]
    for split, path in zip(SPLITS, paths, strict=True):
        with path.open("wb") as file:
            for task_id, session_id, goal, final in about.filter(split=split).drop("split").iter_rows():
                own = steps.filter(task_id=task_id, session_id=session_id).sort("position") if steps is not None else None
                if own is not None:
                    file.writelines(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in _rows(
                        own, {"task_id": task_id, "session_id": session_id, "goal": goal}, final, source))
    return Exported(sorted(paths), empty(Decision))


def _rows(steps: pl.DataFrame, about: Row, final: float | None, source: DatasetSource) -> Iterator[Row]:
    """Yield the rows of an episode."""
    history: list[Row] = []
    for step in steps.iter_rows(named=True):
        candidates = orjson.loads(step["candidates"])
        target = next((each for each in candidates if each["positive"]), {"role": None, "name": None})
        action = {"tool": step["tool"], "arguments": step["arguments"], "role": target["role"], "name": target["name"],
                  "element": orjson.loads(step["element"]) if step["element"] else None}
        to_come = steps.height - len(history) - 1
        reward = None if final is None else 0.0 if to_come else final
        yield {**about, "step": len(history), "environment_digest": source.content_digest,
               "happened_at": step["happened_at"].isoformat(), "history": list(history), "observation": step["observation"],
               "action": action, "candidates": candidates, "reward": reward,
               "return": None if final is None else final * source.discount ** to_come}
        history.append(action)
