"""A registry whose release names paths elsewhere: a pull writes below its own folder alone, and no release hides its own
papers."""

from __future__ import annotations

from pathlib import Path

from pipelines.releases.registry import Registry
from tests.attacks.logs import files_below
from tests.attacks.lying import release_of
from tests.attacks.report import Report
from warehouse.errors import TraceroomError

PATHS = ("../planted", "/tmp/planted-by-release", "a/../../planted", "a/../../../planted", "..", ".", "", "a//b", "a/./b", "/",
    "a/",
         "a\x00b", "a\nb", "..\\planted", "C:\\planted", "manifest.json", "files.jsonl", "withdrawn.json", "a/" * 3_000 + "b",
         "x" * 300, "-rf",
         "\u202ename", "a/../manifest.json")


def attack(folder: Path, share: float) -> Report:
    """Make a release whose id is right for each list of paths, and pull, verify and withdraw it."""
    problems = []
    for number, path in enumerate(PATHS):
        registry, release = release_of(folder / str(number), {path: b"planted", "environments/hall/tasks.jsonl": b"{}\n"})
        before = files_below(folder) | {"/tmp/planted-by-release"}
        try:
            pulled = registry.fetch(release, folder / str(number) / "pulled")
            inside = {str(each) for each in pulled.rglob("*")}
            if path not in ("-rf", "\u202ename") or not inside:
                problems.append(f"{path[:30]!r} is pulled: {sorted(inside)[:3]}")
        except TraceroomError:
            pass
        written = {each for each in files_below(folder) - before if f"/{number}/pulled/" not in each}
        problems += [f"{path[:30]!r}: {each} was written" for each in written]
        try:
            registry.withdraw(release, "x", None, "x")
            list(Registry(str(folder / str(number) / "registry")).verify([release]))
        except TraceroomError:
            pass
        problems += [f"{path[:30]!r}: what lies beside is gone"] if not (folder / str(number) / "beside").exists() else []
    problems += ["a file was written in /tmp"] if Path("/tmp/planted-by-release").exists() else []
    return Report(len(PATHS), tuple(problems))


def test_a_release_writes_in_its_folder(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
