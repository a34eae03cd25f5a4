"""The stages in order, each a plain function (store, settings) -> counts: read, one call, write.

Every function also writes the verdicts of its stage. What a stage stands on is in `STAGES`; how it is carried out, and
when it is skipped, is in pipelines/engine.py. Heavy modules are imported where they are used: `--help` needs none.
"""

from __future__ import annotations

import json

import polars as pl

from pipelines.engine import Counts, Stage
from pipelines.ingesting import ingest
from pipelines.kept import keeping
from pipelines.settings import Settings
from pipelines.verdicts import all_of
from pipelines.worlds import configuration_of
from warehouse.records import Leakage, Verdict, frame
from warehouse.store import Store


def _effects(store: Store) -> pl.DataFrame:
    return store.read("select service, tool, effect from mart.behaviours order by all")


def _starts_from(store: Store) -> dict[str, str]:
    return dict(store.read("select service, starts_from from mart.services order by all").iter_rows())


def standing(store: Store, kind: str) -> pl.DataFrame:
    """What persons corrected of a kind of thing (outcome, family, check), and nobody took back: rows of `core.corrections`."""
    return store.read(
        "select * from core.corrections where stands and kind = $kind and value != 'null' order by correction_id", kind=kind)


def leave(store: Store, stage: str, verdicts: pl.DataFrame) -> None:
    """Put the verdicts of a stage in the place of its former ones."""
    store.replace("mart.verdicts", verdicts.unique(["stage", "subject", "reason"]), "stage = $stage", stage=stage)


def sessions(store: Store, settings: Settings) -> Counts:
    """Events to sessions, turns, feedback, row changes and tools; and what the logs are made of that changed."""
    from extractors.drift import drift
    from extractors.sessions import assemble
    from pipelines.selecting import selected

    events = store.table("core.events")
    made = selected(
        assemble(events, store.table("raw.declarations"), configuration_of(settings).sessions.gap_minutes), settings)
    tables = {
        "core.sessions": made.sessions, "core.turns": made.turns, "core.feedback": made.feedback,
        "core.row_changes": made.row_changes, "core.corrections": made.corrections, "core.tools": made.tools}
    counts = {f"n_{name.split('.')[1]}": store.replace(name, frame) for name, frame in tables.items()}
    leave(store, "sessions", made.verdicts)
    changes = drift(events, made.turns)
    leave(store, "drift", changes)
    return {**counts, "n_changes": changes.height}


def world(store: Store, settings: Settings) -> Counts:
    """What is known of the world over time, the answers that tools gave, and what each tool does."""
    from pipelines.worlds import worlds

    return worlds(store, settings)


def goals(store: Store, settings: Settings) -> Counts:
    """What each session was for, with the arguments that its words ask for."""
    from extractors.tasks import goals_of

    with keeping(store, "goals") as remember:
        found = goals_of(
            store.table("core.sessions"), store.table("core.turns"), _effects(store), _starts_from(store), remember)
    return {"n_goals": store.replace("mart.goals", found)}


def names(store: Store, settings: Settings) -> Counts:
    """What families are called, and goals as sentences to read."""
    from pipelines.naming import naming

    found, verdicts = naming(store.table("mart.goals"), store.table("core.tools"), settings, standing(store, "family"))
    leave(store, "names", verdicts)
    return {"n_names": store.replace("mart.names", found.families),
            "n_sentences": store.replace("mart.sentences", found.sentences)}


def outcomes(store: Store, settings: Settings) -> Counts:
    """How well each session went."""
    from extractors.outcomes import judge

    judged = judge(
        store.table("core.sessions"), store.table("core.turns"), store.table("core.feedback"), _effects(store),
        _starts_from(store), configuration_of(settings).outcomes.reviews, store.table("mart.goals"),
        store.table("core.row_changes"), standing(store, "outcome"))
    rated = judged.outcomes.drop_nulls("probability")["session_id"]
    leave(store, "outcomes", all_of(rated, judged.verdicts, "outcomes", "judged", "Has a probability of success."))
    n_abstained = judged.outcomes["probability"].null_count()
    store.replace("mart.signals", judged.worth)
    return {"n_outcomes": store.replace("mart.outcomes", judged.outcomes), "n_abstained": n_abstained}


def tasks(store: Store, settings: Settings) -> Counts:
    """What was asked for: grouped sessions, with goal, start and split; and what the split's sides still share."""
    from extractors.tasks import find, leakage

    sessions, turns, effects = store.table("core.sessions"), store.table("core.turns"), _effects(store)
    gate = configuration_of(settings).gates.min_probability
    with keeping(store, "tasks") as remember:
        found = find(sessions, turns, store.table("mart.outcomes"), effects, _starts_from(store), gate,
                     store.table("mart.goals"), remember)
    shared = leakage(found.tasks, sessions, turns, effects)
    reports = [{"service": name, "report": json.dumps(report, sort_keys=True)} for name, report in sorted(shared.items())]
    store.replace("mart.leakage", frame(Leakage, reports))
    grouped = found.tasks["session_ids"].explode()
    leave(store, "tasks", all_of(grouped, found.verdicts, "tasks", "in_a_task", "Belongs to a task."))
    return {"n_tasks": store.replace("mart.tasks", found.tasks), "n_families": store.replace("mart.families", found.families)}


def rewards(store: Store, settings: Settings) -> Counts:
    """A rubric for each task, mined from what good and bad sessions changed, each played in its own room."""
    from env_builder.rooms import differences
    from env_builder.world.faults import without
    from extractors.outcomes.gate import hold_back, measure
    from pipelines.rewarding import rewards_of

    sessions, turns = store.table("core.sessions"), without(store.table("core.turns"), _effects(store))
    played = differences(
        sessions, turns, store.table("mart.facts"), store.table("mart.recorded"), store.table("mart.behaviours"))
    with keeping(store, "rewards") as remember:
        mined = rewards_of(store, settings, sessions, turns, played, _effects(store), standing(store, "check"), remember)
    told = configuration_of(settings)
    measures = measure(
        store.table("mart.tasks"), store.table("mart.outcomes"), store.table("core.feedback"), told.outcomes.reviews)
    rubrics, held = hold_back(mined.rubrics, store.table("mart.tasks"), measures, told.gates.min_auroc, told.gates.max_ece)
    untrusted = frame(Verdict, held)
    leave(store, "rewards", pl.concat([untrusted, mined.verdicts.join(untrusted, on="subject", how="anti")]))
    return {"n_rubrics": store.replace("mart.rubrics", rubrics), "n_untrusted": len(held),
            "n_untold": played["difference"].null_count()}


def variants(store: Store, settings: Settings) -> Counts:
    """New tasks: failures solved along the way of good sessions, and known solutions bound to other things."""
    from env_builder.rewards.corrections import corrected_rows, corrections_of, verdicts_on
    from env_builder.variants import Tables, make
    from env_builder.world.faults import without
    from extractors.outcomes.gate import hold_back, measure

    told = configuration_of(settings)
    tasks, outcomes = store.table("mart.tasks"), store.table("mart.outcomes")
    tables = Tables(
        tasks, store.table("mart.rubrics"), store.table("mart.goals"), store.table("mart.families"),
        store.table("core.sessions"), without(store.table("core.turns"), _effects(store)), outcomes, store.table("mart.facts"),
        store.table("mart.recorded"), store.table("mart.behaviours"))
    with keeping(store, "variants") as remember:
        made = make(tables, told.variants.failures, told.variants.per_family, remember)
    measures = measure(tasks, outcomes, store.table("core.feedback"), told.outcomes.reviews)
    kept, held = hold_back(made.variants, made.variants, measures, told.gates.min_auroc, told.gates.max_ece)
    untrusted = frame(Verdict, held).with_columns(stage=pl.lit("variants"))
    corrections = corrections_of(standing(store, "check"))
    kept = corrected_rows(kept, corrections)
    words = verdicts_on(corrections, store.table("mart.rubrics"), kept)
    leave(store, "variants", pl.concat([untrusted, made.verdicts.join(untrusted, on="subject", how="anti"), words]))
    store.replace("mart.variants", kept)
    return {f"n_from_{way}": kept.filter(pl.col("made_from") == way).height for way in ("failure", "rebinding")}


def environments(store: Store, settings: Settings) -> Counts:
    """A directory for each service with tasks that hold: its room, its grader's side, and its image where an engine is."""
    from pipelines.bundling import environments as write

    return write(store, settings)


def environments_hold(store: Store, settings: Settings) -> bool:
    """Do the published directories still stand?"""
    from pipelines.bundling import hold

    return hold(store, settings)


def datasets(store: Store, settings: Settings) -> Counts:
    """Every exporter's files for each service, split into train and held-out, and what the sides still share."""
    from pipelines.exporting import datasets as write

    return write(store, settings)


def datasets_hold(store: Store, settings: Settings) -> bool:
    """Are the files still there?"""
    from pipelines.exporting import hold

    return hold(store, settings)


def funnel(store: Store, settings: Settings) -> Counts:
    """All verdicts together; after it, the copy of the warehouse that readers open is put into place."""
    return {"n_verdicts": store.count("mart.verdicts")}


STAGES: tuple[Stage, ...] = (
    Stage(
        "extract",
        ("raw.files", "raw.places", "raw.records", "raw.quarantine", "raw.declarations", "raw.forgotten", "raw.privacy",
         "raw.people", "core.events"), (), ingest, always=True),
    Stage(
        "sessions", ("core.sessions", "core.turns", "core.feedback", "core.row_changes", "core.corrections", "core.tools"),
        ("extract",), sessions, ("[sources]", "[sessions]", "since", "services", "limit")),
    Stage(
        "world", ("mart.services", "mart.facts", "mart.recorded", "mart.behaviours"), ("sessions",), world,
        ("[sources]", "behaviour_text")),
    Stage("goals", ("mart.goals",), ("sessions", "world"), goals),
    Stage("names", ("mart.names", "mart.sentences"), ("sessions", "goals"), names, ("names_text",)),
    Stage("outcomes", ("mart.outcomes", "mart.signals"), ("sessions", "world", "goals"), outcomes, ("[outcomes]",)),
    Stage(
        "tasks", ("mart.tasks", "mart.families", "mart.leakage"), ("sessions", "world", "goals", "outcomes"), tasks,
        ("[gates]",)),
    Stage(
        "rewards", ("mart.rubrics",), ("sessions", "world", "names", "outcomes", "tasks"), rewards,
        ("[gates]", "[outcomes]", "rewards_text")),
    Stage(
        "variants", ("mart.variants",), ("sessions", "world", "goals", "outcomes", "tasks", "rewards"), variants,
        ("[gates]", "[outcomes]", "[variants]")),
    Stage(
        "environments", ("mart.environments",), ("sessions", "world", "outcomes", "tasks", "rewards", "variants"),
        environments, ("image", "base_image", "[audit]"), holds=environments_hold),
    Stage(
        "datasets", ("mart.datasets",), ("extract", "sessions", "outcomes", "tasks", "environments"), datasets,
        holds=datasets_hold),
    Stage(
        "funnel", ("mart.verdicts",),
        ("extract", "sessions", "world", "goals", "names", "outcomes", "tasks", "rewards", "variants", "environments",
         "datasets"), funnel,
        always=True, last=True),
)
