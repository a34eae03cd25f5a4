"""Environments: written aside, verified, and moved into place with the tasks that hold.

`env_builder` says what an environment is made of and what it must withstand (rooms, bundle, verify, image). Here a service's
draft is written under OUT/.drafts, verified, written again with the tasks that hold, and renamed into place, so that
OUT/environments has complete directories only; those that no run makes any more are removed. Tasks without a verified reward
are not published: their environments are in OUT/unverified, where grading them gives no score.

Does not see: what a directory holds beyond what its manifest states.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from env_builder import bundle, image, rooms, users, verify
from env_builder.audit import Depth
from env_builder.bundle import MANIFEST, Bundle
from env_builder.coverage import coverage
from env_builder.habits import habits
from env_builder.perturbations import perturbations
from env_builder.real_answers import with_answers
from env_builder.runtime.perturbations import USER
from env_builder.runtime.programs import presumed_effect
from env_builder.sharding import Sharding
from env_builder.wordings import wordings
from pipelines import progress
from pipelines.building.arrivals import arrivals_of
from pipelines.building.decisions import RULE_CHANGED, starts_of
from pipelines.building.outdated import ended_answers, instructed_otherwise, without_outdated
from pipelines.building.skeletons import declared_services, write_skeletons
from pipelines.privacy import guard as privacy
from pipelines.quality.precision import RewardEstimate, precision_of, reward_estimates
from pipelines.running import memory
from pipelines.running.cache import Partitions, memoized, partitions_of, record_partitions, replace_stale
from pipelines.running.code import code_digest
from pipelines.running.engines import auditors
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import Decision, EnvironmentRow, Memoize, frame, recompute
from warehouse.store import Store

STAGE = "environments"
LONGEST_NAME = 64
_OF_WORLD = ("mart.facts", "mart.recorded", "mart.behaviours")
_OWN = ("core.turns", "core.tools", "mart.tasks", "mart.rubrics", "mart.variants")
_OUTCOMES = "(select service, session_id, probability from mart.outcomes join core.sessions using (session_id))"
"""What an environment is made of, with the service that a row belongs to."""
_REVIEWS = "(select service, r.* from core.reviews r join core.sessions using (session_id))"
_ANSWERS = "(select * from core.events where kind = 'answer')"
"""What real tools answered, as persons accepted it."""
_EPOCHS = "(select service, session_id, epoch from raw.epochs join core.sessions using (session_id))"
_AUDITS_AT_ONCE = 100
"""Audits that are written to the warehouse at once."""
BELOW = "below_min_precision"
"""Reason of a task that verified, and whose reward is not likely enough right."""


def environments(store: Store, settings: Settings) -> Counts:
    """Write a directory for each service with tasks that hold: environment, rewards, and an image where an engine is."""
    drafts, code = _drafts(settings), code_digest(__name__)
    shutil.rmtree(drafts, ignore_errors=True)
    names = _names(store)
    partitions = _partitions(store, names, settings)
    rows: list[EnvironmentRow] = []
    decisions = dict[str, pl.DataFrame]()
    for done, service in enumerate(partitions.stale):
        progress.tell(STAGE, done, len(partitions.stale), service)
        kept = dict(store.read("select audit_id, audited from raw.audits where service = $service and code = $code",
                               service=service, code=code).iter_rows())
        with memoized(store, f"{STAGE} {service}", code) as memoize:
            row, decisions[service], audited = _of_service(store, service, names[service], settings, memoize, kept)
        _replace_audits(store, service, code, kept, audited)
        rows += [row] if row else []
    store.change("delete from raw.cache where list_contains($stages, stage)", None,
                 stages=[f"{STAGE} {service}" for service in partitions.gone if service not in names])
    shutil.rmtree(drafts, ignore_errors=True)
    declared = names_of(declared_services(store))
    skeletons = write_skeletons(store, settings, declared)
    store.replace("mart.decisions", pl.concat([record_partitions(store, STAGE, partitions, decisions), skeletons]),
                  "stage in ('environments', 'verify', 'image') or (stage = 'drift' and reason = $reason)", reason=RULE_CHANGED)
    replace_stale(store, "mart.environments", partitions, frame(EnvironmentRow, rows))
    store.change("delete from raw.audits where list_contains($gone, service)", None,
                 gone=sorted({*partitions.gone} - {*partitions.stale}))
    made = store.table("mart.environments")
    company = dict(store.table("mart.company_rooms").select("folder", "environment").iter_rows())
    unverified = {*names.values(), *declared.values(), company.get("unverified")}
    published = {*made["environment"], company.get("environments"), *store.table("mart.code_rooms")["environment"],
                 *store.table("mart.site_rooms")["environment"]}
    for folders, current in ((settings.unverified, unverified), (settings.environments, published)):
        for folder in folders.glob("*"):
            if folder.name not in current and _digest(folder) is not None:   # what is no environment of ours stays
                shutil.rmtree(folder)
                if folders == settings.environments:
                    shutil.rmtree(settings.rewards / folder.name, ignore_errors=True)
    return {"n_environments": made.height, "n_rubrics": store.count("mart.rubrics"), "n_published": int(made["n_tasks"].sum()),
            "n_images": made["image_id"].count()}


def _partitions(store: Store, names: dict[str, str], settings: Settings) -> Partitions:
    """Services whose environment is as it would be made today, with the image that is asked for, and all others."""
    image_settings = {name: settings.value_of(name) for name in ("image", "base_image", "[audit]", "[gates]", "[environments]")}
    starts, policy = starts_of(store), privacy.stated(store)
    inputs = {service: [name, starts.get(service), policy, image_settings] for service, name in names.items()}
    tables = (*_OWN, *_OF_WORLD, _OUTCOMES, _REVIEWS, _ANSWERS, _EPOCHS, "mart.worlds")
    partitions = partitions_of(store, STAGE, code_digest(__name__), inputs, tables)
    rows = _published(store)

    def lacks(service: str) -> bool:
        row = rows.get(service)
        without = settings.image and row is not None and row["image_id"] is None
        return without or not _directories_stand(store, settings, service, names[service], row)

    return partitions.with_stale(filter(lacks, partitions.standing))


def _replace_audits(store: Store, service: str, code: str, kept: Mapping[str, str], audited: Mapping[str, str]) -> None:
    """Keep the audits of a service in the place of its former ones, new ones some at a time: their texts are long."""
    standing = [key for key, text in kept.items() if audited.get(key) == text]
    store.change(
        "delete from raw.audits where service = $service and (code != $code or audit_id not in (from incoming))",
        pl.DataFrame({"audit_id": standing}, schema={"audit_id": pl.String()}), service=service, code=code)
    rows = [(service, key, code, audited[key]) for key in sorted({*audited} - {*standing})]
    for start in range(0, len(rows), _AUDITS_AT_ONCE):
        some = rows[start:start + _AUDITS_AT_ONCE]
        store.append("raw.audits", pl.DataFrame(some, ["service", "audit_id", "code", "audited"], orient="row"))


def publish(store: Store, service: str, name: str, settings: Settings) -> bool:
    """Write the directories of one service under this name; whether there was a task that holds."""
    row, *_ = _of_service(store, service, name, settings, recompute, {})
    shutil.rmtree(_drafts(settings), ignore_errors=True)
    return row is not None


def hold(store: Store, settings: Settings) -> bool:
    """Whether the directories are as they were written, by what their manifests say."""
    rows = _published(store)
    skeletons = names_of(declared_services(store)).values()
    return all(_directories_stand(store, settings, service, name, rows.get(service)) for service, name in _names(store).items()
               ) and all(_digest(settings.unverified / name) is not None for name in skeletons)


def written_again(store: Store, settings: Settings, folder: Path) -> dict[str, str]:
    """Content digests of the published environments, written once more into `folder` from the tables."""
    digests = {}
    kept = store.read("select subject from mart.decisions where stage = 'verify' and kept")["subject"].to_list()
    for row in _published(store).values():
        whole = _bundle(store, row["service"], row["environment"], recompute)[0]
        published = _with(whole, kept)._replace(sharding=_sharding(store, settings, row["service"]))
        digests[row["environment"]] = bundle.write_room(published, folder / row["environment"], _no_image("it is thrown away"))
    return digests


def _sharding(store: Store, settings: Settings, service: str) -> Sharding:
    """Return how the files of a service's environment are split."""
    began = store.read("select session_id, started_at from core.sessions where service = $service and started_at is not null",
                       service=service)
    return Sharding(round(settings.configured.environments.shard_mb * 1_000_000),
                    dict(began.with_columns(pl.col("started_at").dt.strftime(rooms.INSTANT)).iter_rows()))


def _drafts(settings: Settings) -> Path:
    return Path(settings.out) / ".drafts"


def _names(store: Store) -> dict[str, str]:
    return names_of(store.read("select distinct service from mart.tasks order by all")["service"])


def _published(store: Store) -> dict[str, dict[str, Any]]:
    """Service -> row of `mart.environments`."""
    return {row["service"]: row for row in store.table("mart.environments").to_dicts()}


def _of_service(
    store: Store, service: str, name: str, settings: Settings, memoize: Memoize, kept: dict[str, str]
) -> tuple[EnvironmentRow | None, pl.DataFrame, dict[str, str]]:
    """Build one environment; gives its row (None where no task holds), decisions, and the audits to keep."""
    drafts = _drafts(settings)
    room, rewards = drafts / "environments" / name, drafts / "rewards" / name
    whole, answered = _bundle(store, service, name, memoize)
    draft = _with(whole, whole.rubrics["task_id"].to_list())
    memory.release()   # what the bundle was made of
    bundle.write(draft, room, rewards, _no_image("it is not published yet"), memoize)
    in_files = whole.rows._replace(facts=[], recorded=[])   # what the environment holds is in its files: it leaves the memory
    whole, draft = whole._replace(rows=in_files), draft._replace(rows=in_files)
    memory.release()
    verification, covered = _verified(store, draft, room, rewards, settings, kept, memoize)
    whole, draft = whole._replace(coverage=covered), draft._replace(coverage=covered)
    memory.release()   # the environment that was played
    estimates = reward_estimates(store, service)
    verification = precise(verification, estimates, settings.configured.gates.min_precision)
    _write_unverified(store, whole, verification.task_ids, room, settings, memoize)
    if not verification.task_ids:
        reason = f"None of {draft.tasks.height} tasks of {service} holds; see stage verify"
        decision = _decision(STAGE, name, False, "no_task_holds", reason)
        return None, pl.concat([verification.decisions, answered, decision]), verification.audits
    published = _with(draft, verification.task_ids)._replace(sharding=_sharding(store, settings, service))
    digests = bundle.publish(published, room, rewards, verification.report, _no_image("it was not asked for"))
    place = settings.environments / name
    stands = bundle.stands(place, digests.content_digest)  # only the reward changed: environment and image stay as they are
    made = image.build(room, settings.base_image) if settings.image else image.ImageResult(None, None, "--no-image was given")
    move(rewards, settings.rewards / name)
    precision = precision_of(store, verification.task_ids, estimates, service)
    bundle.note(
        place if stands else room, precision=precision and precision._asdict(), support=dict(published.rows.support),
        image={"base": made.base, "image_id": made.image_id} if made.image_id else _no_image(made.skip_reason or ""))
    if not stands:
        move(room, place)
    row = EnvironmentRow(
        environment=name, service=service, content_digest=digests.content_digest, rewards_digest=digests.rewards_digest,
        image_id=made.image_id, image_skip_reason=made.skip_reason, n_tasks=len(verification.task_ids),
        n_tools=published.tools.height)
    decisions = [
        _decision(STAGE, name, True, "published", f"{row.n_tasks} of {draft.tasks.height} tasks hold"),
        _decision("image", name, made.image_id is not None, "built" if made.image_id else "no_image",
                  made.image_id or made.skip_reason or "")]
    return row, pl.concat([verification.decisions, answered, *decisions]), verification.audits


def _verified(
    store: Store, draft: Bundle, room: Path, rewards: Path, settings: Settings, kept: Mapping[str, str], memoize: Memoize,
) -> tuple[verify.Verified, dict[str, Any]]:
    """Play against the draft that was written to `room` and `rewards`; return what came of it, and the coverage."""
    service, loaded = draft.service, verify.load(room, rewards)
    logged, turns = (store.table(table, "service = $service", service=service) for table in ("mart.tasks", "core.turns"))
    covered = coverage(draft.rows, logged, turns, loaded.environment.world, memoize)
    audit = settings.configured.audit
    with auditors(draft.tasks.height) as engine:
        verification = verify.verify(
            room, rewards, depth=Depth(mutants=audit.mutants, bad_below=audit.bad_below, good_from=audit.good_from),
            executor=engine and engine.executor, n_beside=engine.n_workers if engine else 0, kept=kept,
            arrivals=arrivals_of(store, service, draft.tasks), loaded=loaded)
    ended, instructed = ended_answers(store, service), instructed_otherwise(store, service)
    return without_outdated(verification, loaded, service, ended, instructed), covered


def precise(verification: verify.Verified, estimates: Mapping[str, RewardEstimate], least: float) -> verify.Verified:
    """Reject the verified tasks whose reward is right with a smaller probability than `least`."""
    below = {name: chance for name in verification.task_ids
             if (chance := (estimates[name].probability or 0.0) if name in estimates else 0.0) < least}
    detail = "It passed the audit; its reward is right with an estimated probability of {:.2f}, below min_precision ({}); {}."
    decisions = []
    for name, chance in below.items():
        sessions = estimates[name].session_ids if name in estimates else ()
        hint = f"review session {sessions[0]}" if sessions else "review sessions of its family"
        decisions.append(Decision(stage="verify", subject=name, kept=False, reason=BELOW,
                                  detail=detail.format(chance, least, hint)))
    kept = verification.decisions.filter(~pl.col("subject").is_in(list(below)))
    return verification._replace(
        task_ids=[name for name in verification.task_ids if name not in below],
        decisions=pl.concat([kept, frame(Decision, decisions)]).sort("subject"))


def _write_unverified(
    store: Store, whole: Bundle, task_ids: list[str], room: Path, settings: Settings, memoize: Memoize
) -> None:
    """Write the environment of the logged tasks that are not among these, without any reward. `room`: its service's draft."""
    place, draft = settings.unverified / whole.name, _drafts(settings) / "unverified" / whole.name
    tasks = store.table("mart.tasks", "service = $service", service=whole.service).filter(~pl.col("task_id").is_in(task_ids))
    if tasks.is_empty():
        shutil.rmtree(place, ignore_errors=True)
        return
    turns = store.table("core.turns", "service = $service", service=whole.service)
    rest = whole._replace(tasks=tasks, scripts=users.scripts(tasks, turns, memoize), rubrics=whole.rubrics.clear(),
                          sessions=whole.sessions.clear(), sharding=_sharding(store, settings, whole.service))
    content_digest = bundle.copy_room(rest, room, draft, _no_image("its tasks are unverified"))
    if bundle.stands(place, content_digest):
        bundle.note(place, support=dict(rest.rows.support))
    else:
        move(draft, place)


def _with(whole: Bundle, task_ids: list[str]) -> Bundle:
    """Take only these tasks of a bundle."""
    chosen = pl.col("task_id").is_in(task_ids)
    return whole._replace(
        tasks=whole.tasks.filter(chosen), scripts=whole.scripts.filter(chosen), rubrics=whole.rubrics.filter(chosen),
        sessions=whole.sessions.filter(chosen))


def _bundle(store: Store, service: str, name: str, memoize: Memoize) -> tuple[Bundle, pl.DataFrame]:
    """Everything of a service but its coverage: all its tasks, with the variants next to them or in the place of those that
    they solve, and the rubrics of those that have one; and decisions on what real tools answered."""
    turns, tools, logged, rubrics, made = (
        store.table(table, "service = $service", service=service) for table in _OWN)
    outcomes = store.table("mart.outcomes", "session_id in (select session_id from core.sessions where service = $service)",
                           service=service)
    rubrics = pl.concat([rubrics, made.select(rubrics.columns)]).sort("task_id")
    answers = store.read(f"from {_ANSWERS} where service = $service order by event_id", service=service)
    rows, answered = with_answers(_rows(store, service), logged, answers)
    logged = users.led_by_solution(logged, turns, rubrics)
    longest = turns.group_by("session_id").len()["len"].max()
    others = ~pl.col("task_id").is_in(made["task_id"].implode())
    spoken = users.spoken_in(logged, turns, memoize)
    tasks, scripts = (
        pl.concat([each.filter(others), made], how="diagonal").select(each.columns).sort("task_id")
        for each in (logged, users.scripts(logged, turns, memoize, spoken)))
    return Bundle(
        name, service, starts_of(store).get(service, "shared"), rows, tools, tasks, scripts, rubrics,
        longest if isinstance(longest, int) else 0, {},
        _perturbations(store, service, turns, rows, logged, scripts, spoken),
        users.sessions_of(logged.join(rubrics, on="task_id", how="semi"), turns, outcomes), users.longest(turns),
        privacy.stated(store), _worlds(store, service)), answered


def _perturbations(
    store: Store, service: str, turns: pl.DataFrame, rows: rooms.Rows, logged: pl.DataFrame, scripts: pl.DataFrame,
    spoken: users.Spoken,
) -> list[dict[str, Any]]:
    """Return how tools behave in production, after how users behave and word what every user says, if enough people do."""
    people = store.read("select session_id, coalesce(identity, session_id) as person from core.sessions "
                        "where service = $service", service=service)
    own = users.primary(logged).join(people, on="session_id").select("task_id", "person")
    persons = dict(own.iter_rows())
    texts = wordings(scripts.join(own, on="task_id", how="semi"), persons)
    good = logged.filter(pl.col("succeeded_session_ids").list.len() > 0)["task_id"].to_list()
    fitted = habits(spoken.talks, dict(logged.select("task_id", "family").iter_rows()), persons, good, spoken.read)
    row = {**({"wordings": texts} if texts else {}), **({"habits": fitted} if fitted else {})}
    return [*([{"tool": USER, **row}] if row else []),
            *perturbations(turns, {row["tool"]: presumed_effect(row) for row in rows.programs})]


def _worlds(store: Store, service: str) -> list[bundle.WorldRows]:
    """Rows of each world of a service whose sessions are of several."""
    sessions = store.read("select world, list(session_id order by session_id) as session_ids from mart.worlds "
                          "where service = $service group by world order by world", service=service)
    return [bundle.WorldRows(_rows(store, world), session_ids) for world, session_ids in sessions.iter_rows()]


def _rows(store: Store, service: str) -> rooms.Rows:
    return rooms.rows_of(service, *(store.table(table, "service = $service", service=service) for table in _OF_WORLD))


def names_of(services: Iterable[str]) -> dict[str, str]:
    """Folder name of each service: lower case, digits and dashes, not too long; with a number where two would be equal."""
    names: dict[str, str] = {}
    for service in services:
        plain = re.sub(r"[^a-z0-9]+", "-", service.lower()).strip("-")[:LONGEST_NAME].strip("-") or "service"
        taken = set(names.values())
        names[service] = next(
            name for n in range(1, len(taken) + 2) if (name := plain if n == 1 else f"{plain}-{n}") not in taken)
    return names


def move(made: Path, place: Path) -> None:
    """Rename into place; what was there is moved away first, and then removed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    old = made.with_name(f"{made.name}.old")
    if place.exists():
        place.replace(old)
    made.replace(place)
    shutil.rmtree(old, ignore_errors=True)


def _no_image(why: str) -> dict[str, str]:
    return {"skip_reason": why}


def _decision(stage: str, name: str, kept: bool, reason: str, detail: str) -> pl.DataFrame:
    sentence = detail if detail.endswith(".") else f"{detail}."
    return frame(Decision, [Decision(stage=stage, subject=name, kept=kept, reason=reason, detail=sentence)])


def _directories_stand(store: Store, settings: Settings, service: str, name: str, row: dict[str, Any] | None) -> bool:
    """Whether the directories of one service are as they were written. `row`: of `mart.environments`, if it has one."""
    n_left = store.read(
        "select count(*) from mart.tasks where service = $service and task_id not in "
        "(select subject from mart.decisions where stage = 'verify' and kept)", service=service).item()
    if n_left and _digest(settings.unverified / name) is None:
        return False
    return row is None or (
        _digest(settings.environments / row["environment"]) == row["content_digest"]
        and (settings.rewards / row["environment"] / "rewards.json").is_file())


def _digest(environment: Path) -> str | None:
    """Content digest that a directory's manifest states, None where it is no environment."""
    try:
        manifest: Any = json.loads((environment / MANIFEST).read_text("utf-8"))
        return str(manifest["content_digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
