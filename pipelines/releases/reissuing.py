"""Erasure from releases: yank each one that holds a person's data, and reissue the rest of it.

In: a registry, and a function that tells whether a file descends from the person. A part of a release (an environment with its
rewards, an unverified environment, a dataset) descends where one of its files does: the new release omits it. Its other parts
keep their digests, its tables (`about/`) lose the rows that name the person's records; its report, figures and gates are
omitted, since they count the person. The new release replaces the old one in `current` and under its pins.
Does not see: copies that somebody pulled, older versions that a bucket keeps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from pipelines.releases.registry import Registry, ReleaseFile, Source, object_of, source

Descends = Callable[[Path, str], bool]
"""(content of a file, its path) -> whether it comes from the person."""
WHY = "a person was forgotten"
_KINDS = {"environment": "environments", "rewards": "rewards", "unverified": "unverified", "dataset": "datasets"}
_OWN = ("manifest.json", "files.jsonl", "withdrawn.json")


class Reissued(NamedTuple):
    """A release that held the person."""

    release: str
    instead: str | None
    """The release that replaces it; None: all of it came from them."""
    left_out: list[str]
    """Parts that are not in it any more, `kind/name`."""


def _holds(registry: Registry, descends: Descends) -> Callable[[str, str], bool]:
    """Give a function of (name of a content, path) that tells whether it descends from the person; each is read once."""
    answers: dict[str, bool] = {}

    def holds(name: str, path: str) -> bool:
        if name not in answers:
            with tempfile.TemporaryDirectory() as folder:
                registry.storage.download(name, Path(folder) / "content")
                answers[name] = descends(Path(folder) / "content", path)
        return answers[name]

    return holds


def holding(registry: Registry, descends: Descends) -> dict[str, set[str]]:
    """Release -> paths of its files that descend from the person, of those that were not withdrawn; oldest first."""
    there = [release for release in registry.ids() if not registry.tombstone(release)]
    before = {release: registry.manifest(release)["predecessor"] for release in there}

    def depth(release: str | None) -> int:
        n = 0
        while release in before and n <= len(before):
            release, n = before[release], n + 1
        return n

    holds = _holds(registry, descends)
    by_release = {release: {each.path for each in registry.files(release) if holds(object_of(each.sha256), each.path)}
                  for release in sorted(there, key=lambda release: (depth(release), release))}
    return {release: paths for release, paths in by_release.items() if paths}


def reissue(registry: Registry, descends: Descends, by: str | None = None) -> list[Reissued]:
    """Yank every release that held the person, and reissue the rest of it."""
    _finish(registry, descends)
    instead: dict[str | None, str | None] = {}
    reissued = []
    for release, theirs in holding(registry, descends).items():
        manifest = registry.manifest(release)
        parts = manifest["parts"]
        folders = {"/".join(path.split("/")[:2]) for path in theirs}
        gone = {(part["kind"], part["name"]) for part in parts if f"{_KINDS.get(part['kind'])}/{part['name']}" in folders}
        gone |= {(kind, name) for of, name in gone for kind in ("environment", "rewards") if of in ("environment", "rewards")}
        gone |= {(part["kind"], part["name"]) for part in parts if part["kind"] not in _KINDS}
        parts = [part for part in parts if (part["kind"], part["name"]) not in gone]
        with tempfile.TemporaryDirectory() as scratch:
            files = _files(registry, registry.files(release), parts, descends, Path(scratch))
            fields = {key: value for key, value in manifest.items() if key not in ("figures", "files", "format")}
            fields |= {"parts": parts, "figures": {}, "gates": {}, "instead_of": {
                "release": release, "manifest": digest(canonical(manifest))}}
            fields["predecessor"] = instead.get(manifest["predecessor"], manifest["predecessor"])
            instead[release] = registry.put(fields, files) if parts else None
        for name in [name for name, pinned in registry.pins().items() if pinned == release]:
            registry.pin(name, instead[release])
        registry.withdraw(release, WHY, instead[release], by)
        reissued.append(Reissued(release, instead[release], sorted(f"{kind}/{name}" for kind, name in gone)))
    _finish(registry, descends)
    return reissued


def _files(
    registry: Registry, files: list[ReleaseFile], parts: list[dict[str, Any]], descends: Descends, scratch: Path
) -> dict[str, Source]:
    """Files of the parts that stay, and the tables of `about` without the person's rows."""
    folders = {f"{_KINDS[part['kind']]}/{part['name']}" for part in parts}
    remaining = {}
    for number, each in enumerate(files):
        folder = "/".join(each.path.split("/")[:2])
        if folder not in folders and not each.path.startswith("about/"):
            continue
        path = scratch / str(number)
        registry.storage.download(object_of(each.sha256), path, each.n_bytes)
        if each.path.startswith("about/"):
            row = path.with_name(f"{path.name}.row")
            kept = []
            for line in path.read_bytes().splitlines(keepends=True):
                row.write_bytes(line)
                kept += [] if descends(row, each.path) else [line]
            path.write_bytes(b"".join(kept))
        remaining[each.path] = source(path)
    return remaining


def _finish(registry: Registry, descends: Descends) -> None:
    """Delete what a killed call did not: files of yanked releases, and contents that no release names."""
    if not registry.ids():
        return
    with registry.storage.lock():
        reachable = registry.reachable()
        paths = {object_of(each.sha256): each.path for release in registry.ids() for each in registry.files(release)}
        for release in registry.ids():
            if registry.tombstone(release):
                for folder in {name.split("/")[1] for name in registry.storage.names(release)} - {*_OWN}:
                    registry.storage.remove_folder(f"{release}/{folder}")
        holds = _holds(registry, descends)
        registry.storage.remove([name for name in registry.storage.names("objects")
                                 if name not in reachable and holds(name, paths.get(name, name))])
