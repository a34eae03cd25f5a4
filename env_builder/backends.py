"""Register the kinds of apps, and write an environment that consists of apps of any kinds.

In: apps (a kind and its content), rows of tasks, rubrics and solutions. Out: OUT/environments/<name> and OUT/rewards/<name> as
`bundle.py` writes them for environments that are built from logs. A kind is an `AppBackend`; other packages register theirs in
the entry point group `traceroom.backends`. What answers calls is not the backend but the runtime: that of this package,
or the package in `AppBackend.runtime`, which is copied into the environment and digested.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import bundle
from env_builder.audit import AuditReport
from env_builder.bundle import SCHEMA, validated
from env_builder.company.content import NAME, SOFTWARE, CompanyContent, descriptors, endpoints, write_content
from env_builder.rooms import Rows
from env_builder.runtime.apps import files, office
from env_builder.runtime.apps.files import MODE
from env_builder.runtime.apps.identities import IDENTITIES
from env_builder.runtime.canonical import digest
from env_builder.runtime.environment import Environment
from env_builder.runtime.rubrics import schema
from env_builder.runtime.site import browser_tools
from warehouse.errors import InputError, Missing

GROUP = "traceroom.backends"
Row = dict[str, Any]


class Requirement(NamedTuple):
    """A package that an app's runtime needs beside the standard library; the host that serves the environment installs it."""

    package: str
    version: str
    sha256: str


class AppBackend(NamedTuple):
    """A kind of apps, as it is built."""

    kind: str
    write: Callable[[Path, Any, Mapping[str, Any]], list[Row]]
    """(the app's folder, its content, its options) -> MCP descriptors of its tools."""
    runtime: Path | None = None
    """A package of Python with a function `load(folder, row)` that returns an `App`; None: this package's runtime has it."""
    requires: tuple[Requirement, ...] = ()


class AppSource(NamedTuple):
    """An app that an environment is made of."""

    name: str
    kind: str
    content: Any
    """What its kind takes: of `records` a (`Rows`, descriptors), of `files` a `FilesContent` or an iterable of `FileVersion`,
    of `office` an `OfficeContent` or a `CompanyContent`, of `site` the folder that `env_builder.site.app.write_app` wrote."""
    options: Mapping[str, Any] = {}
    """Fields of its row in the manifest, such as `prefix` of the tools of a `files` app, `app` of an `office` app ("chat"),
    `user` (who the agent is where its sessions do not tell), `downloads` (docs/backends.md)."""


class FileVersion(NamedTuple):
    """The content of a file for some time."""

    path: str
    content: bytes | None
    """None: its bytes are not on record."""
    mode: str = MODE
    since: str | None = None
    """ISO instant; None: ever."""
    until: str | None = None
    """ISO instant; None: for good."""
    origin: str | None = None
    """Where its bytes first came from (`origins.origin_text`); None: nobody knows."""
    hash: str | None = None
    """Sha256 of the bytes where they are not on record; None: unknown too."""
    size: int | None = None
    """The same of their number."""
    tasks: tuple[str, ...] = ()
    """Tasks that alone begin with it; empty: all."""


class FilesContent(NamedTuple):
    """Files over time, and whose sessions are whose."""

    versions: Iterable[FileVersion]
    identities: Mapping[str, str] = {}
    """Session -> user, for a folder of downloads that has `{user}` in its path."""


class EntityVersion(NamedTuple):
    """How an entity of an office app was for some time."""

    kind: str
    """Class of the entity."""
    key: str
    value: Mapping[str, Any]
    """JSON object."""
    since: str | None = None
    """ISO instant; None: ever."""
    until: str | None = None
    """ISO instant; None: for good."""


class OfficeContent(NamedTuple):
    """What an office app holds over time, and who the agent is in it."""

    versions: Iterable[EntityVersion]
    identities: Mapping[str, str] = {}
    """Session -> user."""


def registered() -> dict[str, AppBackend]:
    """Return all kinds by name: the built-in ones, and those of installed packages."""
    others = {point.name: point.load() for point in entry_points(group=GROUP)}
    return {**others, RECORDS.kind: RECORDS, FILES.kind: FILES, OFFICE.kind: OFFICE, SITE.kind: SITE}


def assemble(
    name: str, apps: Sequence[AppSource], tasks: Iterable[Row], rubrics: Iterable[Row], environment: Path, rewards: Path,
    solutions: Iterable[Row] = (), perturbations: Iterable[Row] = (), secrets: Mapping[str, bytes] | None = None,
    privacy: str = "off", audit: AuditReport | None = None,
) -> bundle.Digests:
    """Write an environment of these apps, and its rewards.

    `secrets`: files of the rewards' folder that only apps' own verifiers read, `apps/<name>/…` -> content. `tasks`: rows of
    tasks.jsonl; `rubrics`: documents as docs/rewards.md says; `solutions`: {"task_id", "steps"}; `privacy`: how personal data
    was taken out of all this, as the manifest states it; `audit`: what was played against the rewards.
    Missing: no such kind. InputError: two apps have one name or one tool.
    """
    bundle.renew(environment)
    manifest_rows: list[Row] = []
    tools: list[Row] = []
    for source in apps:
        row, own = _write_app(source, environment, is_first=not manifest_rows)
        manifest_rows.append(row)
        tools += own
    bundle.write_lines(environment / "tools.jsonl", sorted(tools, key=lambda tool: str(tool["name"])))
    bundle.write_lines(environment / "perturbations.jsonl", perturbations)
    task_rows = sorted(tasks, key=lambda task: str(task["task_id"]))
    bundle.write_lines(environment / "tasks.jsonl", task_rows)
    bundle.copy_runtime(environment)
    content_digest = bundle.write_manifest(environment, {
        "apps": manifest_rows, "name": name, "service": name, "starts_from": "reset", "n_tasks": len(task_rows),
        "n_tools": len(tools), "image": {"skip_reason": "not asked for"}, "coverage": {}, "privacy": privacy})
    try:
        Environment.load_room(environment)
    except ValueError as error:
        shutil.rmtree(environment)
        raise InputError(str(error), str(environment), "give each app and each tool a name of its own") from error
    bundle.renew(rewards)
    documents = sorted(
        (validated(row, f"the rubric of the task {row['task_id']}") for row in rubrics), key=lambda row: str(row["task_id"]))
    bundle.write_lines(rewards / "rubrics.jsonl", documents)
    bundle.write_lines(rewards / "solutions.jsonl", sorted(solutions, key=lambda row: str(row["task_id"])))
    bundle.write_lines(rewards / "sessions.jsonl", ())
    for path, content in sorted((secrets or {}).items()):
        (rewards / path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        (rewards / path).write_bytes(content)
    bundle.write_json(rewards / SCHEMA, schema())
    if audit is not None:
        bundle.write_audit(rewards, audit, {str(task["task_id"]) for task in task_rows})
    return bundle.Digests(content_digest, bundle.seal(rewards, name, content_digest, len(documents), privacy))


def _write_app(source: AppSource, environment: Path, is_first: bool) -> tuple[Row, list[Row]]:
    """Write one app; return its row in the manifest, and its descriptors. The first app is stored in the environment's own
    folder if it has records, as in an environment that is built from logs."""
    kinds = registered()
    if source.kind not in kinds:
        raise Missing.named("kind of apps", source.kind, kinds)
    backend = kinds[source.kind]
    path = "." if is_first and source.kind == RECORDS.kind else f"apps/{source.name}"
    folder = environment / path
    folder.mkdir(parents=True, exist_ok=True)
    tools = backend.write(folder, source.content, source.options)
    row = {"name": source.name, "kind": source.kind, "path": path, **source.options}
    if backend.requires:
        row["requires"] = [requirement._asdict() for requirement in backend.requires]
    if backend.runtime is not None:
        bundle.copy_files(backend.runtime, folder / "runtime")
    if path != ".":
        bundle.write_json(folder / "app.json", row)  # digested, as the manifest is not
    return row, tools


def _write_records(folder: Path, content: tuple[Rows, list[Row]], options: Mapping[str, Any]) -> list[Row]:
    rows, tools = content
    bundle.write_records(folder, rows)
    return tools


def _write_files(
    folder: Path, content: FilesContent | Iterable[FileVersion], options: Mapping[str, Any]
) -> list[Row]:
    """Write the tree and its blobs, each content once."""
    (folder / "blobs").mkdir()
    files_content = content if isinstance(content, FilesContent) else FilesContent(content)
    rows = []
    for version in files_content.versions:
        row: Row = {"path": version.path, "hash": version.hash, "size": version.size, "mode": version.mode,
                    "from": version.since, "to": version.until}
        if version.content is None:
            row["stored"] = False
        else:
            row |= {"hash": digest(version.content), "size": len(version.content)}
            (folder / "blobs" / row["hash"]).write_bytes(version.content)
        if version.tasks:
            row["tasks"] = list(version.tasks)
        rows.append(row if version.origin is None else row | {"origin": version.origin})
    bundle.write_lines(folder / "tree.jsonl", sorted(rows, key=lambda row: (str(row["path"]), str(row["from"] or ""))))
    _write_identities(folder, files_content.identities)
    try:
        return files.descriptors(options.get("prefix"), options.get("style", "long"))
    except ValueError as error:
        raise InputError(str(error), str(folder), "change the option `style`") from error


def company_source(content: CompanyContent, goes_on: Mapping[str, Sequence[str]] | None = None) -> AppSource:
    """Return the app of a company, whose products share one world. `goes_on`: task -> what belongs to its own work, while all
    else goes on in its episodes."""
    options = {"app": office.COMPANY, "products": list(content.products), "endpoints": endpoints(content),
               **({"world_goes_on": goes_on} if goes_on else {}), **(SOFTWARE if "drive" in content.products else {})}
    return AppSource(NAME, office.KIND, content, options)


def _write_office(folder: Path, content: OfficeContent | CompanyContent, options: Mapping[str, Any]) -> list[Row]:
    """Write the versions of an office app's entities."""
    if isinstance(content, CompanyContent):
        write_content(folder, content)
        _write_identities(folder, content.identities)
        return descriptors(content)
    rows = [{"class": version.kind, "key": version.key, "value": dict(version.value), "from": version.since,
             "to": version.until} for version in content.versions]
    bundle.write_lines(folder / office.VERSIONS, sorted(
        rows, key=lambda row: (str(row["class"]), str(row["key"]), str(row["from"] or ""))))
    _write_identities(folder, content.identities)
    try:
        tools: list[Row] = office.product(options).descriptors(options.get("prefix"))
    except ValueError as error:
        raise InputError(str(error), str(folder), "change the option `app`") from error
    return tools


def _write_site(folder: Path, content: Path, options: Mapping[str, Any]) -> list[Row]:
    """Copy the app of a site as `env_builder.site.app.write_app` wrote it."""
    shutil.copytree(content, folder, dirs_exist_ok=True)
    return browser_tools.descriptors()


def _write_identities(folder: Path, identities: Mapping[str, str]) -> None:
    if identities:
        bundle.write_lines(folder / IDENTITIES, (
            {"session_id": session_id, "user": user} for session_id, user in sorted(identities.items())))


RECORDS = AppBackend("records", _write_records)
FILES = AppBackend("files", _write_files)
OFFICE = AppBackend(office.KIND, _write_office)
SITE = AppBackend("site", _write_site)
