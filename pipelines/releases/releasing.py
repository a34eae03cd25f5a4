"""From a finished build to a promoted release: judged by every gate, put into the registry, promoted.

A red gate changes neither the registry nor the promoted release. Where approval is configured, the release is put and waits. A
build that is promoted already changes nothing.

A release is the directories that a build published, its figures, and what became of each task. Read: OUT after a run, and the
published copy of the warehouse. Written: a manifest and the files of the release, without clock, host or path of this machine,
so that equal builds give equal releases. Two releases are compared by `about/`: ids, reasons and figures, no word of a log.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from env_builder.bundle import MANIFEST
from env_builder.runtime.canonical import canonical, digest
from pipelines.building import datasets as exporting
from pipelines.building import environments as bundling
from pipelines.privacy import guard as privacy
from pipelines.quality.gates import GATES, Build, Judged, judge
from pipelines.quality.precision import published_precision
from pipelines.releases.registry import Registry, Source, source
from pipelines.reporting import report
from pipelines.rollouts.measured import released_figures
from pipelines.running.code import code_digest
from pipelines.settings import Settings
from warehouse.errors import EnvironmentBroken, GateFailed, InputError, Missing, Overtaken
from warehouse.lock import writing
from warehouse.store import Store


class Released(NamedTuple):
    """What became of a build."""

    release: str | None
    """Id of the release; None: a gate is red, and there is none."""
    state: Literal["promoted", "waiting", "stands", "refused"]
    """stands: the promoted release is this build already."""
    before: str | None
    """The release that was promoted when it began."""
    judged: list[Judged]


def registry_of(settings: Settings, address: str | None = None) -> Registry:
    """Open a registry: at `address`, else as configured, else OUT/releases. Raises InputError, Unavailable."""
    return Registry(address or settings.configured.release.registry or str(settings.releases))


def release(
    settings: Settings, registry: Registry, why: str = "", by: str | None = None, accepted: Iterable[str] = (),
    waiting: Callable[[str], None] | None = None,
) -> Released:
    """Release what OUT holds. Raises TraceroomError; Overtaken where another release was promoted meanwhile."""
    accepted = tuple(accepted)
    acceptable = {gate.name for gate in GATES if gate.acceptable}
    for name in accepted:
        if name in {gate.name for gate in GATES} - acceptable:
            raise InputError("this gate cannot be accepted: what it finds is broken", name, "fix what it finds")
        if name not in acceptable:
            raise Missing.named("gate", name, acceptable)
    with (writing(settings.warehouse, "a release", waiting), Store.published(settings.warehouse) as store,
          tempfile.TemporaryDirectory() as scratch):
        before = registry.current()
        draft = make(store, settings, before, Path(scratch))
        manifest = registry.manifest(before) if before else None
        drift = registry.rows(before, "about/drift.jsonl") if before else []
        judged = judge(Build(
            store, settings, draft.files, manifest, frozenset((row["subject"], row["reason"]) for row in drift),
            frozenset(each.sha256 for each in registry.files(before)) if before else frozenset()), accepted)
        if any(each.red for each in judged):
            return Released(None, "refused", before, judged)
        if manifest and same(manifest, draft.manifest):
            return Released(before, "stands", before, judged)
        gates = {each.gate: {"level": each.level, "n": each.rows.height, **({"accepted": True} if each.accepted else {})}
                 for each in judged}
        made = registry.put(draft.manifest | {"gates": gates}, draft.files)
    if settings.configured.release.approval:
        return Released(made, "waiting", before, judged)
    registry.promote(made, before, why or "every gate holds", by)
    return Released(made, "promoted", before, judged)


def approve(registry: Registry, name: str, why: str, by: str | None = None) -> tuple[str, str | None]:
    """Promote a release that waits, or return to one that was promoted before; gives it and the one that was promoted till now.
    Raises Missing, ReleaseBroken, Overtaken (another one was promoted since it was made)."""
    release, before = registry.named(name), registry.current()
    was_promoted = {row["to"] for row in registry.promotions()}
    made_after = registry.manifest(release)["predecessor"]
    if release != before and release not in was_promoted and made_after != before:
        raise Overtaken(f"it was made after {made_after or 'nothing'}, and {before or 'nothing'} is promoted now", release,
                        "release again, so that the gates compare it with that")
    registry.promote(release, before, why or "approved", by)
    return release, before


def refusal(judged: Iterable[Judged], before: str | None) -> GateFailed:
    """Error of a build that gates reject."""
    red = [each.gate for each in judged if each.red]
    stands = f"{before} stays promoted" if before else "nothing is promoted"
    return GateFailed(f"{', '.join(red)}: {stands}", "release", "fix what the rows above say, or see docs/releases.md")


ABOUT: dict[str, str] = {
    "tasks": (
        "select task_id, service, family, split, difficulty, session_ids, 'logged' as made_from, task_id in (select subject "
        "from mart.decisions where stage = 'verify' and kept) as published from mart.tasks union all "
        "select task_id, service, family, split, null, session_ids, made_from, task_id in (select subject from mart.decisions "
        "where stage = 'verify' and kept) from mart.variants where task_id not in (select task_id from mart.tasks) "
        "order by task_id"),
    "left": (
        "select stage, subject, reason from mart.decisions where not kept and stage in ('sessions', 'outcomes', 'tasks', "
        "'rewards', 'variants', 'verify', 'environments', 'datasets') order by all"),
    "families": (
        "select service, family, name, n_sessions, n_tasks, n_succeeded, rate "
        "from mart.families join mart.names using (service, family) order by service, family"),
    "tools": (
        "select service, tool, effect, n_support, n_against, fidelity, abstains from mart.behaviours order by service, tool"),
    "drift": "select subject, reason, detail from mart.decisions where stage = 'drift' order by all",
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
    """A release that is in no registry yet."""

    manifest: dict[str, Any]
    files: dict[str, Source]
    """By their path in the release."""


def make(store: Store, settings: Settings, predecessor: str | None, scratch: Path) -> Draft:
    """Draft the release of what OUT holds; `scratch` is an empty folder that must live until it was put. Raises
    EnvironmentBroken where OUT is not what the warehouse says: a run was killed, or somebody changed it."""
    rows = store.table("mart.environments").to_dicts()
    sealed = all(_sealed(settings.rewards / row["environment"]) == row["rewards_digest"] for row in rows)
    if not (sealed and bundling.hold(store, settings) and exporting.hold(store, settings)):
        raise _other(settings.out)
    parts = dict(_parts(store, settings))
    _must_be(parts, dict(store.read("select path, sha256 from mart.datasets").iter_rows()), settings)
    (scratch / "report").mkdir(parents=True)
    report(store, scratch / "report", Path(settings.out))
    parts["report", "report"] = _files(scratch / "report")
    files = {f"{folder}/{path}": each for (_, folder), sources in parts.items() for path, each in sources.items()}
    (scratch / "about").mkdir()
    for name, query in ABOUT.items():
        path = scratch / "about" / f"{name}.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as lines:
            lines.writelines(canonical(row) + "\n" for row in store.read(query).to_dicts())
        files[f"about/{name}.jsonl"] = source(path)
    names = store.read("select distinct service from core.sessions order by service")["service"].to_list()
    precision, _ = published_precision(store)
    measured = released_figures(Path(settings.out), [row["environment"] for row in rows])
    manifest = {
        **({"transfer": measured} if measured else {}),
        "service": names[0] if len(names) == 1 else "all",
        "built_from": digest("\n".join(store.read("select file_id from raw.files order by file_id")["file_id"])),
        "code": code_digest(),
        "settings": _config_digest(settings),
        "privacy": privacy.stated(store),
        "predecessor": predecessor,
        "figures": _figures(store, settings),
        "precision": precision and precision._asdict(),
        "parts": [{"kind": kind, "name": folder.partition("/")[2] or folder, "digest": digest(_lines(sources)),
                   "n_files": len(sources), "bytes": sum(each.n_bytes for each in sources.values())}
                  for (kind, folder), sources in sorted(parts.items())],
    }
    return Draft(manifest, files)


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two manifests describe the same content from the same logs, whatever the predecessor and the gates."""
    ignored_keys = ("predecessor", "gates", "format", "files")
    return all(one.get(key) == other.get(key) for key in one.keys() | other.keys() if key not in ignored_keys)


def _must_be(parts: dict[tuple[str, str], dict[str, Source]], datasets: dict[str, str], settings: Settings) -> None:
    """Check every file by the digest that the warehouse, or the manifest of its environment, has of it."""
    for (kind, folder), files in parts.items():
        prefix = f"{folder}/"
        expected = {path.removeprefix(prefix): sha256 for path, sha256 in datasets.items() if path.startswith(prefix)}
        if kind == "rewards" and digest(_lines(files, "rewards.json")) != _sealed(settings.rewards / folder.split("/")[1]):
            raise _other(str(Path(settings.out) / folder))
        if kind in ("environment", "unverified"):
            expected = json.loads(files[MANIFEST].path.read_text("utf-8"))["files"]
        for path in sorted(files.keys() | expected.keys()):
            unlisted = path not in expected
            if (kind != "rewards" and path != MANIFEST) if unlisted else (
                    path not in files or files[path].sha256 != expected[path]):
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
    for manifest in sorted(settings.unverified.glob(f"*/{MANIFEST}")):
        yield ("unverified", f"unverified/{manifest.parent.name}"), _files(manifest.parent)
    paths = store.read("select path from mart.datasets order by path")["path"].to_list()
    for name in sorted({path.split("/")[1] for path in paths}):
        folder = f"datasets/{name}/"
        yield ("dataset", folder.rstrip("/")), {
            path.removeprefix(folder): source(Path(settings.out) / path) for path in paths if path.startswith(folder)}


def _files(folder: Path) -> dict[str, Source]:
    """Files below a folder, without an interpreter's caches."""
    return {path.relative_to(folder).as_posix(): source(path) for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts}


def _lines(files: dict[str, Source], without: str = "") -> str:
    return "".join(f"{path}\0{each.sha256}\n" for path, each in sorted(files.items()) if path != without)


def _config_digest(settings: Settings) -> str:
    """Digest of the configuration, without the paths of logs and of the registry."""
    values = settings.configured.model_dump(mode="json", exclude={"release"})
    values["sources"] = [{key: value for key, value in each.items() if key != "paths"} for each in values["sources"]]
    for section, folder in (("behaviour", "programs"), ("rewards", "rubrics")):
        values[section].pop(folder, None)   # a path; the content of its files is in the next line
    return digest(canonical([values, settings.behaviour_text, settings.rewards_text]))


def _figures(store: Store, settings: Settings) -> dict[str, float | int]:
    """Name -> number, of the whole build; what is unknown is not among them."""
    figures: dict[str, Any] = store.read(_FIGURES).row(0, named=True)
    calls = answered = 0.0
    for name in store.table("mart.environments")["environment"]:
        coverage = json.loads((settings.environments / name / MANIFEST).read_text("utf-8"))["coverage"]
        calls += coverage["n_calls"]
        answered += coverage["n_calls"] * (coverage["answered"] or 0.0)
    leaks = [json.loads(report).get("leaks", 0) for report in store.table("mart.leakage")["report"]]
    figures |= {"answered": answered / calls if calls else None, "n_leaks": sum(leaks)}
    return {name: round(value, _PLACES) if isinstance(value, float) else int(value)
            for name, value in sorted(figures.items()) if value is not None}
