"""SkyRL-Gym: a package with the environment (adapters/skyrl_room.py), and its rows as Parquet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit, Row
from env_builder.exports.training import lay_package, origin_of, package_of, prompt_of, put_page, sides
from warehouse.records import Verdict, empty

RUN = """\
    from {package} import skyrl_room                   # with this folder on PYTHONPATH
    skyrl_room.register()

The rows (`train.parquet` …) name the environment as `env_class`. The model writes calls as
`<tool_call>{{"name": …, "arguments": {{…}}}}</tool_call>`.
"""


def _write(out: Path, kit: Kit) -> Exported:
    paths = lay_package(kit, out, "turns.py", "skyrl_room.py") + put_page(kit, out, "SkyRL-Gym", RUN)
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
