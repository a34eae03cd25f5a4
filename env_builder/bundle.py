"""The environment as a directory, and its digest (docs/environment.md).

In: a service's rows, tools, tasks, scripts, rubrics. Out: OUT/environments/<name> and OUT/rewards/<name>. Code is copied,
data is generated: the runtime goes in verbatim, everything else is canonical JSON lines. The manifest is written last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.audit.report import Report
from env_builder.layers import room_digest
from env_builder.rooms import INSTANT, Rows
from env_builder.rubrics import SCHEMA, validated
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.environment import FORMAT
from env_builder.runtime.rubrics import FORMAT as RUBRIC_FORMAT
from env_builder.runtime.rubrics import schema
from env_builder.users import SESSIONS

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
FROM ${BASE}
COPY runtime /room/runtime
COPY recorded.jsonl world.jsonl /room/
COPY behaviour.jsonl conditions.jsonl manifest.json tools.jsonl /room/
RUN chmod -R a-w,go-rwx /room && chown -R 10001:10001 /room
USER 10001:10001
WORKDIR /room
ENTRYPOINT ["python3", "-m", "runtime", "--environment", "/room"]
"""


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
    """What the room can answer around its tasks (`env_builder.coverage`)."""
    conditions: list[dict[str, Any]]
    """How long tools take and how often they fail by themselves (`env_builder.conditions`)."""
    sessions: pl.DataFrame = pl.DataFrame(schema=SESSIONS)
    """What else is known of how the tasks were done, for the audit (`users.sessions_of`)."""
    n_recorded_tokens: int = 0
    """What the longest session takes, as the runtime estimates, from which the limit on tokens is made."""
    privacy: str = "off"
    """Were people taken out of the logs, and by which version of the rules?"""


class Digests(NamedTuple):
    """What names the bytes."""

    content_digest: str
    rewards_digest: str


def write(bundle: Bundle, environment: Path, rewards: Path, image: dict[str, Any]) -> Digests:
    """Write both directories anew, whole or not at all for a reader that looks for the manifest first."""
    _renew(rewards)
    _write_rewards(bundle, rewards)
    content_digest = write_room(bundle, environment, image)
    return Digests(content_digest, _seal(bundle, rewards, content_digest))


def publish(bundle: Bundle, environment: Path, rewards: Path, audit: Report, image: dict[str, Any]) -> Digests:
    """The same two directories, written before, with the tasks of `bundle` alone and with the audit that they stood."""
    _renew(rewards)
    _write_rewards(bundle, rewards)
    kept = set(bundle.tasks["task_id"])
    _write_lines(rewards / "audit.jsonl", (row for row in audit.rows if row["task_id"] in kept))
    _write_json(rewards / "audit.json", audit.totals)
    (environment / MANIFEST).unlink(missing_ok=True)
    _write_lines(environment / "tasks.jsonl", _tasks(bundle))
    content_digest = _write_manifest(bundle, environment, image)
    return Digests(content_digest, _seal(bundle, rewards, content_digest))


def copy_room(bundle: Bundle, source: Path, environment: Path, image: dict[str, Any]) -> str:
    """A copy of the room in `source`, with the tasks of `bundle` in the place of its own; gives its content digest."""
    _renew(environment)
    shutil.copytree(source, environment, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, "tasks.jsonl"))
    environment.chmod(0o700)
    _write_lines(environment / "tasks.jsonl", _tasks(bundle))
    return _write_manifest(bundle, environment, image)


def stands(environment: Path, content_digest: str) -> bool:
    """Does a whole environment with this content stand there, byte for byte?"""
    return (environment / MANIFEST).is_file() and _content_digest(environment) == content_digest


def write_room(bundle: Bundle, environment: Path, image: dict[str, Any]) -> str:
    """Write the room alone; gives its content digest."""
    _renew(environment)
    _write_content(bundle, environment)
    return _write_manifest(bundle, environment, image)


def _write_manifest(bundle: Bundle, environment: Path, image: dict[str, Any]) -> str:
    content_digest, files = _content_digest(environment), _files(environment)
    _write_json(environment / MANIFEST, {
        "format": FORMAT, "name": bundle.name, "service": bundle.service, "starts_from": bundle.starts_from,
        "content_digest": content_digest, "room_digest": room_digest(files), "files": files, "image": image,
        "n_tasks": bundle.tasks.height, "n_tools": bundle.tools.height, "seeded": True, "coverage": bundle.coverage,
        "privacy": bundle.privacy,
    })
    return content_digest


def _seal(bundle: Bundle, rewards: Path, content_digest: str) -> str:
    """Write what names the grader's side, last; gives its digest."""
    rewards_digest = _digest_of(_files(rewards))
    _write_json(rewards / "rewards.json", {
        "format": REWARDS_FORMAT, "environment": bundle.name, "content_digest": content_digest,
        "rewards_digest": rewards_digest, "n_rubrics": bundle.rubrics.height, "privacy": bundle.privacy,
    })
    return rewards_digest


def _renew(directory: Path) -> None:
    """An empty directory that its own user alone may enter: it holds what happened after a task began, or its reward."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)


def set_image(environment: Path, image: dict[str, Any]) -> None:
    """Note in the manifest what became of the image."""
    manifest = json.loads((environment / MANIFEST).read_text("utf-8"))
    if manifest["image"] != image:
        _write_json(environment / MANIFEST, manifest | {"image": image})


def _write_content(bundle: Bundle, directory: Path) -> None:
    _write_lines(directory / "tools.jsonl", map(_descriptor, bundle.tools.sort("tool").to_dicts()))
    _write_lines(directory / "behaviour.jsonl", bundle.rows.programs)
    _write_lines(directory / "world.jsonl", bundle.rows.facts)
    _write_lines(directory / "recorded.jsonl", bundle.rows.recorded)
    _write_lines(directory / "conditions.jsonl", bundle.conditions)
    _write_lines(directory / "tasks.jsonl", _tasks(bundle))
    shutil.copytree(RUNTIME, directory / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "Dockerfile").write_text(DOCKERFILE, "utf-8")


def _write_rewards(bundle: Bundle, directory: Path) -> None:
    """The grader's side."""
    rubrics = bundle.rubrics.sort("task_id").to_dicts()
    _write_texts(directory / "rubrics.jsonl", (
        _document(row["rubric_id"], row["task_id"], row["checks"]) for row in rubrics
    ))
    _write_lines(directory / "solutions.jsonl", (
        {"task_id": row["task_id"], "steps": json.loads(row["solution"])} for row in rubrics
    ))
    _write_lines(directory / "sessions.jsonl", (
        row | {"steps": json.loads(row["steps"])} for row in bundle.sessions.sort("task_id", "session_id").to_dicts()
    ))
    _write_json(directory / SCHEMA, schema())


@lru_cache(maxsize=8192)
def _document(rubric_id: str, task_id: str, checks: str) -> str:
    """A rubric as it is published; a draft's is held to the schema once, and kept for the environment that comes of it."""
    document = {"format": RUBRIC_FORMAT, "rubric_id": rubric_id, "task_id": task_id, "checks": json.loads(checks)}
    return canonical(validated(document, f"the rubric of the task {task_id}"))


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
    """An MCP tool descriptor."""
    row = {"name": tool["tool"], "description": tool["description"] or "", "inputSchema": json.loads(tool["input_schema"])}
    return row | ({"annotations": json.loads(tool["annotations"])} if tool["annotations"] else {})


def _content_digest(directory: Path) -> str:
    return _digest_of({path: found for path, found in _files(directory).items() if path not in UNDIGESTED})


def _files(directory: Path) -> dict[str, str]:
    """sha256 of every file by its path; the manifest, which holds this, is not among them."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(directory).as_posix(): digest(path.read_bytes()) for path in paths}


def _digest_of(files: dict[str, str]) -> str:
    return digest("".join(f"{path}\0{found}\n" for path, found in sorted(files.items())))


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    _write_texts(path, map(canonical, rows))


def _write_texts(path: Path, texts: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(text + "\n" for text in texts)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    """Written beside and renamed into place: a reader sees the old one or the new one."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n", "utf-8")
    beside.replace(path)
