"""A registry in a folder and in a bucket: whole, immutable, each content once, one promotion at a time."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from pipelines.releases.registry import Registry, collect
from tests.pipelines.releases.conftest import put
from warehouse.errors import InputError, Missing, Overtaken, ReleaseBroken

DAY = 86400.0


def contents(registry: Registry) -> list[str]:
    return list(registry.storage.names("objects"))


def test_a_release_is_what_its_id_says(registry: Registry, tmp_path: Path) -> None:
    first = put(registry, tmp_path, {"environments/hall/tasks.jsonl": "one\n", "datasets/hall/a": "same", "report/b": "same"})
    assert put(registry, tmp_path, {"environments/hall/tasks.jsonl": "one\n", "datasets/hall/a": "same",
                                    "report/b": "same"}) == first, "equal builds are one release"
    assert len(contents(registry)) == 2, "equal files are there once"
    registry.promote(first, None, "it was looked at", "Ada")
    second = put(registry, tmp_path, {"environments/hall/tasks.jsonl": "two\n", "datasets/hall/a": "same"})
    assert second != first and len(contents(registry)) == 3
    assert registry.current() == first, "putting promotes nothing"
    assert registry.manifest(second)["predecessor"] == first
    assert [each.state for each in registry.listed()] == ["promoted", "waiting"]
    assert [(row["by"], row["from"], row["to"], row["why"]) for row in registry.promotions()] == [
        ("Ada", None, first, "it was looked at")]
    assert list(registry.verify(registry.ids())) == []
    fetched = registry.fetch(first, tmp_path / "fetched")
    assert (fetched / "environments/hall/tasks.jsonl").read_text() == "one\n"
    with pytest.raises(InputError, match="something already"):
        registry.fetch(first, fetched)


def test_names_stand_for_releases(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(Missing, match="nothing is promoted, so there is no release 'current'; make a release with"):
        registry.named("current")
    release = put(registry, tmp_path, {"a": "1"})
    with pytest.raises(Missing, match=f"nothing is promoted.*; promote one of {release} with: traceroom release --approve ID"):
        registry.named("current")
    registry.promote(release, None, "")
    registry.pin("paper", release)
    assert {registry.named(name) for name in ("current", "paper", release, release[:6])} == {release}
    registry.pin("paper", None)
    with pytest.raises(Missing, match="no release 'paper'"):
        registry.named("paper")
    for name in ("current", "r-1", ""):
        with pytest.raises(InputError):
            registry.pin(name, release)


def test_a_bucket_without_keys_names_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9")):
        monkeypatch.setenv(name, value)
    registry = Registry("s3://shelf-of-nobody/rooms")
    for look in (registry.current, registry.ids):
        with pytest.raises(InputError, match="shelf-of-nobody/rooms: no keys of the bucket are set; set AWS_ACCESS_KEY_ID"):
            look()


def test_only_one_of_two_promotes(registry: Registry, tmp_path: Path) -> None:
    releases = [put(registry, tmp_path, {"a": str(n)}) for n in range(4)]
    said: list[str] = []
    ready = threading.Barrier(len(releases))

    def promote(release: str) -> None:
        own = Registry(registry.where)
        ready.wait()
        try:
            own.promote(release, None, "")
            said.append("promoted")
        except Overtaken as error:
            said.append(str(error))

    threads = [threading.Thread(target=promote, args=(release,)) for release in releases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    current = registry.current()
    assert said.count("promoted") == 1, said
    assert all(f"{current} is promoted, no longer nothing" in each for each in said if each != "promoted")
    assert [row["to"] for row in registry.promotions()] == [current]


def test_a_promotion_whose_line_was_lost_gets_one(registry: Registry, tmp_path: Path) -> None:
    first, second = (put(registry, tmp_path, {"a": text}) for text in "12")
    assert registry.storage.swap("current", None, f"{first}\n".encode()), "as if killed before the log"
    registry.promote(second, first, "next")
    assert [(row["from"], row["to"], row["by"] is None) for row in registry.promotions()] == [
        (None, first, True), (first, second, False)]


def test_verifying_finds_each_damage(registry: Registry, tmp_path: Path) -> None:
    release = put(registry, tmp_path, {"a": "first", "b/c": "second"})
    name = next(each for each in contents(registry))
    damaged = registry.storage.read(name)
    assert damaged is not None
    (tmp_path / "other").write_bytes(b"x" * len(damaged))
    registry.storage.remove([name])
    lost = list(registry.verify([release]))
    assert [row["what"] for row in lost] == ["is not there"]
    with pytest.raises(ReleaseBroken, match="is not there"):
        registry.promote(release, None, "")
    registry.storage.upload(name, tmp_path / "other")
    assert [row["what"] for row in registry.verify([release])] == ["is not what it was made with"]
    with pytest.raises(ReleaseBroken, match="is not what it was made with"):
        registry.fetch(release, tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists(), "nothing half is handed out"


def test_verifying_finds_a_changed_manifest(registry: Registry, tmp_path: Path) -> None:
    release = put(registry, tmp_path, {"a": "1"}, figures={"n": 1})
    content = registry.storage.read(f"{release}/manifest.json") or b""
    assert registry.storage.swap(f"{release}/manifest.json", content, content.replace(b'"n":1', b'"n":2'))
    assert [row["what"] for row in registry.verify([release])] == ["its manifest is not the one that it was made with"]
    assert [each.state for each in registry.listed()] == ["broken"]
    with pytest.raises(ReleaseBroken, match="its manifest"):
        collect(registry, days=0)


def test_a_folder_holds_the_files_themselves(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "registry"))
    first = put(registry, tmp_path, {"rewards/a": "same", "b": "1"})
    second = put(registry, tmp_path, {"rewards/a": "same", "b": "2"})
    one, other = (tmp_path / "registry" / each / "rewards/a" for each in (first, second))
    assert one.read_text() == "same" and one.samefile(other), "equal files are one"
    assert not one.stat().st_mode & 0o222 and (tmp_path / "registry" / first).stat().st_mode & 0o77 == 0
    (tmp_path / "registry" / first / "more").write_text("")
    other.unlink()
    other.write_text("SAME")
    assert [(row["path"], row["what"]) for row in registry.verify(registry.ids())] in (
        [("more", "is none of its files"), ("rewards/a", "is not there, or not what it was made with")],
        [("rewards/a", "is not there, or not what it was made with"), ("more", "is none of its files")])


def test_collecting_leaves_what_is_reachable_or_pinned(registry: Registry, tmp_path: Path) -> None:
    made = []
    for n in range(5):
        made.append(put(registry, tmp_path, {"own": f"own {n}", "all": "same", f"kept{n % 2}": str(n % 2)}))
        registry.promote(made[-1], made[-2] if n else None, "")
    registry.pin("paper", made[0])
    waiting = put(registry, tmp_path, {"own": "waits"})
    later = time.time() + 2
    assert collect(registry, keep=2, days=1, now=later).releases == sorted([made[1], made[2]])
    assert registry.ids() == sorted([made[0], made[3], made[4], waiting])
    assert list(registry.verify(registry.ids())) == []
    much_later = later + 2 * DAY
    counted = collect(registry, keep=2, days=1, dry=True, now=much_later)
    assert counted.releases == [waiting] and counted.n_objects == 3, "two of the collected, and one that waited"
    assert waiting in registry.ids(), "a dry run takes nothing"
    assert collect(registry, keep=2, days=1, now=much_later) == counted
    assert list(registry.verify(registry.ids())) == [] and registry.current() == made[4]
    assert len(contents(registry)) == 6


def test_what_is_about_to_be_named_is_left(registry: Registry, tmp_path: Path) -> None:
    """An object that nobody names and that a new release needs is young again."""
    old = put(registry, tmp_path, {"a": "rare"})
    registry.storage.remove_folder(old)
    name = contents(registry)[0]
    if Path(registry.where).exists():
        os.utime(Path(registry.where) / name, (1, 1))
    release = put(registry, tmp_path, {"a": "rare", "b": "2"}, now=time.time() + 30 * DAY)
    assert collect(registry, days=1).n_objects == 0
    assert list(registry.verify([release])) == []


def test_withdrawing_takes_contents_away_and_says_so(registry: Registry, tmp_path: Path) -> None:
    first = put(registry, tmp_path, {"a": "of both", "b": "of the first alone"})
    registry.promote(first, None, "")
    second = put(registry, tmp_path, {"a": "of both"})
    gone = registry.withdraw(first, "somebody asked to be forgotten", second, "Ada")
    assert len(gone) == 1 and registry.current() == second
    assert list(registry.verify(registry.ids())) == []
    assert [each.state for each in registry.listed()] == ["promoted", "withdrawn"]
    told = registry.tombstone(first)
    assert told and (told["by"], told["why"]) == ("Ada", "somebody asked to be forgotten")
    for refuse in (lambda: registry.promote(first, second, ""), lambda: registry.fetch(first, tmp_path / "fetched")):
        with pytest.raises(ReleaseBroken, match="withdrawn by Ada"):
            refuse()
    registry.withdraw(second, "that too", None)
    assert registry.current() is None and contents(registry) == []
    third = put(registry, tmp_path, {"a": "of both"})
    registry.promote(third, None, "anew")
    assert registry.current() == third
    assert json.loads(json.dumps(registry.promotions()))[-1]["from"] is None
