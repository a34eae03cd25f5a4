"""Releases that held a person: a tombstone in their place, and what of them does not descend from the person issued anew.

In: a registry, and what tells that a file descends from the person. A part of a release (a room with its rewards, a withheld
room, a dataset) descends where one of its files does: the new release leaves it out. Its other parts keep their digests, its
tables (`about/`) lose the rows that name what is the person's, its report, the figures of the whole build and the gates' words
on it are left out: they count the person. The new release takes the place of the old one: in `current`, and under its pins.
Does not see: copies that somebody fetched, older versions that a bucket keeps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from pipelines.releases.registry import Filed, Registry, Source, object_of, source

Descends = Callable[[Path, str], bool]
"""Does the content of a file, which is called so, come from the person?"""
WHY = "a person was forgotten"
_KINDS = {"environment": "environments", "rewards": "rewards", "withheld": "withheld", "dataset": "datasets"}
_OWN = ("manifest.json", "files.jsonl", "withdrawn.json")


class Reissued(NamedTuple):
    """A release that held the person."""

    release: str
    instead: str | None
    """The release that was issued anew; None: all of it came from them."""
    left_out: list[str]
    """Parts that are not in it any more, `kind/name`."""


class _Known:
    """Which contents descend from the person, each looked into once."""

    def __init__(self, registry: Registry, descends: Descends) -> None:
        self._registry, self._descends = registry, descends
        self._known: dict[str, bool] = {}

    def holds(self, name: str, path: str) -> bool:
        if name not in self._known:
            with tempfile.TemporaryDirectory() as folder:
                self._registry.place.download(name, Path(folder) / "content")
                self._known[name] = self._descends(Path(folder) / "content", path)
        return self._known[name]


def holding(registry: Registry, descends: Descends) -> dict[str, set[str]]:
    """Release -> paths of its files that descend from the person, of those that were not withdrawn; oldest first."""
    known = _Known(registry, descends)
    found = {release: {each.path for each in registry.files(release) if known.holds(object_of(each.sha256), each.path)}
             for release in _in_order(registry)}
    return {release: paths for release, paths in found.items() if paths}


def reissue(registry: Registry, descends: Descends, by: str | None = None) -> list[Reissued]:
    """Put a tombstone in the place of every release that held the person, and issue the rest of it anew."""
    _finish(registry, descends)
    instead: dict[str, str | None] = {}
    found = []
    for release, theirs in holding(registry, descends).items():
        manifest = registry.manifest(release)
        parts, left_out = _parts(manifest["parts"], theirs)
        with tempfile.TemporaryDirectory() as scratch:
            files = _files(registry, registry.files(release), parts, descends, Path(scratch))
            told = {key: value for key, value in manifest.items() if key not in ("figures", "files", "format")}
            told |= {"parts": parts, "figures": {}, "gates": {}, "predecessor": _heir(manifest["predecessor"], instead),
                     "instead_of": {"release": release, "manifest": digest(canonical(manifest))}}
            instead[release] = registry.put(told, files) if parts else None
        for name in [name for name, pinned in registry.pins().items() if pinned == release]:
            registry.pin(name, instead[release])
        registry.withdraw(release, WHY, instead[release], by)
        found.append(Reissued(release, instead[release], left_out))
    _finish(registry, descends)
    return found


def _in_order(registry: Registry) -> list[str]:
    """Releases that were not withdrawn, each after the one that it was made after."""
    there = [release for release in registry.ids() if not registry.tombstone(release)]
    before = {release: registry.manifest(release)["predecessor"] for release in there}

    def depth(release: str | None) -> int:
        n = 0
        while release in before and n <= len(before):
            release, n = before[release], n + 1
        return n

    return sorted(there, key=lambda release: (depth(release), release))


def _heir(release: str | None, instead: dict[str, str | None]) -> str | None:
    return instead.get(release, release) if release else None


def _parts(parts: list[dict[str, Any]], theirs: set[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Parts that stay, and the names of those that go; a room and its rewards go together."""
    folders = {"/".join(path.split("/")[:2]) for path in theirs}
    gone = {(part["kind"], part["name"]) for part in parts if f"{_KINDS.get(part['kind'])}/{part['name']}" in folders}
    gone |= {(kind, name) for of, name in gone for kind in ("environment", "rewards") if of in ("environment", "rewards")}
    gone |= {(part["kind"], part["name"]) for part in parts if part["kind"] not in _KINDS}
    kept = [part for part in parts if (part["kind"], part["name"]) not in gone]
    return kept, sorted(f"{kind}/{name}" for kind, name in gone)


def _files(
    registry: Registry, files: list[Filed], parts: list[dict[str, Any]], descends: Descends, scratch: Path
) -> dict[str, Source]:
    """Files of the parts that stay, and the tables of `about` without rows of what is theirs."""
    folders = {f"{_KINDS[part['kind']]}/{part['name']}" for part in parts}
    found = {}
    for number, each in enumerate(files):
        folder = "/".join(each.path.split("/")[:2])
        if folder not in folders and not each.path.startswith("about/"):
            continue
        path = scratch / str(number)
        registry.place.download(object_of(each.sha256), path)
        if each.path.startswith("about/"):
            _without(path, each.path, descends)
        found[each.path] = source(path)
    return found


def _without(path: Path, name: str, descends: Descends) -> None:
    """Take the lines out of a table that name something of theirs."""
    row = path.with_name(f"{path.name}.row")
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        row.write_bytes(line)
        kept += [] if descends(row, name) else [line]
    path.write_bytes(b"".join(kept))


def _finish(registry: Registry, descends: Descends) -> None:
    """What a call that was killed left: files of withdrawn releases, contents of theirs that no release names."""
    if not registry.ids():
        return
    with registry.place.held():
        reachable = registry.reachable()
        paths = {object_of(each.sha256): each.path for release in registry.ids() for each in registry.files(release)}
        for release in registry.ids():
            if registry.tombstone(release):
                for folder in {name.split("/")[1] for name in registry.place.names(release)} - {*_OWN}:
                    registry.place.remove_folder(f"{release}/{folder}")
        known = _Known(registry, descends)
        registry.place.remove([name for name in registry.place.names("objects")
                               if name not in reachable and known.holds(name, paths.get(name, name))])
