"""TRL: a package whose class is the environment of `GRPOTrainer` (adapters/trl_room.py), and its prompts as JSON lines.

A row has the columns `prompt` (messages), `task_id` and `seed` (what `reset` takes), and where it is from.
"""

from __future__ import annotations

from pathlib import Path

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit
from env_builder.exports.training import lay_package, origin_of, prompt_of, put_lines, put_page, sides
from warehouse.records import Verdict, empty

RUN = """\
    from {package}.trl_room import Room, reward        # with this folder on PYTHONPATH
    rows = load_dataset("json", data_files="train.jsonl", split="train")
    GRPOTrainer(model=…, environment_factory=Room, reward_funcs=reward, train_dataset=rows)

Tools are methods of `Room`; the model's chat template must be one that TRL can read calls from.
"""


def _write(out: Path, kit: Kit) -> Exported:
    paths = lay_package(kit, out, "routes.py", "trl_room.py") + put_page(kit, out, "TRL", RUN)
    for side, tasks in sides(kit):
        paths += put_lines(out, f"{side}.jsonl", (
            {"prompt": prompt_of(task), "seed": 0, **origin_of(kit, task)} for task in tasks))
    return Exported(sorted(paths), empty(Verdict))


EXPORTER = RoomExporter("trl", _write)
