"""A release that held a person becomes a tombstone, and what did not come from them is issued anew, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pipelines.erasing.folders import Trace
from pipelines.erasing.identifiers import Identifiers
from pipelines.releases.registry import Registry, Source, source
from pipelines.releases.reissuing import holding, reissue
from warehouse.errors import ReleaseBroken

EVENT = "5c3f9a0b" * 4
TRACE = Trace(Identifiers(["ann_1000"]), [EVENT, "s1", "a7d55e2c01f3b4aa"])
OTHERS = {"environments/other/tasks.jsonl": '{"task_id":"b1"}\n', "rewards/other/rubrics.jsonl": '{"task_id":"b1"}\n'}
THEIRS = {"environments/hall/world.jsonl": f'{{"event":"{EVENT}","key":"door"}}\n', "rewards/hall/rubrics.jsonl": "{}\n",
          "unverified/hall/manifest.json": "{}"}
ABOUT = {"about/tasks.jsonl": '{"session_ids":["s1"],"task_id":"a1"}\n{"session_ids":["s2"],"task_id":"b1"}\n',
         "report/index.html": "<p>two sessions"}
KINDS = {"environments": "environment", "rewards": "rewards", "unverified": "unverified", "datasets": "dataset"}


def put(registry: Registry, folder: Path, contents: dict[str, str | pl.DataFrame], note: str = "") -> str:
    """Return a release of these files with its parts in the manifest, as a build makes one."""
    files: dict[str, Source] = {}
    for path, text in contents.items():
        place = folder / note / path
        place.parent.mkdir(parents=True, exist_ok=True)
        text.write_parquet(place) if isinstance(text, pl.DataFrame) else place.write_text(text)
        files[path] = source(place)
    folders = sorted({"/".join(path.split("/")[:2]) for path in contents if path.split("/")[0] in KINDS})
    parts = [{"kind": KINDS[each.split("/")[0]], "name": each.split("/")[1], "digest": "d"} for each in folders]
    parts += [{"kind": "report", "name": "report", "digest": "d"}] if "report/index.html" in contents else []
    return registry.put({"predecessor": registry.current(), "parts": parts, "figures": {"n": 2}, "service": note}, files)


def everything(registry: Registry) -> bytes:
    return b"\n".join(registry.storage.read(name) or b"" for name in registry.storage.names(""))


def test_what_did_not_come_from_them_is_issued_anew(registry: Registry, tmp_path: Path) -> None:
    dataset = pl.DataFrame({"say": ["hello from ann_1000"] * 50})
    first = put(registry, tmp_path, {**OTHERS}, "first")
    registry.promote(first, None, "")
    second = put(registry, tmp_path, {**OTHERS, **THEIRS, **ABOUT, "datasets/hall/a.parquet": dataset}, "second")
    registry.promote(second, first, "")
    third = put(registry, tmp_path, {**OTHERS, **THEIRS, **ABOUT}, "third")
    registry.promote(third, second, "")
    registry.pin("paper", second)
    other = {each.path: each.sha256 for each in registry.files(third) if "/other/" in each.path}
    assert list(holding(registry, TRACE.in_file)) == [second, third]
    done = reissue(registry, TRACE.in_file, "Ada")
    assert [each.release for each in done] == [second, third]
    assert done[0].left_out == ["dataset/hall", "environment/hall", "report/report", "rewards/hall"]
    assert registry.current() == done[1].instead and registry.pins() == {"paper": done[0].instead}
    assert registry.manifest(str(done[1].instead))["predecessor"] == done[0].instead
    assert {each.path: each.sha256 for each in registry.files(str(done[1].instead)) if "/other/" in each.path} == other
    assert [row["task_id"] for row in registry.rows(str(done[1].instead), "about/tasks.jsonl")] == ["b1"]
    told = registry.tombstone(third)
    assert told is not None and told["instead"] == done[1].instead and len(told["manifest"]) == 64 and told["by"] == "Ada"
    with pytest.raises(ReleaseBroken, match="withdrawn by Ada"):
        registry.fetch(third, tmp_path / "fetched")
    for word in (b"ann_1000", EVENT.encode(), b'"s1"', b"two sessions"):
        assert word not in everything(registry)
    assert list(registry.verify(registry.ids())) == [] and registry.tombstone(first) is None
    assert reissue(registry, TRACE.in_file) == []


def test_of_a_release_that_came_from_them_alone_nothing_is_left(registry: Registry, tmp_path: Path) -> None:
    release = put(registry, tmp_path, {path: text for path, text in THEIRS.items() if EVENT in str(text)})
    registry.promote(release, None, "")
    done = reissue(registry, TRACE.in_file)
    assert [(each.release, each.instead) for each in done] == [(release, None)] and registry.current() is None
    assert EVENT.encode() not in everything(registry)


def test_a_call_that_was_killed_is_finished_by_the_next(registry: Registry, tmp_path: Path) -> None:
    """Killed between the tombstone and the removal of what it stands for; and a content that no release names yet."""
    release = put(registry, tmp_path, {**OTHERS, **THEIRS})
    registry.promote(release, None, "")
    registry.storage.swap(f"{release}/withdrawn.json", None, json.dumps({"by": "Ada", "at": "", "why": ""}).encode())
    assert EVENT.encode() in everything(registry)
    assert reissue(registry, TRACE.in_file) == []
    assert EVENT.encode() not in everything(registry)
