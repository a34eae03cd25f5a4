"""Environments: written aside, played against, and moved into place with the tasks that hold.

What a room is made of and what it must stand is `env_builder`'s to say (rooms, bundle, verify, image). Here: a service's
draft is written under OUT/.drafts, verified, written again with the tasks that hold, and renamed into place, so that
whoever looks into OUT/environments sees whole directories only. What no longer holds is taken away. Tasks without a
verified reward are not published: their rooms stand in OUT/withheld, where grading them gives no score.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder import bundle, image, rooms, users, verify
from env_builder.audit import Depth
from env_builder.bundle import Bundle
from env_builder.conditions import conditions
from env_builder.coverage import coverage
from pipelines import privacy, progress
from pipelines.directories import directories_stand, remove_others
from pipelines.engine import Counts
from pipelines.engines import auditors
from pipelines.kept import forget, keeping
from pipelines.parts import Parts, audits_of, keep_audits, note, parts, put
from pipelines.settings import Settings
from warehouse.records import EnvironmentRow, Remember, Verdict, anew, frame
from warehouse.store import Store

STAGE = "environments"
LONGEST_NAME = 64
_OF_SERVICES = (
    "core.turns", "core.tools", "mart.facts", "mart.recorded", "mart.behaviours", "mart.tasks", "mart.rubrics", "mart.variants",
    "(select service, session_id, probability from mart.outcomes join core.sessions using (session_id))")
"""What an environment is made of, with the service whose it is."""


class Tables(NamedTuple):
    """What an environment is made of."""

    turns: pl.DataFrame
    tools: pl.DataFrame
    facts: pl.DataFrame
    recorded: pl.DataFrame
    behaviours: pl.DataFrame
    tasks: pl.DataFrame
    rubrics: pl.DataFrame
    outcomes: pl.DataFrame
    variants: pl.DataFrame
    starts_from: dict[str, str]
    privacy: str
    """Were people taken out (`privacy.stated`)?"""
    remember: Remember = anew


def environments(store: Store, settings: Settings) -> Counts:
    """A directory for each service with tasks that hold: its room, its grader's side, and its image where an engine is."""
    shutil.rmtree(_drafts(settings), ignore_errors=True)
    names = names_of(store.read("select distinct service from mart.tasks order by all")["service"])
    found = _shares(store, names, settings)
    rows: list[EnvironmentRow] = []
    verdicts, audits = dict[str, pl.DataFrame](), dict[str, dict[str, str]]()
    for done, service in enumerate(found.stale):
        progress.tell(STAGE, done, len(found.stale), service)
        with keeping(store, f"{STAGE} {service}") as remember:
            row, verdicts[service], audits[service] = _of_service(
                store, service, names[service], settings, remember, audits_of(store, service))
        rows += [row] if row else []
    forget(store, [f"{STAGE} {service}" for service in found.gone if service not in names])
    shutil.rmtree(_drafts(settings), ignore_errors=True)
    store.replace(
        "mart.verdicts", note(store, STAGE, found, verdicts), "stage in ('environments', 'verify', 'image')")
    put(store, "mart.environments", found, frame(EnvironmentRow, rows))
    keep_audits(store, found, audits)
    made = store.table("mart.environments")
    remove_others(settings, set(made["environment"]), set(names.values()))
    return {"n_environments": made.height, "n_rubrics": store.count("mart.rubrics"), "n_published": int(made["n_tasks"].sum()),
            "n_images": made["image_id"].count()}


def _shares(store: Store, names: dict[str, str], settings: Settings) -> Parts:
    """The services' environments: which stand as they would be made today, with the image that is asked for."""
    asked = {name: settings.told(name) for name in ("image", "base_image", "[audit]")}
    starts = dict(store.read("select service, starts_from from mart.services").iter_rows())
    told = {service: [name, starts.get(service), privacy.stated(store), asked] for service, name in names.items()}
    found = parts(store, STAGE, told, _OF_SERVICES)
    rows = {row["service"]: row for row in store.table("mart.environments").to_dicts()}

    def lacks(service: str) -> bool:
        row = rows.get(service)
        without = settings.image and row is not None and row["image_id"] is None
        return without or not directories_stand(store, settings, service, names[service], row)

    return found.again(filter(lacks, found.standing))


def publish(store: Store, service: str, name: str, settings: Settings) -> bool:
    """The directories of one service under this name; was there a task that holds?"""
    row, *_ = _of_service(store, service, name, settings, anew, {})
    shutil.rmtree(_drafts(settings), ignore_errors=True)
    return row is not None


def hold(store: Store, settings: Settings) -> bool:
    """Do the directories still stand as they were written, by what their manifests say?"""
    rows = {row["service"]: row for row in store.table("mart.environments").to_dicts()}
    names = names_of(store.read("select distinct service from mart.tasks order by all")["service"])
    return all(directories_stand(store, settings, service, name, rows.get(service)) for service, name in names.items())


def written_again(store: Store, folder: Path) -> dict[str, str]:
    """Content digests of the published environments, written once more into `folder` from the tables."""
    found = {}
    kept = store.read("select subject from mart.verdicts where stage = 'verify' and kept")["subject"].to_list()
    for row in store.table("mart.environments").to_dicts():
        tables = _tables(store, row["service"])
        published = _with(_bundle(tables, row["service"], row["environment"], covered=False), kept)
        found[row["environment"]] = bundle.write_room(published, folder / row["environment"], _no_image("it is thrown away"))
    return found


def _drafts(settings: Settings) -> Path:
    return Path(settings.out) / ".drafts"


def _tables(store: Store, service: str, remember: Remember = anew) -> Tables:
    """A service's rows."""
    def own(table: str, where: str = "service = $service") -> pl.DataFrame:
        return store.table(table, where, service=service)

    of_sessions = "session_id in (select session_id from core.sessions where service = $service)"
    return Tables(
        own("core.turns"), own("core.tools"), own("mart.facts"), own("mart.recorded"), own("mart.behaviours"),
        own("mart.tasks"), own("mart.rubrics"), own("mart.outcomes", of_sessions), own("mart.variants"),
        dict(store.read("select service, starts_from from mart.services").iter_rows()), privacy.stated(store), remember)


def _of_service(
    store: Store, service: str, name: str, settings: Settings, remember: Remember, kept: dict[str, str]
) -> tuple[EnvironmentRow | None, pl.DataFrame, dict[str, str]]:
    """The published environment of a service, None where no task holds; the verdicts; and the audits to keep."""
    drafts = _drafts(settings)
    room, grader = drafts / "environments" / name, drafts / "rewards" / name
    whole, draft = _drafted(_tables(store, service, remember), service, name, room, grader)
    with auditors(draft.tasks.height) as engine:
        found = verify.verify(
            room, grader, depth=depth_of(settings), executor=engine and engine.executor,
            n_beside=engine.n_workers if engine else 0, kept=kept)
    _withhold(_left(_tables(store, service, remember), whole, found.task_ids), room, drafts, settings)
    if not found.task_ids:
        left = f"None of {draft.tasks.height} tasks of {service} holds; see stage verify"
        return None, pl.concat([found.verdicts, _verdict(STAGE, name, False, "no_task_holds", left)]), found.audits
    published = _with(draft, found.task_ids)
    digests = bundle.publish(published, room, grader, found.report, _no_image("it was not asked for"))
    place = settings.environments / name
    stands = bundle.stands(place, digests.content_digest)  # only the reward changed: the room and its image stay as they are
    made = image.build(room, settings.base_image) if settings.image else image.ImageResult(None, None, "--no-image was given")
    move(grader, settings.rewards / name)
    bundle.set_image(
        place if stands else room,
        {"base": made.base, "image_id": made.image_id} if made.image_id else _no_image(made.left or ""))
    if not stands:
        move(room, place)
    row = EnvironmentRow(
        environment=name, service=service, content_digest=digests.content_digest, rewards_digest=digests.rewards_digest,
        image_id=made.image_id, image_left=made.left, n_tasks=len(found.task_ids), n_tools=published.tools.height)
    says = [
        _verdict(STAGE, name, True, "published", f"{row.n_tasks} of {draft.tasks.height} tasks hold"),
        _verdict("image", name, made.image_id is not None, "built" if made.image_id else "no_image",
                 made.image_id or made.left or "")]
    return row, pl.concat([found.verdicts, *says]), found.audits


def _drafted(tables: Tables, service: str, name: str, room: Path, grader: Path) -> tuple[Bundle, Bundle]:
    """What there is of a service, and its part that has a rubric, written; what its room holds stands in the files alone."""
    whole = _bundle(tables, service, name)
    draft = _with(whole, whole.rubrics["task_id"].to_list())
    bundle.write(draft, room, grader, _no_image("it is not published yet"))
    written = rooms.Rows([], [], [])
    return whole._replace(rows=written), draft._replace(rows=written)


def _withhold(rest: Bundle, draft: Path, drafts: Path, settings: Settings) -> None:
    """The room of the tasks without a verified reward, or none where every task has one. `draft`: its service's room."""
    place = settings.withheld / rest.name
    if rest.tasks.is_empty():
        shutil.rmtree(place, ignore_errors=True)
        return
    room = drafts / "withheld" / rest.name
    content_digest = bundle.copy_room(rest, draft, room, _no_image("its tasks have no verified reward"))
    if not bundle.stands(place, content_digest):
        move(room, place)


def depth_of(settings: Settings) -> Depth:
    """How much an everyday run tries on each task, and what it takes for known of sessions."""
    told = settings.configured.audit
    return Depth(mutants=told.mutants, bad_below=told.bad_below, good_from=told.good_from)


def _with(whole: Bundle, task_ids: list[str]) -> Bundle:
    """The same bundle with these tasks alone."""
    chosen = pl.col("task_id").is_in(task_ids)
    return whole._replace(
        tasks=whole.tasks.filter(chosen), scripts=whole.scripts.filter(chosen), rubrics=whole.rubrics.filter(chosen),
        sessions=whole.sessions.filter(chosen))


def _left(tables: Tables, whole: Bundle, task_ids: list[str]) -> Bundle:
    """The same bundle with the logged tasks that are not among these, as they were logged and without any reward."""
    tasks = tables.tasks.filter((pl.col("service") == whole.service) & ~pl.col("task_id").is_in(task_ids))
    return whole._replace(
        tasks=tasks, scripts=users.scripts(tasks, tables.turns, tables.remember), rubrics=whole.rubrics.clear(),
        sessions=whole.sessions.clear())


def _bundle(tables: Tables, service: str, name: str, covered: bool = True) -> Bundle:
    """Everything of a service: all its tasks, and the rubrics of those that have one; what the room can answer where `covered`
    (that takes longest, and is in no digest)."""
    own = pl.col("service") == service
    tasks, made = tables.tasks.filter(own), tables.variants.filter(own)
    rubrics = pl.concat([tables.rubrics.filter(own), made.select(tables.rubrics.columns)]).sort("task_id")
    turns = tables.turns.filter(own)
    rows = rooms.rows_of(service, tables.facts, tables.recorded, tables.behaviours)
    longest = turns.group_by("session_id").len()["len"].max()
    return Bundle(
        name, service, tables.starts_from.get(service, "shared"),
        rows, tables.tools.filter(own), *_with_variants(tasks, users.scripts(tasks, turns, tables.remember), made), rubrics,
        longest if isinstance(longest, int) else 0, coverage(rows, tasks, turns) if covered else {},
        conditions(turns, {row["tool"]: row["effect"] for row in rows.programs}),
        users.sessions_of(tasks.join(rubrics, on="task_id", how="semi"), turns, tables.outcomes), users.longest(turns),
        tables.privacy)


def _with_variants(tasks: pl.DataFrame, scripts: pl.DataFrame, made: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tasks and scripts with the variants of `made` beside them, or in the place of those that they solve."""
    others = ~pl.col("task_id").is_in(made["task_id"].implode())
    return (pl.concat([tasks.filter(others), made], how="diagonal").select(tasks.columns).sort("task_id"),
            pl.concat([scripts.filter(others), made], how="diagonal").select(scripts.columns).sort("task_id"))


def names_of(services: Iterable[str]) -> dict[str, str]:
    """A folder's name for each service: lower case, digits and dashes, not too long; a number where two would be the same."""
    names: dict[str, str] = {}
    for service in services:
        plain = re.sub(r"[^a-z0-9]+", "-", service.lower()).strip("-")[:LONGEST_NAME].strip("-") or "service"
        taken = set(names.values())
        names[service] = next(
            name for n in range(1, len(taken) + 2) if (name := plain if n == 1 else f"{plain}-{n}") not in taken)
    return names


def move(made: Path, place: Path) -> None:
    """Rename into place; what stood there is moved away first, and then removed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = made.with_name(f"{made.name}.old")
    if place.exists():
        place.replace(old)
    made.replace(place)
    shutil.rmtree(old, ignore_errors=True)


def _no_image(why: str) -> dict[str, str]:
    return {"left": why}


def _verdict(stage: str, name: str, kept: bool, reason: str, detail: str) -> pl.DataFrame:
    said = detail if detail.endswith(".") else f"{detail}."
    return frame(Verdict, [Verdict(stage=stage, subject=name, kept=kept, reason=reason, detail=said)])
