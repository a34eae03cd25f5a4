"""A reward changed, everything else the same: what of the rooms and of their images is made again."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path

import polars as pl
from rewards_data import RewardsOptions, whole

from env_builder import image
from env_builder.runtime.canonical import canonical, digest
from pipelines.building.environments import environments
from pipelines.settings import Settings
from warehouse.errors import Unavailable
from warehouse.store import Store

Snapshot = dict[str, tuple[int, int, str]]
"""Path -> inode, time of change in ns, sha256."""


def rebuilt(options: RewardsOptions) -> dict[str, float]:
    """Files of rooms that are written anew and layers of images that are new, after one rubric of each service has changed."""
    out = options.scratch / "rebuilt"
    shutil.copytree(whole(options), out)
    settings = Settings(logs=(), out=str(out), image=_has_engine())
    with Store.open(settings.warehouse) as store:
        environments(store, settings)
        before, layers = _files(out), _layers(out)
        rewards = _digests(out)
        rubrics = store.table("mart.rubrics")
        store.replace("mart.rubrics", _changed(rubrics, store))
        environments(store, settings)
    after = _files(out)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    added = _layers(out) - layers
    print(*changed, *sorted(added), sep="\n", file=sys.stderr)
    return {"rebuilt": len(changed) + len(added), "rebuilt_files_of": len(after), "rebuilt_layers_of": len(_layers(out)),
            "rewards_changed": sum(one != rewards.get(name) for name, one in _digests(out).items())}


def _changed(rubrics: pl.DataFrame, store: Store) -> pl.DataFrame:
    """Return the rubrics, one published one of each service with another weight and another sentence."""
    published = store.read("select subject from mart.decisions where stage = 'verify' and kept")["subject"].implode()
    chosen = rubrics.filter(pl.col("task_id").is_in(published)).sort("task_id").group_by("service", maintain_order=True).first()
    rows = []
    for row in rubrics.to_dicts():
        if row["task_id"] in chosen["task_id"]:
            checks = json.loads(row["checks"])
            checks[0] |= {"weight": 2.0, "description": f"{checks[0]['description']} It weighs twice."}
            row |= {"checks": canonical(checks), "rubric_id": digest(canonical([row["task_id"], checks]))}
        rows.append(row)
    return pl.DataFrame(rows, schema=rubrics.schema)


def _files(out: Path) -> Snapshot:
    paths = [path for folder in ("environments", "unverified") for path in sorted((out / folder).rglob("*")) if path.is_file()]
    return {path.relative_to(out).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns, digest(path.read_bytes()))
            for path in paths}


def _digests(out: Path) -> dict[str, str]:
    return {path.parent.name: json.loads(path.read_text("utf-8"))["rewards_digest"]
            for path in sorted(out.glob("rewards/*/rewards.json"))}


def _has_engine() -> bool:
    try:
        image.engine().close()
    except Unavailable as error:
        print(f"no image is counted: {error}", file=sys.stderr)
        return False
    return True


def _layers(out: Path) -> set[str]:
    """Layers of the images that the manifests name."""
    digests: set[str] = set()
    for path in sorted(out.glob("environments/*/manifest.json")):
        name = json.loads(path.read_text("utf-8"))["image"].get("image_id")
        if name:
            with contextlib.closing(image.engine()) as client:
                digests |= set(client.images.get(name).attrs["RootFS"]["Layers"])
    return digests
