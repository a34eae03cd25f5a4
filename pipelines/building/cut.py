"""The training cut: an environment made as if the sessions of the other splits had never been logged.

In: a published environment and its run's warehouse. Out: a `Kit` of an environment and its rewards in which no task, fact,
recorded answer, program, script, example or rubric comes from a session of another split: the stages themselves make it
(pipelines/stages.py), from a warehouse without those sessions, and it is verified like every other. Tasks keep their splits.

Tasks of a repository's environment know nothing of each other's sessions: its cut has those of the splits, as they are.

A cut is stored in OUT/.kits, under a digest of what it was made of, so that all consumers get the same one; an older one of the
same environment is removed. Does not see: what one session says of another's (sessions of no task belong to no split and stay);
statistics of the whole log that are in how it was split.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

import polars as pl

from env_builder.exports.kit import Kit, kit_of
from env_builder.runtime.canonical import canonical, digest
from env_builder.shell.selecting import select
from pipelines import progress
from pipelines.building import environments as bundling
from pipelines.building.rewards import rewards, variants
from pipelines.building.tasks import goals, names, outcomes, tasks
from pipelines.building.worlds import worlds
from pipelines.inspection.tasks import task_rows
from pipelines.running.code import code_digest
from pipelines.settings import Settings
from warehouse.errors import EnvironmentBroken, Missing
from warehouse.lock import writing
from warehouse.records import SPLITS, Decision, frame
from warehouse.store import Store

STAGES_OF_A_CUT = (worlds, goals, names, outcomes, tasks, rewards, variants)
_WORD = re.compile(r"[^\W_][\w-]*")
_OF_SESSIONS = ("core.sessions", "core.turns", "core.feedback")


def cut(environment: Path, splits: Collection[str], configuration: str | None = None) -> Kit:
    """Make the kit of a published environment with the tasks of these splits alone; of all splits, it is the published one.
    `configuration`: the file that its run was given. Raises Missing, EnvironmentBroken where no task of these splits holds."""
    out = environment.parent.parent
    whole = kit_of(environment, out / "rewards" / environment.name)
    if set(splits) >= {task["split"] for task in whole.tasks} | (set() if whole.workspace else set(SPLITS)):
        return whole
    settings = Settings(logs=(), out=str(out), configuration=configuration, image=False)
    kits = out / ".kits" / whole.name / "+".join(sorted(set(splits)))
    place = kits / digest(canonical([whole.digest, code_digest(__name__), settings.configured.model_dump(mode="json")]))[:16]
    with writing(kits.with_suffix(".duckdb"), f"a cut of {whole.name}"):
        if not place.is_dir():
            shutil.rmtree(kits, ignore_errors=True)
            if whole.workspace:
                _select(whole, frozenset(splits), place)
            else:
                _make(settings, whole.name, frozenset(splits), place)
    return kit_of(place / "environments" / whole.name, place / "rewards" / whole.name)


def left_out(environment: Path, kit: Kit, splits: Collection[str]) -> pl.DataFrame:
    """Frame of `Decision`: the published tasks of these splits that the cut does not have."""
    there = {task["task_id"] for task in kit.tasks}
    why = "It does not hold in a room that knows nothing from the sessions of the other splits."
    return frame(Decision, [
        Decision(stage="cut", subject=row["task_id"], kept=False, reason="does_not_hold_alone", detail=why)
        for row in task_rows(environment) if row["split"] in splits and row["task_id"] not in there])


def _select(whole: Kit, splits: frozenset[str], place: Path) -> None:
    """Make the cut of a repository's environment: each of its tasks stands for itself."""
    task_ids = {task["task_id"] for task in whole.tasks if task["split"] in splits}
    if not task_ids:
        raise EnvironmentBroken(f"no task is of {', '.join(sorted(splits))}", str(whole.room), "name more splits (--split)")
    draft = place.with_name(f"{place.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    select(whole.room, whole.grader, task_ids, (draft / "environments" / whole.name, draft / "rewards" / whole.name))
    bundling.move(draft, place)


def _make(settings: Settings, name: str, splits: frozenset[str], place: Path) -> None:
    draft = place.with_name(f"{place.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    inner = settings.model_copy(update={"out": str(draft)})
    with Store.published(settings.warehouse) as store:
        services = dict(store.read("select environment, service from mart.environments").iter_rows())
        if name not in services:
            raise Missing.named("environment", name, services)
        service = services[name]
        sides = _sides(store, service)
        with Store.open(inner.warehouse) as own:
            _fill(own, store, service, sides.filter(~pl.col("split").is_in(list(splits))))
    with Store.open(inner.warehouse) as own:
        for done, stage in enumerate(STAGES_OF_A_CUT):
            progress.tell("cut", done, len(STAGES_OF_A_CUT), stage.__name__)
            stage(own, inner)
            if stage is tasks:
                own.replace("mart.tasks", _with_sides(own.table("mart.tasks"), sides, splits))
        progress.tell("cut", finished=True)
        if not bundling.publish(own, service, name, inner):
            what = f"no task of {', '.join(sorted(splits))} holds by itself"
            raise EnvironmentBroken(what, str(settings.environments / name), "name more splits (--split), or log more sessions")
    for path in (inner.warehouse, inner.warehouse.with_name(f"{inner.warehouse.name}.lock")):
        path.unlink(missing_ok=True)
    shutil.rmtree(inner.unverified, ignore_errors=True)
    bundling.move(draft, place)


def _sides(store: Store, service: str) -> pl.DataFrame:
    """(session_id, split) of all sessions of tasks; one that is on several sides stands there several times."""
    own = store.read("select session_ids, segment_of, split from mart.tasks where service = $service", service=service)
    both = [own.select(pl.col("session_ids").alias("session_id"), "split").explode("session_id"),
            own.select(pl.col("segment_of").alias("session_id"), "split")]
    return pl.concat(both).drop_nulls("session_id").unique().sort("session_id", "split")


def _fill(own: Store, store: Store, service: str, without: pl.DataFrame) -> None:
    """Write a warehouse of one service without some sessions."""
    from extractors.tools import tools_of

    sessions = store.read("select * from core.sessions where service = $service order by all", service=service)
    kept = sessions.join(without, on="session_id", how="anti")
    for table in _OF_SESSIONS:
        own.replace(table, store.table(table).join(kept, on="session_id", how="semi"))
    gone = sessions.join(without, on="session_id", how="semi")
    own.replace("core.row_changes", _elsewhere(
        store.table("core.row_changes"), gone, store.table("core.turns").join(gone, on="session_id", how="semi")))
    tools, _ = tools_of(own.table("core.turns"), store.table("raw.declarations"))
    own.replace("core.tools", tools.filter(pl.col("service") == service))


def _elsewhere(changes: pl.DataFrame, sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Row changes that none of the sessions made, as far as is known: those of another time (with a minute for what is
    written late), or of a row whose key none of them names."""
    times = sessions.select("started_at", pl.col("ended_at") + pl.duration(minutes=1)).drop_nulls().sort("started_at")
    if changes.is_empty() or times.is_empty():
        return changes
    spans = times.with_columns(pl.col("ended_at").cum_max())  # of sessions that overlap: until when one of those so far ran
    texts = (*turns["arguments"].drop_nulls(), *turns["content"].drop_nulls())
    words = {word for text in texts for word in _WORD.findall(text)}
    named = [not key or any(word in words for word in _WORD.findall(key)) for key in changes["key"]]
    then = changes.with_columns(pl.Series("named", named)).sort("happened_at").join_asof(
        spans, left_on="happened_at", right_on="started_at")
    return then.filter(
        ~pl.col("named") | pl.col("ended_at").is_null() | (pl.col("happened_at") > pl.col("ended_at"))).select(changes.columns)


def _with_sides(tasks: pl.DataFrame, sides: pl.DataFrame, splits: frozenset[str]) -> pl.DataFrame:
    """Return the tasks on the sides on which their sessions were; without those whose sessions were on none."""
    sessions = pl.concat_list("session_ids", pl.col("segment_of").implode().over("task_id").list.drop_nulls())
    of_tasks = tasks.select("task_id", sessions.alias("session_id")).explode("session_id")
    side = of_tasks.join(sides, on="session_id", how="left").group_by("task_id").agg(
        pl.col("split").max(), pl.col("split").is_null().any().alias("unknown"))
    allowed = side.filter(~pl.col("unknown") & pl.col("split").is_in(list(splits))).select("task_id", "split")
    return tasks.drop("split").join(allowed, on="task_id").select(tasks.columns).sort("task_id")
