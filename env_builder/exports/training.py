"""What the exporters for trainers share: a package to import, which holds the room, and rows of prompts beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from env_builder.exports.kit import PLAY, Kit, Row, lay, put
from env_builder.exports.pages import readme
from warehouse.records import SIDES


def package_of(kit: Kit) -> str:
    """Name of the package of an environment."""
    return "traceroom_" + re.sub(r"[^a-z0-9]+", "_", kit.name.lower()).strip("_")


def lay_package(kit: Kit, out: Path, *modules: str) -> list[Path]:
    """Put the room and modules of `adapters/` into a package below `out`; gives its folder."""
    lay(kit, out / package_of(kit), ("__init__.py", PLAY, *modules))
    return [out / package_of(kit)]


def put_page(kit: Kit, out: Path, consumer: str, run: str) -> list[Path]:
    """Write the README of the export; `run`: how it is used, `{package}` for the package's name. Gives the file."""
    return put(out, {"README.md": readme(kit, consumer, run.format(package=package_of(kit))).encode()})


def prompt_of(task: Row) -> list[Row]:
    """The conversation before the agent's first move, as `play.py` begins it."""
    messages = [{"role": message["role"], "content": message["content"]} for message in task["opening"]]
    spoken = any(message["role"] == "user" for message in messages)
    return messages if spoken else [*messages, {"role": "user", "content": task["goal"]}]


def sides(kit: Kit) -> list[tuple[str, list[Row]]]:
    """The kit's tasks by side of the split, in the order of the sides; sides without tasks are left out."""
    by_side = [(side, [task for task in kit.tasks if task["split"] == side]) for side in SIDES]
    return [(side, tasks) for side, tasks in by_side if tasks]


def origin_of(kit: Kit, task: Row) -> Row:
    """What every row says of where it is from."""
    return {"task_id": task["task_id"], "family": task["family"], "split": task["split"], "environment": kit.name,
            "digest": kit.digest}


def put_lines(out: Path, name: str, rows: Iterable[Row]) -> list[Path]:
    """Write rows as JSON lines; gives the file."""
    lines = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n" for row in rows)
    return put(out, {name: lines.encode()})
