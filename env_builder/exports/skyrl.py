"""SkyRL-Gym: a package with the environment (adapters/skyrl_room.py), and its rows as Parquet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit, Row
from env_builder.exports.training import lay_package, origin_of, package_of, prompt_of, sides
from warehouse.records import Verdict, empty


def _write(out: Path, kit: Kit) -> Exported:
    paths = lay_package(kit, out, "turns.py", "skyrl_room.py")
    for side, tasks in sides(kit):
        paths.append(out / f"{side}.parquet")
        pl.DataFrame([_row(kit, task, index) for index, task in enumerate(tasks)]).write_parquet(paths[-1])
    return Exported(sorted(paths), empty(Verdict))


def _row(kit: Kit, task: Row, index: int) -> Row:
    return {
        "data_source": f"traceroom/{kit.name}", "prompt": prompt_of(task), "env_class": package_of(kit),
        "reward_spec": {"method": "rule", "ground_truth": task["task_id"]},
        "extra_info": {"index": index, "seed": 0, **origin_of(kit, task)}}


EXPORTER = RoomExporter("skyrl", _write)
