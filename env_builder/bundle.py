"""The environment as a directory, and its digest (docs/environment.md).

In: a service's rows, tools, tasks, scripts, rubrics. Out: OUT/environments/<name> and OUT/rewards/<name>. Code is copied,
data is generated: the runtime goes in verbatim, everything else is canonical JSON lines. The manifest is written last. Rubrics
are held to their published schema (docs/rubric.schema.json) before they are written, and when they are read. Does not see:
whether a check makes sense for its task (`verify.py`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from env_builder.audit import AuditReport
from env_builder.layers import files_digest, room_digest
from env_builder.rooms import INSTANT, Rows
from env_builder.runtime.canonical import canonical, digest, styled
from env_builder.runtime.checks import OWN
from env_builder.runtime.environment import FORMAT, FORMAT_IN_SHARDS
from env_builder.runtime.files import NAMED_BY
from env_builder.runtime.rubrics import FORMAT as RUBRIC_FORMAT
from env_builder.runtime.rubrics import ParsedRubric, schema
from env_builder.runtime.shards import FOLDER
from env_builder.runtime.tool_parts import as_called
from env_builder.sharding import Sharding, stated
from env_builder.users import AS_WRITTEN, SESSIONS
from warehouse.errors import InputError
from warehouse.records import ASSUMED_ANSWER, Memoize, recompute

RECORDS = {"name": "records", "kind": "records", "path": "."}
"""The app of an environment that is built from logs: its files are stored in the environment's own folder."""
REWARDS_FORMAT = "traceroom-rewards/1"
RUNTIME = Path(__file__).parent / "runtime"
MANIFEST = "manifest.json"
UNDIGESTED = (MANIFEST, "Dockerfile")
STEPS_OVER_RECORDED = 4
MINIMUM_STEPS = 200
MINIMUM_TOKENS = 200_000
SECONDS = 3600.0

DOCKERFILE = """\
ARG BASE
FROM ${{BASE}}
COPY runtime /room/runtime
{content}COPY {files} /room/
RUN chmod -R a-w,go-rwx /room && chown -R 10001:10001 /room
USER 10001:10001
WORKDIR /room
ENTRYPOINT ["python3", "-m", "runtime", "--environment", "/room"]
"""


class WorldRows(NamedTuple):
    """One of several worlds of a service."""

    rows: Rows
    session_ids: list[str]
    """Sessions of it, sorted."""


class Bundle(NamedTuple):
    """All that goes into one environment and its rewards."""

    name: str
    service: str
    starts_from: str
    rows: Rows
    tools: pl.DataFrame
    """Frame of `Tool` of the service."""
    tasks: pl.DataFrame
    """Frame of `Task` of the service."""
    scripts: pl.DataFrame
    """(task_id, opening, script) as JSON."""
    rubrics: pl.DataFrame
    """Frame of `Rubric` of the tasks."""
    n_recorded_steps: int
    """Length of the longest session, from which the limit on steps is made."""
    coverage: dict[str, Any]
    """What the environment can answer around its tasks (`env_builder.coverage`)."""
    perturbations: list[dict[str, Any]]
    """How long tools take and how often they fail by themselves (`env_builder.perturbations`)."""
    sessions: pl.DataFrame = pl.DataFrame(schema=SESSIONS)
    """What else is known of how the tasks were done, for the audit (`users.sessions_of`)."""
    n_recorded_tokens: int = 0
    """What the longest session takes, as the runtime estimates, from which the limit on tokens is made."""
    privacy: str = "off"
    """Were people taken out of the logs, and by which version of the rules?"""
    worlds: Sequence[WorldRows] = ()
    """Of a service whose sessions are of several worlds, each of them."""
    sharding: Sharding | None = None
    """How files that grow with the logs are split into shards; None: they are whole."""


class Digests(NamedTuple):
    """What names the bytes."""

    content_digest: str
    rewards_digest: str


def write(
    bundle: Bundle, environment: Path, rewards: Path, image: dict[str, Any], memoize: Memoize = recompute
) -> Digests:
    """Write both directories from scratch, whole or not at all for a reader that looks for the manifest first."""
    renew(rewards)
    _write_rewards(bundle, rewards, memoize)
    content_digest = write_room(bundle, environment, image)
    return Digests(content_digest, seal(rewards, bundle.name, content_digest, bundle.rubrics.height, bundle.privacy))


def write_audit(rewards: Path, audit: AuditReport, task_ids: Collection[str]) -> None:
    """Write what was played against the rewards of these tasks, before they are sealed."""
    write_lines(rewards / "audit.jsonl", (row | {"plays": [play._asdict() for play in row["plays"]]}
                                          for row in audit.rows if row["task_id"] in task_ids))
    write_json(rewards / "audit.json", audit.totals)


def publish(bundle: Bundle, environment: Path, rewards: Path, audit: AuditReport, image: dict[str, Any]) -> Digests:
    """Publish two directories that were written before, with the tasks of `bundle` alone and with their audit."""
    task_ids = set(bundle.tasks["task_id"])
    (rewards / "rewards.json").unlink(missing_ok=True)
    for name in OF_TASKS:
        _keep_lines(rewards / name, task_ids)
    write_audit(rewards, audit, task_ids)
    (environment / MANIFEST).unlink(missing_ok=True)
    write_lines(environment / "tasks.jsonl", _tasks(bundle))
    content_digest = _write_manifest(bundle, environment, image)
    return Digests(content_digest, seal(rewards, bundle.name, content_digest, bundle.rubrics.height, bundle.privacy))


def copy_room(bundle: Bundle, source: Path, environment: Path, image: dict[str, Any]) -> str:
    """Copy the environment in `source`, with the tasks of `bundle` instead of its own; return its content digest."""
    renew(environment)
    copy_files(source, environment, MANIFEST, "tasks.jsonl")
    write_lines(environment / "tasks.jsonl", _tasks(bundle))
    return _write_manifest(bundle, environment, image)


def stands(environment: Path, content_digest: str) -> bool:
    """Return whether a whole environment with this content is stored there, byte for byte."""
    return (environment / MANIFEST).is_file() and _content_digest(environment) == content_digest


def write_room(bundle: Bundle, environment: Path, image: dict[str, Any]) -> str:
    """Write the environment alone; gives its content digest."""
    renew(environment)
    write_lines(environment / "tools.jsonl", map(_descriptor, bundle.tools.sort("tool").to_dicts()))
    write_records(environment, bundle.rows)
    for folder, world in zip(_folders(bundle), bundle.worlds, strict=True):
        (environment / folder).mkdir(parents=True)
        write_records(environment / folder, world.rows)
        write_lines(environment / folder / "sessions.jsonl", ({"session_id": name} for name in world.session_ids))
    write_lines(environment / "perturbations.jsonl", bundle.perturbations)
    write_lines(environment / "tasks.jsonl", _tasks(bundle))
    copy_runtime(environment)
    return _write_manifest(bundle, environment, image)


def _write_manifest(bundle: Bundle, environment: Path, image: dict[str, Any]) -> str:
    if bundle.sharding is not None:
        for folder in (".", *_folders(bundle)):
            bundle.sharding.split(environment / folder)
        _write_dockerfile(environment)
    return write_manifest(environment, {
        "apps": [_app(bundle)], "name": bundle.name, "service": bundle.service, "starts_from": bundle.starts_from,
        "image": image, "n_tasks": bundle.tasks.height, "n_tools": bundle.tools.height, "coverage": bundle.coverage,
        "support": dict(bundle.rows.support), "privacy": bundle.privacy})


def _app(bundle: Bundle) -> dict[str, Any]:
    return {**RECORDS, "kind": "worlds", "worlds": _folders(bundle)} if bundle.worlds else RECORDS


def _folders(bundle: Bundle) -> list[str]:
    return [f"apps/worlds/{number}" for number, _ in enumerate(bundle.worlds, 1)]


def write_manifest(environment: Path, about: dict[str, Any]) -> str:
    """Write the manifest of an environment whose other files are written; return its content digest."""
    files = _files(environment)
    content_digest, shards = files_digest(files, UNDIGESTED), stated(files)
    write_json(environment / MANIFEST, {
        "format": FORMAT_IN_SHARDS if shards else FORMAT, "content_digest": content_digest, "room_digest": room_digest(files),
        "files": files, "seeded": True, **shards, **about})
    return content_digest


def rewrite(environment: Path, rewards: Path, n_tasks: int, n_rubrics: int) -> Digests:
    """Write the manifest and rewards.json again after other files changed; what else they state stays."""
    about = json.loads((environment / MANIFEST).read_text("utf-8"))
    computed = ("format", "content_digest", "room_digest", "files", "seeded", "shards")
    content_digest = write_manifest(environment, {
        **{name: value for name, value in about.items() if name not in computed}, "n_tasks": n_tasks})
    sealed = json.loads((rewards / "rewards.json").read_text("utf-8"))
    (rewards / "rewards.json").unlink()
    return Digests(content_digest, seal(rewards, sealed["environment"], content_digest, n_rubrics, sealed["privacy"]))


def seal(rewards: Path, name: str, content_digest: str, n_rubrics: int, privacy: str) -> str:
    """Write rewards.json, after all other files of the grader's side; return the rewards' digest."""
    rewards_digest = files_digest(_files(rewards))
    write_json(rewards / "rewards.json", {
        "format": REWARDS_FORMAT, "environment": name, "content_digest": content_digest,
        "rewards_digest": rewards_digest, "n_rubrics": n_rubrics, "privacy": privacy,
    })
    return rewards_digest


def renew(directory: Path) -> None:
    """Make an empty directory that only its user may enter: it will hold what happened after a task began, or its reward."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)


def note(environment: Path, **about: Any) -> None:
    """Note in the manifest what does not change the environment: its image, the precision of its rewards."""
    manifest = json.loads((environment / MANIFEST).read_text("utf-8"))
    if any(manifest.get(name) != value for name, value in about.items()):
        write_json(environment / MANIFEST, manifest | about)


def write_records(folder: Path, rows: Rows) -> None:
    """Write the files of a `records` app."""
    write_lines(folder / "behaviour.jsonl", rows.programs)
    write_lines(folder / "world.jsonl", rows.facts)
    write_lines(folder / "recorded.jsonl", rows.recorded)


def copy_files(source: Path, target: Path, *omitted: str) -> None:
    """Copy the files of a folder, without those that are called or lie in one of `omitted`; not who may read them."""
    for path in sorted(source.rglob("*")):
        place = path.relative_to(source)
        if path.is_file() and not {*omitted, "__pycache__"} & {*place.parts}:
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / place)


SHIPPED = ("workspace",)
"""Packages of the runtime that only apps of their kind take with them."""


def copy_runtime(environment: Path) -> None:
    """Copy the runtime into an environment whose apps are written, with a Dockerfile that copies all of it."""
    copy_files(RUNTIME, environment / "runtime", *SHIPPED)
    _write_dockerfile(environment)


def _write_dockerfile(environment: Path) -> None:
    files = [*["behaviour.jsonl"] * (environment / "behaviour.jsonl").exists(), "perturbations.jsonl", MANIFEST, "tools.jsonl"]
    whole = [name for name in sorted(NAMED_BY) if (environment / name).exists()]
    content = f"COPY {' '.join(whole)} /room/\n" if whole else ""
    content += "".join(f"COPY {name} /room/{name}\n" for name in ("apps", FOLDER) if (environment / name).is_dir())
    (environment / "Dockerfile").write_text(DOCKERFILE.format(content=content, files=" ".join(files)), "utf-8")


OF_TASKS = ("rubrics.jsonl", "solutions.jsonl", "sessions.jsonl")
"""Files of the grader's side whose every row is of one task."""


def _write_rewards(bundle: Bundle, directory: Path, memoize: Memoize) -> None:
    rubrics, solutions, sessions = OF_TASKS
    rows = bundle.rubrics.sort("task_id").to_dicts()
    write_texts(directory / rubrics, (_document(row["rubric_id"], row["task_id"], row["checks"], memoize) for row in rows))
    write_texts(directory / solutions, (
        styled({"steps": as_called(json.loads(row["solution"])), "task_id": row["task_id"]}, AS_WRITTEN) for row in rows
    ))
    write_lines(directory / sessions, (
        row | {"steps": as_called(json.loads(row["steps"]))} for row in bundle.sessions.sort("task_id", "session_id").to_dicts()
    ))
    write_json(directory / SCHEMA, schema())


def _keep_lines(path: Path, task_ids: Collection[str]) -> None:
    """Keep the rows of these tasks alone."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        kept = [line for line in lines if orjson.loads(line)["task_id"] in task_ids]
    path.write_text("".join(kept), "utf-8", newline="\n")


def _document(rubric_id: str, task_id: str, checks: str, memoize: Memoize) -> str:
    """Return a rubric as it is published. It is held to the schema where it was not before: what `memoize` keeps is a yes."""
    document = {"format": RUBRIC_FORMAT, "rubric_id": rubric_id, "task_id": task_id, "checks": json.loads(checks)}
    plain = document | {"checks": [_blanked(check, "provenance") for check in document["checks"]]}
    memoize(["rubric", plain], lambda: bool(validated(document, f"the rubric of the task {task_id}")))
    return canonical(document)


def _tasks(bundle: Bundle) -> Iterable[dict[str, Any]]:
    rows = bundle.tasks.join(bundle.scripts.select("task_id", "opening", "script"), on="task_id", how="left")
    limits = {"steps": max(MINIMUM_STEPS, STEPS_OVER_RECORDED * bundle.n_recorded_steps), "seconds": SECONDS,
              "tokens": max(MINIMUM_TOKENS, STEPS_OVER_RECORDED * bundle.n_recorded_tokens)}
    for row in rows.with_columns(pl.col("starts_at").dt.strftime(INSTANT)).sort("task_id").to_dicts():
        yield {
            "task_id": row["task_id"], "session_ids": row["session_ids"], "split": row["split"], "family": row["family"],
            "slots": json.loads(row["slots"]), "goal": row["goal"], "starts_at": row["starts_at"],
            "segment_of": row["segment_of"], "derived_from": row["derived_from"], "limits": limits,
            "opening": json.loads(row["opening"]), "user": json.loads(row["script"]),
        }


def _descriptor(tool: dict[str, Any]) -> dict[str, Any]:
    schema = {name: value for name, value in json.loads(tool["input_schema"]).items() if name != ASSUMED_ANSWER}
    row = {"name": tool["tool"], "description": tool["description"] or "", "inputSchema": schema}
    return row | ({"annotations": json.loads(tool["annotations"])} if tool["annotations"] else {})


def _content_digest(directory: Path) -> str:
    return files_digest(_files(directory), UNDIGESTED)


def _files(directory: Path) -> dict[str, str]:
    """sha256 of every file by its path; the manifest, which holds this, is not among them."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(directory).as_posix(): digest(path.read_bytes()) for path in paths}


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as canonical JSON lines."""
    write_texts(path, map(canonical, rows))


def write_texts(path: Path, texts: Iterable[str]) -> None:
    """Write texts, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(text + "\n" for text in texts)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Written beside and renamed into place: a reader sees the old one or the new one."""
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n", "utf-8")
    partial.replace(path)


SCHEMA = "rubric.schema.json"
"""Name of the schema's file, in docs/ and beside rewards."""


def validated(document: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Return the document itself. InputError where the schema or a kind refuses it: `where`, then what, and the hint."""
    hint = "see docs/rewards.md and docs/rubric.schema.json"
    error = _error("", document)
    for check in [] if error else document["checks"]:
        if error is None and check["kind"] in OWN:
            error = _error(check["kind"], check["parameters"])
    if error is not None:
        message = error.message if len(error.message) <= 200 else f"{error.message[:197]}…"
        raise InputError(f"this is no rubric ({error.json_path}: {message})", where, hint)
    try:
        ParsedRubric.read(document)
    except ValueError as refused:
        raise InputError(f"this is no rubric ({refused})", where, hint) from refused
    return document


def _error(kind: str, value: Any) -> ValidationError | None:
    is_valid = _is_valid(kind, canonical(value)) if kind else _is_document(value)
    return None if is_valid else best_match(_validator(kind).iter_errors(value))


def _is_document(value: Any) -> bool:
    """Return whether the schema takes a document but for parameters: what is the same in many checks is looked at once."""
    checks = value.get("checks") if isinstance(value, dict) else None
    if not isinstance(checks, list):
        return bool(_validator("").is_valid(value))
    shells = [_blanked(check, "parameters", "provenance") for check in checks]
    return bool(_validator("").is_valid(value | {"checks": []})) and all(_is_valid("", canonical(each)) for each in shells)


def _blanked(check: Any, *names: str) -> Any:
    """Return a check with nothing in these fields, which the document asks to be objects, and no more."""
    return check | {name: {} for name in names if isinstance(check.get(name), dict)} if isinstance(check, dict) else check


@lru_cache(maxsize=8192)
def _is_valid(kind: str, parameters: str) -> bool:
    """Return whether a kind takes these parameters, as JSON: rubrics repeat them. Without a kind: the document, a check."""
    value = json.loads(parameters)
    return bool((_validator(kind) if kind else _of_check()).is_valid(value))


@cache
def _of_check() -> Draft202012Validator:
    """Return what the document asks of a check."""
    whole = schema()
    checks = {name: value for name, value in whole["properties"]["checks"]["items"].items() if name != "allOf"}
    return Draft202012Validator({**checks, "$defs": whole["$defs"]})


@cache
def _validator(kind: str) -> Draft202012Validator:
    """Of the document without what the kinds say of parameters, or of one kind's parameters: a check meets its kind's alone."""
    whole = schema()
    checks = {name: value for name, value in whole["properties"]["checks"]["items"].items() if name != "allOf"}
    plain = {**whole, "properties": {**whole["properties"], "checks": {"type": "array", "items": checks}}}
    return Draft202012Validator({**whole["$defs"][kind], "$defs": whole["$defs"]} if kind else plain)
