"""The stages `rewards` and `variants`: a rubric for each task, and new tasks made from failures and known solutions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import polars as pl

from env_builder.rewards import mine
from env_builder.rewards.corrections import Corrected, changes_in, corrected_rows, corrections_of, decisions_on
from env_builder.rewards.persons import StatedCheck, read, read_changes
from env_builder.rooms import differences
from env_builder.variants import VariantTables, make
from env_builder.world.calls import read_call, split_openings
from env_builder.world.faults import without
from extractors.outcomes.calibration import measure, withhold_untrusted
from pipelines.building.decisions import corrections_of_kind, effects_of, replace_decisions
from pipelines.building.worlds import in_their_worlds
from pipelines.resources import asking
from pipelines.running import memory
from pipelines.running.cache import memoized
from pipelines.running.code import code_digest
from pipelines.running.stage import Counts
from pipelines.settings import Settings, rubrics
from warehouse.records import Decision, frame
from warehouse.store import Store


def rewards(store: Store, settings: Settings) -> Counts:
    """Mine a rubric for each task from what good and bad sessions changed, each played in its own environment. A file of a
    person's checks may be called by a family's name. Raises InputError where one cannot be read, or half a model is
    configured."""
    config, effects = settings.configured, effects_of(store)
    sessions = store.table("core.sessions")
    read = cache(read_call)   # equal calls are read once
    turns, _ = split_openings(without(store.table("core.turns"), effects, read), sessions)
    tasks, outcomes = store.table("mart.tasks"), store.table("mart.outcomes")
    played = differences(
        in_their_worlds(sessions, store.table("mart.worlds")), turns,
        *(store.table(f"mart.{table}") for table in ("facts", "recorded", "behaviours")))
    memory.release()   # the world that they were played in
    stated = stated_checks(store, rubrics(config.rewards.rubrics))
    ask = asking(settings) if config.rewards.ask else None
    with memoized(store, "rewards", code_digest(__name__)) as memoize:
        mined = mine(tasks, sessions, turns, outcomes, played, effects, stated, ask,
                     _corrections(store, settings, tasks), memoize, store.table("mart.goals"), store.table("mart.conditions"),
                     read)
    measures = measure(tasks, outcomes, store.table("core.feedback"), config.outcomes.reviews)
    trusted, withheld = withhold_untrusted(mined.rubrics, tasks, measures, config.gates.min_auroc, config.gates.max_ece)
    untrusted = frame(Decision, withheld)
    replace_decisions(store, "rewards", pl.concat([untrusted, mined.decisions.join(untrusted, on="subject", how="anti")]))
    return {"n_rubrics": store.replace("mart.rubrics", trusted), "n_untrusted": len(withheld),
            "n_untold": played["difference"].null_count()}


def variants(store: Store, settings: Settings) -> Counts:
    """Make new tasks: failures solved by the trajectories of good sessions, and known solutions bound to other records."""
    config = settings.configured
    tasks, outcomes = store.table("mart.tasks"), store.table("mart.outcomes")
    sessions = store.table("core.sessions")
    read = cache(read_call)
    turns, _ = split_openings(without(store.table("core.turns"), effects_of(store), read), sessions)
    tables = VariantTables(
        tasks, store.table("mart.rubrics"), store.table("mart.goals"), store.table("mart.families"),
        sessions, turns, outcomes, store.table("mart.facts"), store.table("mart.recorded"), store.table("mart.behaviours"))
    with memoized(store, "variants", code_digest(__name__)) as memoize:
        made = make(tables, config.variants.failures, config.variants.per_family, memoize, read)
    measures = measure(tasks, outcomes, store.table("core.feedback"), config.outcomes.reviews)
    kept, withheld = withhold_untrusted(made.variants, made.variants, measures, config.gates.min_auroc, config.gates.max_ece)
    untrusted = frame(Decision, withheld).with_columns(stage=pl.lit("variants"))
    corrections = _corrections(store, settings, pl.concat([each.select("task_id", "family") for each in (tasks, kept)]))
    kept = corrected_rows(kept, corrections, stated_checks(store, rubrics(config.rewards.rubrics)))
    of_sites = store.read("select subject from mart.decisions where stage = 'site_rooms'")["subject"]
    words = decisions_on(corrections, tables.rubrics, kept).filter(
        (pl.col("reason") != "no_such_check") | ~pl.col("subject").is_in(of_sites.implode()))
    replace_decisions(
        store, "variants", pl.concat([untrusted, made.decisions.join(untrusted, on="subject", how="anti"), words]))
    store.replace("mart.variants", kept)
    return {f"n_from_{origin}": kept.filter(pl.col("made_from") == origin).height for origin in ("failure", "rebinding")}


def stated_checks(store: Store, files: Mapping[str, str]) -> list[StatedCheck]:
    """Return the checks of people's files, by the family's id. Raises InputError."""
    families = _families(store)
    return [each._replace(family=family) for each in read(files) for family in families.get(each.family, [each.family])]


def stated_changes(store: Store, files: Mapping[str, str], tasks: pl.DataFrame) -> dict[str, Corrected]:
    """Return the changes of mined checks in people's files as corrections for `tasks` (task_id, family). Raises InputError."""
    families = _families(store)
    changes = [each._replace(family=family) for each in read_changes(files)
               for family in families.get(each.family, [each.family])]
    return changes_in(changes, tasks.select("task_id", "family").unique().sort("task_id", "family").iter_rows())


def _corrections(store: Store, settings: Settings, tasks: pl.DataFrame) -> dict[str, Corrected]:
    """Return what persons corrected of checks; a correction counts before a file."""
    files = rubrics(settings.configured.rewards.rubrics)
    return {**stated_changes(store, files, tasks), **corrections_of(corrections_of_kind(store, "check"))}


def _families(store: Store) -> dict[str, list[str]]:
    """Name of a family -> its ids."""
    families: dict[str, list[str]] = {}
    for family, name in store.read("select distinct family, name from mart.names order by all").iter_rows():
        families.setdefault(name, []).append(family)
    return families
