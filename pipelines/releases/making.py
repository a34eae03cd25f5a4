"""A build as a release: the directories that it published, what they are worth in figures, and what became of each task.

In: OUT after a run, read from the published copy of the warehouse. Out: a manifest and the files of the release. Everything in
it comes from the build: no clock, no host, no path of this machine, so that equal builds give equal releases. `about/` holds
what two releases are compared by: ids, reasons and figures, never a word of a log.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.bundle import MANIFEST
from env_builder.runtime.canonical import canonical, digest
from pipelines import bundling, exporting, privacy
from pipelines.engine import code_digest
from pipelines.releases.registry import Source, source
from pipelines.settings import Settings
from warehouse.errors import EnvironmentBroken
from warehouse.store import Store

ABOUT: dict[str, str] = {
    "tasks": (
        "select task_id, service, family, split, difficulty, session_ids, 'logged' as made_from, task_id in (select subject "
        "from mart.verdicts where stage = 'verify' and kept) as published from mart.tasks union all "
        "select task_id, service, family, split, null, session_ids, made_from, task_id in (select subject from mart.verdicts "
        "where stage = 'verify' and kept) from mart.variants where task_id not in (select task_id from mart.tasks) "
        "order by task_id"),
    "left": (
        "select stage, subject, reason from mart.verdicts where not kept and stage in ('sessions', 'outcomes', 'tasks', "
        "'rewards', 'variants', 'verify', 'environments', 'datasets') order by all"),
    "families": (
        "select service, family, name, n_sessions, n_tasks, n_good, rate from mart.families join mart.names using (service, "
        "family) order by service, family"),
    "tools": (
        "select service, tool, effect, n_support, n_against, fidelity, abstains from mart.behaviours order by service, tool"),
    "drift": "select subject, reason from mart.verdicts where stage = 'drift' order by all",
    "files": "select file_id, format, n_records, day from raw.files order by file_id",
}
"""Tables of `about/`, as JSON lines."""
_FIGURES = """
    select (select count(*) from raw.files) as n_files, (select count(*) from raw.records) as n_records,
        (select count(*) from core.sessions) as n_sessions, (select count(*) from core.tools) as n_tools,
        (select count(*) from mart.families) as n_families, (select count(*) from mart.tasks) as n_tasks,
        (select coalesce(sum(n_tasks), 0) from mart.environments) as n_published,
        (select count(*) from mart.outcomes where probability is null) as n_abstained,
        (select avg(probability) from mart.outcomes) as success,
        (select sum(fidelity * n_support) / sum(n_support) from mart.behaviours where fidelity is not null) as fidelity,
        (select sum(abstains * n_support) / sum(n_support) from mart.behaviours where abstains is not null) as abstains,
        (select coalesce(sum(n_rows), 0) from mart.datasets where kind = 'trajectories') as n_trajectories
"""
_PLACES = 4


class Draft(NamedTuple):
    """A release that is not put anywhere yet."""

    manifest: dict[str, Any]
    files: dict[str, Source]
    """By their path in the release."""


def make(store: Store, settings: Settings, predecessor: str | None, scratch: Path) -> Draft:
    """The release of what OUT holds; `scratch` is an empty folder that must live until it was put.

    Raises EnvironmentBroken where OUT is not what the warehouse says: a run was killed, or somebody changed it.
    """
    _must_hold(store, settings)
    parts = dict(_parts(store, settings))
    _must_be(parts, dict(store.read("select path, sha256 from mart.datasets").iter_rows()), settings)
    about = _about(store, scratch / "about")
    report = _report(store, scratch / "report", Path(settings.out))
    files = {f"{folder}/{path}": each for (_, folder), found in (parts | report).items() for path, each in found.items()}
    manifest = {
        "service": _service(store), "built_from": _built_from(store), "code": code_digest(), "settings": _told(settings),
        "privacy": privacy.stated(store), "predecessor": predecessor, "figures": _figures(store, settings),
        "parts": [_part(kind, folder, found) for (kind, folder), found in sorted((parts | report).items())]}
    return Draft(manifest, files | about)


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Do two manifests tell of the same content from the same logs? What came before, and how it was judged, is no part of
    it."""
    beside = ("predecessor", "gates", "format", "files")
    return all(one.get(key) == other.get(key) for key in one.keys() | other.keys() if key not in beside)


def _must_hold(store: Store, settings: Settings) -> None:
    rows = store.table("mart.environments").to_dicts()
    sealed = all(_sealed(settings.rewards / row["environment"]) == row["rewards_digest"] for row in rows)
    if not (sealed and bundling.hold(store, settings) and exporting.hold(store, settings)):
        raise _other(settings.out)


def _must_be(parts: dict[tuple[str, str], dict[str, Source]], datasets: dict[str, str], settings: Settings) -> None:
    """Hold every file to the digest that the warehouse, or the manifest of its room, has of it."""
    for (kind, folder), files in parts.items():
        known = {path.removeprefix(f"{folder}/"): sha256 for path, sha256 in datasets.items() if path.startswith(f"{folder}/")}
        if kind == "rewards" and digest(_lines(files, "rewards.json")) != _sealed(settings.rewards / folder.split("/")[1]):
            raise _other(str(Path(settings.out) / folder))
        if kind in ("environment", "withheld"):
            known = json.loads(files[MANIFEST].place.read_text("utf-8"))["files"]
        for path in sorted(files.keys() | known.keys()):
            if path in known and (path not in files or files[path].sha256 != known[path]):
                raise _other(str(Path(settings.out) / folder / path))
            if path not in known and kind != "rewards" and path != MANIFEST:
                raise _other(str(Path(settings.out) / folder / path))


def _other(where: str) -> EnvironmentBroken:
    return EnvironmentBroken("this is not what the warehouse tells of", where, "let a run make it again: traceroom run")


def _sealed(rewards: Path) -> str | None:
    try:
        return str(json.loads((rewards / "rewards.json").read_text("utf-8"))["rewards_digest"])
    except (OSError, ValueError, KeyError):
        return None


def _parts(store: Store, settings: Settings) -> Iterable[tuple[tuple[str, str], dict[str, Source]]]:
    """(kind, folder in the release) -> its files by their path below it."""
    names = store.table("mart.environments")["environment"].to_list()
    for name in names:
        yield ("environment", f"environments/{name}"), _files(settings.environments / name)
        yield ("rewards", f"rewards/{name}"), _files(settings.rewards / name)
    for manifest in sorted(settings.withheld.glob(f"*/{MANIFEST}")):
        yield ("withheld", f"withheld/{manifest.parent.name}"), _files(manifest.parent)
    paths = store.read("select path from mart.datasets order by path")["path"].to_list()
    for name in sorted({path.split("/")[1] for path in paths}):
        folder = f"datasets/{name}/"
        yield ("dataset", folder.rstrip("/")), {
            path.removeprefix(folder): source(Path(settings.out) / path) for path in paths if path.startswith(folder)}


def _files(folder: Path) -> dict[str, Source]:
    """Files below a folder; what an interpreter keeps of modules is none of them."""
    return {path.relative_to(folder).as_posix(): source(path) for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts}


def _part(kind: str, folder: str, files: dict[str, Source]) -> dict[str, Any]:
    return {"kind": kind, "name": folder.partition("/")[2] or folder, "digest": digest(_lines(files)), "n_files": len(files),
            "bytes": sum(each.n_bytes for each in files.values())}


def _lines(files: dict[str, Source], without: str = "") -> str:
    return "".join(f"{path}\0{each.sha256}\n" for path, each in sorted(files.items()) if path != without)


def _about(store: Store, folder: Path) -> dict[str, Source]:
    folder.mkdir(parents=True)
    found = {}
    for name, query in ABOUT.items():
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(canonical(row) + "\n" for row in store.read(query).to_dicts())
        found[f"about/{name}.jsonl"] = source(path)
    return found


def _report(store: Store, folder: Path, out: Path) -> dict[tuple[str, str], dict[str, Source]]:
    """The page for people, where this installation can write it."""
    if importlib.util.find_spec("pipelines.reporting") is None:
        return {}
    reporting = importlib.import_module("pipelines.reporting")
    folder.mkdir(parents=True)
    reporting.report(store, folder, out)
    return {("report", "report"): _files(folder)}


def _service(store: Store) -> str:
    names = store.read("select distinct service from core.sessions order by service")["service"].to_list()
    return names[0] if len(names) == 1 else "all"


def _built_from(store: Store) -> str:
    return digest("\n".join(store.read("select file_id from raw.files order by file_id")["file_id"]))


def _told(settings: Settings) -> str:
    """Digest of what the configuration says of how things are made; not of where the logs lie."""
    told = settings.configured.model_dump(mode="json", exclude={"release"})
    told["sources"] = [{key: value for key, value in each.items() if key != "paths"} for each in told["sources"]]
    for section, folder in (("behaviour", "programs"), ("rewards", "rubrics")):
        told[section].pop(folder, None)   # a place; what lies there is in the next line
    return digest(canonical([told, settings.behaviour_text, settings.rewards_text]))


def _figures(store: Store, settings: Settings) -> dict[str, float | int]:
    """Name -> number, of the whole build; what cannot be told is not among them."""
    found: dict[str, Any] = store.read(_FIGURES).row(0, named=True)
    calls = answered = 0.0
    for name in store.table("mart.environments")["environment"]:
        told = json.loads((settings.environments / name / MANIFEST).read_text("utf-8"))["coverage"]
        calls += told["n_calls"]
        answered += told["n_calls"] * (told["answered"] or 0.0)
    leaks = [json.loads(report).get("leaks", 0) for report in store.table("mart.leakage")["report"]]
    found |= {"answered": answered / calls if calls else None, "n_leaks": sum(leaks)}
    return {name: round(value, _PLACES) if isinstance(value, float) else int(value)
            for name, value in sorted(found.items()) if value is not None}
