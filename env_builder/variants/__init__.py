"""New tasks: failures replayed as they should have gone, and solutions bound to other records.

In: tasks, goals and families, sessions with their turns, and the world. Out: a `Variant` a task with the rubric that is mined
from its played solution as others are from logged ones, and a decision on every task without a known success and on every new
instance that was tried. Sees: what `failures.py` and `rebinding.py` see. Does not see: whether a rubric can be fooled;
`verify.py` plays against variants as against all others.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import polars as pl

from env_builder.rewards import mine
from env_builder.rewards.witness import rubric_id
from env_builder.rooms import INSTANT, rows_of
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.programs import Programs, presumed_effect
from env_builder.runtime.world import World
from env_builder.users import scripts
from env_builder.variants.failures import PROOFS, PROVEN, Derived, ServiceModel, SessionGoal, Unbound, proofs
from env_builder.variants.moves import ACTS, forms_of, moves_of, sources_of, turns_of, uses_of
from env_builder.variants.rebinding import Donor, EntityPool, rebound, said_only
from env_builder.variants.solutions import FailedTask, Solver
from env_builder.world.calls import ReadCalls
from warehouse.records import Decision, Memoize, Outcome, Session, Turn, Variant, frame, recompute

STAGE = "variants"
_BAD = 0.5
"""Probability of success below which a session speaks against the end that it reached."""
_ROUTINE = 0.9
"""Share of a family's good sessions that an act is in which belongs to the routine."""
_DONORS = 12
"""Tasks of a family that lend their words and their solution, by their hash."""
_FEW = 5
"""Fewer good sessions than this make no routine."""

Row = dict[str, Any]


class Variants(NamedTuple):
    """What `make` gives."""

    variants: pl.DataFrame
    """Frame of `Variant`, by task_id."""
    decisions: pl.DataFrame
    """Frame of `Decision`: one row a task without a known success, and a new instance that was tried."""


class Made(NamedTuple):
    """A task with a session that was played, not logged."""

    task: Row
    """Of `Task`; `succeeded_session_ids` is that session."""
    made_from: str
    """`failure` or `rebinding`."""
    derived: Derived


class VariantTables(NamedTuple):
    """What variants are made of, as the warehouse holds it."""

    tasks: pl.DataFrame
    rubrics: pl.DataFrame
    """Of tasks with a known success that counts."""
    goals: pl.DataFrame
    families: pl.DataFrame
    sessions: pl.DataFrame
    turns: pl.DataFrame
    outcomes: pl.DataFrame
    facts: pl.DataFrame
    recorded: pl.DataFrame
    behaviours: pl.DataFrame


def make(
    tables: VariantTables, failures: bool = True, per_family: int = 0, memoize: Memoize = recompute,
    read: ReadCalls | None = None,
) -> Variants:
    """Return new tasks of every service: `failures` as tasks, and at most `per_family` instances of a family about other
    records. `read`: as `calls_of`.

    Every task without a known success, and every new instance that was tried, is a variant or has a decision that is not kept.
    """
    made: list[Made] = []
    rejected: list[Decision] = []
    for service in tables.tasks["service"].unique().sort():
        own = VariantTables(*(each.filter(pl.col("service") == service) if "service" in each.columns else each
                              for each in tables))
        for made_from, task, outcome in _tried(own, str(service), failures, per_family, memoize):
            if isinstance(outcome, Derived):
                made.append(Made(task, made_from, outcome))
            else:
                rejected.append(_decision(task["task_id"], False, outcome.reason, outcome.detail))
    variants, unrewarded = _rewarded(made, tables, memoize, read)
    solved = variants.select("task_id", "made_from", "derived_from").iter_rows()
    kept = [_decision(task_id, True, f"from_{made_from}", f"Solved as {lent} was.") for task_id, made_from, lent in solved]
    return Variants(variants, frame(Decision, [*rejected, *unrewarded, *kept]).sort("subject"))


def _tried(
    own: VariantTables, service: str, failures: bool, per_family: int, memoize: Memoize = recompute,
) -> list[tuple[str, Row, Derived | Unbound]]:
    """Try all new tasks of a service: what each is made from, the task, and its solution or why there is none. The world that
    they are played in is left when this returns."""
    service_model = _service_model(own, service)
    of_failures = (("failure", *each) for each in _failures(own, service_model, failures, memoize))
    of_others = (("rebinding", *each) for each in _rebound(own, service_model, service, per_family))
    return [(origin, task, _without_frames(outcome)) for origin, task, outcome in chain(of_failures, of_others)]


def _without_frames(outcome: Derived | Unbound) -> Derived | Unbound:
    """Return an outcome as it is, and what was raised without the frames that it passed: they hold the world."""
    return outcome if isinstance(outcome, Derived) else Unbound(outcome.reason, outcome.detail)


def _failures(
    own: VariantTables, service_model: ServiceModel, enabled: bool, memoize: Memoize,
) -> Iterator[tuple[Row, Derived | Unbound]]:
    """Each task that no known success gives a rubric, with the session that solves it or why there is none."""
    failed = own.tasks.join(own.rubrics, on="task_id", how="anti").sort("task_id")
    if not enabled:
        yield from ((task, Unbound("not_asked_for", "[variants] says failures = false.")) for task in failed.to_dicts())
        return
    starts_at = dict(failed.select("task_id", pl.col("starts_at").dt.strftime(INSTANT)).iter_rows())
    chance = dict(own.outcomes.select("session_id", "probability").iter_rows())
    solver = Solver(service_model, memoize)
    for task in failed.to_dicts():
        likely = sorted(task["session_ids"], key=lambda name: (-(chance.get(name) or 0.0), name))
        bad = [name for name in task["session_ids"] if (chance.get(name) or 0.0) < _BAD]
        yield task, solver.outcome(FailedTask(task["task_id"], task["family"], starts_at[task["task_id"]], likely, bad))


def _rebound(own: VariantTables, service_model: ServiceModel, service: str, n: int) -> Iterator[tuple[Row, Derived | Unbound]]:
    """Return new tasks of each family about other records, and why others that were tried are none."""
    if not n:
        return
    sides = {name: side for ids, side in own.tasks.select("session_ids", "split").iter_rows() for name in ids}
    stamped = own.tasks.with_columns(pl.col("starts_at").dt.strftime(INSTANT).alias("instant"))
    instants = dict(stamped.sort("task_id").group_by("split").agg(pl.col("instant").sort()).iter_rows())
    pool = EntityPool(service_model, own.facts.select("entity_class", "key").unique().iter_rows(), sides, instants)
    chance = dict(own.outcomes.select("session_id", "probability").iter_rows())
    rewarded = stamped.join(own.rubrics, on="task_id", how="semi").filter(pl.col("succeeded_session_ids").list.len() > 0)
    donors: dict[str, list[Donor]] = defaultdict(list)
    for task in rewarded.to_dicts():
        best, begun = task["succeeded_session_ids"][0], service_model.begun(task.pop("instant"), frozenset(task["session_ids"]))
        donors[task["family"]].append(Donor(task, begun, service_model.moves.get(best, []), best, chance.get(best) or 0.0))
    chosen = [sorted(family_donors, key=lambda donor: digest(donor.task["task_id"]))[:_DONORS] for _,
              family_donors in sorted(donors.items())]
    literal = said_only(service_model, (donor for family_donors in chosen for donor in family_donors))
    for family_donors in chosen:
        yield from rebound(service_model, family_donors, pool, literal, n)


def _service_model(own: VariantTables, service: str) -> ServiceModel:
    rows = rows_of(service, own.facts, own.recorded, own.behaviours)
    world, programs = World(rows.facts, rows.recorded), Programs({row["tool"]: row for row in rows.programs})
    effects = {row["tool"]: presumed_effect(row) for row in rows.programs}
    moves = moves_of(own.turns, own.sessions["session_id"])
    good = own.tasks.select("family", "session_ids", "starts_at", pl.col("succeeded_session_ids").alias("session_id")).explode(
        "session_id").drop_nulls("session_id").with_columns(pl.col("starts_at").dt.strftime(INSTANT))
    columns = ("family", "session_ids", "starts_at", "session_id")
    views = {name: (family, at, frozenset(ids)) for family, ids, at, name in good.select(columns).iter_rows()}
    acting = frozenset(tool for tool, effect in effects.items() if effect in ACTS)
    well = {name: moves[name] for name in sorted(views) if name in moves}
    reads = ((session_id, move) for session_id, moves_there in well.items() for move in moves_there
             if move.arguments and not move.failed and effects.get(move.tool) == "read")
    goals: dict[str, list[SessionGoal]] = defaultdict(list)
    for session_id, asks, slots in own.goals.sort("session_id", "place").select("session_id", "asks", "slots").iter_rows():
        goals[session_id].append(SessionGoal(asks, json.loads(slots)))
    empty = ServiceModel(world, programs, effects, {}, {}, {}, {}, {}, {}, goals, moves)
    model = empty._replace(
        uses=uses_of(acting, well, lambda name: empty.begun(*views[name][1:])), sources=sources_of(own.families["signature"]),
        reads=forms_of(reads), routine=_routines(own.families, acting))
    proven = proofs(model, {name: (view[0], model.begun(*view[1:])) for name, view in views.items()})
    messages = dict(_goal_messages(own).iter_rows())
    good_wishes = Counter(tuple(messages.get(name, ())) for name in views)
    is_proven = {tool: n >= PROOFS and n_right >= PROVEN * n for tool, (n, n_right) in proven.items()}
    return model._replace(goal_messages=messages, good_wishes=good_wishes, proven=proven, is_proven=is_proven)


def _goal_messages(own: VariantTables) -> pl.DataFrame:
    """Return of each session with which of its user's messages its goals came, by session."""
    messages = own.turns.filter((pl.col("role") == "user") & (pl.col("kind") != "call")).select("session_id", "position")
    before = own.goals.join(messages, on="session_id").filter(pl.col("position") <= pl.col("begins"))
    counted = before.group_by("session_id", "place").agg(pl.len().alias("messages")).sort("session_id", "place")
    return counted.group_by("session_id", maintain_order=True).agg("messages")


def _routines(families: pl.DataFrame, acting: frozenset[str]) -> dict[str, tuple[str, ...]]:
    by_family = {}
    for family, asks, n_succeeded, signature in families.select("family", "asks", "n_succeeded", "signature").iter_rows():
        named = set(json.loads(asks))
        usual = [entry["tool"] for entry in json.loads(signature) if entry["tool"] in acting - named
                 and entry["n_sessions"] >= max(_ROUTINE * n_succeeded, _FEW)]
        by_family[family] = tuple(usual)
    return by_family


def _rewarded(
    made: list[Made], tables: VariantTables, memoize: Memoize, read: ReadCalls | None,
) -> tuple[pl.DataFrame, list[Decision]]:
    """Variants with the rubrics that are mined from their sessions, and a decision on each that gives none."""
    if not made:
        return frame(Variant, []), []
    by_id = {digest(f"a session that nobody logged {each.task['task_id']}")[:32]: each for each in made}
    turns = frame(Turn, [row for session_id, each in by_id.items()
                         for row in turns_of(session_id, each.task["service"], each.derived.moves)])
    tasks = tables.tasks.clear().vstack(pl.DataFrame(
        [each.task | {"succeeded_session_ids": [session_id]} for session_id, each in by_id.items()],
        schema=tables.tasks.schema))
    chances = [{"session_id": session_id, "probability": each.derived.sure, "signals": "[]", "model": ""}
               for session_id, each in by_id.items()]
    differences = [canonical(each.derived.difference) for each in by_id.values()]
    ends = pl.DataFrame({"session_id": list(by_id), "difference": differences})
    played = frame(Session, [{"session_id": session_id, "service": each.task["service"]} for session_id, each in by_id.items()])
    all_sessions = pl.concat([tables.sessions, played])
    mined = mine(
        tasks, all_sessions, pl.concat([tables.turns, turns]), pl.concat([tables.outcomes, frame(Outcome, chances)]), ends,
        _effects(tables.behaviours), memoize=memoize, goals=_goals_of(by_id, tables.goals), read=read)
    words = {row["task_id"]: row for row in scripts(tasks, turns, memoize).to_dicts()}
    rubrics = {row["task_id"]: row for row in mined.rubrics.to_dicts()}
    task_of = dict(tables.tasks.explode("succeeded_session_ids").drop_nulls("succeeded_session_ids").select(
        "succeeded_session_ids", "task_id").iter_rows())
    rows = [_variant(each, session_id, rubrics[each.task["task_id"]], words[each.task["task_id"]], task_of)
            for session_id, each in by_id.items() if each.task["task_id"] in rubrics]
    own = pl.col("subject").is_in([each.task["task_id"] for each in made])
    rejected = mined.decisions.filter(own & ~pl.col("kept")).with_columns(stage=pl.lit(STAGE))
    return frame(Variant, rows).sort("task_id"), [Decision(**row) for row in rejected.to_dicts()]


def _goals_of(by_id: Mapping[str, Made], goals: pl.DataFrame) -> pl.DataFrame:
    """Return the goals of each new task's session: of one that asked for it, else of its solution's."""
    origin = {session_id: next(iter(each.task["session_ids"]), each.derived.lent_by) for session_id, each in by_id.items()}
    named = pl.DataFrame({"session_id": list(origin.values()), "made": list(origin)})
    return goals.join(named, on="session_id").with_columns(session_id="made").drop("made")


def _variant(made: Made, session_id: str, rubric: Row, words: Row, task_of: Mapping[str, str]) -> Row:
    lent = made.derived.lent_by
    fields = {name: made.task[name] for name in ("task_id", "service", "family", "slots", "goal", "session_ids", "split")}
    checks = rubric["checks"].replace(session_id, lent)
    return fields | {
        "starts_at": made.task["starts_at"], "derived_from": task_of[lent], "made_from": made.made_from,
        "opening": words["opening"], "script": words["script"], "checks": checks, "solution": rubric["solution"],
        "rubric_id": rubric_id(made.task["task_id"], checks, rubric["solution"])}


def _decision(subject: str, kept: bool, reason: str, detail: str) -> Decision:
    return Decision(stage=STAGE, subject=subject, kept=kept, reason=reason, detail=detail)


def _effects(behaviours: pl.DataFrame) -> pl.DataFrame:
    """(service, tool, effect, presumed, counted): as `pipelines.building.decisions.effects_of` gives them."""
    simulated = pl.coalesce(pl.col("program").str.json_path_match("$.presumed"), "effect").alias("presumed")
    harmless = pl.col("program").str.json_path_match("$.harmless") == "true"
    return behaviours.select("service", "tool", "effect", simulated, harmless.fill_null(False).alias("harmless")).with_columns(
        pl.when("harmless").then("presumed").otherwise("effect").alias("counted")).drop("harmless")
